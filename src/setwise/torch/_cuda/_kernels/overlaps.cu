// Quotients of sums over the sets of a class. With x the probabilities and y the truths of a class,
// let X = sum of x, Y = sum of y, and Z = sum of x y (OVERLAP) or of |x - y|. The value of a set is
// (1 - (n . (X, Y, Z) + s) / (d . (X, Y, Z) + s)) ^ gamma. One launch computes the sums, and its
// last block the mean and its slopes in X and Z. A second launch, in the backward pass, computes
// the gradient in the logits.
//
// Logits (images, CLASSES, pixels) may have any strides. Targets are classes (images, pixels), or
// with SOFT contiguous degrees (images, CLASSES, pixels). A set is a class over a group of images:
// all of them, or one.

struct Arguments {
    const T* logits;
    const L* target;
    const double* weights;  // (CLASSES,), 0 for a class that does not count
    // (groups + blocks, CLASSES, 4): X, Y, Z, and the number of elements that count.
    double* partial;
    double* sets;  // (groups, CLASSES, 4): value, slopes in X and Z, coefficient in the mean
    double* of_group;  // (groups,): the sum of the coefficients of its sets
    u32* marks;  // number of finished blocks, zero before and after
    float* total;
    float* slopes;  // (groups, CLASSES, 2): slopes of the mean in X and Z
    const float* upwards;  // the incoming slope of the mean
    T* gradient;  // with the strides of the logits
    i64 images, pixels, groups, ignore;
    i64 image_stride, class_stride, pixel_stride;
    double above[3], below[3], smooth, gamma;
};

constexpr int WARPS = THREADS / 32;
constexpr int TILES_AT_ONCE = 32;  // tiles whose sums are in single precision; not tuned

__device__ inline float squashed(float logit, float2 normalizer) {
#if ACTIVATION == 2
    return 1.0f / (1.0f + power_of_e(-logit));
#else
    return probability(logit, normalizer);
#endif
}

// The truths of a pixel.
struct Truth {
    const L* at;
    i64 pixels, ignore;
    int label;
    bool nothing;  // whether the pixel counts for no class

    __device__ Truth(const Arguments& p, i64 image, i64 i) : pixels(p.pixels), ignore(p.ignore), label(-1) {
#if SOFT
        at = p.target + image * C * p.pixels + i;
        nothing = false;
#else
        at = p.target + image * p.pixels + i;
        nothing = is_void(*at, p.ignore);
        if (!nothing) label = static_cast<int>(*at);
#endif
    }
    // Return y of a class, or a negative number if it does not count.
    __device__ float degree(int c) const {
#if SOFT
        const L y = at[c * pixels];
        if (HAS_IGNORE && y == static_cast<L>(ignore)) return -1.0f;
        const float degree = static_cast<float>(y);
        if (!(degree >= 0.0f && degree <= 1.0f)) __trap();
        return degree;
#else
        return nothing ? -1.0f : label == c ? 1.0f : 0.0f;
#endif
    }
};

__device__ inline i64 block_of(i64 tile, i64 all) { return ((tile + 1) * gridDim.x - 1) / all; }

__device__ void sum_up(double* shared, const Arguments& p, i64 tiles) {
    constexpr int K = SOFT ? 4 : 3;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const i64 together = p.images / p.groups * tiles;
    const Share share(p.images * tiles);
    double* const mine = shared + warp * C * K;
    for (i64 item = share.first; item < share.last;) {
        const i64 group = item / together, end = min(share.last, (group + 1) * together);
        for (int k = threadIdx.x; k < WARPS * C * K; k += THREADS) shared[k] = 0;
        __syncthreads();
        while (item < end) {
            float x_sum[C], z_sum[C], y_sum[C], number[SOFT ? C : 1];
#pragma unroll
            for (int c = 0; c < C; ++c) x_sum[c] = z_sum[c] = y_sum[c] = 0;
#pragma unroll
            for (int c = 0; c < (SOFT ? C : 1); ++c) number[c] = 0;
            for (const i64 stop = min(end, item + TILES_AT_ONCE); item < stop; ++item) {
                const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
                if (i >= p.pixels) continue;
                const Truth truth(p, image, i);
                if (truth.nothing) continue;
                const Pixel pixel(p.logits + image * p.image_stride + i * p.pixel_stride, p.class_stride);
                const float2 normalizer = FROM_LOGITS ? pixel.normalizer() : make_float2(0.0f, 1.0f);
                if (!SOFT) number[0] += 1;
#pragma unroll
                for (int c = 0; c < C; ++c) {
                    const float x = squashed(pixel.logit(c), normalizer), y = truth.degree(c);
                    if (SOFT && y < 0) continue;
                    if (SOFT) number[SOFT ? c : 0] += 1;
                    x_sum[c] += x;
                    y_sum[c] += y;
                    z_sum[c] += OVERLAP ? x * y : fabsf(x - y);
                }
            }
            const auto add = [&](float sum, int place) {
                for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
                if (lane == 0) mine[place] += sum;
            };
#pragma unroll
            for (int c = 0; c < C; ++c) {
                add(x_sum[c], c * K);
                add(y_sum[c], c * K + 1);
                add(z_sum[c], c * K + 2);
                if (SOFT) add(number[SOFT ? c : 0], c * K + 3);
            }
            if (!SOFT) {  // the same for every class, so stored with the sums of the block
                float some = number[0];
                for (int step = 16; step; step >>= 1) some += __shfl_xor_sync(~0u, some, step);
                if (lane == 0) shared[WARPS * C * K + warp] += some;
            }
        }
        __syncthreads();
        double* const out = p.partial + (group + blockIdx.x) * C * 4;
        for (int k = threadIdx.x; k < C * 4; k += THREADS) {
            double sum = 0;
            for (int w = 0; w < WARPS; ++w)
                sum += !SOFT && k % 4 == 3 ? shared[WARPS * C * K + w]
                                           : shared[w * C * K + k / 4 * K + k % 4];
            out[k] = sum;
        }
        __syncthreads();
        if (!SOFT && threadIdx.x < WARPS) shared[WARPS * C * K + threadIdx.x] = 0;
        __syncthreads();
    }
}

// Return the value of a set and its slopes in X and Z.
__device__ double3 value_of(const Arguments& p, const double* s) {
    double above = p.smooth, below = p.smooth;
    for (int k = 0; k < 3; ++k) above += p.above[k] * s[k], below += p.below[k] * s[k];
    if (below <= 0) return make_double3(0.0, 0.0, 0.0);
    const double value = (below - above) / below;
    double slope = -1 / (below * below), powered = value;
    if (p.gamma != 1) {
        // For gamma < 1 the slope at 0 is infinite, so a set without loss gets the slope 0.
        powered = value > 0 ? pow(value, p.gamma) : value != value ? value : 0.0;
        slope *= value > 0 ? p.gamma * powered / value : 0.0;
    }
    return make_double3(powered, slope * (p.above[0] * below - above * p.below[0]),
                        slope * (p.above[2] * below - above * p.below[2]));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) sums(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ double scratch[32];
    double* const shared = reinterpret_cast<double*>(memory);
    const i64 tiles = (p.pixels + THREADS - 1) / THREADS, together = p.images / p.groups * tiles;
    if (threadIdx.x < WARPS) shared[WARPS * C * (SOFT ? 4 : 3) + threadIdx.x] = 0;
    sum_up(shared, p, tiles);
    if (!is_last_block(p.marks)) return;
    const i64 all = p.images * tiles;
    for (i64 set = threadIdx.x; set < p.groups * C; set += THREADS) {
        const i64 group = set / C, first = group * together, last = first + together - 1;
        double s[4] = {0, 0, 0, 0};
        for (i64 block = block_of(first, all); block <= block_of(last, all); ++block) {
            // Blocks without work have written nothing.
            if (all * block / gridDim.x == all * (block + 1) / gridDim.x) continue;
            const double* from = p.partial + ((group + block) * C + set % C) * 4;
            for (int k = 0; k < 4; ++k) s[k] += __ldcg(from + k);
        }
        const double3 value = value_of(p, s);
        p.sets[set * 4] = value.x;
        p.sets[set * 4 + 1] = value.y;
        p.sets[set * 4 + 2] = value.z;
        p.sets[set * 4 + 3] = (PRESENT ? s[1] > 0 : s[3] > 0) ? p.weights[set % C] : 0.0;
    }
    __syncthreads();
    double groups = 0, sum = 0;
    for (i64 group = threadIdx.x; group < p.groups; group += THREADS) {
        double norm = 0, of_group = 0;
        for (int c = 0; c < C; ++c) {
            const double* set = p.sets + (group * C + c) * 4;
            norm += set[3];
            if (set[3] != 0) of_group += set[3] * set[0];
        }
        p.of_group[group] = norm;
        if (norm > 0) groups += 1, sum += of_group / norm;
    }
    __shared__ double number;
    groups = block_sum<double>(groups, scratch);
    if (threadIdx.x == 0) number = groups > 1 ? groups : 1.0;
    sum = block_sum<double>(sum, scratch);
    if (threadIdx.x == 0) *p.total = static_cast<float>(sum / number), *p.marks = 0;
    __syncthreads();
    for (i64 set = threadIdx.x; set < p.groups * C; set += THREADS) {
        const double* s = p.sets + set * 4;
        const double norm = p.of_group[set / C];
        const double scale = norm > 0 ? s[3] / norm / number : 0.0;
        p.slopes[set * 2] = scale != 0 ? static_cast<float>(scale * s[1]) : 0.0f;
        p.slopes[set * 2 + 1] = scale != 0 ? static_cast<float>(scale * s[2]) : 0.0f;
    }
}

__device__ inline void convert(float x, float& out) { out = x; }
__device__ inline void convert(float x, Half& out) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}
__device__ inline void convert(float x, Bfloat16& out) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(out.bits) : "f"(x));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gradient(const __grid_constant__ Arguments p) {
    const i64 tiles = (p.pixels + THREADS - 1) / THREADS, together = p.images / p.groups;
    const Share share(p.images * tiles);
    const float up = *p.upwards;
    for (i64 item = share.first; item < share.last; ++item) {
        const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
        if (i >= p.pixels) continue;
        const i64 at = image * p.image_stride + i * p.pixel_stride;
        const Truth truth(p, image, i);
        const Pixel pixel(p.logits + at, p.class_stride);
        const float2 normalizer = FROM_LOGITS ? pixel.normalizer() : make_float2(0.0f, 1.0f);
        const float* slopes = p.slopes + image / together * C * 2;
        float x[C], g[C], mean = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const float y = truth.degree(c);
            x[c] = squashed(pixel.logit(c), normalizer);
            const float towards = OVERLAP ? y : (x[c] > y ? 1.0f : x[c] < y ? -1.0f : x[c] - y);
            g[c] = y < 0 ? 0.0f : up * (__ldg(slopes + 2 * c) + __ldg(slopes + 2 * c + 1) * towards);
            mean += x[c] * g[c];
        }
#pragma unroll
        for (int c = 0; c < C; ++c) {
            const float slope = ACTIVATION == 1   ? x[c] * (g[c] - mean)
                                : ACTIVATION == 2 ? g[c] * x[c] * (1.0f - x[c])
                                                  : g[c];
            convert(truth.nothing ? 0.0f : slope, p.gradient[at + c * p.class_stride]);
        }
    }
}

// The Lovász softmax loss of l(n, q) by counting, in one launch: the normaliser of each pixel, the
// histograms of the errors |[target = c] - p_c|, the gains of the buckets, the value and the
// gradient.
//
// Logits (images, CLASSES, pixels) may have any strides. A set is a class over a group of images:
// all of them, or one. There are BUCKETS equal buckets on [0, 1].

constexpr int PARTS = (BUCKETS + THREADS - 1) / THREADS;
// The number of classes that are counted at once.
constexpr int COLUMNS = (C + CLASS_GROUPS - 1) / CLASS_GROUPS;
constexpr int TILES_TO_FLUSH = 65535 / THREADS;                 // a counter has 16 bits
// The number of low buckets of every class that fit into shared memory.
constexpr int NEAR = COLUMNS * BUCKETS / C;

struct Arguments {
    const T* logits;
    const L* target;
    float* gradient;
    float* total;
    float2* normalizer;     // (images, pixels)
    const double* weights;  // (CLASSES,), 0 for a class that does not count
    u32* counts;            // (groups, CLASSES, 2, BUCKETS), zero before and after
    u32* totals;  // (groups, CLASSES + 1): pixels of each class, and of all; zero before and after
    float* gains;           // (groups, CLASSES, 2, BUCKETS)
    double* partial;        // (blocks,)
    u32* barrier;           // 2 counters, zero before and after
    i64 images, pixels, groups, ignore;
    i64 image_stride, class_stride, pixel_stride;
    Ratio ratio;
};

__device__ inline u32 bucket(float error) {
    return min(static_cast<u32>(max(error * BUCKETS, 0.0f)), BUCKETS - 1u);
}

__device__ void normalize(const Arguments& p, i64 tiles) {
    const Share share(p.images * tiles);
    for (i64 item = share.first; item < share.last; ++item) {
        const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
        if (i >= p.pixels) continue;
        const Pixel pixel(p.logits + image * p.image_stride + i * p.pixel_stride, p.class_stride);
        p.normalizer[image * p.pixels + i] = pixel.normalizer();
    }
}

__device__ void flush(u32* shared, u32* found, const Arguments& p, i64 group, int first, int columns) {
    __syncthreads();
    u32* counts = p.counts + (group * C + first) * 2 * BUCKETS;
    for (int i = threadIdx.x; i < columns * BUCKETS; i += THREADS) {
        const u32 both = shared[i];
        u32* to = counts + i / BUCKETS * 2 * BUCKETS + i % BUCKETS;
        if (both >> 16) atomicAdd(to, both >> 16);
        if (both & 0xffffu) atomicAdd(to + BUCKETS, both & 0xffffu);
        shared[i] = 0;
    }
    for (int c = threadIdx.x; c <= C; c += THREADS) {
        if (found[c]) atomicAdd(p.totals + group * (C + 1) + c, found[c]);
        found[c] = 0;
    }
    __syncthreads();
}

__device__ void histogram(u32* shared, const Arguments& p, i64 tiles) {
    __shared__ u32 found[C + 1];
    for (int i = threadIdx.x; i < COLUMNS * BUCKETS; i += THREADS) shared[i] = 0;
    for (int c = threadIdx.x; c <= C; c += THREADS) found[c] = 0;
    __syncthreads();
    const Share share(CLASS_GROUPS * p.images * tiles);
    // The number of pieces that share their counters.
    const i64 together = p.images / p.groups * tiles;
    for (i64 item = share.first; item < share.last;) {
        const i64 column = item / (p.images * tiles), group = item / together % p.groups;
        const i64 end =
            min(min(share.last, (item / together + 1) * together), item + TILES_TO_FLUSH);
        const int first = static_cast<int>(column) * COLUMNS;
        const int columns = min(COLUMNS, C - first);
        for (; item < end; ++item) {
            const i64 place = item - column * p.images * tiles;
            const i64 image = place / tiles, i = (place % tiles) * THREADS + threadIdx.x;
            if (i >= p.pixels) continue;
            const L label = p.target[image * p.pixels + i];
            const T* x =
                p.logits + image * p.image_stride + i * p.pixel_stride + first * p.class_stride;
            float logits[COLUMNS];
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k)
                if (k < columns) logits[k] = x[k * p.class_stride];
            const float2 normalizer =
                FROM_LOGITS ? p.normalizer[image * p.pixels + i] : make_float2(0.0f, 1.0f);
            if (is_void(label, p.ignore)) continue;
            if (column == 0) {
                atomicAdd(found + static_cast<int>(label), 1u);
                atomicAdd(found + C, 1u);
            }
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k)
                if (k < columns) {
                    const bool positive = static_cast<i64>(label) == first + k;
                    const float y = probability(logits[k], normalizer);
                    const u32 key = bucket(positive ? 1.0f - y : y);
                    // Most pixels are negatives in the lowest bucket. Their number is computed from
                    // the total.
                    if (positive || key)
                        atomicAdd(shared + k * BUCKETS + key, positive ? 0x10000u : 1u);
                }
        }
        flush(shared, found, p, group, first, columns);
    }
}

__device__ void gains_of_part(u64* scratch, const Arguments& p, i64 set, int part) {
    const u32* totals = p.totals + set / C * (C + 1);
    const int c = static_cast<int>(set % C);
    double norm = 0;
    for (int k = threadIdx.x; k < C; k += THREADS)
        if (!PRESENT || __ldcg(totals + k)) norm += p.weights[k];
    norm = block_sum<double>(norm, reinterpret_cast<double*>(scratch));
    __shared__ double scale;
    const u32 m = __ldcg(totals + c);
    if (threadIdx.x == 0)
        scale = (PRESENT && !m) || norm == 0 ? 0.0 : p.weights[c] / norm / p.groups;
    const u32* counts = p.counts + set * 2 * BUCKETS;
    const auto both = [&](int rank) -> u64 {
        const u32* at = counts + BUCKETS - 1 - rank;
        return (static_cast<u64>(__ldcg(at)) << 32) + __ldcg(at + BUCKETS);
    };
    u64 before = 0;
#pragma unroll 8
    for (int i = 0; i < part; ++i) before += both(i * THREADS + threadIdx.x);
    before = block_sum<u64>(before, scratch);
    __shared__ u64 start;
    if (threadIdx.x == 0) start = before;
    const int rank = part * THREADS + threadIdx.x;
    const u64 mine = rank < BUCKETS ? both(rank) : 0;
    const u64 at = block_exclusive_sum(mine, scratch) + start;
    if (rank < BUCKETS) {
        double negatives = low(mine);
        if (rank == BUCKETS - 1) negatives = static_cast<double>(__ldcg(totals + C) - m) - low(at);
        const double2 gain = p.ratio.gains(m, high(at), low(at), high(mine), negatives);
        float* gains = p.gains + set * 2 * BUCKETS + BUCKETS - 1 - rank;
        gains[0] = gain.x * scale;
        gains[BUCKETS] = gain.y * scale;
    }
    __syncthreads();
}

// Most errors are small and not of the pixel's own class. Their gains lie in shared memory, where a
// warp that reads 32 places seldom waits.
__device__ void look_up(float* near, double* scratch, const Arguments& p, i64 tiles) {
    const Share share(p.images * tiles);
    const i64 together = p.images / p.groups;
    // Copying gains to shared memory is worthwhile if a group has enough pixels.
    const u32 fetched = together * tiles * 2 > gridDim.x ? NEAR : 0;
    i64 group = -1;
    double sum = 0;
    for (i64 item = share.first; item < share.last; ++item) {
        const i64 image = item / tiles, i = (item % tiles) * THREADS + threadIdx.x;
        const float* gains = p.gains + image / together * C * 2 * BUCKETS;
        if (fetched && image / together != group) {
            group = image / together;
            __syncthreads();
            for (u32 k = threadIdx.x; k < C * NEAR; k += THREADS)
                near[k] = __ldcg(gains + (2 * (k / NEAR) + 1) * BUCKETS + k % NEAR);
            __syncthreads();
        }
        if (i >= p.pixels) continue;
        const i64 at = image * p.image_stride + i * p.pixel_stride;
        float* out = p.gradient + at;
        const L label = p.target[image * p.pixels + i];
        if (is_void(label, p.ignore)) {
            for (int c = 0; c < C; ++c) out[c * p.class_stride] = 0.0f;
            continue;
        }
        const Pixel pixel(p.logits + at, p.class_stride);
        const float2 normalizer =
            FROM_LOGITS ? p.normalizer[image * p.pixels + i] : make_float2(0.0f, 1.0f);
        float value = 0, mean = 0;
        const auto slope = [&](int c, float y, float& error) {
            const bool positive = static_cast<i64>(label) == c;
            error = positive ? 1.0f - y : y;
            const u32 key = bucket(error);
            const float gain = !positive && key < fetched
                                   ? near[c * NEAR + key]
                                   : gains[(2 * c + !positive) * BUCKETS + key];
            const float slope = error <= 0.0f ? 0.0f : positive ? -gain : gain;
            error *= gain;
            return slope;
        };
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) {
            float part;
            const float y = probability(pixel.logit(c), normalizer), g = slope(c, y, part);
            value += part;
            mean += y * g;
        }
        sum += value;
#pragma unroll UNROLL
        for (int c = 0; c < C; ++c) {
            float part;
            const float y = probability(pixel.logit(c), normalizer), g = slope(c, y, part);
            out[c * p.class_stride] = FROM_LOGITS ? y * (g - mean) : g;
        }
    }
    sum = block_sum<double>(sum, scratch);
    if (threadIdx.x == 0) p.partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) softmax(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    const i64 tiles = (p.pixels + THREADS - 1) / THREADS;
    if (FROM_LOGITS) {
        normalize(p, tiles);
        grid_barrier(p.barrier, 1);
    }
    histogram(reinterpret_cast<u32*>(memory), p, tiles);
    grid_barrier(p.barrier, FROM_LOGITS + 1);
    for (i64 work = blockIdx.x; work < p.groups * C * PARTS; work += gridDim.x)
        gains_of_part(scratch, p, work / PARTS, static_cast<int>(work % PARTS));
    grid_barrier(p.barrier, FROM_LOGITS + 2);
    const i64 thread = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    const i64 threads = static_cast<i64>(gridDim.x) * THREADS;
    for (i64 i = thread; i < p.groups * C * 2 * BUCKETS; i += threads) p.counts[i] = 0;
    for (i64 i = thread; i < p.groups * (C + 1); i += threads) p.totals[i] = 0;
    look_up(reinterpret_cast<float*>(memory), reinterpret_cast<double*>(scratch), p, tiles);
    if (!is_last_block(p.barrier + 1)) return;
    double sum = 0;
    for (u32 block = threadIdx.x; block < gridDim.x; block += THREADS) sum += __ldcg(p.partial + block);
    sum = block_sum<double>(sum, reinterpret_cast<double*>(scratch));
    if (threadIdx.x == 0) *p.total = static_cast<float>(sum);
    if (threadIdx.x < 2) p.barrier[threadIdx.x] = 0;
}

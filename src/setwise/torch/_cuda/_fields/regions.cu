// Steps of regions, for all labels of all regions of a layer at once, with one block per label and
// region.
//
// Let p be the marginals, and s in the base polytopes of a layer's terms. Then log sum exp(a - d)
// <= log sum exp(a) + sum p (exp(-d) - 1), which is a sum of terms for one label and region each.
// Over the polytope of h(n) = w (|S| - n)^alpha - w |S|^alpha + n w |S|^(alpha - 1) it is least at
// the Euclidean projection of s + log p. That is: sort in decreasing order, subtract the gains of
// h, make the result t nonincreasing by pooling, and set s to s + log p - t. So no step raises the
// bound, and t is the new log p up to normalisation. Pooling merges a tree of pieces: while they
// are out of order, a block at the end of one piece absorbs blocks at the start of the next.
//
// Steps are in single precision. `excess` adds to the bound the largest amount by which s exceeds h
// over all sets, in double precision.

struct Arguments {
    const int* pixels;  // (B N): sorted by region, without the image's offset
    const int* starts;        // (B R)
    const int* sizes;         // (B R)
    const int* by_size;       // (B R): largest first
    const double* weights;    // (B R)
    const double* powers;     // (largest + 1): n^alpha
    float* s;                 // (B, L, N)
    float* logs;              // (B, L, N): log p
    const float* p;           // (B, L, N)
    double* out;  // (B R L, 2): largest excess of s over h; the extension of h at p minus <s, p>
    double alpha;
    i64 n;
    int regions, segments, labels;  // R, B R and L
};

extern __shared__ double memory[];

// A region with a label.
struct Item {
    int segment, size;
    i64 first;  // the first of its pixels
    i64 plane;  // the start of label and image
    double weight, level;

    __device__ Item(const Arguments& p, i64 item) {
        segment = p.by_size[item / p.labels];
        const int label = item % p.labels;
        size = p.sizes[segment];
        first = p.starts[segment];
        plane = (i64(segment / p.regions) * p.labels + label) * p.n;
        weight = p.weights[segment];
        level = size ? pow(static_cast<double>(size), p.alpha - 1.0) : 0.0;
    }
    // h(k + 1) - h(k)
    __device__ double gain(const Arguments& p, int k) const {
        return weight * (p.powers[size - k - 1] - p.powers[size - k] + level);
    }
    __device__ double height(const Arguments& p, int k) const {
        return weight * (p.powers[size - k] - p.powers[size] + k * level);
    }
};

struct Scratch {
    float* key;  // the numbers to sort; later the sums of blocks at their starts
    u16* place;  // the position before sorting
    u16* length;  // the length of a block, at its start; 0 elsewhere
    u16* start;  // the start of a block, at its end

    __device__ Scratch() {
        key = reinterpret_cast<float*>(memory);
        place = reinterpret_cast<u16*>(key + CAPACITY);
        length = place + CAPACITY;
        start = length + CAPACITY;
    }
};

template <bool PLACES>
__device__ inline void put_in_order(const Scratch& x, int i, int j, int size) {
    if (j >= size) return;
    const float a = x.key[i], b = x.key[j];
    if (a < b) {
        x.key[i] = b, x.key[j] = a;
        if (PLACES) {
            const u16 k = x.place[i];
            x.place[i] = x.place[j], x.place[j] = k;
        }
    }
}

// Sort in decreasing order by a bitonic network in which all comparisons have one direction, so
// that places beyond the size need no entries. Exchanges over at most 64 places stay within a warp.
// PLACES selects whether the original positions are kept.
template <bool PLACES>
__device__ inline void sort_keys(const Scratch& x, int size) {
    int all = 1;
    while (all < size) all <<= 1;
    for (int log = 1; 1 << log <= all; ++log) {
        for (int t = threadIdx.x; t < all / 2; t += THREADS) {
            const int half = 1 << (log - 1), base = (t >> (log - 1)) << log, at = t & (half - 1);
            put_in_order<PLACES>(x, base + at, base + 2 * half - 1 - at, size);
        }
        if (log > 6) __syncthreads();
        else __syncwarp();
        for (int step = log - 2; step >= 0; --step) {
            for (int t = threadIdx.x; t < all / 2; t += THREADS) {
                const int i = (t >> step) << (step + 1) | (t & ((1 << step) - 1));
                put_in_order<PLACES>(x, i, i + (1 << step), size);
            }
            if (step > 5) __syncthreads();
            else __syncwarp();
        }
        __syncthreads();
    }
}

// Merge the blocks of [low, middle) and of [middle, high), each nonincreasing, into nonincreasing
// blocks.
__device__ inline void join(const Scratch& x, int low, int middle, int high) {
    int first = middle, length = x.length[middle];
    float sum = x.key[middle];
    bool pooled = false;
    while (true) {
        if (first > low) {
            const int before = x.start[first - 1], size = x.length[before];
            if (x.key[before] * length < sum * size) {
                x.length[first] = 0;
                sum += x.key[before], length += size, first = before;
                pooled = true;
                continue;
            }
        }
        const int after = first + length;
        if (!pooled || after >= high) break;
        const int size = x.length[after];
        if (!(sum * size < x.key[after] * length)) break;
        sum += x.key[after], length += size;
        x.length[after] = 0;
    }
    if (!pooled) return;
    x.key[first] = sum;
    x.length[first] = length;
    x.start[first + length - 1] = first;
}

// Return the largest number among the threads before this one, or -1.
__device__ inline int largest_before(int x, int* scratch) {
    const int lane = threadIdx.x & 31;
    for (int step = 1; step < 32; step <<= 1) {
        const int other = __shfl_up_sync(~0u, x, step);
        if (lane >= step) x = max(x, other);
    }
    __syncthreads();
    if (lane == 31) scratch[threadIdx.x >> 5] = x;
    const int before = __shfl_up_sync(~0u, x, 1);
    __syncthreads();
    int most = lane ? before : -1;
    for (int warp = 0; warp < int(threadIdx.x >> 5); ++warp) most = max(most, scratch[warp]);
    return most;
}

extern "C" __global__ void __launch_bounds__(THREADS) step(const __grid_constant__ Arguments p) {
    __shared__ int scratch[32];
    const Scratch x;
    for (i64 k = blockIdx.x; k < i64(p.segments) * p.labels; k += gridDim.x) {
        const Item item(p, k);
        const int size = item.size;
        if (size == 0) return;  // all later regions are empty too
        float* const s = p.s + item.plane;
        float* const logs = p.logs + item.plane;
        __syncthreads();
        for (int i = threadIdx.x; i < size; i += THREADS) {
            const int pixel = p.pixels[item.first + i];
            x.key[i] = s[pixel] + logs[pixel];
            x.place[i] = i;
        }
        __syncthreads();
        sort_keys<true>(x, size);
        for (int i = threadIdx.x; i < size; i += THREADS) {
            x.key[i] -= static_cast<float>(item.gain(p, i));
            x.length[i] = 1;
            x.start[i] = i;
        }
        __syncthreads();
        for (int piece = 1; piece < size; piece <<= 1) {
            for (int at = threadIdx.x; at < size; at += THREADS) {
                const i64 middle = piece + 2 * i64(piece) * at;
                if (middle >= size) break;
                join(x, int(middle) - piece, int(middle), min(int(middle) + piece, size));
            }
            __syncthreads();
        }
        const int each = (size + THREADS - 1) / THREADS, begin = threadIdx.x * each;
        int last = -1;
        for (int i = begin; i < min(begin + each, size); ++i)
            if (x.length[i]) last = i;
        int block = largest_before(last, scratch);
        for (int i = begin; i < min(begin + each, size); ++i) {
            if (x.length[i]) block = i;
            const int pixel = p.pixels[item.first + x.place[i]];
            if (x.length[block] == 1) {
                s[pixel] = static_cast<float>(item.gain(p, i));
                logs[pixel] = x.key[block];
            } else {
                const float t = x.key[block] / x.length[block];
                s[pixel] += logs[pixel] - t;
                logs[pixel] = t;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) excess(const __grid_constant__ Arguments p) {
    __shared__ double sums[32];
    const Scratch x;
    for (i64 k = blockIdx.x; k < i64(p.segments) * p.labels; k += gridDim.x) {
        const Item item(p, k);
        const int size = item.size;
        if (size == 0) return;
        const float* const s = p.s + item.plane;
        const float* const mass = p.p + item.plane;
        __syncthreads();
        double inner = 0;
        for (int i = threadIdx.x; i < size; i += THREADS) {
            const int pixel = p.pixels[item.first + i];
            x.key[i] = s[pixel];
            inner += static_cast<double>(s[pixel]) * static_cast<double>(mass[pixel]);
        }
        __syncthreads();
        sort_keys<false>(x, size);
        // the sums of the largest k, for all k, compared with h
        const int each = (size + THREADS - 1) / THREADS, begin = threadIdx.x * each;
        double own = 0;
        for (int i = begin; i < min(begin + each, size); ++i) own += static_cast<double>(x.key[i]);
        double before = own;
        const int lane = threadIdx.x & 31;
        for (int step = 1; step < 32; step <<= 1) {
            const double other = __shfl_up_sync(~0u, before, step);
            if (lane >= step) before += other;
        }
        if (lane == 31) sums[threadIdx.x >> 5] = before;
        before -= own;
        __syncthreads();
        for (int warp = 0; warp < int(threadIdx.x >> 5); ++warp) before += sums[warp];
        double above = 0;
        for (int i = begin; i < min(begin + each, size); ++i) {
            before += static_cast<double>(x.key[i]);
            above = fmax(above, before - item.height(p, i + 1));
        }
        for (int step = 16; step; step >>= 1) above = fmax(above, __shfl_xor_sync(~0u, above, step));
        __syncthreads();
        if (lane == 0) sums[threadIdx.x >> 5] = above;
        __syncthreads();
        for (int warp = 0; warp < THREADS / 32; ++warp) above = fmax(above, sums[warp]);
        for (int i = threadIdx.x; i < size; i += THREADS) x.key[i] = mass[p.pixels[item.first + i]];
        __syncthreads();
        sort_keys<false>(x, size);
        // bound on the effect of the rounding of p: no gain exceeds the weight
        double extension = -inner;
        for (int i = threadIdx.x; i < size; i += THREADS)
            extension += static_cast<double>(x.key[i]) * (item.gain(p, i) + 1.3e-7 * item.weight);
        extension = block_sum(extension, sums);
        if (threadIdx.x == 0) {
            double* const out = p.out + 2 * (i64(item.segment) * p.labels + k % p.labels);
            out[0] = above, out[1] = extension;
        }
    }
}

// The exact losses after the sort, in one launch: gains in closed form along the sorted keys, and
// slopes written to the positions of the elements.
//
// Scattered writes of 4 bytes are slow in memory and in the cache. So slopes are first distributed
// to windows of the gradient, in whole runs. Then a block puts the slopes of a window, or of a part
// of it, in place in shared memory and writes them at once.

struct Arguments {
    const u32* keys;        // (rows, n), sorted, largest first
    const ORDER* order;     // (rows, n)
    const u32* live;  // (rows,): the number of keys that count; null: all n
    const u32* found;  // (rows / columns + found_blocks, columns): positives
    const double* weights;  // (columns,): coefficients of the sets; null: all are 1
    float* gradient;        // (rows, n)
    float* values;  // (rows,): values times coefficients, and their sum
    uint2* dealt;  // positions and slopes, one window after the other
    u64* counts;  // (rows + blocks,): positives, and elements that count
    double* partial;        // (rows + blocks,)
    u32* totals;            // (rows,)
    u32* ends;  // (WINDOWS,): the number of elements of a window; zero before and after
    u32* barrier;           // 2 counters, zero before and after
    i64 rows, n, columns, found_tiles, found_blocks;
    Ratio ratio;
    i64 window, magic;  // elements per window, a multiple of UNIT; 2^31 UNIT / window, rounded up
    int present, parts, part;  // windows in use, parts per window, and elements per part
};

constexpr int E = 8, WINDOWS = 1024, WARPS = THREADS / 32;
constexpr i64 TILE = THREADS * E, UNIT = 8192;
constexpr u32 NONE = 0x80000000u;  // the key of elements that do not count

// Tiles first, ..., last - 1 of all rows belong to this block.
struct Share {
    i64 tiles, first, last;
    __device__ Share(i64 rows, i64 n) : tiles((n + TILE - 1) / TILE) {
        first = tiles * rows * blockIdx.x / gridDim.x;
        last = tiles * rows * (blockIdx.x + 1) / gridDim.x;
    }
    // Call visit(row, first tile, last tile) for each row of which this block has tiles.
    template <class Visit>
    __device__ void each(Visit visit) const {
        for (i64 tile = first; tile < last;) {
            const i64 row = tile / tiles, end = min(last, (row + 1) * tiles);
            visit(row, tile - row * tiles, end - row * tiles);
            tile = end;
        }
    }
};

__device__ __noinline__ void count(u64* scratch, const Arguments& p, const Share& share) {
    share.each([&](i64 row, i64 t, i64 last) {
        const i64 n = p.live ? static_cast<i64>(__ldcg(p.live + row)) : p.n;
        u64 sum = 0;
        for (; t < last && t * TILE < n; ++t) {
            const u32* keys = p.keys + row * p.n + t * TILE;
            Vector<u32, 4> key[E / 4];
            if ((t + 1) * TILE <= n && row * p.n % 4 == 0) {
#pragma unroll
                for (int e = 0; e < E / 4; ++e)
                    key[e] = reinterpret_cast<const Vector<u32, 4>*>(keys)[e * THREADS + threadIdx.x];
            } else {
#pragma unroll
                for (int e = 0; e < E; ++e) {
                    const i64 i = e * THREADS + threadIdx.x;
                    key[e / 4].v[e % 4] = t * TILE + i < n ? keys[i] : NONE;
                }
            }
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const u32 x = key[e / 4].v[e % 4];
                sum += (static_cast<u64>(x & 1u) << 32) + (x != NONE);
            }
        }
        sum = block_sum<u64>(sum, scratch);
        if (threadIdx.x == 0) p.counts[row + blockIdx.x] = sum;
    });
    const i64 warp = static_cast<i64>(blockIdx.x) * WARPS + (threadIdx.x >> 5);
    for (i64 row = warp; row < p.rows; row += gridDim.x * WARPS) {
        const u32 sum = sum_over_blocks(p.found + row % p.columns, p.columns, p.rows / p.columns,
                                        p.found_tiles, row / p.columns, p.found_blocks, p.found_blocks);
        if ((threadIdx.x & 31) == 0) p.totals[row] = sum;
    }
}

// Return the coefficient of a set in the mean: its weight, divided by those of the sets of its
// group that count.
__device__ double scale_of(double* scratch, const Arguments& p, i64 row) {
    if (!p.weights) return 1.0;
    __shared__ double scale;
    const u32* totals = p.totals + row / p.columns * p.columns;
    double norm = 0;
    for (int c = threadIdx.x; c < p.columns; c += THREADS)
        if (!p.present || __ldcg(totals + c)) norm += p.weights[c];
    norm = block_sum<double>(norm, scratch);
    if (threadIdx.x == 0)
        scale = (p.present && !__ldcg(p.totals + row)) || norm == 0
                    ? 0.0
                    : p.weights[row % p.columns] / norm * p.columns / p.rows;
    __syncthreads();
    return scale;
}

// Return position / p.window, without a division.
__device__ inline u32 window_of(const Arguments& p, u32 position) {
    return __umulhi(position / static_cast<u32>(UNIT) * 2, static_cast<u32>(p.magic));
}

struct Dealing {
    u32 counts[WINDOWS], offsets[WINDOWS];
    i64 places[WINDOWS];
    uint2 dealt[TILE];
};

__device__ void deal(Dealing& w, u64* scratch, const Arguments& p, const u32* positions,
                     const float* slopes, u32 live) {
    u32 ranks[E];
#pragma unroll
    for (int e = 0; e < E; ++e)
        if (live >> e & 1) ranks[e] = atomicAdd(w.counts + window_of(p, positions[e]), 1u);
    __syncthreads();
    const u32 mine = threadIdx.x < WINDOWS ? w.counts[threadIdx.x] : 0;
    u32 place = 0;
    if (mine) place = atomicAdd(p.ends + threadIdx.x, mine);
    const u32 offset = static_cast<u32>(block_exclusive_sum(mine, scratch));
    __shared__ u32 all;
    if (threadIdx.x == WINDOWS - 1) all = offset + mine;
    if (threadIdx.x < WINDOWS) {
        w.offsets[threadIdx.x] = offset;
        w.counts[threadIdx.x] = 0;
        w.places[threadIdx.x] = threadIdx.x * p.window - offset + place;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; ++e)
        if (live >> e & 1)
            w.dealt[w.offsets[window_of(p, positions[e])] + ranks[e]] =
                make_uint2(positions[e], __float_as_uint(slopes[e]));
    __syncthreads();
    for (u32 j = threadIdx.x; j < all; j += THREADS) {
        const uint2 x = w.dealt[j];
        p.dealt[w.places[window_of(p, x.x)] + j] = x;
    }
    __syncthreads();
}

__device__ __noinline__ void gains(Dealing& w, u64* scratch, const Arguments& p, const Share& share) {
    __shared__ u64 before;
    __shared__ u32 prefixes[E][WARPS], all;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u32 i = threadIdx.x; i < WINDOWS; i += THREADS) w.counts[i] = 0;
    share.each([&](i64 row, i64 t, i64 last) {
        if (warp == 0) {
            const u64 sum = sum_over_blocks(p.counts, 1, p.rows, share.tiles, row, blockIdx.x, gridDim.x);
            if (lane == 0) before = sum;
        }
        const u32 m = __ldcg(p.totals + row);
        const double scale = scale_of(reinterpret_cast<double*>(scratch), p, row);
        __syncthreads();
        const float factor = static_cast<float>(scale);
        u32 base = static_cast<u32>(before >> 32);
        double value = 0;
        // Elements that count come first.
        const i64 end = t * TILE + (__ldcg(p.counts + row + blockIdx.x) & 0xffffffffu);
        for (i64 at = t * TILE; at < end; at += TILE) {
            u32 key[E], positions[E], sums = 0, live = 0;
            float slopes[E], part = 0;
            const u32* keys = p.keys + row * p.n + at + threadIdx.x;
            const ORDER* order = p.order + row * p.n + at + threadIdx.x;
            const i64 left = end - at - threadIdx.x;
#pragma unroll
            for (int e = 0; e < E; ++e) {
                key[e] = e * THREADS < left ? __ldcg(keys + e * THREADS) ^ NONE : 0u;
                positions[e] =
                    e * THREADS < left ? static_cast<u32>(row * p.n + __ldcg(order + e * THREADS)) : 0u;
            }
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const u32 positives = __popc(__ballot_sync(~0u, key[e] & 1u));
                if (lane == e) sums = positives;
            }
            // In the order of the keys, elements e of all warps come before elements e + 1.
            if (lane < E) prefixes[lane][warp] = sums;
            __syncthreads();
            u32* const place = &prefixes[0][0] + threadIdx.x;
            const u32 mine = threadIdx.x < E * WARPS ? *place : 0;
            const u32 prefix = static_cast<u32>(block_exclusive_sum(mine, scratch));
            if (threadIdx.x < E * WARPS) *place = prefix;
            if (threadIdx.x == E * WARPS - 1) all = prefix + mine;
            __syncthreads();
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const u32 vote = __ballot_sync(~0u, key[e] & 1u);
                if (!key[e]) continue;
                live |= 1u << e;
                const bool positive = key[e] & 1u;
                const u32 rank = static_cast<u32>(at) + e * THREADS + threadIdx.x;
                const u32 n = base + prefixes[e][warp] + __popc(vote & ((1u << lane) - 1));
                const float gain = p.ratio.gain(m, n, rank - n, positive);
                const float error = __uint_as_float(key[e] >> 1);
                if (gain > 0 || error != error) part += error * gain;
                slopes[e] = positive ? -gain * factor : gain * factor;
            }
            base += all;
            value += part;
            deal(w, scratch, p, positions, slopes, live);
        }
        value = block_sum<double>(value, reinterpret_cast<double*>(scratch));
        if (threadIdx.x == 0) p.partial[row + blockIdx.x] = value * scale;
        __syncthreads();
    });
}

__device__ __noinline__ void write_windows(float* shared, const Arguments& p) {
    const i64 all = p.rows * p.n;
    const i64 windows = (all + p.window - 1) / p.window;
    for (i64 piece = blockIdx.x; piece < windows * p.parts; piece += gridDim.x) {
        const i64 window = piece / p.parts;
        const i64 first = window * p.window + piece % p.parts * p.part;
        const u32 size = static_cast<u32>(
            max(min(min(first + p.part, (window + 1) * p.window), all) - first, 0ll));
        for (u32 i = threadIdx.x; i < size; i += THREADS) shared[i] = 0;
        __syncthreads();
        const uint2* dealt = p.dealt + window * p.window;
        const u32 dealt_here = __ldcg(p.ends + window);
        for (u32 i = threadIdx.x; i < dealt_here; i += TILE) {
            uint2 x[E];
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (i + e * THREADS < dealt_here) x[e] = __ldcg(dealt + i + e * THREADS);
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (i + e * THREADS < dealt_here) {
                    const u32 place = x[e].x - static_cast<u32>(first);
                    if (place < size) shared[place] = __uint_as_float(x[e].y);
                }
        }
        __syncthreads();
        float* out = p.gradient + first;
        for (u32 i = threadIdx.x; i < size; i += THREADS) out[i] = shared[i];
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) sorted(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    const Share share(p.rows, p.n);
    count(scratch, p, share);
    grid_barrier(p.barrier, 1);
    gains(*reinterpret_cast<Dealing*>(memory), scratch, p, share);
    grid_barrier(p.barrier, 2);
    write_windows(reinterpret_cast<float*>(memory), p);
    if (!is_last_block(p.barrier + 1)) return;
    double total = 0;
    for (i64 row = threadIdx.x >> 5; row < p.rows; row += WARPS) {
        const double sum = sum_over_blocks(p.partial, 1, p.rows, share.tiles, row, gridDim.x, gridDim.x);
        if ((threadIdx.x & 31) == 0) p.values[row] = static_cast<float>(sum), total += sum;
    }
    total = block_sum<double>(total, reinterpret_cast<double*>(scratch));
    if (threadIdx.x == 0) p.values[p.rows] = static_cast<float>(total);
    for (u32 i = threadIdx.x; i < WINDOWS; i += THREADS) p.ends[i] = 0;
    if (threadIdx.x < 2) p.barrier[threadIdx.x] = 0;
}

// After the sort: gains in closed form along the sorted keys, written to where the elements came from.
//
// To scatter all over a large array is slow: every 4 bytes cost a transaction with the memory. So
// where PARTITION is set, slopes are first dealt out to windows of the array, in whole runs, and then
// written window by window, which the cache takes.

struct Arguments {
    const u32* keys;        // (rows, n), sorted, largest first
    const i64* order;       // (rows, n)
    const u32* found;       // (rows / columns + blocks, columns)
    const double* weights;  // (columns,), or null: all sets count 1
    float* gradient;        // (rows, n), zero
    float* values;          // (rows,) times what a set counts
    float* total;           // their sum
    uint2* dealt;           // a place for each element, window by window
    u32* counts;            // (rows + blocks,)
    double* partial;        // (rows + blocks,)
    u32* totals;            // (rows,)
    u32* ends;              // (WINDOWS,) how many elements a window has, zero before and after
    u32* barrier;           // 2 counters, zero before and after
    i64 rows, n, columns, found_tiles;
    Ratio ratio;
    int present, shift;     // a window is 2^shift elements
};

constexpr int E = 8, WINDOWS = 512;
constexpr i64 TILE = THREADS * E;

struct Share {
    i64 tiles, first, last;
    __device__ Share(i64 rows, i64 tiles) : tiles(tiles) {
        first = tiles * rows * blockIdx.x / gridDim.x;
        last = tiles * rows * (blockIdx.x + 1) / gridDim.x;
    }
};

// Sum of what the blocks before `last` wrote for a row of which each has some tiles; for a warp.
template <class A>
__device__ A sum_over_blocks(const A* x, i64 rows, i64 tiles, i64 row, i64 last, i64 stride) {
    A sum = 0;
    for (i64 block = threadIdx.x & 31; block < last; block += 32) {
        const i64 begin = tiles * rows * block / gridDim.x, end = tiles * rows * (block + 1) / gridDim.x;
        if (begin < min(end, (row + 1) * tiles) && end > row * tiles) sum += __ldcg(x + (row + block) * stride);
    }
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

__device__ void count(u32* scratch, const Arguments& p, const Share& share) {
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(share.last, (row + 1) * share.tiles) - row * share.tiles;
        u32 positives = 0;
        const u32* keys = p.keys + row * p.n;
        for (i64 i = (tile - row * share.tiles) * TILE + threadIdx.x; i < min(end * TILE, p.n); i += TILE) {
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (i + e * THREADS < p.n) positives += keys[i + e * THREADS] & 1u;
        }
        const u32 sum = block_sum<u32>(positives, scratch);
        if (threadIdx.x == 0) p.counts[row + blockIdx.x] = sum;
        tile = end + row * share.tiles;
    }
    const i64 warp = (static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x) >> 5;
    for (i64 row = warp; row < p.rows; row += gridDim.x * (THREADS / 32)) {
        const u32 sum = sum_over_blocks(p.found + row % p.columns, p.rows / p.columns, p.found_tiles,
                                        row / p.columns, gridDim.x, p.columns);
        if ((threadIdx.x & 31) == 0) p.totals[row] = sum;
    }
}

// What a set counts: its weight, among the sets of its group that count.
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

struct Windows {
    u32 counts[WINDOWS], offsets[WINDOWS];
    i64 places[WINDOWS];
    uint2 dealt[TILE];
};

__device__ void deal(Windows& w, u64* scratch, const Arguments& p, const u32* positions,
                     const float* slopes, u32 live) {
    u32 ranks[E];
#pragma unroll
    for (int e = 0; e < E; ++e)
        if (live >> e & 1) ranks[e] = atomicAdd(w.counts + (positions[e] >> p.shift), 1u);
    __syncthreads();
    const u32 mine = threadIdx.x < WINDOWS ? w.counts[threadIdx.x] : 0;
    const u32 offset = static_cast<u32>(block_exclusive_sum(mine, scratch));
    __shared__ u32 all;
    if (threadIdx.x == WINDOWS - 1) all = offset + mine;
    if (threadIdx.x < WINDOWS) {
        w.offsets[threadIdx.x] = offset;
        w.counts[threadIdx.x] = 0;
        if (mine)
            w.places[threadIdx.x] = (static_cast<i64>(threadIdx.x) << p.shift) - offset +
                                    atomicAdd(p.ends + threadIdx.x, mine);
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; ++e)
        if (live >> e & 1)
            w.dealt[w.offsets[positions[e] >> p.shift] + ranks[e]] =
                make_uint2(positions[e], __float_as_uint(slopes[e]));
    __syncthreads();
    for (u32 j = threadIdx.x; j < all; j += THREADS) {
        const uint2 x = w.dealt[j];
        p.dealt[w.places[x.x >> p.shift] + j] = x;
    }
    __syncthreads();
}

__device__ void gains(Windows& w, u64* scratch, const Arguments& p, const Share& share) {
    __shared__ u32 before;
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (PARTITION)
        for (u32 i = threadIdx.x; i < WINDOWS; i += THREADS) w.counts[i] = 0;
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(share.last, (row + 1) * share.tiles) - row * share.tiles;
        if (warp == 0) {
            const u32 sum = sum_over_blocks(p.counts, p.rows, share.tiles, row, blockIdx.x, 1);
            if (lane == 0) before = sum;
        }
        const double m = __ldcg(p.totals + row);
        const double scale = scale_of(reinterpret_cast<double*>(scratch), p, row);
        __syncthreads();
        double base = before, value = 0;
        const u32* keys = p.keys + row * p.n;
        const i64* order = p.order + row * p.n;
        for (i64 t = tile - row * share.tiles; t < end; ++t) {
            if (keys[t * TILE] == 0x80000000u) break;  // from here on nothing counts
            u32 found[E], sums = 0, live = 0, positions[E];
            float slopes[E];
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const i64 i = t * TILE + e * THREADS + threadIdx.x;
                found[e] = (i < p.n ? keys[i] : 0x80000000u) ^ 0x80000000u;
                positions[e] = found[e] ? static_cast<u32>(row * p.n + order[i]) : 0u;
                const u32 positives = __popc(__ballot_sync(~0u, found[e] & 1u));
                if (lane == e) sums = positives;
            }
            // Lane e holds how many positives the warp has among its elements e: in the order of the
            // keys, elements e of all warps come before elements e + 1.
            __shared__ u32 prefixes[E][32];
            if (lane < E) prefixes[lane][warp] = sums;
            __syncthreads();
            const u64 mine = threadIdx.x < E * 32 ? prefixes[warp][lane] : 0;
            const u32 prefix = static_cast<u32>(block_exclusive_sum(mine, scratch));
            __shared__ u32 all;
            if (threadIdx.x < E * 32) prefixes[warp][lane] = prefix;
            if (threadIdx.x == E * 32 - 1) all = prefix + static_cast<u32>(mine);
            __syncthreads();
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const u32 vote = __ballot_sync(~0u, found[e] & 1u);
                if (!found[e]) continue;
                live |= 1u << e;
                const bool positive = found[e] & 1u;
                const double rank = static_cast<double>(t * TILE + e * THREADS + threadIdx.x);
                const double n = base + (prefixes[e][warp] + __popc(vote & ((1u << lane) - 1)));
                const double gain = p.ratio.gain(m, n, rank - n, positive);
                const float error = __uint_as_float(found[e] >> 1);
                if (gain > 0 || error != error) value += error * gain;
                slopes[e] = static_cast<float>(positive ? -gain * scale : gain * scale);
                if (!PARTITION) p.gradient[positions[e]] = slopes[e];
            }
            base += all;
            if (PARTITION) deal(w, scratch, p, positions, slopes, live);
            __syncthreads();
        }
        value = block_sum<double>(value, reinterpret_cast<double*>(scratch));
        if (threadIdx.x == 0) p.partial[row + blockIdx.x] = value * scale;
        tile = end + row * share.tiles;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) sorted(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    const Share share(p.rows, (p.n + TILE - 1) / TILE);
    count(reinterpret_cast<u32*>(scratch), p, share);
    grid_barrier(p.barrier, 1);
    gains(*reinterpret_cast<Windows*>(memory), scratch, p, share);
    if (PARTITION) {
        grid_barrier(p.barrier, 2);
        // All blocks are at neighbouring windows at any time.
        const i64 size = 1ll << p.shift, pieces = size / TILE;
        for (i64 piece = blockIdx.x; piece < WINDOWS * pieces; piece += gridDim.x) {
            const i64 window = piece / pieces, first = piece % pieces * TILE;
            const i64 last = min(first + TILE, static_cast<i64>(__ldcg(p.ends + window)));
#pragma unroll
            for (int e = 0; e < E; ++e) {
                const i64 i = first + e * THREADS + threadIdx.x;
                if (i < last) {
                    const uint2 x = __ldcg(p.dealt + window * size + i);
                    p.gradient[x.x] = __uint_as_float(x.y);
                }
            }
        }
    }
    if (!is_last_block(p.barrier + 1)) return;
    double total = 0;
    for (i64 row = threadIdx.x >> 5; row < p.rows; row += THREADS / 32) {
        const double sum = sum_over_blocks(p.partial, p.rows, share.tiles, row, gridDim.x, 1);
        if ((threadIdx.x & 31) == 0) p.values[row] = static_cast<float>(sum), total += sum;
    }
    total = block_sum<double>(total, reinterpret_cast<double*>(scratch));
    if (threadIdx.x == 0) *p.total = static_cast<float>(total);
    if (PARTITION)
        for (u32 i = threadIdx.x; i < WINDOWS; i += THREADS) p.ends[i] = 0;
    if (threadIdx.x < 2) p.barrier[threadIdx.x] = 0;
}

// A sort of 32-bit keys in decreasing order with their original positions, row by row. It is a
// radix sort by digits of 8 bits that reads and writes each element once per digit (Adinets and
// Merrill 2022). The first pass drops elements that do not count. One launch counts the digits, and
// one launch per digit sorts.

struct Arguments {
    const u32* keys;  // (rows, n), stored with their highest bit flipped
    const u32* positions;  // (rows, n): the position of an element; null in the first pass
    u32* sorted;           // (rows, n)
    u32* places;           // (rows, n)
    u32* digits;  // (rows, 4, 256): how often each digit occurs; zero before counting
    u32* status;  // (rows, tiles, 256) of this pass; zero before
    u32* ticket;  // the next tile of this pass; zero before the launch
    u32* live;  // (rows,): the number of elements that count
    i64 rows, n, tiles;  // tiles is the number of tiles per row
    int shift;
};

constexpr int WARPS = THREADS / 32, E = ITEMS, TILE = THREADS * E;
constexpr u32 NONE = 0x80000000u;  // the key of elements that do not count
constexpr u32 SOME = 1u << 30, ALL = 2u << 30, COUNT = SOME - 1;

// Return a digit, such that increasing digits are decreasing keys.
__device__ inline u32 digit_of(u32 key, int shift) { return ~(key ^ NONE) >> shift & 255u; }

constexpr int COPIES = 8;  // copies of the counters, because the high digits are nearly all equal

extern "C" __global__ void __launch_bounds__(THREADS) digits(const __grid_constant__ Arguments p) {
    __shared__ u32 counts[COPIES][4][256];
    u32* const all = &counts[0][0][0];
    for (int i = threadIdx.x; i < COPIES * 1024; i += THREADS) all[i] = 0;
    __syncthreads();
    const i64 last = p.rows * p.tiles * (blockIdx.x + 1) / gridDim.x;
    for (i64 tile = p.rows * p.tiles * blockIdx.x / gridDim.x; tile < last;) {
        const i64 row = tile / p.tiles, end = min(last, (row + 1) * p.tiles);
        u32(*const mine)[256] = counts[threadIdx.x >> 5 & (COPIES - 1)];
        for (; tile < end; ++tile) {
            const i64 first = (tile - row * p.tiles) * TILE + threadIdx.x;
            u32 key[E];
#pragma unroll
            for (int e = 0; e < E; ++e)
                key[e] = first + e * THREADS < p.n ? p.keys[row * p.n + first + e * THREADS] : NONE;
#pragma unroll
            for (int e = 0; e < E; ++e)
                if (key[e] != NONE)
                    for (int d = 0; d < 4; ++d) atomicAdd(mine[d] + digit_of(key[e], 8 * d), 1u);
        }
        __syncthreads();
        for (int i = threadIdx.x; i < 1024; i += THREADS) {
            u32 sum = 0;
            for (int copy = 0; copy < COPIES; ++copy) sum += all[copy * 1024 + i], all[copy * 1024 + i] = 0;
            if (sum) atomicAdd(p.digits + row * 1024 + i, sum);
        }
        __syncthreads();
    }
}

struct Shared {
    // Counts of each digit in the elements of a warp; later in all warps before.
    u32 counts[WARPS][256];
    u32 keys[TILE], places[TILE];
    u32 starts[256];  // start of a digit in the tile
    u32 bases[256];  // distance from there to its start in the row
};

__device__ inline u32 read_status(const u32* status) {
    u32 x;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(status) : "memory");
    return x;
}
__device__ inline void tell(u32* status, u32 x) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(status), "r"(x) : "memory");
}

// Return the number of elements of a digit in the earlier tiles.
__device__ u32 found_before(u32* status, i64 tile, u32 here) {
    if (tile == 0) return 0;
    constexpr int AT_ONCE = 8;  // the number of earlier tiles that are read at once while waiting
    u32 sum = 0;
    for (i64 before = tile - 1;; before -= AT_ONCE) {
        const u32* const at = status - (tile - before) * 256;
        u32 seen[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) seen[k] = before >= k ? read_status(at - k * 256) : ALL;
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) {
            while (!(seen[k] >> 30)) seen[k] = read_status(at - k * 256);
            sum += seen[k] & COUNT;
            if (seen[k] & ALL) {
                tell(status, ALL | (sum + here));
                return sum;
            }
        }
    }
}

__device__ void sort_tile(Shared& s, u64* scratch, const Arguments& p, i64 row, i64 tile, u32 count) {
    const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, d = threadIdx.x;
    const i64 base = row * p.n + tile * TILE;
    const u32 mine = warp * 32 * E + lane;  // a warp takes its elements 32 at a time
    u32 key[E], place[E];
#pragma unroll
    for (int e = 0; e < E; ++e)
        key[e] = mine + e * 32 < count ? __ldcg(p.keys + base + mine + e * 32) : NONE;
    for (u32 i = lane; i < 256; i += 32) s.counts[warp][i] = 0;
    __syncwarp();
    // The rank of an element among the elements of its digit in its warp.
#pragma unroll
    for (int e = 0; e < E; ++e) {
        const u32 digit = digit_of(key[e], p.shift);
        u32 same = __ballot_sync(~0u, key[e] != NONE);
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            const u32 vote = __ballot_sync(~0u, digit >> b & 1u);
            same &= digit >> b & 1u ? vote : ~vote;
        }
        const u32 before = s.counts[warp][digit], lower = __popc(same & ((1u << lane) - 1));
        __syncwarp();
        if (key[e] != NONE && !lower) s.counts[warp][digit] = before + __popc(same);
        __syncwarp();
        place[e] = before + lower;
    }
    __syncthreads();
    u32 from[E];  // read before anything is written, so that all reads are pending at once
#pragma unroll
    for (int e = 0; e < E; ++e)
        from[e] = !p.positions               ? static_cast<u32>(tile * TILE) + mine + e * 32
                  : mine + e * 32 < count ? __ldcg(p.positions + base + mine + e * 32)
                                             : 0;
    u32 here = 0;
    if (d < 256) {
#pragma unroll
        for (int w = 0; w < WARPS; ++w) {
            const u32 of_warp = s.counts[w][d];
            s.counts[w][d] = here;
            here += of_warp;
        }
    }
    u32* const status = p.status + (row * p.tiles + tile) * 256 + d;
    if (d < 256) tell(status, (tile ? SOME : ALL) | here);
    const u32 everywhere = d < 256 ? __ldcg(p.digits + row * 1024 + p.shift / 8 * 256 + d) : 0;
    const u64 starts = block_exclusive_sum((static_cast<u64>(everywhere) << 32) + here, scratch);
    const u32 start = static_cast<u32>(starts);
    if (d < 256) s.starts[d] = start;
    __shared__ u32 kept;
    if (d == 255) {
        kept = start + here;
        if (tile == 0) p.live[row] = static_cast<u32>(starts >> 32) + everywhere;
    }
    __syncthreads();
#pragma unroll
    for (int e = 0; e < E; ++e)
        if (key[e] != NONE) {
            const u32 digit = digit_of(key[e], p.shift);
            place[e] += s.starts[digit] + s.counts[warp][digit];
            s.keys[place[e]] = key[e];
            s.places[place[e]] = from[e];
        }
    if (d < 256)
        s.bases[d] = static_cast<u32>(starts >> 32) + found_before(status, tile, here) - start;
    __syncthreads();
    for (u32 j = threadIdx.x; j < kept; j += THREADS) {
        const u32 x = s.keys[j];
        const i64 to = row * p.n + (s.bases[digit_of(x, p.shift)] + j);
        p.sorted[to] = x;
        p.places[to] = s.places[j];
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) sort(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    __shared__ i64 next;
    for (;;) {
        // Tiles are taken in the order of the tickets, so no block waits for a tile that nobody has
        // taken.
        if (threadIdx.x == 0) next = atomicAdd(p.ticket, 1u);
        __syncthreads();
        const i64 item = next;
        __syncthreads();
        if (item >= p.rows * p.tiles) return;
        const i64 row = item / p.tiles, tile = item % p.tiles;
        const i64 size = p.positions ? static_cast<i64>(__ldcg(p.live + row)) : p.n;
        const i64 left = size - tile * TILE;
        if (left > 0)
            sort_tile(*reinterpret_cast<Shared*>(memory), scratch, p, row, tile,
                      static_cast<u32>(min(left, static_cast<i64>(TILE))));
    }
}

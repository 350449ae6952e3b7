// The Lovász hinge of l(n, q) by counting: histogram, gains of the buckets, and look-up, in one
// launch.
//
// Scores have shape (rows, n), and each row is a set. With KEY16 scores have 16 bits and a bucket
// for each margin, which is exact. Otherwise buckets of s = 1 - margin grow with s: 2^BITS per
// octave of 1 + s.

typedef SCORE T;
typedef LABEL L;

#if KEY16
constexpr u32 ONE = BFLOAT16 ? 0x3f80u : 0x3c00u, INFINITE = BFLOAT16 ? 0x7f80u : 0x7c00u;
constexpr u32 BUCKETS = ONE + INFINITE + 1;
constexpr int E = 8;  // elements that a thread reads at once: 16 bytes
constexpr i64 TILES_TO_FLUSH = 65535 / (THREADS * E);  // a counter has 16 bits
#else
constexpr u32 BUCKETS = 8u << BITS;
constexpr int E = 4;
constexpr i64 TILES_TO_FLUSH = 1ll << 40;
#endif
constexpr i64 TILE = THREADS * E;

struct Arguments {
    const T* scores;
    const L* target;
    float* gradient;
    float* values;
    u32* counts;     // (rows, 2, BUCKETS), zero before and after
    u64* totals;  // (rows,) positives that are not void; zero before and after
    float* gains;    // (rows, 2, BUCKETS) with KEY16
    double* partial; // (rows + blocks,)
    // The barrier, finished blocks, labels found, unused; then (rows, 2): the number of buckets in
    // use, and of blocks that have read their counts. All are zero before and after.
    u32* marks;
    i64 rows, n, ignore;
    Ratio ratio;
    int aligned;
};

struct Element {
    float s;  // 1 - margin
    u32 key;
    bool positive, violates, is_void;

    __device__ Element(T score, L label, L ignore) {
        positive = label > L(0);
        is_void = HAS_IGNORE && label == ignore;
        const float x = score;
        s = positive ? 1.0f - x : 1.0f + x;
        violates = !(s <= 0.0f) && !is_void;  // a NaN violates, and makes the value NaN
#if KEY16
        const u32 margin = positive ? score.bits : score.bits ^ 0x8000u;
        const u32 size = margin & 0x7fffu;
        key = margin & 0x8000u ? min(ONE + size, BUCKETS - 1)
                               : (size < ONE ? ONE - 1 - size : BUCKETS - 1);
#else
        // Seven octaves of 1 + s have 2^BITS buckets each. All larger errors, which are rare, have
        // 2^(BITS - 7).
        const u32 bits = __float_as_uint(1.0f + s) - 0x3f800000u;
        key = bits >> (23 - BITS);
        if (key >= (7u << BITS))
            key = min((bits >> (30 - BITS)) + (7u << BITS) - (7u << (BITS - 7)), BUCKETS - 1);
#endif
    }
    // Return the position of this element in a table (2, BUCKETS).
    __device__ u32 place() const { return (positive ? 0 : BUCKETS) + key; }
};

// Some full tiles of this thread's scores x and labels y.
template <int TILES>
struct Tiles {
    Vector<T, E> scores[TILES];
    Vector<L, E> labels[TILES];

    __device__ void read(const T* x, const L* y, i64 t, i64 step) {
#pragma unroll
        for (int u = 0; u < TILES; ++u) {
            scores[u] = *reinterpret_cast<const Vector<T, E>*>(x + (t + u * step) * TILE);
            labels[u] = *reinterpret_cast<const Vector<L, E>*>(y + (t + u * step) * TILE);
        }
    }
    template <class Visit>
    __device__ void visit_all(i64 t, i64 step, Visit visit) const {
#pragma unroll
        for (int u = 0; u < TILES; ++u)
            visit(scores[u], labels[u], (t + u * step) * TILE + threadIdx.x * E, E);
    }
};

// Call visit(scores, labels, i, count) for the elements i, ..., i + count - 1 of a row that this
// thread has in tiles first, ..., last - 1. AHEAD tiles are read at once, and MEANWHILE is called
// before the last ones are visited. BACKWARD goes from the last tile to the first, which finds the
// tiles read last in the cache.
template <bool BACKWARD, int AHEAD, bool MEANWHILE, class Visit>
__device__ void sweep(const Arguments& p, i64 row, i64 first, i64 last, Visit visit) {
    const i64 mine = threadIdx.x * E, step = BACKWARD ? -1 : 1;
    const T* x = p.scores + row * p.n + mine;
    const L* y = p.target + row * p.n + mine;
    const i64 full = p.aligned ? max(min(last, p.n / TILE), first) : first;
    i64 t = BACKWARD ? full - 1 : first, left = full - first;
    if (!MEANWHILE)
        for (; left >= AHEAD; left -= AHEAD, t += AHEAD * step) {
            Tiles<AHEAD> now;
            now.read(x, y, t, step);
            now.visit_all(t, step, visit);
        }
    if (MEANWHILE && left >= AHEAD) {
        Tiles<AHEAD> now, next;
        now.read(x, y, t, step);
        for (; left >= 2 * AHEAD; left -= AHEAD, t += AHEAD * step) {
            next.read(x, y, t + AHEAD * step, step);
            now.visit_all(t, step, visit);
            now = next;
        }
        now.visit_all(t, step, visit);
        left -= AHEAD, t += AHEAD * step;
    }
    if (AHEAD > 2)
        for (; left >= 2; left -= 2, t += 2 * step) {
            Tiles<2> now;
            now.read(x, y, t, step);
            now.visit_all(t, step, visit);
        }
    for (; left > 0; --left, t += step) {
        Tiles<1> now;
        now.read(x, y, t, step);
        now.visit_all(t, step, visit);
    }
    for (t = full; t < last; ++t) {
        const i64 rest = p.n - t * TILE - mine;
        const int count = rest < E ? (rest > 0 ? static_cast<int>(rest) : 0) : E;
        Vector<T, E> scores;
        Vector<L, E> labels;
#pragma unroll
        for (int e = 0; e < E; ++e)
            if (e < count) scores.v[e] = x[t * TILE + e], labels.v[e] = y[t * TILE + e];
        visit(scores, labels, t * TILE + mine, count);
    }
}

// Tiles first, ..., last - 1 belong to this block. All threads of a block see the same rows.
struct Share {
    i64 tiles, first, last;  // tiles per row; tiles of this block
    __device__ explicit Share(const Arguments& p) {
        tiles = (p.n + TILE - 1) / TILE;
        first = begin(p, blockIdx.x);
        last = begin(p, blockIdx.x + 1);
    }
    __device__ i64 begin(const Arguments& p, i64 block) const {
        return tiles * p.rows * block / gridDim.x;
    }
    // Return the number of blocks that have tiles of a row.
    __device__ i64 blocks_of(const Arguments& p, i64 row) const {
        const i64 all = tiles * p.rows, blocks = gridDim.x;
        if (all <= blocks) return tiles;  // every tile has its own block
        return ((row + 1) * tiles * blocks - 1) / all - ((row * tiles + 1) * blocks - 1) / all + 1;
    }
};

__device__ void clear(u32* shared) {
    constexpr u32 COUNTERS = KEY16 ? BUCKETS : 2 * BUCKETS;
    for (u32 i = threadIdx.x; i < COUNTERS / 4; i += THREADS)
        reinterpret_cast<uint4*>(shared)[i] = make_uint4(0, 0, 0, 0);
    if (KEY16 && threadIdx.x < BUCKETS % 4) shared[BUCKETS - 1 - threadIdx.x] = 0;
}

// Add this block's counters, `used` of each kind, to those of a row, and clear them if more will
// follow.
__device__ void flush(u32* shared, const Arguments& p, i64 row, const u32& used, bool more) {
    u32* counts = p.counts + row * 2 * BUCKETS;
#if !KEY16 && __CUDA_ARCH__ >= 900
    // The copy engine adds whole pieces of the table. Every block starts with a different one.
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    constexpr u32 PIECE = 2 * BUCKETS / 32;
    const u32 at = (threadIdx.x + blockIdx.x) % 32 * PIECE;
    if (threadIdx.x < 32 && at % BUCKETS < used) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                         __cvta_generic_to_global(counts + at)),
                     "r"(static_cast<u32>(__cvta_generic_to_shared(shared + at))), "r"(4 * PIECE)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __threadfence();
    }
#else
    __syncthreads();
    for (u32 i = threadIdx.x; i < (KEY16 ? BUCKETS : 2 * BUCKETS); i += THREADS) {
        const u32 count = shared[i];
        if (!count) continue;
#if KEY16
        if (count & 0xffffu) atomicAdd(counts + i, count & 0xffffu);
        if (count >> 16) atomicAdd(counts + BUCKETS + i, count >> 16);
#else
        atomicAdd(counts + i, count);
#endif
    }
#endif
    __syncthreads();
    if (more) clear(shared);
}

__device__ void histogram(u32* shared, const Arguments& p, const Share& share) {
    __shared__ u32 found, used;
    if (threadIdx.x == 0) found = used = 0;
    clear(shared);
    __syncthreads();
    const L ignore = static_cast<L>(p.ignore);
    u32 met = 0;
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(min(share.last, (row + 1) * share.tiles), tile + TILES_TO_FLUSH);
        u32 positives = 0, most = 0;
        sweep<false, KEY16 ? 1 : 2, true>(p, row, tile - row * share.tiles, end - row * share.tiles,
              [&](const Vector<T, E>& scores, const Vector<L, E>& labels, i64, int count) {
#pragma unroll
                  for (int e = 0; e < E; ++e)
                      if (e < count) {
                          const Element x(scores.v[e], labels.v[e], ignore);
                          positives += x.positive && !x.is_void;
                          if (CHECKED && !x.is_void) met |= met_by(labels.v[e]);
#if KEY16
                          if (x.violates) atomicAdd(shared + x.key, x.positive ? 1u : 0x10000u);
#else
                          if (x.violates) {
                              most = max(most, x.key + 1);
                              atomicAdd(shared + x.place(), 1u);
                          }
#endif
                      }
              });
        tile = end;
        for (int step = 16; step; step >>= 1) {
            positives += __shfl_xor_sync(~0u, positives, step);
            most = max(most, __shfl_xor_sync(~0u, most, step));
        }
        if ((threadIdx.x & 31) == 0) {
            atomicAdd(&found, positives);
            atomicMax(&used, most);
        }
        flush(shared, p, row, used, tile < share.last);
        if (threadIdx.x == 0) {
            if (found) atomicAdd(p.totals + row, static_cast<u64>(found));
            if (used) atomicMax(p.marks + 4 + 2 * row, used);
            found = used = 0;
        }
        __syncthreads();
    }
    if (CHECKED) note_met(p.marks + 2, met);
}

#if KEY16
constexpr int PARTS = (BUCKETS + THREADS - 1) / THREADS;  // parts of a set's buckets, one per block

// Compute the gains of THREADS buckets of a row by decreasing error, given all buckets before them.
__device__ void gains_of_part(u64* scratch, const Arguments& p, i64 row, int part) {
    const u32* counts = p.counts + row * 2 * BUCKETS;
    const auto both = [&](u32 rank) -> u64 {
        const u32* at = counts + BUCKETS - 1 - rank;
        return (static_cast<u64>(__ldcg(at)) << 32) + __ldcg(at + BUCKETS);
    };
    u64 before = 0;
#pragma unroll 8
    for (int i = 0; i < part; ++i) before += both(i * THREADS + threadIdx.x);
    __shared__ u64 start;
    before = block_sum<u64>(before, scratch);
    if (threadIdx.x == 0) start = before;
    const u32 rank = part * THREADS + threadIdx.x;
    const u64 mine = rank < BUCKETS ? both(rank) : 0;
    const u64 at = block_exclusive_sum(mine, scratch) + start;
    if (rank < BUCKETS) {
        const double2 gain =
            p.ratio.gains(static_cast<double>(__ldcg(p.totals + row)), high(at), low(at), high(mine),
                          low(mine));
        float* gains = p.gains + row * 2 * BUCKETS + BUCKETS - 1 - rank;
        gains[0] = gain.x;
        gains[BUCKETS] = gain.y;
    }
    __syncthreads();
}
#else
// Compute the gains of all buckets of a row in shared memory. Every block does this for itself.
__device__ void gains_of_row(float* shared, u64* scratch, const Arguments& p, i64 row) {
    const u32* counts = p.counts + row * 2 * BUCKETS;
    // The number of buckets that the block reads at once: four per thread, as one uint4.
    constexpr int MANY = BUCKETS < 4 * THREADS ? BUCKETS : 4 * THREADS;
    const bool some = 4 * threadIdx.x < MANY;
    uint4 positives = make_uint4(0, 0, 0, 0), negatives = positives;
    const auto read = [&](int base) {
        if (!some) return;
        positives = __ldcg(reinterpret_cast<const uint4*>(counts + base) + threadIdx.x);
        negatives = __ldcg(reinterpret_cast<const uint4*>(counts + BUCKETS + base) + threadIdx.x);
    };
    read(0);  // these are usually all buckets
    const u32 total = static_cast<u32>(__ldcg(p.totals + row));
    const int used = static_cast<int>(__ldcg(p.marks + 4 + 2 * row));
    u64 before = 0;
    // The largest errors come first.
    for (int base = max(used - 1, 0) / MANY * MANY; base >= 0; base -= MANY) {
        if (base > 0 || used > MANY) read(base);
        const u32 k[4] = {positives.x, positives.y, positives.z, positives.w};
        const u32 j[4] = {negatives.x, negatives.y, negatives.z, negatives.w};
        const u64 sum = (static_cast<u64>(k[0] + k[1] + k[2] + k[3]) << 32) + (j[0] + j[1] + j[2] + j[3]);
        const u64 below = block_exclusive_sum(sum, scratch), all = scratch[THREADS / 32 - 1];
        u64 at = before + all - below - sum;
        before += all;
        float up[4], down[4];
#pragma unroll
        for (int e = 3; e >= 0; --e) {
            const float2 gain = p.ratio.whole_gains(total, static_cast<u32>(at >> 32),
                                                    static_cast<u32>(at), k[e], j[e]);
            up[e] = gain.x, down[e] = gain.y;
            at += (static_cast<u64>(k[e]) << 32) + j[e];
        }
        if (some) {
            reinterpret_cast<float4*>(shared + base)[threadIdx.x] = make_float4(up[0], up[1], up[2], up[3]);
            reinterpret_cast<float4*>(shared + BUCKETS + base)[threadIdx.x] =
                make_float4(down[0], down[1], down[2], down[3]);
        }
        __syncthreads();
    }
}

// Return in thread 0 whether this block is the last to have read the counts of a row.
__device__ bool is_last_reader(const Arguments& p, const Share& share, i64 row) {
    const i64 readers = share.blocks_of(p, row);
    __threadfence();
    return atomicAdd(p.marks + 5 + 2 * row, 1u) == readers - 1;
}

__device__ void clear_row(const Arguments& p, i64 row) {
    uint4* counts = reinterpret_cast<uint4*>(p.counts + row * 2 * BUCKETS);
    for (u32 i = threadIdx.x; i < BUCKETS / 2; i += THREADS) counts[i] = make_uint4(0, 0, 0, 0);
    if (threadIdx.x < 2) p.marks[4 + 2 * row + threadIdx.x] = 0;
    if (threadIdx.x == 0) p.totals[row] = 0;
}
#endif

__device__ void look_up(float* shared, double* scratch, const Arguments& p, const Share& share) {
    const L ignore = static_cast<L>(p.ignore);
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(share.last, (row + 1) * share.tiles);
#if KEY16
        const float* gains = p.gains + row * 2 * BUCKETS;
#else
        __syncthreads();
        gains_of_row(shared, reinterpret_cast<u64*>(scratch), p, row);
        const float* gains = shared;
        __shared__ bool last;
        if (threadIdx.x == 0) last = is_last_reader(p, share, row);
#endif
        double sum = 0;
        sweep<true, KEY16 ? 1 : 4, false>(p, row, tile - row * share.tiles, end - row * share.tiles,
              [&](const Vector<T, E>& scores, const Vector<L, E>& labels, i64 i, int count) {
                  Vector<float, E> slope;
                  float part = 0;
#pragma unroll
                  for (int e = 0; e < E; ++e) {
                      slope.v[e] = 0;
                      if (e < count) {
                          const Element x(scores.v[e], labels.v[e], ignore);
                          if (x.violates) {
                              const float gain = gains[x.place()];
                              slope.v[e] = x.positive ? -gain : gain;
                              // An infinite error without gain contributes nothing. A NaN stays
                              // NaN.
                              if (gain > 0 || x.s != x.s) part += x.s * gain;
                          }
                      }
                  }
                  sum += part;
                  float* out = p.gradient + row * p.n + i;
                  if (p.aligned && count == E) {
#pragma unroll
                      for (int e = 0; e < E; e += 4)
                          __stcs(reinterpret_cast<float4*>(out) + e / 4,
                                 make_float4(slope.v[e], slope.v[e + 1], slope.v[e + 2], slope.v[e + 3]));
                  } else {
#pragma unroll
                      for (int e = 0; e < E; ++e)
                          if (e < count) out[e] = slope.v[e];
                  }
              });
        tile = end;
        sum = block_sum<double>(sum, scratch);
        if (threadIdx.x == 0) p.partial[row + blockIdx.x] = sum;
#if !KEY16
        if (last) clear_row(p, row);
#endif
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) hinge(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    const Share share(p);
    histogram(reinterpret_cast<u32*>(memory), p, share);
    grid_barrier(p.marks, 1);
    if (CHECKED && __ldcg(p.marks + 2) == 3u) __trap();
#if KEY16
    for (i64 work = blockIdx.x; work < p.rows * PARTS; work += gridDim.x)
        gains_of_part(scratch, p, work / PARTS, static_cast<int>(work % PARTS));
    grid_barrier(p.marks, 2);
    const i64 thread = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    const i64 threads = static_cast<i64>(gridDim.x) * THREADS;
    for (i64 i = thread; i < p.rows * 2 * BUCKETS; i += threads) p.counts[i] = 0;
    for (i64 i = thread; i < p.rows; i += threads) p.totals[i] = 0;
#endif
    look_up(reinterpret_cast<float*>(memory), reinterpret_cast<double*>(scratch), p, share);
    if (!is_last_block(p.marks + 1)) return;
    // One warp per row adds up the sums, so that their order is always the same.
    for (i64 row = threadIdx.x >> 5; row < p.rows; row += THREADS / 32) {
        const double sum = sum_over_blocks(p.partial, 1, p.rows, share.tiles, row, gridDim.x, gridDim.x);
        if ((threadIdx.x & 31) == 0) p.values[row] = static_cast<float>(sum);
    }
    if (threadIdx.x < 3) p.marks[threadIdx.x] = 0;
}

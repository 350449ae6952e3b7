// The Lovász hinge of l(n, q) by counting: histogram, gains of the buckets, look-up; one launch.
//
// Scores (rows, n), each row a set. KEY16: scores of 16 bits, a bucket for each margin, exact.
// Otherwise buckets of s = 1 - margin that grow with it: 2^BITS to each octave of 1 + s.

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
constexpr int AHEAD = READS_AHEAD;
constexpr i64 TILE = THREADS * E;
constexpr int PARTS = (BUCKETS + THREADS - 1) / THREADS;  // of a set's buckets, one for a block

struct Arguments {
    const T* scores;
    const L* target;
    float* gradient;
    float* values;
    u32* counts;     // (rows, 2, BUCKETS), zero before and after
    u64* totals;     // (rows,) positives that are not void, zero before and after
    float* gains;    // (rows, 2, BUCKETS)
    double* partial; // (rows + blocks,)
    u32* barrier;    // 2 counters and what labels were met, zero before and after
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
        // Seven octaves of 1 + s in 2^BITS buckets each; beyond, where hardly anything is, in
        // 2^(BITS - 7).
        const u32 bits = __float_as_uint(1.0f + s) - 0x3f800000u;
        key = bits >> (23 - BITS);
        if (key >= (7u << BITS))
            key = min((bits >> (30 - BITS)) + (7u << BITS) - (7u << (BITS - 7)), BUCKETS - 1);
#endif
    }
    // Where a table (2, BUCKETS) has this element.
    __device__ u32 place() const { return (positive ? 0 : BUCKETS) + key; }
};

// Calls visit(scores, labels, i, count) for the elements i, ..., i + count - 1 of a row that this
// thread has in tiles t, ..., last - 1.
template <class Visit>
__device__ void sweep(const Arguments& p, i64 row, i64 t, i64 last, Visit visit) {
    const i64 mine = threadIdx.x * E;
    const T* x = p.scores + row * p.n + mine;
    const L* y = p.target + row * p.n + mine;
    const i64 full = p.aligned ? min(last, p.n / TILE) : t;
    for (; t + AHEAD <= full; t += AHEAD) {
        Vector<T, E> scores[AHEAD];
        Vector<L, E> labels[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            scores[u] = *reinterpret_cast<const Vector<T, E>*>(x + (t + u) * TILE);
            labels[u] = *reinterpret_cast<const Vector<L, E>*>(y + (t + u) * TILE);
        }
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) visit(scores[u], labels[u], (t + u) * TILE + mine, E);
    }
    for (; t < full; ++t)
        visit(*reinterpret_cast<const Vector<T, E>*>(x + t * TILE),
              *reinterpret_cast<const Vector<L, E>*>(y + t * TILE), t * TILE + mine, E);
    for (; t < last; ++t) {
        const i64 left = p.n - t * TILE - mine;
        const int count = left < E ? (left > 0 ? static_cast<int>(left) : 0) : E;
        Vector<T, E> scores;
        Vector<L, E> labels;
#pragma unroll
        for (int e = 0; e < E; ++e)
            if (e < count) scores.v[e] = x[t * TILE + e], labels.v[e] = y[t * TILE + e];
        visit(scores, labels, t * TILE + mine, count);
    }
}

// Tiles first, ..., last - 1 are this block's. All threads of a block see the same rows.
struct Share {
    i64 tiles, first, last;  // tiles of a row; those of this block
    __device__ explicit Share(const Arguments& p) {
        tiles = (p.n + TILE - 1) / TILE;
        first = begin(p, blockIdx.x);
        last = begin(p, blockIdx.x + 1);
    }
    __device__ i64 begin(const Arguments& p, i64 block) const {
        return tiles * p.rows * block / gridDim.x;
    }
};

__device__ void flush(u32* shared, const Arguments& p, i64 row) {
    __syncthreads();
    u32* counts = p.counts + row * 2 * BUCKETS;
#if KEY16
    for (u32 i = threadIdx.x; i < BUCKETS; i += THREADS) {
        const u32 both = shared[i];
        if (both & 0xffffu) atomicAdd(counts + i, both & 0xffffu);
        if (both >> 16) atomicAdd(counts + BUCKETS + i, both >> 16);
        shared[i] = 0;
    }
#else
    for (u32 i = threadIdx.x; i < 2 * BUCKETS; i += THREADS) {
        if (shared[i]) atomicAdd(counts + i, shared[i]);
        shared[i] = 0;
    }
#endif
    __syncthreads();
}

__device__ void histogram(u32* shared, u64* scratch, const Arguments& p, const Share& share) {
    for (u32 i = threadIdx.x; i < (KEY16 ? BUCKETS : 2 * BUCKETS); i += THREADS) shared[i] = 0;
    __syncthreads();
    const L ignore = static_cast<L>(p.ignore);
    u32 met = 0;
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(min(share.last, (row + 1) * share.tiles), tile + TILES_TO_FLUSH);
        u32 positives = 0;
        sweep(p, row, tile - row * share.tiles, end - row * share.tiles,
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
                          if (x.violates) atomicAdd(shared + x.place(), 1u);
#endif
                      }
              });
        tile = end;
        flush(shared, p, row);
        const u64 sum = block_sum<u64>(positives, scratch);
        if (threadIdx.x == 0 && sum) atomicAdd(p.totals + row, sum);
    }
    if (CHECKED) note_met(p.barrier + 2, met);
}

// Gains of THREADS buckets of a row, of decreasing error, after all buckets before them.
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

__device__ void look_up(float* shared, double* scratch, const Arguments& p, const Share& share) {
    const L ignore = static_cast<L>(p.ignore);
    for (i64 tile = share.first; tile < share.last;) {
        const i64 row = tile / share.tiles;
        const i64 end = min(share.last, (row + 1) * share.tiles);
        const float* gains = p.gains + row * 2 * BUCKETS;
#if !KEY16
        __syncthreads();
        for (u32 i = threadIdx.x; i < 2 * BUCKETS; i += THREADS) shared[i] = __ldcg(gains + i);
        __syncthreads();
        gains = shared;
#endif
        double sum = 0;
        sweep(p, row, tile - row * share.tiles, end - row * share.tiles,
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
                              // An infinite error that gains nothing adds nothing; a NaN is a NaN.
                              if (gain > 0 || x.s != x.s) part += x.s * gain;
                          }
                      }
                  }
                  sum += part;
                  float* out = p.gradient + row * p.n + i;
                  if (p.aligned && count == E) {
#pragma unroll
                      for (int e = 0; e < E; e += 4)
                          reinterpret_cast<float4*>(out)[e / 4] = make_float4(
                              slope.v[e], slope.v[e + 1], slope.v[e + 2], slope.v[e + 3]);
                  } else {
#pragma unroll
                      for (int e = 0; e < E; ++e)
                          if (e < count) out[e] = slope.v[e];
                  }
              });
        tile = end;
        sum = block_sum<double>(sum, scratch);
        if (threadIdx.x == 0) p.partial[row + blockIdx.x] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) hinge(const __grid_constant__ Arguments p) {
    extern __shared__ float4 memory[];
    __shared__ u64 scratch[32];
    const Share share(p);
    histogram(reinterpret_cast<u32*>(memory), scratch, p, share);
    grid_barrier(p.barrier, 1);
    if (CHECKED && __ldcg(p.barrier + 2) == 3u) __trap();
    for (i64 work = blockIdx.x; work < p.rows * PARTS; work += gridDim.x)
        gains_of_part(scratch, p, work / PARTS, static_cast<int>(work % PARTS));
    grid_barrier(p.barrier, 2);
    const i64 thread = static_cast<i64>(blockIdx.x) * THREADS + threadIdx.x;
    const i64 threads = static_cast<i64>(gridDim.x) * THREADS;
    for (i64 i = thread; i < p.rows * 2 * BUCKETS; i += threads) p.counts[i] = 0;
    for (i64 i = thread; i < p.rows; i += threads) p.totals[i] = 0;
    look_up(reinterpret_cast<float*>(memory), reinterpret_cast<double*>(scratch), p, share);
    if (!is_last_block(p.barrier + 1)) return;
    // One warp a row, so that the sums are always taken in the same order.
    for (i64 row = threadIdx.x >> 5; row < p.rows; row += THREADS / 32) {
        const double sum = sum_over_blocks(p.partial, 1, p.rows, share.tiles, row, gridDim.x, gridDim.x);
        if ((threadIdx.x & 31) == 0) p.values[row] = static_cast<float>(sum);
    }
    if (threadIdx.x < 3) p.barrier[threadIdx.x] = 0;
}

// The step before the sort: a 32-bit key for each element of a hinge.

typedef SCORE T;
typedef LABEL L;

struct Arguments {
    const T* scores;
    const L* target;
    u32* keys;
    u32* found;  // (rows + blocks,): positives in each block's part of a row
    u32* met;  // the labels found, and a counter; zero before and after
    i64 rows, n, ignore;
    int aligned;
};

constexpr int E = 4;
constexpr i64 TILE = THREADS * E;

extern "C" __global__ void __launch_bounds__(THREADS, 1) keys(const __grid_constant__ Arguments p) {
    __shared__ u32 scratch[32];
    const L ignore = static_cast<L>(p.ignore);
    const i64 tiles = (p.n + TILE - 1) / TILE, mine = threadIdx.x * E;
    i64 tile = tiles * p.rows * blockIdx.x / gridDim.x;
    const i64 last = tiles * p.rows * (blockIdx.x + 1) / gridDim.x;
    u32 met = 0;
    while (tile < last) {
        const i64 row = tile / tiles, end = min(last, (row + 1) * tiles) - row * tiles;
        i64 t = tile - row * tiles;
        tile = end + row * tiles;
        const i64 base = row * p.n + mine;
        u32 positives = 0;
        const auto key = [&](T score, L label) {
            const bool positive = label > L(0), is_void = HAS_IGNORE && label == ignore;
            const float s = positive ? 1.0f - static_cast<float>(score) : 1.0f + static_cast<float>(score);
            positives += positive && !is_void;
            if (CHECKED && !is_void) met |= met_by(label);
            return key_of(s, positive, !is_void && !(s <= 0.0f));
        };
        const i64 full = p.aligned ? min(end, p.n / TILE) : t;
#pragma unroll 4
        for (; t < full; ++t) {
            const i64 at = base + t * TILE;
            const Vector<T, E> x = *reinterpret_cast<const Vector<T, E>*>(p.scores + at);
            const Vector<L, E> y = *reinterpret_cast<const Vector<L, E>*>(p.target + at);
            *reinterpret_cast<uint4*>(p.keys + at) =
                make_uint4(key(x.v[0], y.v[0]), key(x.v[1], y.v[1]), key(x.v[2], y.v[2]),
                           key(x.v[3], y.v[3]));
        }
        for (; t < end; ++t)
            for (int e = 0; e < E; ++e)
                if (t * TILE + mine + e < p.n) {
                    const i64 at = base + t * TILE + e;
                    p.keys[at] = key(p.scores[at], p.target[at]);
                }
        const u32 sum = block_sum<u32>(positives, scratch);
        if (threadIdx.x == 0) p.found[row + blockIdx.x] = sum;
    }
#if CHECKED
    note_met(p.met, met);
    if (is_last_block(p.met + 1) && threadIdx.x == 0) {
        if (__ldcg(p.met) == 3u) __trap();
        p.met[0] = p.met[1] = 0;
    }
#endif
}

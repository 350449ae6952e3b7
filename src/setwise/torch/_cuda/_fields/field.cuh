// The least upper bound on log Z of fields on grids: the common parts of both kinds of sweeps.
//
// Let theta be the logits, h half the weights, and f the flows, one per edge and label, with |f| <=
// h. The scores are a = theta - f at the first end of an edge and a = theta + f at the second. The
// bound is the sum over the pixels of log sum exp a. Flows never exceed their limits, so any flows
// prove a bound. The bound and the gap are computed from theta and the flows in double precision
// from time to time.
//
// TILED is 1 for field_tiles.cuh and 0 for field_edges.cuh, which define the memory layout of the
// flows.

struct Arguments {
    const LOGIT* theta;     // (B, L, N)
    const WEIGHT* weights;  // (B, K, N)
    float* flow;            // the flows, in the layout defined below
    float* before[2];       // flows before the last sweep; if TILED, buffers for starts of sweeps
    Half* momentum;         // if TILED: the difference of the start of a sweep and the flows
    float* level;           // (B, N), if TILED: a constant that is subtracted from a pixel's logits
    float* a[2];            // (B, L, N), unless TILED: the scores now and before the last sweep
    float* p;               // (B, L, N)
    double* out;            // (B, 6): bound, bound - largest logits, gap, sizes, sweeps, checks
    double* parts;          // (10, blocks)
    u32* counter;           // (B + 1, 8): barriers, and finished blocks; zero before and after
    double tol;
    i64 n;
    int images, teams, limit, first_check, warm;
    int sides[3];
    int steps[DIRECTIONS][3];
};

// The part of the work that a block does. Blocks form teams, and a team solves one image after the
// other.
struct Share {
    int image, team;
    i64 block, blocks;  // the index of the block in its team, and the number of blocks
};

// Wait for all blocks of the team.
__device__ inline void image_barrier(const Arguments& p, const Share& share, u32& round) {
    barrier(p.counter + 8 * share.image, ++round * u32(share.blocks));
}

struct Sweep {
    // If TILED: whether the start is zero, whether momentum is zero, whether the flows will be
    // measured.
    bool cold, first, measured;
    float beta, push;  // the momentum of this start, and if TILED the coefficient for the next one
    float least;  // the least divisor of a Newton step; with 1 the bound never increases
    const float* start;
    float *flow, *next;  // the start of the next sweep
    Half* momentum;
};

// Loops over labels are unrolled if the values are in registers.
#if KEPT == LABELS
#define EACH_LABEL _Pragma("unroll") for (int j = 0; j < LABELS; ++j)
#else
#define EACH_LABEL _Pragma("unroll 4") for (int j = 0; j < LABELS; ++j)
#endif

// If TILED, two labels share one flow, because the flows of label 0 and label 1 sum to 0.
#define PLANES (TILED && LABELS == 2 ? 1 : LABELS)

#if TILED
// Rows are cut into pieces of 32 places, with places of even x first, because their flows move at
// once. Within a piece, groups of four labels follow one another, with the four labels of a place
// side by side. The remaining labels come last.
constexpr int GROUPS = PLANES / 4;
__device__ inline int place_of(u32 x) { return int(((x & 1) << 4) + (x >> 1 & 15)); }
// Return the position of a label, given that of label 0 in its piece.
template <class I>
__device__ inline I label_at(I at, int j) {
    return j < 4 * GROUPS ? at + 3 * (at & 31) + (j >> 2) * 128 + (j & 3) : at + j * 32;
}
__device__ inline i64 flow_size(const Arguments& p) {
    return i64(p.sides[1]) * ((p.sides[2] + 31) >> 5) * (PLANES * 32);
}
#else
// Flows along rows are stored with those at even places first, because these move at once.
__device__ inline i64 flow_size(const Arguments& p) { return LABELS * p.n; }
__device__ inline i64 flow_at(const Arguments& p, i64 row, u32 x, bool along_rows) {
    const u32 width = p.sides[2];
    return row * width + (along_rows ? (x >> 1) + (x & 1 ? (width + 1) >> 1 : 0) : x);
}
#endif

// Return the size of the terms of a pixel's bound, to which its rounding error is relative. The
// flows of its edges are added to it. The second function is for threads that add several numbers
// one after the other, which increases the error.
__device__ inline double size_of(double value, double best) { return fabs(value) + fabs(best) + 2.0; }
__device__ inline double more_for(i64 counted) { return 1.0 + static_cast<double>(counted) / 64.0; }

// Return the constant that is subtracted from scores in single precision, so that they keep their
// digits. It is a multiple of 64, so that the scores of labels with any mass are exact.
__device__ inline float level_of(float best) {
    return fabsf(best) < 1e30f ? 64.0f * truncf(best / 64.0f) : 0.0f;
}

// Return half a weight, rounded down.
__device__ inline float half_of(WEIGHT weight) {
    if (sizeof(WEIGHT) == 8) return __double2float_rd(0.5 * static_cast<double>(weight));
    return 0.5f * static_cast<float>(weight);
}

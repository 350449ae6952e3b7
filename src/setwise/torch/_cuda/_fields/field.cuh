// The least upper bound on log Z of fields on grids: what both ways of sweeping share, and its proof.
//
// With logits theta, half weights h and flows f (one an edge and label, |f| <= h) the scores are
// a_i = theta_i - f at the first end of an edge and + f at the second, and the bound is the sum over pixels
// of log sum exp a. Flows stay within their limits exactly, so that any of them prove a bound; that, and
// the gap, are made of theta and the flows in double precision now and then.
//
// TILED is 1 for field_tiles.cuh and 0 for field_edges.cuh, which say how flows lie in memory.

struct Arguments {
    const LOGIT* theta;  // (B, L, N)
    const WEIGHT* weights;  // (B, K, N)
    float* flow;         // as they are laid out below
    float* before[2];    // flows a sweep before; where TILED, two times where a sweep starts
    Half* momentum;      // where TILED: what starts are before flows
    float* level;        // (B, N): where TILED, what a pixel's labels have in common
    float* a[2];         // (B, L, N): scores now and a sweep before, unless TILED
    float* p;            // (B, L, N)
    double* out;         // (B, 6): bound, its grounded value, gap, what sizes were added up, sweeps, checks
    double* parts;       // (10, blocks)
    u32* counter;        // (B + 1, 8): barriers, and blocks that are done; zero before and after
    double tol;
    i64 n;
    int images, teams, limit, first_check, warm;
    int sides[3];
    int steps[DIRECTIONS][3];
};

// Blocks form teams, each of which has one image after the other.
struct Share {
    int image, team;
    i64 block, blocks;  // of the team
};

// Those of a team wait for one another.
__device__ inline void image_barrier(const Arguments& p, const Share& share, u32& round) {
    barrier(p.counter + 8 * share.image, ++round * u32(share.blocks));
}

struct Sweep {
    // where TILED: whether the start is zero, whatever is there; whether momentum is; whether flows are measured
    bool cold, first, measured;
    float beta, push;    // of its start, of the next one's where TILED
    float least;         // at the least what Newton's step divides by: 1 is a step that never climbs
    const float* start;
    float *flow, *next;  // where the next one starts
    Half* momentum;
};

// Loops over labels are unrolled where their values are in registers.
#if KEPT == LABELS
#define EACH_LABEL _Pragma("unroll") for (int j = 0; j < LABELS; ++j)
#else
#define EACH_LABEL _Pragma("unroll 4") for (int j = 0; j < LABELS; ++j)
#endif

// With two labels and TILED one flow serves: what enters label 1 leaves label 0.
#define PLANES (TILED && LABELS == 2 ? 1 : LABELS)

#if TILED
// Rows are cut into pieces of 32 places, those at even x first: what moves at once lies together. Groups of
// four labels follow one another, the four of a place side by side, and then the labels that are left.
constexpr int GROUPS = PLANES / 4;
__device__ inline int place_of(u32 x) { return int(((x & 1) << 4) + (x >> 1 & 15)); }
// Where a label is, behind the start of its piece and the place.
template <class I>
__device__ inline I label_at(I at, int j) {
    return j < 4 * GROUPS ? at + 3 * (at & 31) + (j >> 2) * 128 + (j & 3) : at + j * 32;
}
__device__ inline i64 flow_size(const Arguments& p) {
    return i64(p.sides[1]) * ((p.sides[2] + 31) >> 5) * (PLANES * 32);
}
#else
// Flows along rows have those at even places first: what moves at once lies together.
__device__ inline i64 flow_size(const Arguments& p) { return LABELS * p.n; }
__device__ inline i64 flow_at(const Arguments& p, i64 row, u32 x, bool along_rows) {
    const u32 width = p.sides[2];
    return row * width + (along_rows ? (x >> 1) + (x & 1 ? (width + 1) >> 1 : 0) : x);
}
#endif

// What the rounding of a pixel's bound is small beside: its terms, and a sum of masses near 1. Flows are
// added by their edges; and what a thread adds up one after the other is rounded as often.
__device__ inline double size_of(double value, double best) { return fabs(value) + fabs(best) + 2.0; }
__device__ inline double more_for(i64 counted) { return 1.0 + static_cast<double>(counted) / 64.0; }

// What scores in single precision leave out, lest it take their digits: in steps of 64, so that what is
// left of labels with any mass is exact.
__device__ inline float level_of(float best) {
    return fabsf(best) < 1e30f ? 64.0f * truncf(best / 64.0f) : 0.0f;
}

// Half a weight, rounded down.
__device__ inline float half_of(WEIGHT weight) {
    if (sizeof(WEIGHT) == 8) return __double2float_rd(0.5 * static_cast<double>(weight));
    return 0.5f * static_cast<float>(weight);
}

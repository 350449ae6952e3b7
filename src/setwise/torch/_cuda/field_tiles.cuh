// A sweep over a grid of four neighbours, tile by tile in shared memory.
//
// All labels of an edge move at once. With X = x + f and Y = y - f of its ends, which a move leaves as they
// are, the best flow is clip((X - Y - c) / 2) where c = log sum exp (X - f) - log sum exp (Y + f), one
// equation of one number. c as it was before gives the least of the separable majorant that
// log t <= t - 1 makes of the bound, so that the bound falls; from there one step of Newton's follows. Two
// labels have the closed form.
//
// Edges move in four classes: along rows from even, then odd places, then along columns. A tile holds
// what its own edges depend on, two columns at each side and two rows below, whose edges it moves too but
// does not keep; so tiles need not wait for one another. Two pieces of memory are in turn where a sweep
// starts, f + beta (f - f before), which is written along with f: whether momentum starts anew is known a
// sweep later, from the bounds at the starts.

constexpr int WIDE = 32, HIGH = THREADS / 16, OWN_WIDE = WIDE - 4, OWN_HIGH = HIGH - 2, PIXELS = WIDE * HIGH;
constexpr float LOG2E = 1.44269504f;

struct Tile {
    float* a;    // (PLANES, PIXELS)
    float* lse;  // (PIXELS)
    int left, top;
};

__device__ inline float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Logits at the least -1e30, of two labels their difference.
__device__ inline float logit(const LOGIT* theta, i64 n, int plane) {
    const float x = fmaxf(static_cast<float>(theta[PLANES == 1 ? n : plane * n]), -1e30f);
    return PLANES == 1 ? x - fmaxf(static_cast<float>(theta[0]), -1e30f) : x;
}

// Scores of the tile's pixels at the start of the sweep; adds its own to the bound there.
__device__ inline void load(const Arguments& p, i64 image, const Tile& tile, const float* start, float& value) {
    constexpr int AHEAD = PLANES < 8 ? PLANES : 8;  // labels whose reads are on their way at a time
    const int height = p.sides[1], width = p.sides[2];
    const float* const down = start + flow_size(p);
#pragma unroll 1
    for (int s = threadIdx.x; s < PIXELS; s += THREADS) {
        const int column = s & 31, row = s >> 5, x = tile.left + column, y = tile.top + row;
        const bool inside = x >= 0 && x < width && y < height;
        // outside, anything
        const bool east = x + 1 < width, west = x > 0, south = y + 1 < height, north = y > 0;
        const int px = min(max(x, 0), width - 1), py = min(y, height - 1);
        const LOGIT* const theta = p.theta + image * LABELS * p.n + py * width + px;
        const int here = int(flow_at(p, py, px, true)), above = int(flow_at(p, max(py - 1, 0), px, false));
        const int before = int(flow_at(p, py, max(px - 1, 0), true));
        float top = -3e38f, a = 0.0f;
#pragma unroll
        for (int first = 0; first < PLANES; first += AHEAD) {
            float read[AHEAD][5];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int j = first + u;
                if (j >= PLANES) continue;
                read[u][0] = logit(theta, p.n, j);
                read[u][1] = start[here + j * 32], read[u][2] = start[before + j * 32];
                read[u][3] = down[here + j * 32], read[u][4] = down[above + j * 32];
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int j = first + u;
                if (j >= PLANES) continue;
                a = read[u][0];
                a -= east ? read[u][1] : 0.0f;
                a += west ? read[u][2] : 0.0f;
                a -= south ? read[u][3] : 0.0f;
                a += north ? read[u][4] : 0.0f;
                tile.a[j * PIXELS + s] = a;
                top = fmaxf(top, a);
            }
        }
        float lse;
        if (PLANES == 1) {
            lse = 0.5f * fabsf(a) + __logf(1.0f + __expf(-fabsf(a)));
        } else {
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < PLANES; ++j) sum += __expf(tile.a[j * PIXELS + s] - top);
            lse = top + __logf(sum);
            tile.lse[s] = lse;
        }
        if (inside && column >= 2 && column < 2 + OWN_WIDE && row < OWN_HIGH) value += lse;
    }
}

// An edge of a class, one a thread.
struct Edge {
    int from, to;  // pixels of the tile
    int at;        // where its flow is
    bool is, keep;
    float half;

    __device__ Edge(const Arguments& p, i64 image, const Tile& tile, int direction, int odd) {
        const bool rows = direction == 0;
        const int column = rows ? 2 * (threadIdx.x & 15) + odd : threadIdx.x & 31;
        const int row = rows ? threadIdx.x >> 4 : 2 * (threadIdx.x >> 5) + odd;
        const int x = tile.left + column, y = tile.top + row, right = rows ? 1 : 0, below = 1 - right;
        is = column + right < WIDE && row + below < HIGH && x >= 0 && x + right < p.sides[2] &&
             y + below < p.sides[1];
        keep = is && column >= 2 && column < 2 + OWN_WIDE && row < OWN_HIGH;
        from = row * WIDE + column, to = from + (rows ? 1 : WIDE);
        const int px = is ? x : 0, py = is ? y : 0;
        at = int(direction * flow_size(p) + flow_at(p, py, px, rows));
        half = p.half[(image * 2 + direction) * p.n + py * p.sides[2] + px];
    }
};

// Moves the flows of an edge; `own` are those of the image, and so are the others.
__device__ inline void relax(const Tile& tile, const Sweep& sweep, float* own, const Edge& e) {
    float start[PLANES], before[PLANES];
#pragma unroll
    for (int j = 0; j < PLANES; ++j) start[j] = sweep.start[e.at + j * 32];
    if (e.keep)
#pragma unroll
        for (int j = 0; j < PLANES; ++j) before[j] = sweep.flow[e.at + j * 32];
    if (!e.is) return;
    const float half = e.half;
    float* const tail = tile.a + e.from;
    float* const head = tile.a + e.to;
#if PLANES == 1
    const float x = *tail, y = *head, limit = 2.0f * half;
    const float after = fminf(fmaxf(start[0] + 0.5f * (x - y), -limit), limit), d = after - start[0];
    *tail = x - d, *head = y + d;
    if (e.keep) {
        own[e.at] = after;
        sweep.next[e.at] = after + sweep.beta * (after - before[0]);
    }
#else
    const float lse_x = tile.lse[e.from], lse_y = tile.lse[e.to];
    float c = lse_x - lse_y;
    float sum_x = 0.0f, sum_y = 0.0f, free_x = 0.0f, free_y = 0.0f;
#pragma unroll
    for (int j = 0; j < LABELS; ++j) {
        const float x = tail[j * PIXELS], y = head[j * PIXELS];
        const float best = start[j] + 0.5f * (x - y - c);
        const float d = fminf(fmaxf(best, -half), half) - start[j];
        const float mass_x = power_of_two(LOG2E * (x - d - lse_x));
        const float mass_y = power_of_two(LOG2E * (y + d - lse_y));
        sum_x += mass_x, sum_y += mass_y;
        if (fabsf(best) < half) free_x += mass_x, free_y += mass_y;
    }
    sum_x = fmaxf(sum_x, 1e-37f), sum_y = fmaxf(sum_y, 1e-37f);
    const float bound = 1.0f - 0.5f * (__fdividef(free_x, sum_x) + __fdividef(free_y, sum_y));
    c += __fdividef(__logf(sum_x) - __logf(sum_y), fmaxf(bound, sweep.least));
    sum_x = 0.0f, sum_y = 0.0f;
#pragma unroll
    for (int j = 0; j < LABELS; ++j) {
        const float x = tail[j * PIXELS], y = head[j * PIXELS];
        const float after = fminf(fmaxf(start[j] + 0.5f * (x - y - c), -half), half);
        const float d = after - start[j], lower = x - d, higher = y + d;
        sum_x += power_of_two(LOG2E * (lower - lse_x));
        sum_y += power_of_two(LOG2E * (higher - lse_y));
        tail[j * PIXELS] = lower;
        head[j * PIXELS] = higher;
        if (e.keep) {
            own[e.at + j * 32] = after;
            sweep.next[e.at + j * 32] = after + sweep.beta * (after - before[j]);
        }
    }
    tile.lse[e.from] = lse_x + __logf(fmaxf(sum_x, 1e-37f));
    tile.lse[e.to] = lse_y + __logf(fmaxf(sum_y, 1e-37f));
#endif
}

// One sweep over an image by its blocks: the bound where it started.
__device__ inline double sweep_over(const Arguments& p, const Share& share, const Sweep& whole, u32&) {
    extern __shared__ float memory[];
    if (!whole.open) return 0.0;
    const int across = (p.sides[2] + OWN_WIDE - 1) / OWN_WIDE, high = (p.sides[1] + OWN_HIGH - 1) / OWN_HIGH;
    const i64 base = share.image * 2 * flow_size(p);
    Sweep sweep = whole;
    sweep.start += base, sweep.flow += base, sweep.next += base;
    double value = 0.0;
    for (int t = int(share.block); t < across * high; t += int(share.blocks)) {
        const Tile tile = {memory, memory + PLANES * PIXELS, t % across * OWN_WIDE - 2,
                           t / across * OWN_HIGH};
        float part = 0.0f;
        load(p, share.image, tile, sweep.start, part);
        value += static_cast<double>(part);
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < 4; ++c) {
            relax(tile, sweep, p.flow + base, Edge(p, share.image, tile, c >> 1, c & 1));
            __syncthreads();
        }
    }
    return value;
}

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
// starts, f + beta (f - f before) + push (f - where it started), which is written along with f: whether
// momentum starts anew is known a sweep later, from the bounds at the starts.
//
// SPLIT threads share an edge, each with its part of the labels. Scores of more than two labels are in
// units of log 2.

#ifndef READS
#define READS 4
#endif
#ifndef KEEP
#define KEEP 0
#endif

constexpr int WIDE = 32, HIGH = THREADS / (16 * SPLIT), OWN_WIDE = WIDE - 4, OWN_HIGH = HIGH - 2;
// Rows and labels are as far apart as makes the threads of a warp meet in different banks.
constexpr int PITCH = SPLIT == 1 ? WIDE + 1 : WIDE, SPACE = PITCH * HIGH + (SPLIT == 1 ? 0 : 1);
constexpr int MINE = (PLANES + SPLIT - 1) / SPLIT;  // labels of a thread
constexpr float LOG2E = 1.44269504f, HALF_LOG2 = 0.34657359f;

struct Tile {
    float* a;    // (PLANES, SPACE)
    float* lse;  // (SPACE)
    int left, top;
};

__device__ inline float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ inline float log_of_two(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Logits at the least -1e30, of two labels their difference.
__device__ inline float logit(const LOGIT* theta, i64 n, int plane) {
    const float x = fmaxf(static_cast<float>(theta[PLANES == 1 ? n : plane * n]), -1e30f);
    return PLANES == 1 ? x - fmaxf(static_cast<float>(theta[0]), -1e30f) : x;
}

// Scores of the tile's pixels at the start of the sweep; adds its own to the bound there.
__device__ inline void load(const Arguments& p, i64 image, const Tile& tile, const Sweep& sweep, float& value) {
    constexpr int AHEAD = PLANES < READS ? PLANES : READS;  // labels whose reads are on their way at a time
    const int height = p.sides[1], width = p.sides[2];
    const float* const start = sweep.start;
    const float* const down = start + flow_size(p);
    const bool known = !sweep.cold;
#pragma unroll 1
    for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
        const int column = s & 31, row = s >> 5, x = tile.left + column, y = tile.top + row;
        const bool inside = x >= 0 && x < width && y < height;
        // outside, anything
        const bool east = known && x + 1 < width, west = known && x > 0;
        const bool south = known && y + 1 < height, north = known && y > 0;
        const int px = min(max(x, 0), width - 1), py = min(y, height - 1);
        const LOGIT* const theta = p.theta + image * LABELS * p.n + py * width + px;
        const int here = int(flow_at(p, py, px, true)), above = int(flow_at(p, max(py - 1, 0), px, false));
        const int before = int(flow_at(p, py, max(px - 1, 0), true));
        float* const scores = tile.a + row * PITCH + column;
        float top = -3e38f, a = 0.0f;
#pragma unroll
        for (int first = 0; first < PLANES; first += AHEAD) {
            float read[AHEAD][5];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int j = first + u;
                if (j >= PLANES) continue;
                read[u][0] = logit(theta, p.n, j);
                read[u][1] = east ? start[here + j * 32] : 0.0f;
                read[u][2] = west ? start[before + j * 32] : 0.0f;
                read[u][3] = south ? down[here + j * 32] : 0.0f;
                read[u][4] = north ? down[above + j * 32] : 0.0f;
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int j = first + u;
                if (j >= PLANES) continue;
                a = read[u][0] - read[u][1] + read[u][2] - read[u][3] + read[u][4];
                if (PLANES > 1) a *= LOG2E;
                scores[j * SPACE] = a;
                top = fmaxf(top, a);
            }
        }
        float lse;
        if (PLANES == 1) {
            lse = 0.5f * fabsf(a) + __logf(1.0f + __expf(-fabsf(a)));
        } else {
            float sum = 0.0f;
#pragma unroll
            for (int j = 0; j < PLANES; ++j) sum += power_of_two(scores[j * SPACE] - top);
            lse = top + log_of_two(sum);
            tile.lse[row * PITCH + column] = lse;
        }
        if (inside && column >= 2 && column < 2 + OWN_WIDE && row < OWN_HIGH) value += lse;
    }
}

// An edge of a class, SPLIT threads each.
struct Edge {
    int from, to;  // pixels of the tile
    int at;        // where its flow is
    bool is, keep;
    float half;

    __device__ Edge(const Arguments& p, i64 image, const Tile& tile, int direction, int odd) {
        const bool rows = direction == 0;
        const int k = threadIdx.x & 15, group = threadIdx.x >> (SPLIT == 1 ? 4 : 5);
        const int column = 2 * k + (rows ? odd : group & 1), row = rows ? group : (group & ~1) + odd;
        const int x = tile.left + column, y = tile.top + row, right = rows ? 1 : 0, below = 1 - right;
        is = column + right < WIDE && row + below < HIGH && x >= 0 && x + right < p.sides[2] &&
             y + below < p.sides[1];
        keep = is && column >= 2 && column < 2 + OWN_WIDE && row < OWN_HIGH;
        from = row * PITCH + column, to = is ? from + (rows ? 1 : PITCH) : from;
        const int px = is ? x : 0, py = is ? y : 0;
        at = int(direction * flow_size(p) + flow_at(p, py, px, rows));
        half = half_of(p, (image * 2 + direction) * p.n + py * p.sides[2] + px);
    }
};

// The sum over the threads of an edge.
__device__ inline float all_of(float x) { return SPLIT == 1 ? x : x + __shfl_xor_sync(~0u, x, 16); }

// Moves the flows of an edge; `own` are those of the image, and so are the others.
__device__ inline void relax(const Tile& tile, const Sweep& sweep, float* own, const Edge& e) {
    const int part = SPLIT == 1 ? 0 : threadIdx.x >> 4 & 1;
    const auto has = [&](int i) { return i * SPLIT + SPLIT <= PLANES || i * SPLIT + part < PLANES; };
    const int at = e.at + part * 32;
    float start[MINE], before[MINE];
#pragma unroll
    for (int i = 0; i < MINE; ++i) start[i] = has(i) && !sweep.cold ? sweep.start[at + i * SPLIT * 32] : 0.0f;
#pragma unroll
    for (int i = 0; i < MINE; ++i)
        before[i] = has(i) && e.keep && !sweep.cold ? sweep.flow[at + i * SPLIT * 32] : 0.0f;
    const float half = e.half, beta = sweep.beta, push = sweep.push;
    float* const tail = tile.a + e.from + part * SPACE;
    float* const head = tile.a + e.to + part * SPACE;
#if PLANES == 1
    if (!e.is) return;
    const float x = *tail, y = *head, limit = 2.0f * half;
    const float after = fminf(fmaxf(start[0] + 0.5f * (x - y), -limit), limit), d = after - start[0];
    *tail = x - d, *head = y + d;
    if (e.keep) {
        own[at] = after;
        sweep.next[at] = after + beta * (after - before[0]) + push * d;
    }
#else
    const float lse_x = tile.lse[e.from], lse_y = tile.lse[e.to];
    float c = lse_x - lse_y;
    float sum_x = 0.0f, sum_y = 0.0f, free_x = 0.0f, free_y = 0.0f;
#if KEEP
    float xs[MINE], ys[MINE];
#pragma unroll
    for (int i = 0; i < MINE; ++i) {
        xs[i] = has(i) ? tail[i * SPLIT * SPACE] : -1e30f;
        ys[i] = has(i) ? head[i * SPLIT * SPACE] : -1e30f;
    }
#define TAIL(i) xs[i]
#define HEAD(i) ys[i]
#else
#define TAIL(i) (has(i) ? tail[i * SPLIT * SPACE] : -1e30f)
#define HEAD(i) (has(i) ? head[i * SPLIT * SPACE] : -1e30f)
#endif
#pragma unroll
    for (int i = 0; i < MINE; ++i) {
        const float x = TAIL(i), y = HEAD(i);
        const float best = start[i] + HALF_LOG2 * (x - y - c);
        const float d = LOG2E * (fminf(fmaxf(best, -half), half) - start[i]);
        const float mass_x = power_of_two(x - lse_x - d), mass_y = power_of_two(y - lse_y + d);
        sum_x += mass_x, sum_y += mass_y;
        if (fabsf(best) < half) free_x += mass_x, free_y += mass_y;
    }
    sum_x = fmaxf(all_of(sum_x), 1e-37f), sum_y = fmaxf(all_of(sum_y), 1e-37f);
    free_x = all_of(free_x), free_y = all_of(free_y);
    const float bound = 1.0f - 0.5f * (__fdividef(free_x, sum_x) + __fdividef(free_y, sum_y));
    c += __fdividef(log_of_two(sum_x) - log_of_two(sum_y), fmaxf(bound, sweep.least));
    sum_x = 0.0f, sum_y = 0.0f;
#pragma unroll
    for (int i = 0; i < MINE; ++i) {
        const float x = TAIL(i), y = HEAD(i);
        const float after = fminf(fmaxf(start[i] + HALF_LOG2 * (x - y - c), -half), half);
        const float d = after - start[i], lower = x - LOG2E * d, higher = y + LOG2E * d;
        sum_x += power_of_two(lower - lse_x);
        sum_y += power_of_two(higher - lse_y);
        if (e.is && has(i)) {
            tail[i * SPLIT * SPACE] = lower;
            head[i * SPLIT * SPACE] = higher;
        }
        if (e.keep && has(i)) {
            own[at + i * SPLIT * 32] = after;
            sweep.next[at + i * SPLIT * 32] = after + beta * (after - before[i]) + push * d;
        }
    }
    sum_x = all_of(sum_x), sum_y = all_of(sum_y);
    if (e.is && part == 0) {
        tile.lse[e.from] = lse_x + log_of_two(fmaxf(sum_x, 1e-37f));
        tile.lse[e.to] = lse_y + log_of_two(fmaxf(sum_y, 1e-37f));
    }
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
        const Tile tile = {memory, memory + PLANES * SPACE, t % across * OWN_WIDE - 2, t / across * OWN_HIGH};
        float part = 0.0f;
        load(p, share.image, tile, sweep, part);
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

// Probabilities of an image, and what they add to the bound, its grounded value, the gap, and sizes. A tile
// has one more column and row than it adds: there the edges from its own pixels end.
__device__ inline void certify(const Arguments& p, const Share& share, const float* flow, double* sums) {
    extern __shared__ float memory[];
    constexpr int ACROSS = WIDE - 1, DOWN = HIGH - 1;
    const int height = p.sides[1], width = p.sides[2], across = (width + ACROSS - 1) / ACROSS;
    const i64 image = share.image;
    for (int t = int(share.block); t < across * ((height + DOWN - 1) / DOWN); t += int(share.blocks)) {
        const int left = t % across * ACROSS, top = t / across * DOWN;
        __syncthreads();
#pragma unroll 1
        for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
            const int column = s & 31, row = s >> 5, x = left + column, y = top + row;
            if (x >= width || y >= height) continue;
            const i64 pixel = i64(y) * width + x, own = image * LABELS * p.n + pixel;
            const Around around(p, image, u32(pixel));
            float* const here = memory + row * PITCH + column;
            const bool counts = column < ACROSS && row < DOWN;
            double highest = -1e300, best = -1e300, sum = 0.0;
#pragma unroll 7
            for (int j = 0; j < LABELS; ++j) {
                highest = fmax(highest, score(p, around, own, j, flow));
                best = fmax(best, static_cast<double>(p.theta[own + j * p.n]));
            }
#pragma unroll 3
            for (int j = 0; j < LABELS; ++j) {
                const double mass = exp(score(p, around, own, j, flow) - highest);
                here[j * SPACE] = static_cast<float>(mass);
                sum += mass;
            }
            const double scale = 1.0 / sum;
#pragma unroll 7
            for (int j = 0; j < LABELS; ++j) {
                const float q = static_cast<float>(static_cast<double>(here[j * SPACE]) * scale);
                here[j * SPACE] = q;
                if (counts) p.p[own + j * p.n] = q;
            }
            if (!counts) continue;
            const double value = highest + log(sum);
            sums[0] += value;
            sums[1] += value - best;
            sums[3] += fabs(value) + fabs(best);
        }
        __syncthreads();
#pragma unroll 1
        for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
            const int column = s & 31, row = s >> 5, x = left + column, y = top + row;
            if (column == ACROSS || row == DOWN || x >= width || y >= height) continue;
            const i64 pixel = i64(y) * width + x;
            const Around around(p, image, u32(pixel));
            const float* const here = memory + row * PITCH + column;
#pragma unroll
            for (int d = 0; d < 2; ++d) {
                if (!around.is[2 * d]) continue;
                const double half = half_of(p, (image * 2 + d) * p.n + pixel);
                if (!(half > 0.0)) continue;
                const float* const there = here + (d == 0 ? 1 : PITCH);
                double slack = 9.6e-7 * half;  // what two roundings of p may hide
#pragma unroll 7
                for (int j = 0; j < LABELS; ++j) {
                    const double apart =
                        static_cast<double>(here[j * SPACE]) - static_cast<double>(there[j * SPACE]);
                    slack += half * fabs(apart) - flow_of(p, flow, around.at[2 * d], j) * apart;
                }
                sums[2] += slack;
            }
        }
    }
}

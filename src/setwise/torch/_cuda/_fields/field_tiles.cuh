// A sweep over a grid of four neighbours, tile by tile in shared memory.
//
// The flows of all labels of an edge move at once. Let X = x + f and Y = y - f for the scores x and
// y of its ends; a move does not change X and Y. The best flow is clip((X - Y - c) / 2) with c =
// log sum exp (X - f) - log sum exp (Y + f), which is one equation for the number c. The previous c
// gives the minimum of a separable majorant of the bound (by log t <= t - 1), so the bound
// decreases. From there one Newton step follows. For two labels the solution has a closed form.
//
// Edges move in four classes: along rows from even places, then from odd places, then the same
// along columns. A tile contains the pixels that its own edges depend on: two more columns at each
// side and two more rows below. The edges there move too but are not stored, so that tiles need not
// wait for one another. Two buffers hold the start of the present sweep and that of the next, y = f
// + m with momentum m. A sweep moves from y to f, and the next momentum is beta (f - f_before) +
// push (f - y) = (beta + push) (f - y) + beta m, within the limits. So f itself is written only if
// it is to be measured. The momentum m converges to 0 with the flows, so 16 bits are enough.
// Whether momentum restarts is known one sweep later, from the bounds at the starts.
//
// Scores of more than two labels are in units of log 2.

constexpr int WIDE = 32, HIGH = THREADS / 16, OWN_WIDE = WIDE - 4, OWN_HIGH = HIGH - 2;
// So that two rows of a warp use different banks.
constexpr int PITCH = WIDE + 1, SPACE = PITCH * HIGH;
constexpr float LOG2E = 1.44269504f, HALF_LOG2 = 0.34657359f;

// An image with fewer than 2^31 flows.
struct Image {
    const LOGIT* theta;
    const WEIGHT* weights;
    float* level;
    int n, width, height, pieces;

    __device__ Image(const Arguments& p, i64 image)
        : theta(p.theta + image * LABELS * p.n), weights(p.weights + image * 2 * p.n),
          level(p.level + image * p.n), n(int(p.n)), width(p.sides[2]), height(p.sides[1]),
          pieces((p.sides[2] + 31) >> 5) {}
    __device__ int flows() const { return height * pieces * (PLANES * 32); }  // flows per direction
    __device__ int flow(int y, int x) const { return (y * pieces + (x >> 5)) * (PLANES * 32) + place_of(x); }
};

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

// Flows of four labels, which are read or written at once.
struct alignas(16) Four {
    float v[4];
};
__device__ inline Four four_of(const float* flows, int at, int group, bool is) {
    if (is) return *reinterpret_cast<const Four*>(flows + label_at(at, 4 * group));
    return {{0.0f, 0.0f, 0.0f, 0.0f}};
}

struct alignas(8) FourHalves {
    Half v[4];
};
__device__ inline Half half_precision(float x) {
    Half y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(fminf(fmaxf(x, -65504.0f), 65504.0f)));
    return y;
}

// The positions of the flows of a pixel's edges. Outside the image, those of the nearest pixel.
struct Cross {
    int pixel, here, west, north;  // flows to the east and to the south are at `here`
    bool has_east, has_west, has_south, has_north;

    __device__ Cross(const Image& image, int x, int y) {
        has_east = x + 1 < image.width, has_west = x > 0, has_south = y + 1 < image.height, has_north = y > 0;
        const int px = min(max(x, 0), image.width - 1), py = min(y, image.height - 1);
        pixel = py * image.width + px;
        here = image.flow(py, px), west = image.flow(py, max(px - 1, 0));
        north = here - (py > 0 ? image.pieces * (PLANES * 32) : 0);
    }
};

// Write the levels of an image. Two labels need none, because only their difference is used.
__device__ inline void find_levels(const Image& image, const Share& share) {
    for (i64 k = share.block * THREADS + threadIdx.x; k < image.n; k += share.blocks * THREADS) {
        float best = -3e38f;
#pragma unroll
        for (int j = 0; j < LABELS; ++j)
            best = fmaxf(best, static_cast<float>(image.theta[j * i64(image.n) + k]));
        image.level[k] = level_of(best);
    }
}

// Return a logit minus its level, at least -1e30; for two labels the difference of the logits.
__device__ inline float logit(const LOGIT* theta, i64 n, int plane, float level) {
    const LOGIT least = static_cast<LOGIT>(-1e30f);
    const LOGIT x = theta[PLANES == 1 ? n : plane * n], y = PLANES == 1 ? theta[0] : static_cast<LOGIT>(level);
    return static_cast<float>((x > least ? x : least) - (y > least ? y : least));
}

// Compute the scores of the tile's pixels at the start of the sweep, and add the tile's own pixels
// to the bound there.
__device__ inline void load(const Image& image, const Tile& tile, const Sweep& sweep, float& value) {
    constexpr int AHEAD = GROUPS < 2 ? 1 : 2;  // groups that are read at a time
    const float* const start = sweep.start;
    const float* const down = start + image.flows();
#pragma unroll 1
    for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
        const int column = s & 31, row = s >> 5, x = tile.left + column, y = tile.top + row;
        const bool inside = x >= 0 && x < image.width && y < image.height;
        Cross cross(image, x, y);
        if (sweep.cold) cross.has_east = cross.has_west = cross.has_south = cross.has_north = false;
        const LOGIT* const theta = image.theta + cross.pixel;
        const float level = PLANES == 1 ? 0.0f : image.level[cross.pixel];
        float* const scores = tile.a + row * PITCH + column;
        float top = -3e38f, a = 0.0f;
        const auto keep = [&](int j, float score) {
            a = PLANES > 1 ? LOG2E * score : score;
            scores[j * SPACE] = a;
            top = fmaxf(top, a);
        };
#pragma unroll
        for (int first = 0; first < GROUPS; first += AHEAD) {
            Four logits[AHEAD], flows[AHEAD][4];
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                const int g = first + u;
                if (g >= GROUPS) continue;
#pragma unroll
                for (int k = 0; k < 4; ++k) logits[u].v[k] = logit(theta, image.n, 4 * g + k, level);
                flows[u][0] = four_of(start, cross.here, g, cross.has_east);
                flows[u][1] = four_of(start, cross.west, g, cross.has_west);
                flows[u][2] = four_of(down, cross.here, g, cross.has_south);
                flows[u][3] = four_of(down, cross.north, g, cross.has_north);
            }
#pragma unroll
            for (int u = 0; u < AHEAD; ++u) {
                if (first + u >= GROUPS) continue;
#pragma unroll
                for (int k = 0; k < 4; ++k)
                    keep(4 * (first + u) + k, logits[u].v[k] - flows[u][0].v[k] + flows[u][1].v[k] -
                                                  flows[u][2].v[k] + flows[u][3].v[k]);
            }
        }
#pragma unroll
        for (int j = 4 * GROUPS; j < PLANES; ++j)
            keep(j, logit(theta, image.n, j, level) - (cross.has_east ? start[label_at(cross.here, j)] : 0.0f) +
                        (cross.has_west ? start[label_at(cross.west, j)] : 0.0f) -
                        (cross.has_south ? down[label_at(cross.here, j)] : 0.0f) +
                        (cross.has_north ? down[label_at(cross.north, j)] : 0.0f));
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

// An edge of a class; each thread has one.
struct Edge {
    int from, to;  // its pixels in the tile
    int at;  // the position of its flow
    int weight;  // the position of its weight
    bool is, keep;

    __device__ Edge(const Image& image, const Tile& tile, int direction, int odd) {
        const bool rows = direction == 0;
        const int group = threadIdx.x >> 4, column = 2 * (threadIdx.x & 15) + (rows ? odd : group & 1);
        const int row = rows ? group : (group & ~1) + odd;
        const int x = tile.left + column, y = tile.top + row, right = rows ? 1 : 0, below = 1 - right;
        is = column + right < WIDE && row + below < HIGH && x >= 0 && x + right < image.width &&
             y + below < image.height;
        keep = is && column >= 2 && column < 2 + OWN_WIDE && row < OWN_HIGH;
        from = row * PITCH + column, to = from + (rows ? 1 : PITCH);
        const int px = is ? x : 0, py = is ? y : 0;
        at = (rows ? 0 : image.flows()) + image.flow(py, px);
        weight = py * image.width + px;
    }
};

// The flows of all labels of an edge.
struct Flows {
    float v[PLANES];

    __device__ Flows(const float* flows, int at, bool is) {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            const Four four = four_of(flows, at, g, is);
#pragma unroll
            for (int k = 0; k < 4; ++k) v[4 * g + k] = four.v[k];
        }
#pragma unroll
        for (int j = 4 * GROUPS; j < PLANES; ++j) v[j] = is ? flows[label_at(at, j)] : 0.0f;
    }
};

// The momentum of an edge.
struct Momentum {
    Half v[PLANES];

    __device__ Momentum(const Half* halves, int at, bool is) {
#pragma unroll
        for (int g = 0; g < GROUPS; ++g) {
            FourHalves four = {};
            if (is) four = *reinterpret_cast<const FourHalves*>(halves + label_at(at, 4 * g));
#pragma unroll
            for (int k = 0; k < 4; ++k) v[4 * g + k] = four.v[k];
        }
#pragma unroll
        for (int j = 4 * GROUPS; j < PLANES; ++j) v[j] = is ? halves[label_at(at, j)] : Half{0};
    }
};

// Prefetch the momentum, until there are registers for it.
__device__ inline void prefetch_momentum(const Half* halves, int at) {
    const auto bring = [&](int j) {
        asm volatile("prefetch.global.L1 [%0];" ::"l"(halves + label_at(at, j)));
    };
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) bring(4 * g);
#pragma unroll
    for (int j = 4 * GROUPS; j < PLANES; ++j) bring(j);
}

// Move the flows of an edge.
__device__ inline void relax(const Tile& tile, const Sweep& sweep, const Edge& e, float half) {
    const Flows start(sweep.start, e.at, e.is && !sweep.cold);
    if (!e.is) return;
    float* const tail = tile.a + e.from;
    float* const head = tile.a + e.to;
    const float limit = PLANES == 1 ? 2.0f * half : half;
    const auto next = [&](int j, float after, const Momentum& before) {
        const float m = (sweep.beta + sweep.push) * (after - start.v[j]) + sweep.beta * static_cast<float>(before.v[j]);
        return fminf(fmaxf(after + m, -limit), limit);
    };
    const auto put = [&](int j, float after, const Momentum& before) {
        const int at = label_at(e.at, j);
        const float y = next(j, after, before);
        sweep.next[at] = y;
        sweep.momentum[at] = half_precision(y - after);
        if (sweep.measured) sweep.flow[at] = after;
    };
#if PLANES == 1
    // Read late, because there are few registers.
    const Momentum before(sweep.momentum, e.at, e.keep && !sweep.first);
    const float x = *tail, y = *head;
    const float after = fminf(fmaxf(start.v[0] + 0.5f * (x - y), -limit), limit), d = after - start.v[0];
    *tail = x - d, *head = y + d;
    if (e.keep) put(0, after, before);
#else
    if (e.keep && !sweep.first) prefetch_momentum(sweep.momentum, e.at);
    const float lse_x = tile.lse[e.from], lse_y = tile.lse[e.to];
    float c = lse_x - lse_y;
    float sum_x = 0.0f, sum_y = 0.0f, free_x = 0.0f, free_y = 0.0f;
#pragma unroll
    for (int j = 0; j < LABELS; ++j) {
        const float x = tail[j * SPACE], y = head[j * SPACE];
        const float best = start.v[j] + HALF_LOG2 * (x - y - c);
        const float d = LOG2E * (fminf(fmaxf(best, -half), half) - start.v[j]);
        const float mass_x = power_of_two(x - lse_x - d), mass_y = power_of_two(y - lse_y + d);
        sum_x += mass_x, sum_y += mass_y;
        if (fabsf(best) < half) free_x += mass_x, free_y += mass_y;
    }
    // Read late, because there are few registers.
    const Momentum before(sweep.momentum, e.at, e.keep && !sweep.first);
    sum_x = fmaxf(sum_x, 1e-37f), sum_y = fmaxf(sum_y, 1e-37f);
    const float bound = 1.0f - 0.5f * (__fdividef(free_x, sum_x) + __fdividef(free_y, sum_y));
    c += __fdividef(log_of_two(sum_x) - log_of_two(sum_y), fmaxf(bound, sweep.least));
    sum_x = 0.0f, sum_y = 0.0f;
    const auto move = [&](int j) {
        const float x = tail[j * SPACE], y = head[j * SPACE];
        const float after = fminf(fmaxf(start.v[j] + HALF_LOG2 * (x - y - c), -half), half);
        const float d = LOG2E * (after - start.v[j]), lower = x - d, higher = y + d;
        sum_x += power_of_two(lower - lse_x);
        sum_y += power_of_two(higher - lse_y);
        tail[j * SPACE] = lower;
        head[j * SPACE] = higher;
        return after;
    };
#pragma unroll
    for (int g = 0; g < GROUPS; ++g) {
        Four after, ahead;
        FourHalves momentum;
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            after.v[k] = move(4 * g + k);
            ahead.v[k] = next(4 * g + k, after.v[k], before);
            momentum.v[k] = half_precision(ahead.v[k] - after.v[k]);
        }
        if (!e.keep) continue;
        const int at = label_at(e.at, 4 * g);
        *reinterpret_cast<Four*>(sweep.next + at) = ahead;
        *reinterpret_cast<FourHalves*>(sweep.momentum + at) = momentum;
        if (sweep.measured) *reinterpret_cast<Four*>(sweep.flow + at) = after;
    }
#pragma unroll
    for (int j = 4 * GROUPS; j < LABELS; ++j) {
        const float after = move(j);
        if (e.keep) put(j, after, before);
    }
    tile.lse[e.from] = lse_x + log_of_two(fmaxf(sum_x, 1e-37f));
    tile.lse[e.to] = lse_y + log_of_two(fmaxf(sum_y, 1e-37f));
#endif
}

// Make one sweep over an image with its blocks. Return the bound at its start.
__device__ inline double sweep_over(const Arguments& p, const Share& share, const Sweep& whole, u32&) {
    extern __shared__ float memory[];
    const Image image(p, share.image);
    const int across = (image.width + OWN_WIDE - 1) / OWN_WIDE, high = (image.height + OWN_HIGH - 1) / OWN_HIGH;
    const i64 base = share.image * 2 * flow_size(p);
    Sweep sweep = whole;
    sweep.start += base, sweep.flow += base, sweep.next += base, sweep.momentum += base;
    double value = 0.0;
    for (int t = int(share.block); t < across * high; t += int(share.blocks)) {
        const Tile tile = {memory, memory + PLANES * SPACE, t % across * OWN_WIDE - 2, t / across * OWN_HIGH};
        float part = 0.0f;
        load(image, tile, sweep, part);
        value += static_cast<double>(part);
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < 4; ++c) {
            const Edge e(image, tile, c >> 1, c & 1);
            relax(tile, sweep, e, half_of(image.weights[(c >> 1) * i64(image.n) + e.weight]));
            __syncthreads();
        }
    }
    return value;
}

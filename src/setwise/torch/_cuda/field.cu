// The least upper bound on log Z of fields on grids, by exact steps of one edge at a time.
//
// With logits theta, half weights h and flows f (one an edge and label, |f| <= h) the scores are
// a_i = theta_i - f at the first end of an edge and + f at the second, and the bound is the sum over pixels
// of log sum exp a. With the other labels fixed its least over one flow is where both ends have the
// same logit: f moves by half their difference, and is clipped. Edges of one direction whose first
// pixels are at even (odd) places along it share no pixel and move at once.
//
// A sweep starts at y = f + beta (f - f before), with Nesterov's beta; where it turned back, that is where
// the steps from y and the way since the sweep before have an obtuse angle, momentum starts anew.
//
// Sweeps are in single precision. Flows stay within their limits exactly, so that any of them prove a
// bound; that, and the gap, are made of theta and the flows in double precision now and then.

struct Arguments {
    const LOGIT* theta;      // (B, L, N)
    const float* half;       // (B, K, N)
    float* a;                // (B, L, N)
    float* flow;             // (B, K, L, N)
    float* a_before;         // as a sweep before, both
    float* flow_before;
    float* p;                // (B, L, N)
    double* out;             // (B, 4): bound, its grounded value, gap, what sizes were added up
    double* parts;           // (5, blocks)
    int* record;             // (2): sweeps, checks
    u32* counter;            // barrier
    double tol;
    i64 n;
    int images, limit, first_check, warm;
    int sides[3];
    int steps[DIRECTIONS][3];
};

#ifndef LANES
#define LANES THREADS
#endif

struct Edge {
    i64 tail, head;
    i64 flow;  // where its flow is
};

// Flows along rows have those at even places first: what moves at once lies together.
__device__ inline i64 flow_at(bool along_rows, i64 pixel, u32 x, u32 width) {
    return along_rows ? pixel - x + (x >> 1) + (x & 1 ? (width + 1) >> 1 : 0) : pixel;
}

// The edges of a direction whose first pixels are at places of one parity along its first axis.
struct Class {
    int axis, parity;
    int low[3], count[3];  // first pixels: low + index, along the axis low + 2 index
    i64 each;
    i64 ahead;             // from first to second pixel

    __device__ Class(const Arguments& p, int direction, int odd) {
        axis = 2, parity = odd;
        ahead = 0;
        for (int k = 2; k >= 0; --k)
            if (p.steps[direction][k]) axis = k;
        each = 1;
        for (int k = 0; k < 3; ++k) {
            const int step = p.steps[direction][k];
            low[k] = step < 0 ? -step : 0;
            count[k] = max(p.sides[k] - (step < 0 ? -step : step), 0);
            ahead = ahead * p.sides[k] + step;
            if (k == axis) {
                low[k] = odd;
                count[k] = max(count[k] - odd + 1, 0) / 2;
            }
            each *= count[k];
        }
    }

    __device__ Edge at(const Arguments& p, u32 rest) const {
        const u32 x = rest % count[2];
        rest /= count[2];
        const u32 y = rest % count[1], z = rest / count[1];
        const int place[3] = {int(z), int(y), int(x)};
        i64 tail = 0;
        int last = 0;
        for (int k = 0; k < 3; ++k) {
            last = low[k] + (k == axis ? 2 * place[k] : place[k]);
            tail = tail * p.sides[k] + last;
        }
        return {tail, tail + ahead, flow_at(axis == 2, tail, last, p.sides[2])};
    }
};

__device__ inline float largest_step(float d) { return fminf(fmaxf(d, -30.0f), 30.0f); }

// All labels of one edge, one after the other, each with what the others have become: the sum of
// (y - f)(f - f before). Everything is read before anything is written, so that reads do not wait.
__device__ inline float relax(const Arguments& p, i64 image, const Edge& e, int direction, float beta) {
    const i64 n = p.n;
    const float half = p.half[(image * DIRECTIONS + direction) * n + e.tail];
    if (!(half > 0.0f)) return 0.0f;
    float* const tail = p.a + image * LABELS * n + e.tail;
    float* const head = p.a + image * LABELS * n + e.head;
    const i64 at = (image * DIRECTIONS + direction) * LABELS * n + e.flow;
    float* const flow = p.flow + at;
    float* const old = p.flow_before + at;
    float turned = 0.0f;
    float x[KEPT], y[KEPT], f[KEPT], start[KEPT];
    float top_x = -3e38f, top_y = -3e38f;
#if KEPT == LABELS
#pragma unroll
    for (int j = 0; j < LABELS; ++j) {
        x[j] = tail[j * n], y[j] = head[j * n];
        f[j] = flow[j * n], start[j] = old[j * n];
    }
#endif
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const float u = KEPT == LABELS ? x[j] : tail[j * n], v = KEPT == LABELS ? y[j] : head[j * n];
        top_x = fmaxf(top_x, u), top_y = fmaxf(top_y, v);
    }
    float sum_x = 0.0f, sum_y = 0.0f;
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        sum_x += __expf((KEPT == LABELS ? x[j] : tail[j * n]) - top_x);
        sum_y += __expf((KEPT == LABELS ? y[j] : head[j * n]) - top_y);
    }
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const float u = KEPT == LABELS ? x[j] : tail[j * n], v = KEPT == LABELS ? y[j] : head[j * n];
        const float mass_x = __expf(u - top_x), mass_y = __expf(v - top_y);
        const float rest_x = fmaxf(sum_x - mass_x, 1e-7f * sum_x);
        const float rest_y = fmaxf(sum_y - mass_y, 1e-7f * sum_y);
        const float apart = (u - top_x) - (v - top_y) - __logf(__fdividef(rest_x, rest_y));
        const float before = KEPT == LABELS ? f[j] : flow[j * n];
        const float from = before + beta * (before - (KEPT == LABELS ? start[j] : old[j * n]));
        const float after = fminf(fmaxf(from + largest_step(0.5f * apart), -half), half);
        const float d = after - from;
        const float lower = u - d, higher = v + d;
        turned -= d * (after - before);
        old[j * n] = before;
        flow[j * n] = after;
        tail[j * n] = lower;
        head[j * n] = higher;
        sum_x = fmaxf(sum_x - mass_x, 0.0f) + __expf(lower - top_x);
        sum_y = fmaxf(sum_y - mass_y, 0.0f) + __expf(higher - top_y);
    }
    return turned;
}

// The edges of a pixel: where the flow of label 0 is, with what sign it enters; without sign, no edge.
struct Around {
    i64 at[2 * DIRECTIONS];
    double sign[2 * DIRECTIONS];

    __device__ Around(const Arguments& p, i64 image, u32 pixel) {
        const u32 width = p.sides[2], x = pixel % width, rest = pixel / width;
        const int place[3] = {int(rest / p.sides[1]), int(rest % p.sides[1]), int(x)};
#pragma unroll
        for (int d = 0; d < DIRECTIONS; ++d) {
            bool to = true, from = true;
            i64 ahead = 0;
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const int next = place[k] + p.steps[d][k], last = place[k] - p.steps[d][k];
                to = to && next >= 0 && next < p.sides[k];
                from = from && last >= 0 && last < p.sides[k];
                ahead = ahead * p.sides[k] + p.steps[d][k];
            }
            const i64 base = (image * DIRECTIONS + d) * LABELS * p.n;
            const bool rows = !p.steps[d][0] && !p.steps[d][1];
            at[2 * d] = base + (to ? flow_at(rows, pixel, x, width) : 0);
            at[2 * d + 1] = base + (from ? flow_at(rows, pixel - ahead, x - 1, width) : 0);
            sign[2 * d] = to ? -1.0 : 0.0;
            sign[2 * d + 1] = from ? 1.0 : 0.0;
        }
    }
};

// theta and the flows, in double precision.
__device__ inline double score(const Arguments& p, const Around& around, i64 own, int j, const float* flow) {
    double a = static_cast<double>(p.theta[own + j * p.n]);
#pragma unroll
    for (int k = 0; k < 2 * DIRECTIONS; ++k)
        a += around.sign[k] * static_cast<double>(flow[around.at[k] + j * p.n]);
    return a;
}

// Scores and probabilities of a pixel; adds to the bound, its grounded value, and sizes.
__device__ inline void settle(const Arguments& p, i64 image, i64 pixel, double* sums) {
    double x[KEPT];
    const Around around(p, image, u32(pixel));
    const i64 own = image * LABELS * p.n + pixel;
    double top = -1e300, best = -1e300;
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const double a = score(p, around, own, j, p.flow);
        if (KEPT == LABELS) x[j] = a;
        best = fmax(best, static_cast<double>(p.theta[own + j * p.n]));
        top = fmax(top, a);
    }
    double sum = 0;
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const double a = KEPT == LABELS ? x[j] : score(p, around, own, j, p.flow);
        const double mass = exp(a - top);
        p.a[own + j * p.n] = fmaxf(static_cast<float>(a), -1e30f);
        if (KEPT == LABELS) x[j] = mass;
        sum += mass;
    }
    const double scale = 1.0 / sum;
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const double mass =
            KEPT == LABELS ? x[j] : exp(score(p, around, own, j, p.flow) - top);
        p.p[own + j * p.n] = static_cast<float>(mass * scale);
    }
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const double a = score(p, around, own, j, p.flow_before);
        if (KEPT == LABELS) x[j] = a;
        else p.a_before[own + j * p.n] = fmaxf(static_cast<float>(a), -1e30f);
    }
#if KEPT == LABELS
#pragma unroll
    for (int j = 0; j < LABELS; ++j) p.a_before[own + j * p.n] = fmaxf(static_cast<float>(x[j]), -1e30f);
#endif
    const double value = top + log(sum);
    sums[0] += value;
    sums[1] += value - best;
    sums[3] += fabs(value) + fabs(best);
}

__device__ inline double slack_of(const Arguments& p, i64 image, const Edge& e, int direction) {
    const i64 n = p.n;
    const double half = p.half[(image * DIRECTIONS + direction) * n + e.tail];
    if (!(half > 0.0)) return 0.0;
    const float* const tail = p.p + image * LABELS * n + e.tail;
    const float* const head = p.p + image * LABELS * n + e.head;
    const float* const flow = p.flow + ((image * DIRECTIONS + direction) * LABELS) * n + e.flow;
    double sum = 0;
#if KEPT == LABELS
#pragma unroll
#else
#pragma unroll 4
#endif
    for (int j = 0; j < LABELS; ++j) {
        const double apart = static_cast<double>(tail[j * n]) - static_cast<double>(head[j * n]);
        sum += half * fabs(apart) - static_cast<double>(flow[j * n]) * apart;
    }
    return sum + 4.8e-7 * half;  // what rounding of p may hide
}

__device__ inline float next_theta(float theta) { return 0.5f * (1.0f + sqrtf(1.0f + 4.0f * theta * theta)); }
__device__ inline float beta_of(float theta) { return (theta - 1.0f) / next_theta(theta); }

__device__ inline float move(float& now, float old, float beta) {
    const float before = now;
    now += beta * (now - old);
    return before;
}

// now + beta (now - before), and before = now; several reads are on their way at a time.
__device__ inline void extrapolate(float* now, float* before, i64 size, i64 first, i64 stride, float beta) {
    if (size % 4) {
        for (i64 k = first; k < size; k += stride) before[k] = move(now[k], before[k], beta);
        return;
    }
    constexpr int AHEAD = 4;
    float4* const x = reinterpret_cast<float4*>(now);
    float4* const y = reinterpret_cast<float4*>(before);
    for (i64 k = first; k < size / 4; k += AHEAD * stride) {
        float4 here[AHEAD], old[AHEAD];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u)
            if (k + u * stride < size / 4) here[u] = x[k + u * stride], old[u] = y[k + u * stride];
#pragma unroll
        for (int u = 0; u < AHEAD; ++u)
            if (k + u * stride < size / 4) {
                old[u].x = move(here[u].x, old[u].x, beta);
                old[u].y = move(here[u].y, old[u].y, beta);
                old[u].z = move(here[u].z, old[u].z, beta);
                old[u].w = move(here[u].w, old[u].w, beta);
                x[k + u * stride] = here[u], y[k + u * stride] = old[u];
            }
    }
}

// The sum of what the blocks of an image wrote.
__device__ inline double image_sum(const double* parts, int image, int images, double* scratch) {
    double sum = 0;
    for (i64 k = image + i64(images) * threadIdx.x; k < gridDim.x; k += i64(images) * LANES)
        sum += __ldcg(parts + k);
    return block_sum(sum, scratch);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    field(const __grid_constant__ Arguments p) {
    __shared__ double scratch[32];
    __shared__ double totals[4];
    __shared__ int open[MOST_IMAGES];
    __shared__ float momentum;
    // every block has an image, every image some blocks
    const int image = blockIdx.x % p.images, blocks = gridDim.x;
    const i64 members = (blocks - image + p.images - 1) / p.images;
    const i64 first = i64(blockIdx.x / p.images) * LANES + threadIdx.x, stride = members * LANES;
    const i64 own_flows = i64(DIRECTIONS) * LABELS * p.n, own = image * i64(LABELS) * p.n;
    u32 round = 0;
    for (int b = threadIdx.x; b < p.images; b += LANES) open[b] = 1;
    if (threadIdx.x == 0) momentum = 1.0f;
    for (i64 k = image * own_flows + first; k < (image + 1) * own_flows; k += stride) {
        if (!p.warm) p.flow[k] = 0.0f;
        p.flow_before[k] = p.warm ? p.flow[k] : 0.0f;
    }
    grid_barrier(p.counter, ++round);
    int sweep = 0, checks = 0, next = p.warm ? 0 : p.first_check, last = 0;
    double before = -1.0;
    bool fresh = true;  // the scores are to be made of the flows
    while (true) {
        const bool measure = sweep >= next || sweep >= p.limit;
        if (fresh || measure) {
            // the bound, and scores without what rounding has added up
            double sums[4] = {0, 0, 0, 0};
            if (open[image])
                for (i64 k = first; k < p.n; k += stride) settle(p, image, k, sums);
            for (int q = 0; q < 4; ++q) {
                const double sum = block_sum(sums[q], scratch);
                if (threadIdx.x == 0) p.parts[q * blocks + blockIdx.x] = sum;
            }
            grid_barrier(p.counter, ++round);
        }
        fresh = false;
        if (measure) {
            double gap = 0;
            if (open[image])
                for (int c = 0; c < 2 * DIRECTIONS; ++c) {
                    const Class chosen(p, c >> 1, c & 1);
                    for (i64 k = first; k < chosen.each; k += stride)
                        gap += slack_of(p, image, chosen.at(p, u32(k)), c >> 1);
                }
            gap = block_sum(gap, scratch);
            if (threadIdx.x == 0) p.parts[2 * blocks + blockIdx.x] = gap;
            grid_barrier(p.counter, ++round);
            ++checks;
            double worst = 0;
            for (int b = 0; b < p.images; ++b) {
                if (!open[b]) continue;
                for (int q = 0; q < 4; ++q) {
                    const double sum = image_sum(p.parts + q * blocks, b, p.images, scratch);
                    if (threadIdx.x == 0) totals[q] = sum;
                }
                __syncthreads();
                const double relative = totals[2] / fmax(1.0, fabs(totals[1]));
                worst = fmax(worst, relative);
                if (blockIdx.x == b && threadIdx.x == 0)
                    for (int q = 0; q < 4; ++q) p.out[4 * b + q] = totals[q];
                __syncthreads();
                if (threadIdx.x == 0 && relative <= p.tol) open[b] = 0;
            }
            __syncthreads();
            // where the gap has ceased to fall, rounding has the last word
            const bool stalled = before >= 0.0 && sweep - last >= 16 && worst > 0.9 * before;
            if (worst <= p.tol || sweep >= p.limit || stalled) break;
            // halfway between a fall by a power of the sweeps and one by a factor a sweep
            double ahead = sweep < 4 ? 2 : sweep / 2 + 1;
            if (before > worst && last > 0 && sweep > last && p.tol > 0) {
                const double togo = log(worst / p.tol), fall = log(before / worst);
                const double factor = togo * (sweep - last) / fall;
                const double power =
                    sweep * (exp(fmin(togo * log(double(sweep) / last) / fall, 10.0)) - 1.0);
                ahead = 0.51 * (factor + power) + 0.5;
            }
            next = sweep + int(fmax(1.0, fmin(ahead, fmin(fmax(8.0, double(sweep)), 32.0))));
            last = sweep, before = worst;
        }
        const float beta = beta_of(momentum);
        if (open[image])
            extrapolate(p.a + own, p.a_before + own, LABELS * p.n, first, stride, beta);
        grid_barrier(p.counter, ++round);
        float turned = 0;
        for (int c = 0; c < 2 * DIRECTIONS; ++c) {
            const Class chosen(p, c >> 1, c & 1);
            if (open[image])
                for (i64 k = first; k < chosen.each; k += stride)
                    turned += relax(p, image, chosen.at(p, u32(k)), c >> 1, beta);
            if (c + 1 == 2 * DIRECTIONS) {
                const double sum = block_sum(static_cast<double>(turned), scratch);
                if (threadIdx.x == 0) p.parts[4 * blocks + blockIdx.x] = sum;
            }
            grid_barrier(p.counter, ++round);
        }
        const double sum = image_sum(p.parts + 4 * blocks, image, p.images, scratch);
        if (threadIdx.x == 0) momentum = sum > 0.0 ? 1.0f : next_theta(momentum);
        __syncthreads();
        ++sweep;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) p.record[0] = sweep, p.record[1] = checks;
}

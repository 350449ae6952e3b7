// A sweep over a grid with any adjacent neighbours, up to three sides and any number of labels.
//
// With all other flows fixed, the bound is least at the flow for which both ends of its edge have
// the same logit. So the flow moves by half the difference of the two logits, and is clipped. Edges
// of one direction whose first pixels are at even (or odd) places along it share no pixel and move
// at once.

struct Edge {
    i64 tail, head;
    i64 flow;  // the position of its flow
};

// The edges of a direction whose first pixels have one parity along its first axis.
struct Class {
    int axis, parity;
    int low[3], count[3];  // first pixels: low + index, along the axis low + 2 index
    i64 each;
    i64 ahead;  // the step from first to second pixel

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
        int place[3] = {int(z), int(y), int(x)};
        for (int k = 0; k < 3; ++k) place[k] = low[k] + (k == axis ? 2 : 1) * place[k];
        const i64 row = i64(place[0]) * p.sides[1] + place[1], tail = row * p.sides[2] + place[2];
        return {tail, tail + ahead, flow_at(p, row, place[2], axis == 2)};
    }
};

__device__ inline float largest_step(float d) { return fminf(fmaxf(d, -30.0f), 30.0f); }

// Move the flows of all labels of one edge, one after the other. Return the sum of (y - f)(f -
// f_before). Everything is read before anything is written, so that reads do not wait for writes.
__device__ inline float relax(const Arguments& p, i64 image, const Edge& e, int direction, float beta) {
    const i64 n = p.n;
    const float half = half_of(p.weights[(image * DIRECTIONS + direction) * n + e.tail]);
    if (!(half > 0.0f)) return 0.0f;
    float* const tail = p.a[0] + image * LABELS * n + e.tail;
    float* const head = p.a[0] + image * LABELS * n + e.head;
    const i64 at = (image * DIRECTIONS + direction) * LABELS * n + e.flow;
    float* const flow = p.flow + at;
    float* const old = p.before[0] + at;
    constexpr bool kept = KEPT == LABELS;
    float turned = 0.0f;
    float x[KEPT], y[KEPT], f[KEPT], start[KEPT];
    float top_x = -3e38f, top_y = -3e38f;
    if (kept) EACH_LABEL {
        x[j] = tail[j * n], y[j] = head[j * n];
        f[j] = flow[j * n], start[j] = old[j * n];
    }
    EACH_LABEL {
        top_x = fmaxf(top_x, kept ? x[j] : tail[j * n]);
        top_y = fmaxf(top_y, kept ? y[j] : head[j * n]);
    }
    float sum_x = 0.0f, sum_y = 0.0f;
    EACH_LABEL {
        sum_x += __expf((kept ? x[j] : tail[j * n]) - top_x);
        sum_y += __expf((kept ? y[j] : head[j * n]) - top_y);
    }
    EACH_LABEL {
        const float u = kept ? x[j] : tail[j * n], v = kept ? y[j] : head[j * n];
        const float mass_x = __expf(u - top_x), mass_y = __expf(v - top_y);
        const float rest_x = fmaxf(sum_x - mass_x, 1e-7f * sum_x);
        const float rest_y = fmaxf(sum_y - mass_y, 1e-7f * sum_y);
        const float apart = (u - top_x) - (v - top_y) - __logf(__fdividef(rest_x, rest_y));
        const float before = kept ? f[j] : flow[j * n];
        const float from = before + beta * (before - (kept ? start[j] : old[j * n]));
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

__device__ inline float move(float& now, float old, float beta) {
    const float before = now;
    now += beta * (now - old);
    return before;
}

// Set `now` to now + beta (now - before), and `before` to the old value of `now`. Several reads are
// pending at a time.
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

// Make one sweep over an image with its blocks. Return the sum of (y - f)(f - f_before).
__device__ inline double sweep_over(const Arguments& p, const Share& share, const Sweep& sweep, u32& round) {
    const i64 image = share.image, own = image * i64(LABELS) * p.n;
    const i64 first = share.block * THREADS + threadIdx.x, stride = share.blocks * THREADS;
    extrapolate(p.a[0] + own, p.a[1] + own, LABELS * p.n, first, stride, sweep.beta);
    image_barrier(p, share, round);
    float turned = 0.0f;
    for (int c = 0; c < 2 * DIRECTIONS; ++c) {
        if (c > 0) image_barrier(p, share, round);
        const Class chosen(p, c >> 1, c & 1);
        for (i64 k = first; k < chosen.each; k += stride)
            turned += relax(p, image, chosen.at(p, u32(k)), c >> 1, sweep.beta);
    }
    return turned;
}

__device__ inline double flow_of(const Arguments& p, const float* flow, i64 at, int j) {
    return static_cast<double>(flow[at + j * p.n]);
}

// The edges from a pixel and to it, alternating: whether each exists, the position of its flow of
// label 0, and the step to the next pixel.
struct Around {
    bool is[2 * DIRECTIONS];
    i64 at[2 * DIRECTIONS];
    i64 ahead[DIRECTIONS];

    __device__ Around(const Arguments& p, i64 image, u32 pixel) {
        const u32 x = pixel % p.sides[2], rest = pixel / p.sides[2];
        const int place[3] = {int(rest / p.sides[1]), int(rest % p.sides[1]), int(x)};
#pragma unroll
        for (int d = 0; d < DIRECTIONS; ++d) {
            const int* const step = p.steps[d];
            bool to = true, from = true;
#pragma unroll
            for (int k = 0; k < 3; ++k) {
                const int next = place[k] + step[k], last = place[k] - step[k];
                to = to && next >= 0 && next < p.sides[k];
                from = from && last >= 0 && last < p.sides[k];
            }
            const i64 base = (image * DIRECTIONS + d) * flow_size(p);
            const i64 rows = i64(step[0]) * p.sides[1] + step[1];
            const bool along = !step[0] && !step[1];
            is[2 * d] = to, is[2 * d + 1] = from;
            at[2 * d] = base + flow_at(p, rest, x, along);
            at[2 * d + 1] = from ? base + flow_at(p, rest - rows, x - step[2], along) : at[2 * d];
            ahead[d] = rows * p.sides[2] + step[2];
        }
    }
};

// Return theta plus the flows, in double precision. Flows of missing edges are read too, because
// this avoids waiting.
__device__ inline double score(const Arguments& p, const Around& around, i64 own, int j, const float* flow) {
    double a = static_cast<double>(p.theta[own + j * p.n]);
#pragma unroll
    for (int k = 0; k < 2 * DIRECTIONS; ++k) {
        const double f = flow_of(p, flow, around.at[k], j), counted = around.is[k] ? f : 0.0;
        a += k & 1 ? counted : -counted;
    }
    return a;
}

// Write the probabilities and the scores of a pixel. Add to the bound, the bound minus the largest
// logit, and the sizes.
__device__ inline void settle(const Arguments& p, i64 image, i64 pixel, const float* flow, double* sums) {
    double x[KEPT];
    const Around around(p, image, u32(pixel));
    const i64 own = image * LABELS * p.n + pixel;
    double top = -1e300, best = -1e300;
    EACH_LABEL {
        const double a = score(p, around, own, j, flow);
        if (KEPT == LABELS) x[j] = a;
        best = fmax(best, static_cast<double>(p.theta[own + j * p.n]));
        top = fmax(top, a);
    }
    const double level = level_of(static_cast<float>(best));
    double sum = 0;
    EACH_LABEL {
        const double a = KEPT == LABELS ? x[j] : score(p, around, own, j, flow);
        const double mass = exp(a - top);
        p.a[0][own + j * p.n] = fmaxf(static_cast<float>(a - level), -1e30f);
        if (KEPT == LABELS) x[j] = mass;
        sum += mass;
    }
    const double scale = 1.0 / sum;
    EACH_LABEL {
        const double mass = KEPT == LABELS ? x[j] : exp(score(p, around, own, j, flow) - top);
        p.p[own + j * p.n] = static_cast<float>(mass * scale);
    }
    EACH_LABEL {
        const double a = score(p, around, own, j, p.before[0]);
        p.a[1][own + j * p.n] = fmaxf(static_cast<float>(a - level), -1e30f);
    }
    const double value = top + log(sum);
    sums[0] += value;
    sums[1] += value - best;
    sums[3] += size_of(value, best);
}

// Add the contributions of the edges from a pixel to the gap and to the sizes.
__device__ inline void slack_of(const Arguments& p, i64 image, i64 pixel, const float* flow, double* sums) {
    const Around around(p, image, u32(pixel));
    const float* const here = p.p + image * LABELS * p.n + pixel;
#pragma unroll
    for (int d = 0; d < DIRECTIONS; ++d) {
        if (!around.is[2 * d]) continue;
        const double half = half_of(p.weights[(image * DIRECTIONS + d) * p.n + pixel]);
        if (half == 0.0) continue;
        const float* const there = here + around.ahead[d];
        double slack = 4.8e-7 * half, largest = 0.0;  // bound on the effect of the rounding of p
        EACH_LABEL {
            const double apart = static_cast<double>(here[j * p.n]) - static_cast<double>(there[j * p.n]);
            const double f = flow_of(p, flow, around.at[2 * d], j);
            slack += half * fabs(apart) - f * apart;
            largest = fmax(largest, fabs(f));
        }
        sums[2] += slack, sums[3] += 2.0 * largest;
    }
}

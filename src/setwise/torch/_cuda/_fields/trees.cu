// The tree-reweighted bound on log Z of grids with four neighbours, by the passes of
// cpp/marginals/tree_bound.hpp. Every pixel is eliminated after those to the left and above, and
// the shares of its edges to the right and down sum to at most 1. Let m be the forward messages, r
// the backward ones, and b_i = theta_i + the sum of rho times the messages to i. Then
//
//     m_e = log sum_x exp(b_i - r_e - w_e / rho_e [x != y]).
//
// A warp handles a row and a lane one or several labels. Each row is one column behind the row
// above it. A block handles a strip of ROWS rows. Its last row stores the messages for the next
// strip together with the number of the launch, so that a reader can see whether they are there.
//
// Passes are in single precision and to base 2, with messages between -w / rho and 0. They alone
// prove nothing. For any m and r, the pass over all pixels bounds log Z if rho_e max(m*_e - m_e) is
// added for each edge, where m* is the right-hand side above. `settle` computes this in double
// precision for all pixels at once, and `pairs` computes the value of the dual at consistent
// marginals (cpp/marginals/tree_dual.hpp).

constexpr double LN2 = 0.69314718055994530942;
constexpr int SPAN = 32 * PER;  // the labels, padded to fill the last lane

struct Grid {
    // (4, B, N, L) to base 2: m right, m down, r right, r down, at an edge's first pixel.
    float* messages;
    const float2* edges;  // (2, B, N): rho, w / rho to base 2; 0 where there is no edge
    i64 n;
    int images, height, width;
};

struct SweepArguments {
    Grid grid;
    const float* theta;  // (B, N, L) to base 2, with 0 as the largest of each pixel
    const float* largest_price;  // the largest w / rho, to base 2
    u64* mail;  // (B, strips, W, SPAN): number of the launch, and message times rho
    u32* counter;  // number of strips taken in all launches
    u32 taken, launch;
    float step;  // step size of messages, at most 1
    int strips, backward;
};

struct SettleArguments {
    Grid grid;
    const LOGIT* theta;      // (B, N, L)
    const double* weights;   // (2, B, N)
    double* logs;            // (B, N, L): log p
    double* differ;  // (2, B, N): the probability that the ends differ
    double* parts;  // (blocks of an image, B, 4): bound, dual of pixels, dual of pairs, sizes
};

__device__ inline float exp_2(float x) {
    asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}
__device__ inline float log_2(float x) {
    asm("lg2.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
}

__device__ inline float warp_max(float x) {
#if __CUDA_ARCH__ >= 800
    int key = __float_as_int(x);
    key = __reduce_max_sync(~0u, key ^ ((key >> 31) & 0x7fffffff));
    return __int_as_float(key ^ ((key >> 31) & 0x7fffffff));
#else
    for (int step = 16; step; step >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
#endif
}
__device__ inline double warp_max(double x) {
    for (int step = 16; step; step >>= 1) x = fmax(x, __shfl_xor_sync(~0u, x, step));
    return x;
}
__device__ inline double warp_sum(double x) {
    for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ inline u64 peek(const u64* at) {
    u64 x;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x) : "l"(at) : "memory");
    return x;
}
__device__ inline void post(u64* at, u32 launch, float x) {
    const u64 both = static_cast<u64>(launch) << 32 | __float_as_uint(x);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(at), "l"(both) : "memory");
}

// The data of a pixel besides the messages to it: its logits, and its two edges to later pixels.
struct Inputs {
    float theta[PER], back[2][PER];
    float2 edge[2];
};

// The price of different labels at an edge. With CHEAP prices everywhere, the largest exponent need
// not be subtracted. With EXPENSIVE prices, masses would underflow, and logarithms are used.
enum Price { CHEAP, PLAIN, EXPENSIVE };

// Compute both messages to later pixels, minus log sum.
template <Price PRICE>
__device__ inline void messages(const float (&b)[PER], const Inputs& in, float (&out)[2][PER]) {
    float x[2][PER], mass[2][PER], top[2] = {0.0f, 0.0f}, sum[2];
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        float high = b[0] - in.back[e][0];
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            x[e][q] = b[q] - in.back[e][q];
            high = fmaxf(high, x[e][q]);
        }
        if (PRICE != CHEAP) top[e] = high;
    }
    if (PRICE != CHEAP) top[0] = warp_max(top[0]), top[1] = warp_max(top[1]);
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        sum[e] = 0.0f;
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            if (PRICE != CHEAP) x[e][q] -= top[e];
            mass[e][q] = exp_2(x[e][q]);
            sum[e] += mass[e][q];
        }
    }
#pragma unroll
    for (int step = 16; step; step >>= 1) {
        const float one = __shfl_xor_sync(~0u, sum[0], step), other = __shfl_xor_sync(~0u, sum[1], step);
        sum[0] += one, sum[1] += other;
    }
#pragma unroll
    for (int e = 0; e < 2; ++e) {
        const float fall = in.edge[e].y, change = exp_2(-fall), level = log_2(sum[e]);
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            const float rest = sum[e] - mass[e][q];
            if (PRICE == EXPENSIVE) {
                const float move = (rest > 0.0f ? log_2(rest) : -1e30f) - fall;
                const float far = fabsf(move - x[e][q]);
                out[e][q] = fmaxf(move, x[e][q]) + log_2(1.0f + exp_2(-far)) - level;
            } else {
                out[e][q] = log_2(fmaf(change, rest, mass[e][q])) - level;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) sweep(const __grid_constant__ SweepArguments p) {
    __shared__ float above[2][ROWS][SPAN];
    __shared__ u32 ticket;
    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int width = p.grid.width, height = p.grid.height;
    const i64 n = p.grid.n, all = p.grid.images * n;
    const bool backward = p.backward != 0;
    // the direction in which the edges to later pixels are stored
    const int along = backward ? -1 : 1;
    const i64 to[2] = {backward ? -1 : 0, backward ? -i64(width) : 0};
    float* const ahead = p.grid.messages + (backward ? 2 : 0) * all * LABELS;
    const float* const back = p.grid.messages + (backward ? 0 : 2) * all * LABELS;
    const bool is_cheap = *p.largest_price < 20.0f;
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) ticket = atomicAdd(p.counter, 1u) - p.taken;
        __syncthreads();
        if (ticket >= u32(p.strips) * p.grid.images) return;
        const int image = ticket % p.grid.images, strip = ticket / p.grid.images;
        const int row = strip * ROWS + warp;
        const bool lives = row < height, goes_down = row + 1 < height;
        const i64 start =
            image * n + (backward ? i64(height - 1 - row) * width + width - 1 : i64(row) * width);
        u64* const mine = p.mail + (i64(image) * p.strips + strip) * width * SPAN;
        const u64* const theirs = mine - i64(width) * SPAN;

        // The positions of the row's first column: its logits, and the messages of its edges to
        // later pixels.
        const i64 slots[2] = {start + to[0], all + start + to[1]};
        const float* const logits = p.theta + start * LABELS + lane;
        const float* const received[2] = {back + slots[0] * LABELS + lane, back + slots[1] * LABELS + lane};
        float* const sent[2] = {ahead + slots[0] * LABELS + lane, ahead + slots[1] * LABELS + lane};
        const float2* const edges[2] = {p.grid.edges + slots[0], p.grid.edges + slots[1]};

        const auto load = [&](int column, Inputs& in) {
#pragma unroll
            for (int q = 0; q < PER; ++q) in.theta[q] = -1e30f, in.back[0][q] = in.back[1][q] = 0.0f;
            in.edge[0] = in.edge[1] = make_float2(0.0f, 0.0f);
            if (!lives || column < 0 || column >= width) return;
            const int pixel = along * column, at = pixel * LABELS;
#pragma unroll
            for (int q = 0; q < PER; ++q)
                if (lane + 32 * q < LABELS) in.theta[q] = logits[at + 32 * q];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                if (e ? !goes_down : column + 1 >= width) continue;
                in.edge[e] = edges[e][pixel];
#pragma unroll
                for (int q = 0; q < PER; ++q)
                    if (lane + 32 * q < LABELS) in.back[e][q] = received[e][at + 32 * q];
            }
        };
        const bool listens = warp == 0 && strip > 0;
        const auto look = [&](int column, u64 (&letters)[PER]) {
#pragma unroll
            for (int q = 0; q < PER; ++q)
                letters[q] = listens && column < width
                                 ? peek(theirs + i64(column) * SPAN + lane + 32 * q)
                                 : 0;
        };

        Inputs now[CHUNK], next[CHUNK];
        u64 letters[CHUNK][PER], later[CHUNK][PER];
        float carried[PER];
#pragma unroll
        for (int q = 0; q < PER; ++q) carried[q] = 0.0f;
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) load(u - warp, now[u]), look(u, letters[u]);
        for (int first = 0; first < width + ROWS - 1; first += CHUNK) {
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) {
                load(first + CHUNK + u - warp, next[u]);
                look(first + CHUNK + u, later[u]);
            }
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) {
                const int column = first + u - warp;
                if (lives && column >= 0 && column < width) {
                    const Inputs& in = now[u];
                    float b[PER], out[2][PER];
#pragma unroll
                    for (int q = 0; q < PER; ++q) {
                        float down = 0.0f;
                        if (listens) {
                            while (u32(letters[u][q] >> 32) != p.launch)
                                letters[u][q] = peek(theirs + i64(column) * SPAN + lane + 32 * q);
                            down = __uint_as_float(u32(letters[u][q]));
                        } else if (warp > 0) {
                            down = above[(first + u + 1) & 1][warp - 1][lane + 32 * q];
                        }
                        b[q] = in.theta[q] + carried[q] + down + in.edge[0].x * in.back[0][q] +
                               in.edge[1].x * in.back[1][q];
                    }
                    __syncwarp();
                    if (is_cheap)
                        messages<CHEAP>(b, in, out);
                    else if (fmaxf(in.edge[0].y, in.edge[1].y) < 60.0f)
                        messages<PLAIN>(b, in, out);
                    else
                        messages<EXPENSIVE>(b, in, out);
                    const int at = along * column * LABELS;
#pragma unroll
                    for (int q = 0; q < PER; ++q) {
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            if ((e ? !goes_down : column + 1 >= width) || lane + 32 * q >= LABELS) {
                                out[e][q] = 0.0f;
                                continue;
                            }
                            float* const kept = sent[e] + at + 32 * q;
                            if (p.step < 1.0f) out[e][q] = *kept + p.step * (out[e][q] - *kept);
                            *kept = out[e][q];
                        }
                        carried[q] = in.edge[0].x * out[0][q];
                        const float down = in.edge[1].x * out[1][q];
                        if (warp + 1 < ROWS)
                            above[(first + u) & 1][warp][lane + 32 * q] = down;
                        else if (goes_down)
                            post(mine + i64(column) * SPAN + lane + 32 * q, p.launch, down);
                    }
                }
                __syncthreads();
            }
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) {
                now[u] = next[u];
#pragma unroll
                for (int q = 0; q < PER; ++q) letters[u][q] = later[u][q];
            }
        }
    }
}

// Return log(exp(x) + change (sum - mass)), also if change = exp(-price) underflows.
__device__ inline double on_arrival(double x, double mass, double sum, double price) {
    const double rest = fmax(sum - mass, 0.0);
    if (price < 600.0) return log(fmax(exp(-price) * rest + mass, 1e-300));
    const double move = (rest > 0.0 ? log(rest) : -700.0) - price;
    const double high = fmax(x, move), low = fmin(x, move);
    return high + log1p(exp(low - high));
}

extern "C" __global__ void __launch_bounds__(THREADS) settle(const __grid_constant__ SettleArguments p) {
    __shared__ double scratch[32];
    const int lane = threadIdx.x & 31, image = blockIdx.x % p.grid.images;
    const i64 member = blockIdx.x / p.grid.images;
    const i64 members = (gridDim.x - image + p.grid.images - 1) / p.grid.images;
    const i64 n = p.grid.n, all = p.grid.images * n;
    const int width = p.grid.width;
    constexpr int WARPS = THREADS / 32;
    double bound = 0, dual = 0, sizes = 0;
    const auto said = [&](int array, i64 slot, int j) {
        return LN2 * static_cast<double>(p.grid.messages[(array * all + slot) * LABELS + j]);
    };
    for (i64 k = member * WARPS + (threadIdx.x >> 5); k < n; k += members * WARPS) {
        const i64 pixel = image * n + k;
        const int column = k % width;
        const bool is_edge[2] = {column + 1 < width, k + width < n};
        float2 out[2], in[2];
        out[0] = is_edge[0] ? p.grid.edges[pixel] : make_float2(0.0f, 0.0f);
        out[1] = is_edge[1] ? p.grid.edges[all + pixel] : make_float2(0.0f, 0.0f);
        in[0] = column ? p.grid.edges[pixel - 1] : make_float2(0.0f, 0.0f);
        in[1] = k >= width ? p.grid.edges[all + pixel - width] : make_float2(0.0f, 0.0f);
        double b[PER], theta[PER], back[2][PER], top = -1e300;
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            const int j = lane + 32 * q;
            b[q] = theta[q] = -1e300, back[0][q] = back[1][q] = 0.0;
            if (j < LABELS) {
                theta[q] = fmax(static_cast<double>(p.theta[pixel * LABELS + j]), -1e300);
                b[q] = theta[q];
                if (in[0].x > 0.0f) b[q] += in[0].x * said(0, pixel - 1, j);
                if (in[1].x > 0.0f) b[q] += in[1].x * said(1, pixel - width, j);
                for (int e = 0; e < 2; ++e)
                    if (out[e].x > 0.0f) {
                        back[e][q] = said(2 + e, pixel, j);
                        b[q] += out[e].x * back[e][q];
                    }
            }
            top = fmax(top, b[q]);
        }
        top = warp_max(top);
        double sum = 0;
#pragma unroll
        for (int q = 0; q < PER; ++q) sum += exp(b[q] - top);
        const double level = top + log(warp_sum(sum));
        double own = 0;
#pragma unroll
        for (int q = 0; q < PER; ++q) {
            const int j = lane + 32 * q;
            if (j >= LABELS) continue;
            const double x = fmax(b[q] - level, -750.0), mass = exp(x);
            p.logs[pixel * LABELS + j] = x;
            if (mass > 0.0) own += mass * (theta[q] - x), sizes += mass * (fabs(theta[q]) + fabs(x));
        }
        dual += own;
        const double left = 1.0 - out[0].x - out[1].x;
        if (lane == 0) bound += left * level, sizes += fabs(level) + fabs(top);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (!(out[e].x > 0.0f)) continue;
            const double price = p.weights[e * all + pixel] / out[e].x;
            double high = -1e300;
#pragma unroll
            for (int q = 0; q < PER; ++q) high = fmax(high, b[q] - back[e][q]);
            high = warp_max(high);
            double mass[PER], total = 0, most = -1e300;
#pragma unroll
            for (int q = 0; q < PER; ++q) total += mass[q] = exp(b[q] - back[e][q] - high);
            total = warp_sum(total);
#pragma unroll
            for (int q = 0; q < PER; ++q) {
                const int j = lane + 32 * q;
                if (j >= LABELS) continue;
                const double x = fmax(b[q] - back[e][q] - high, -1e300);
                most = fmax(most, on_arrival(x, mass[q], total, price) - said(e, pixel, j));
            }
            most = warp_max(most);
            if (lane == 0) bound += out[e].x * (high + most), sizes += fabs(high) + fabs(most);
        }
    }
    const double sums[3] = {bound, dual, sizes};
    const int places[3] = {0, 1, 3};
    for (int q = 0; q < 3; ++q) {
        const double sum = block_sum(sums[q], scratch);
        if (threadIdx.x == 0) p.parts[4 * blockIdx.x + places[q]] = sum;
    }
}

// Return log(part / (whole mass)), also if the product underflows.
__device__ inline double log_odds(double part, double whole, double mass) {
    const double product = whole * mass;
    return product > 1e-290 ? log(part / product) : log(part / mass) - log(whole);
}

// For two labels: return the optimal marginals of a pair with the given ends, whose odds are those
// of the edge.
__device__ inline double2 binary_pair(double p, double other_p, double q, double other_q, double change) {
    const double squared = change * change, half = squared + (1.0 - squared) * (p + q);
    const double inside = half * half - 4.0 * (1.0 - squared) * p * q;
    const double root = 2.0 * p * q / (half + sqrt(fmax(inside, 0.0)));
    const double both = fmin(root, fmin(p, q));  // if root is 0 / 0 it is the latter
    const double tail = p - both, head = fmin(q - both, other_p), none = other_p - head;
    const auto part = [](double mass, double apart) {
        return mass > 1e-300 ? mass * log(mass / fmax(apart, 1e-300)) : 0.0;
    };
    const double information = part(both, p * q) + part(tail, p * other_q) + part(head, other_p * q) +
                               part(none, other_p * other_q);
    return make_double2(information, tail + head);
}

// Add up minus rho times the information and minus the energy of each pair. The marginals of a pair
// are a K b, near those of the messages, plus a product that supplies the remainders of the ends.
extern "C" __global__ void __launch_bounds__(THREADS) pairs(const __grid_constant__ SettleArguments p) {
    __shared__ double scratch[32];
    constexpr double TINY = 1e-300, LEAST = 1e-290;
    constexpr int WARPS = THREADS / 32;
    const int lane = threadIdx.x & 31, image = blockIdx.x % p.grid.images;
    const i64 member = blockIdx.x / p.grid.images;
    const i64 members = (gridDim.x - image + p.grid.images - 1) / p.grid.images;
    const i64 n = p.grid.n, all = p.grid.images * n;
    const int width = p.grid.width;
    double value = 0;
    for (i64 k = member * WARPS + (threadIdx.x >> 5); k < n; k += members * WARPS) {
        const i64 pixel = image * n + k;
        double tail[PER];
#pragma unroll
        for (int q = 0; q < PER; ++q)
            tail[q] = lane + 32 * q < LABELS ? exp(p.logs[pixel * LABELS + lane + 32 * q]) : 0.0;
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            if (!(e ? k + width < n : k % width + 1 < width)) {
                if (lane == 0) p.differ[e * all + pixel] = 0.0;
                continue;
            }
            const i64 other = pixel + (e ? width : 1);
            const double rho = p.grid.edges[e * all + pixel].x;
            double head[PER], a[PER], b[PER], factor_a[PER], factor_b[PER], rows[PER], columns[PER];
            double sum = 0, top = -1e300;
#pragma unroll
            for (int q = 0; q < PER; ++q) {
                const int j = lane + 32 * q;
                head[q] = 0.0, b[q] = -1e300;
                if (j < LABELS) {
                    const double x = p.logs[other * LABELS + j];
                    head[q] = exp(x);
                    b[q] = x - LN2 * static_cast<double>(p.grid.messages[(e * all + pixel) * LABELS + j]);
                }
                sum += tail[q] * head[q];
                top = fmax(top, b[q]);
            }
            if (!(rho > 0.0)) {  // the ends are independent
                sum = warp_sum(sum);
                if (lane == 0) p.differ[e * all + pixel] = fmax(1.0 - sum, 0.0);
                continue;
            }
            const double weight = p.weights[e * all + pixel], change = exp(-weight / rho);
#if LABELS == 2
            const double own = __shfl_sync(~0u, tail[0], 1), its = __shfl_sync(~0u, head[0], 1);
            if (lane == 0) {
                const double2 pair = binary_pair(own, tail[0], its, head[0], change);
                p.differ[e * all + pixel] = pair.y;
                value -= rho * pair.x + weight * pair.y;
            }
            continue;
#endif
            top = warp_max(top);
#pragma unroll
            for (int q = 0; q < PER; ++q) b[q] = exp(b[q] - top);
            const auto through = [&](const double (&x)[PER], double (&y)[PER]) {
                double total = 0;
#pragma unroll
                for (int q = 0; q < PER; ++q) total += x[q];
                total = warp_sum(total);
#pragma unroll
                for (int q = 0; q < PER; ++q) y[q] = change * total + (1.0 - change) * x[q];
            };
            for (int round = 0; round < 2; ++round) {
                through(b, rows);
#pragma unroll
                for (int q = 0; q < PER; ++q)
                    factor_a[q] = 1.0 / fmax(rows[q], TINY), a[q] = tail[q] * factor_a[q];
                through(a, columns);
#pragma unroll
                for (int q = 0; q < PER; ++q)
                    factor_b[q] = 1.0 / fmax(columns[q], TINY), b[q] = head[q] * factor_b[q];
            }
            through(b, rows);
#pragma unroll
            for (int q = 0; q < PER; ++q) {
                const double got = a[q] * rows[q], fall = got > tail[q] ? tail[q] / got : 1.0;
                factor_a[q] *= fall;
                a[q] *= fall;
                rows[q] = fmin(got, tail[q]);
            }
            through(a, columns);
            double mass = 0, same = 0, lacks_tail = 0, lacks_head = 0, information = 0;
#pragma unroll
            for (int q = 0; q < PER; ++q) {
                columns[q] = fmin(b[q] * columns[q], head[q]);
                mass += rows[q];
                same += a[q] * b[q];
                if (rows[q] > 0.0) information += rows[q] * log(fmax(factor_a[q], TINY));
                if (columns[q] > 0.0) information += columns[q] * log(fmax(factor_b[q], TINY));
                rows[q] = tail[q] - rows[q];
                columns[q] = head[q] - columns[q];
                lacks_tail += rows[q];
                lacks_head += columns[q];
            }
            mass = warp_sum(mass), same = warp_sum(same);
            lacks_tail = warp_sum(lacks_tail), lacks_head = warp_sum(lacks_head);
            const double moved = fmax(mass - same, 0.0);
            double differ = 0;
            if (lacks_tail > LEAST && lacks_head > LEAST) {
                const double scale = lacks_tail / lacks_head;
#pragma unroll
                for (int q = 0; q < PER; ++q) {
                    if (rows[q] > 0.0)
                        information += rows[q] * log_odds(rows[q], lacks_tail, tail[q]);
                    if (columns[q] > 0.0)
                        information += columns[q] * scale * log_odds(columns[q], lacks_head, head[q]);
                    differ += rows[q] * (1.0 - columns[q] / lacks_head);
                }
            }
            information = warp_sum(information), differ = moved + warp_sum(differ);
            if (lane == 0) {
                if (mass > 0.0) information -= mass * log(mass);
                information -= weight * moved / rho;
                p.differ[e * all + pixel] = differ;
                value -= rho * information + weight * differ;
            }
        }
    }
    value = block_sum(value, scratch);
    if (threadIdx.x == 0) p.parts[4 * blockIdx.x + 2] = value;
}

// Sets of least expected loss: rows of probabilities p, sorted in decreasing order, for Jaccard
// (jaccard = 1) or F-beta (b = beta^2). The method is explained in
// cpp/decisions/expected_ratio.hpp: 1 / x is a sum of exponentials at Q nodes, with one thread per
// node, and bounds by moments leave few candidates k.

typedef SCORE P;

struct Arguments {
    const P* p;             // (rows, n)
    double* sums;  // (rows, chunks, 3): sums of p, p (1 - p) and log(1 - p) over chunks
    const double* before;  // (rows, chunks + 1, 3): the same sums over all earlier chunks
    const double* nodes;    // (Q): u
    const double* weights;  // (Q)
    double* lower;          // (rows): the largest lower bound on a score
    int* first;  // (rows): the least and the largest k that can be best
    int* last;
    double* products;  // (rows, chunks, 2, Q)
    int* best;         // (rows)
    double* score;     // (rows)
    double b;
    i64 rows, n, chunks;
    int jaccard, q;
};

constexpr int CHUNK = 2048, EACH = (CHUNK + THREADS - 1) / THREADS, WARPS = THREADS / 32;

__device__ inline double mean_of(const Arguments& a, double k, double hit, double total) {
    return k + (a.jaccard ? fmax(total - hit, 0.0) : a.b * total);
}
__device__ inline double scale_of(const Arguments& a) { return a.jaccard ? 1.0 : 1.0 + a.b; }

// Return the score of the empty set: predicting nothing is right if the truth is empty.
__device__ inline double none_of(const Arguments& a, i64 row) {
    return exp(a.before[(row * (a.chunks + 1) + a.chunks) * 3 + 2]);
}

__device__ inline double over_block(double x, double* scratch) {
    for (int step = 16; step; step >>= 1) x += __shfl_xor_sync(~0u, x, step);
    __syncthreads();
    if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = x;
    __syncthreads();
    x = 0;
    for (int w = 0; w < WARPS; ++w) x += scratch[w];
    return x;
}

// Return the sum over the threads before this one.
__device__ inline double before_in_block(double x, double* scratch) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    double sum = x;
    for (int step = 1; step < 32; step <<= 1) {
        const double other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    __syncthreads();
    if (lane == 31) scratch[warp] = sum;
    __syncthreads();
    double start = 0;
    for (int w = 0; w < warp; ++w) start += scratch[w];
    return start + (sum - x);
}

extern "C" __global__ void __launch_bounds__(THREADS) sums(const __grid_constant__ Arguments a) {
    __shared__ double scratch[WARPS];
    for (i64 task = blockIdx.x; task < a.rows * a.chunks; task += gridDim.x) {
        const i64 row = task / a.chunks, begin = (task % a.chunks) * CHUNK;
        double hit = 0, within = 0, none = 0;
        for (i64 i = begin + threadIdx.x; i < min(begin + CHUNK, a.n); i += THREADS) {
            const double p = double(a.p[row * a.n + i]);
            hit += p;
            within += p * (1 - p);
            none += log1p(-p);
        }
        hit = over_block(hit, scratch);
        within = over_block(within, scratch);
        none = over_block(none, scratch);
        if (threadIdx.x == 0) {
            a.sums[task * 3] = hit;
            a.sums[task * 3 + 1] = within;
            a.sums[task * 3 + 2] = none;
        }
    }
}

// Call visit(k, hit, within) for every k of a chunk, with the sums over the first k elements of the
// row.
template <class Visit>
__device__ void each_prefix(const Arguments& a, i64 task, double* shared, double* scratch, Visit visit) {
    const i64 row = task / a.chunks, chunk = task % a.chunks, begin = chunk * CHUNK;
    const int size = int(min(i64(CHUNK), a.n - begin));
    __syncthreads();
    for (int i = threadIdx.x; i < size; i += THREADS) shared[i] = double(a.p[row * a.n + begin + i]);
    __syncthreads();
    const int from = min(threadIdx.x * EACH, size), to = min(from + EACH, size);
    double hit = 0, within = 0;
    for (int i = from; i < to; ++i) {
        hit += shared[i];
        within += shared[i] * (1 - shared[i]);
    }
    const double* start = a.before + (row * (a.chunks + 1) + chunk) * 3;
    hit = start[0] + before_in_block(hit, scratch);
    within = start[1] + before_in_block(within, scratch);
    for (int i = from; i < to; ++i) {
        hit += shared[i];
        within += shared[i] * (1 - shared[i]);
        visit(begin + i + 1, hit, within);
    }
}

// Compute the largest lower bound of each row. Positive doubles are ordered like their bits.
extern "C" __global__ void __launch_bounds__(THREADS) lower_bounds(const __grid_constant__ Arguments a) {
    __shared__ double shared[CHUNK], scratch[WARPS];
    for (i64 task = blockIdx.x; task < a.rows * a.chunks; task += gridDim.x) {
        const i64 row = task / a.chunks;
        const double total = a.before[(row * (a.chunks + 1) + a.chunks) * 3];
        double most = 0;
        each_prefix(a, task, shared, scratch, [&](i64 k, double hit, double) {
            const double mean = mean_of(a, double(k), hit, total);
            most = fmax(most, scale_of(a) * hit / (a.jaccard ? mean : mean + a.b));
        });
        for (int step = 16; step; step >>= 1) most = fmax(most, __shfl_xor_sync(~0u, most, step));
        if ((threadIdx.x & 31) == 0)
            atomicMax(reinterpret_cast<u64*>(a.lower + row),
                      static_cast<u64>(__double_as_longlong(most * (1 - 1e-9))));
    }
}

// Find the first and the last k whose upper bound reaches the largest lower bound.
extern "C" __global__ void __launch_bounds__(THREADS) candidates(const __grid_constant__ Arguments a) {
    __shared__ double shared[CHUNK], scratch[WARPS];
    for (i64 task = blockIdx.x; task < a.rows * a.chunks; task += gridDim.x) {
        const i64 row = task / a.chunks;
        const double* all = a.before + (row * (a.chunks + 1) + a.chunks) * 3;
        const double total = all[0], spread = all[1];
        const double least = fmax(a.lower[row], none_of(a, row) * (1 - 1e-9));
        int first = 0x7fffffff, last = 0;
        each_prefix(a, task, shared, scratch, [&](i64 k, double hit, double within) {
            const double mean = mean_of(a, double(k), hit, total);
            const double v = a.jaccard ? fmax(spread - within, 0.0) : a.b * a.b * spread;
            const double upper =
                scale_of(a) * hit * (1 / mean + v / (double(k) * mean * mean)) * (1 + 1e-9);
            if (upper >= least) {
                first = min(first, int(k));
                last = max(last, int(k));
            }
        });
        for (int step = 16; step; step >>= 1) {
            first = min(first, __shfl_xor_sync(~0u, first, step));
            last = max(last, __shfl_xor_sync(~0u, last, step));
        }
        if ((threadIdx.x & 31) == 0 && last > 0) {
            atomicMin(a.first + row, first);
            atomicMax(a.last + row, last);
        }
    }
}

// Compute the product of the factors 1 - p + p exp(-b u) over a chunk: for Jaccard from the last
// candidate on, for F-beta over the whole row. For F-beta also compute the sums of odds before the
// first candidate.
extern "C" __global__ void __launch_bounds__(THREADS) products(const __grid_constant__ Arguments a) {
    __shared__ double shared[CHUNK];
    const int j = threadIdx.x;
    const double power = j < a.q ? exp(-a.b * a.nodes[j]) : 1.0;
    for (i64 task = blockIdx.x; task < a.rows * a.chunks; task += gridDim.x) {
        const i64 row = task / a.chunks;
        const i64 begin = (task % a.chunks) * CHUNK, end = min(begin + CHUNK, a.n);
        const i64 from = a.jaccard ? max(begin, i64(a.last[row])) : begin;
        const i64 before = a.jaccard ? begin : min(end, i64(a.first[row]) - 1);
        __syncthreads();
        for (i64 i = begin + j; i < end; i += THREADS) shared[i - begin] = double(a.p[row * a.n + i]);
        __syncthreads();
        double product = 1, odds = 0;
        for (i64 i = from; i < end; ++i) {
            const double p = shared[i - begin];
            product *= (1 - p) + p * power;
        }
        for (i64 i = begin; i < before; ++i) {
            const double p = shared[i - begin], there = p * power;
            if (p > 0) odds += there / ((1 - p) + there);
        }
        if (j < a.q) {
            double* const out = a.products + (row * a.chunks + task % a.chunks) * 2 * a.q;
            out[j] = product;
            out[a.q + j] = odds;
        }
    }
}

// Evaluate the candidates of a row one after the other, with one block per row. `products` (rows,
// 2, Q) already holds the products and sums over all chunks.
extern "C" __global__ void __launch_bounds__(THREADS) search(const __grid_constant__ Arguments a) {
    __shared__ double scratch[WARPS];
    const int j = threadIdx.x;
    const double u = j < a.q ? a.nodes[j] : 0.0, weight = j < a.q ? a.weights[j] : 0.0;
    const double power = exp(-a.b * u);
    for (i64 row = blockIdx.x; row < a.rows; row += gridDim.x) {
        const P* p = a.p + row * a.n;
        int best = 0;
        double most = none_of(a, row);
        const int first = a.first[row], last = a.last[row];
        const double* start = a.products + row * 2 * a.q;
        if (last > 0 && a.jaccard) {
            double product = j < a.q ? weight * start[j] : 0.0;
            const i64 chunk = last / CHUNK;
            double hit = 0;
            for (i64 i = chunk * CHUNK + j; i < last; i += THREADS) hit += double(p[i]);
            hit = a.before[(row * (a.chunks + 1) + chunk) * 3] + over_block(hit, scratch);
            for (int k = last; k >= first; --k) {
                const double score = hit * over_block(product * exp(-u * double(k)), scratch);
                if (score >= most) {  // of equal scores, the least k
                    most = score;
                    best = k;
                }
                const double x = double(p[k - 1]);
                product *= (1 - x) + x * power;
                hit -= x;
            }
        } else if (last > 0) {
            // If the product is negligible, some of its factors may be 0.
            const double product = j < a.q && start[j] > 1e-290 ? weight * start[j] : 0.0;
            double odds = product > 0 ? start[a.q + j] : 0.0;
            for (int k = first; k <= last; ++k) {
                const double x = double(p[k - 1]), there = x * power;
                if (product > 0 && x > 0) odds += there / ((1 - x) + there);
                const double score =
                    (1 + a.b) * over_block(product * odds * exp(-u * double(k)), scratch);
                if (score > most) {
                    most = score;
                    best = k;
                }
            }
        }
        if (j == 0) {
            a.best[row] = best;
            a.score[row] = most;
        }
    }
}

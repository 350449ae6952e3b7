// The upper bound of fields on grids, in one launch.
//
// A sweep starts at y = f + beta (f - f before), with Nesterov's beta; where TILED, at
// f + k / (k + 6) (f - f before) + 0.3 (f - y before) after k sweeps. Momentum starts anew where a sweep
// turned back: where the steps from y and the way since the sweep before have an obtuse angle, or, where
// TILED, where the bound at y is above that at the last y. Sweeps are in single precision; the proof is not.

__device__ inline float next_theta(float theta) { return 0.5f * (1.0f + sqrtf(1.0f + 4.0f * theta * theta)); }
__device__ inline float beta_of(float theta) { return (theta - 1.0f) / next_theta(theta); }

// The sum of what the blocks of an image wrote.
__device__ inline double image_sum(const double* parts, int image, int images, double* scratch) {
    double sum = 0;
    for (i64 k = image + i64(images) * threadIdx.x; k < gridDim.x; k += i64(images) * THREADS)
        sum += __ldcg(parts + k);
    return block_sum(sum, scratch);
}

// Sums of four parts of each image that is open, (images, 4), a warp each.
__device__ inline void sums_of_images(const Arguments& p, const double* measured, const int* open,
                                      double* totals) {
    const int lane = threadIdx.x & 31;
    for (int k = threadIdx.x >> 5; k < 4 * p.images; k += THREADS / 32) {
        const int image = k >> 2;
        if (!open[image]) continue;
        const double* const parts = measured + (k & 3) * i64(gridDim.x);
        double sum = 0;
        for (i64 block = image + i64(p.images) * lane; block < gridDim.x; block += i64(p.images) * 32)
            sum += __ldcg(parts + block);
        for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane == 0) totals[k] = sum;
    }
    __syncthreads();
}

// Sweeps until the gap is measured again: the first time as if it fell by a power of the sweeps, later
// halfway between a fall by a power and one by a factor a sweep.
__device__ inline int sweeps_ahead(int sweep, int last, double before, double worst, double tol) {
    double ahead = sweep < 4 ? 2 : sweep / 2 + 1;
    if (sweep >= 4 && last == 0 && tol > 0)
        return int(fmax(1.0, fmin(ceil(sweep * (pow(worst / tol, 1.0 / 3.8) - 1.0)), 32.0)));
    if (sweep > 0 && last == sweep) return 1;
    if (before > worst && last > 0 && sweep > last && tol > 0) {
        const double togo = log(worst / tol), fall = log(before / worst);
        const double factor = togo * (sweep - last) / fall;
        const double power = sweep * (exp(fmin(togo * log(double(sweep) / last) / fall, 10.0)) - 1.0);
        ahead = 0.51 * (factor + power) + 0.5;
    }
    return int(fmax(1.0, fmin(ahead, fmin(fmax(8.0, double(sweep)), 32.0))));
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    field(const __grid_constant__ Arguments p) {
    __shared__ double scratch[32];
    __shared__ double totals[4 * MOST_IMAGES];
    __shared__ int open[MOST_IMAGES];
    __shared__ float momentum;
    __shared__ double start;  // the bound where the last sweep started
    __shared__ bool restarted;
    const int image = blockIdx.x % p.images, blocks = gridDim.x;
    const Share share = {image, i64(blockIdx.x / p.images), (blocks - image + p.images - 1) / p.images};
    const i64 first = share.block * THREADS + threadIdx.x, stride = share.blocks * THREADS;
    const i64 own_flows = i64(DIRECTIONS) * flow_size(p);
    u32 round = 0;
    for (int b = threadIdx.x; b < p.images; b += THREADS) open[b] = 1;
    if (threadIdx.x == 0) momentum = TILED ? 0.0f : 1.0f, restarted = false;
    if (!TILED) {
        for (i64 k = image * own_flows + first; k < (image + 1) * own_flows; k += stride) {
            if (!p.warm) p.flow[k] = 0.0f;
            p.before[0][k] = p.warm ? p.flow[k] : 0.0f;
        }
        grid_barrier(p.counter, ++round);
    }
    __syncthreads();
    int sweep = 0, checks = 0, next = p.warm ? 0 : p.first_check, last = 0;
    double before = -1.0;
    bool fresh = !TILED;  // the scores are to be made of the flows
    bool swept = false;   // whether this image's flows have left the place of starts, where TILED
    while (true) {
        const float* const flow = TILED && !swept ? p.before[0] : p.flow;
        const bool measure = sweep >= next || sweep >= p.limit;
        // the first time a part of a large image says enough
        const bool look = TILED && measure && last == 0 && sweep > 0 && sweep < p.limit && p.tol > 0.0 &&
                          p.n >= 1 << 15;
        // two places in turn: a block may be ahead of one that still reads
        double* const measured = p.parts + (checks & 1) * 4 * blocks;
        if (fresh || measure) {
            double sums[4] = {0, 0, 0, 0};
#if TILED
            if (open[image]) certify(p, share, flow, look ? 8 : 1, sums);
#else
            if (open[image])
                for (i64 k = first; k < p.n; k += stride) settle(p, image, k, flow, sums);
            grid_barrier(p.counter, ++round);
            if (measure && open[image])
                for (i64 k = first; k < p.n; k += stride) sums[2] += slack_of(p, image, k, flow);
#endif
            for (int q = 0; q < 4; ++q) {
                const double sum = block_sum(sums[q], scratch);
                if (threadIdx.x == 0) measured[q * blocks + blockIdx.x] = sum;
            }
            grid_barrier(p.counter, ++round);
        }
        fresh = false;
        if (measure) {
            sums_of_images(p, measured, open, totals);
            double worst = 0;
            for (int b = 0; b < p.images; ++b) {
                if (!open[b]) continue;
                const double* const of = totals + 4 * b;
                worst = fmax(worst, of[2] / fmax(1.0, fabs(of[1])));
                if (!look && blockIdx.x == b && threadIdx.x == 0) {
                    p.out[4 * b] = of[0] + 1.5e-14 * of[3];
                    for (int q = 1; q < 4; ++q) p.out[4 * b + q] = of[q];
                }
            }
            __syncthreads();
            ++checks;
            if (look) {
                next = sweep + (worst > p.tol ? sweeps_ahead(sweep, 0, -1.0, worst, p.tol) : 0);
                last = sweep, before = worst;
                if (next == sweep) continue;  // all of it now
            } else {
                for (int b = threadIdx.x; b < p.images; b += THREADS)
                    if (open[b] && totals[4 * b + 2] / fmax(1.0, fabs(totals[4 * b + 1])) <= p.tol) open[b] = 0;
                __syncthreads();
                // where the gap has ceased to fall, rounding has the last word
                const bool stalled = before >= 0.0 && sweep - last >= 16 && worst > 0.9 * before;
                if (worst <= p.tol || sweep >= p.limit || stalled) break;
                next = sweep + sweeps_ahead(sweep, last, before, worst, p.tol);
                last = sweep, before = worst;
            }
        }
        const float theta = momentum;
        Sweep way;
        way.open = open[image], way.first = sweep == 0, way.cold = way.first && !p.warm;
        way.measured = sweep + 1 >= next || sweep + 1 >= p.limit;
        way.beta = TILED ? (restarted ? 0.0f : theta / (theta + 6.0f)) : beta_of(theta);
        way.push = restarted ? 0.0f : 0.3f;
        way.least = restarted ? 1.0f : 0.15f;
        way.start = p.before[sweep & 1], way.next = p.before[(sweep + 1) & 1];
        way.flow = p.flow, way.momentum = p.momentum;
        const double part = block_sum(sweep_over(p, share, way, round), scratch);
        swept = swept || way.open;
        double* const turns = p.parts + (8 + (sweep & 1)) * blocks;
        if (threadIdx.x == 0) turns[blockIdx.x] = part;
        grid_barrier(p.counter, ++round);
        const double sum = image_sum(turns, image, p.images, scratch);
        if (threadIdx.x == 0) {
            momentum = TILED ? (restarted ? 1.0f : theta + 1.0f) : next_theta(theta);
            restarted = TILED ? sweep > 0 && sum > start + 1e-8 * fabs(sum) : sum > 0.0;
            if (restarted && !TILED) momentum = 1.0f;
            start = sum;
        }
        __syncthreads();
        ++sweep;
    }
    if (TILED && !swept)
        for (i64 k = image * own_flows + first; k < (image + 1) * own_flows; k += stride)
            p.flow[k] = p.before[0][k];
    if (blockIdx.x == 0 && threadIdx.x == 0) p.record[0] = sweep, p.record[1] = checks;
    if (is_last_block(p.counter + 1) && threadIdx.x < 2) p.counter[threadIdx.x] = 0;
}

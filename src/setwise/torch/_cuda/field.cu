// The upper bound of fields on grids, in one launch.
//
// A sweep starts at y = f + beta (f - f before), with Nesterov's beta. Momentum starts anew where a sweep
// turned back: where the steps from y and the way since the sweep before have an obtuse angle, or, where
// TILED, where the bound at y is above that at the last y. Sweeps are in single precision; the proof in
// field.cuh is not.

__device__ inline float next_theta(float theta) { return 0.5f * (1.0f + sqrtf(1.0f + 4.0f * theta * theta)); }
__device__ inline float beta_of(float theta) { return (theta - 1.0f) / next_theta(theta); }

// The sum of what the blocks of an image wrote.
__device__ inline double image_sum(const double* parts, int image, int images, double* scratch) {
    double sum = 0;
    for (i64 k = image + i64(images) * threadIdx.x; k < gridDim.x; k += i64(images) * THREADS)
        sum += __ldcg(parts + k);
    return block_sum(sum, scratch);
}

// Sweeps until the gap is measured again: the first time as if it fell by the third power of the sweeps,
// later halfway between a fall by a power and one by a factor a sweep.
__device__ inline int sweeps_ahead(int sweep, int last, double before, double worst, double tol) {
    double ahead = sweep < 4 ? 2 : sweep / 2 + 1;
    if (sweep >= 4 && last == 0 && tol > 0) ahead = ceil(sweep * (cbrt(worst / tol) - 1.0));
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
    __shared__ double totals[4];
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
    if (threadIdx.x == 0) momentum = 1.0f, restarted = false;
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
        if (fresh || measure) {
            double sums[4] = {0, 0, 0, 0};
            if (open[image])
                for (i64 k = first; k < p.n; k += stride) settle(p, image, k, flow, sums);
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
                for (i64 k = first; k < p.n; k += stride) gap += slack_of(p, image, k, flow);
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
            next = sweep + sweeps_ahead(sweep, last, before, worst, p.tol);
            last = sweep, before = worst;
        }
        const float theta = momentum;
        Sweep way;
        way.open = open[image], way.beta = beta_of(TILED ? next_theta(theta) : theta);
        if (TILED && restarted) way.beta = 0.0f;
        way.least = restarted ? 1.0f : 0.15f;
        way.start = p.before[sweep & 1], way.flow = flow, way.next = p.before[(sweep + 1) & 1];
        const double part = block_sum(sweep_over(p, share, way, round), scratch);
        swept = swept || way.open;
        // two places in turn: a block may be a sweep ahead of one that still reads
        double* const turns = p.parts + (4 + (sweep & 1)) * blocks;
        if (threadIdx.x == 0) turns[blockIdx.x] = part;
        grid_barrier(p.counter, ++round);
        const double sum = image_sum(turns, image, p.images, scratch);
        if (threadIdx.x == 0) {
            momentum = restarted && TILED ? 1.0f : next_theta(theta);
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
}

// The upper bound on log Z of fields on grids, in one launch.
//
// A sweep starts at y = f + beta (f - f_before), with Nesterov's beta. If TILED, it starts at f + k
// / (k + 6) (f - f_before) + 0.45 (f - y_before) after k sweeps, clipped. Momentum restarts when
// the change of a sweep and the difference of the last two flows form an obtuse angle or, if TILED,
// when the bound at y is above the bound at the last y. Sweeps are in single precision; the proof
// is in double precision.

__device__ inline float next_theta(float theta) { return 0.5f * (1.0f + sqrtf(1.0f + 4.0f * theta * theta)); }
__device__ inline float beta_of(float theta) { return (theta - 1.0f) / next_theta(theta); }

// Return the sum of the numbers that the blocks of a team have written. Called by a whole warp.
__device__ inline double sum_of_team(const double* parts, int team, int teams) {
    double sum = 0;
    for (i64 k = team + i64(teams) * (threadIdx.x & 31); k < gridDim.x; k += i64(teams) * 32)
        sum += __ldcg(parts + k);
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(~0u, sum, step);
    return sum;
}

// Return the number of sweeps until the gap is measured again. The first time the gap is assumed to
// decrease as a power of the number of sweeps. Later the answer is halfway between the predictions
// by a power law and by a constant factor per sweep.
__device__ inline int sweeps_ahead(int sweep, int last, double before, double worst, double tol) {
    double ahead = sweep < 4 ? 2 : sweep / 2 + 1;
    if (sweep >= 4 && last == 0 && tol > 0)
        return int(fmax(1.0, fmin(ceil(sweep * (pow(worst / tol, 1.0 / 3.8) - 1.0) + 0.15), 32.0)));
    if (sweep > 0 && last == sweep) return 1;
    if (before > worst && last > 0 && sweep > last && tol > 0) {
        const double togo = log(worst / tol), fall = log(before / worst);
        const double factor = togo * (sweep - last) / fall;
        const double power = sweep * (exp(fmin(togo * log(double(sweep) / last) / fall, 10.0)) - 1.0);
        ahead = 0.51 * (factor + power) + 0.5;
    }
    return int(fmax(1.0, fmin(ahead, fmin(fmax(8.0, double(sweep)), 32.0))));
}

// Solve one image by its team of blocks.
__device__ inline void solve(const Arguments& p, const Share& share) {
    __shared__ double scratch[32];
    __shared__ double totals[4];
    __shared__ float momentum;
    __shared__ double start;  // the bound at the start of the last sweep
    __shared__ bool restarted;
    const int image = share.image, blocks = gridDim.x;
    const i64 first = share.block * THREADS + threadIdx.x, stride = share.blocks * THREADS;
    const i64 own_flows = i64(DIRECTIONS) * flow_size(p);
    u32 round = 0;
#if PLANES > 1 && TILED
    find_levels(Image(p, image), share);
    image_barrier(p, share, round);
#else
    // Some blocks may still read the sums of the last image.
    if (image >= p.teams) image_barrier(p, share, round);
#endif
    if (threadIdx.x == 0) momentum = TILED ? 0.0f : 1.0f, restarted = false;
    if (!TILED) {
        for (i64 k = image * own_flows + first; k < (image + 1) * own_flows; k += stride) {
            if (!p.warm) p.flow[k] = 0.0f;
            p.before[0][k] = p.warm ? p.flow[k] : 0.0f;
        }
        image_barrier(p, share, round);
    }
    __syncthreads();
    int sweep = 0, checks = 0, next = p.warm ? 0 : p.first_check, last = 0;
    double before = -1.0;
    bool whole = false;  // whether the last measured gap was that of the whole image
    bool fresh = !TILED;  // whether the scores must be computed from the flows
    while (true) {
        // If TILED, the first sweep starts at the flows in before[0].
        const float* const flow = TILED && sweep == 0 ? p.before[0] : p.flow;
        const bool measure = sweep >= next || sweep >= p.limit;
        // For a large image, the gap is first estimated from a part of its tiles.
        const bool look = TILED && measure && last == 0 && sweep > 0 && sweep < p.limit && p.tol > 0.0 &&
                          p.n >= 1 << 15;
        // There are two buffers, because a block may be ahead of one that still reads.
        double* const measured = p.parts + (checks & 1) * 4 * blocks;
        if (fresh || measure) {
            double sums[4] = {0, 0, 0, 0};
#if TILED
            certify(p, share, flow, look ? 8 : 1, sums);
#else
            for (i64 k = first; k < p.n; k += stride) settle(p, image, k, flow, sums);
            image_barrier(p, share, round);
            if (measure)
                for (i64 k = first; k < p.n; k += stride) slack_of(p, image, k, flow, sums);
            sums[3] *= more_for(p.n / stride);
#endif
            for (int q = 0; q < 4; ++q) {
                const double sum = block_sum(sums[q], scratch);
                if (threadIdx.x == 0) measured[q * blocks + blockIdx.x] = sum;
            }
            image_barrier(p, share, round);
        }
        fresh = false;
        if (measure) {
            const int warp = threadIdx.x >> 5;
            if (warp < 4) {
                const double sum = sum_of_team(measured + warp * blocks, share.team, p.teams);
                if ((threadIdx.x & 31) == 0) totals[warp] = sum;
            }
            __syncthreads();
            ++checks;
            const double gap = totals[2] / fmax(1.0, fabs(totals[1]));
            if (look) {
                next = sweep + (gap > p.tol ? sweeps_ahead(sweep, 0, -1.0, gap, p.tol) : 0);
                last = sweep, before = gap;
                if (next == sweep) continue;  // the gap of the whole image is measured now
            } else {
                // If the gap no longer decreases, the rest of it is a rounding error.
                const bool stalled = whole && sweep - last >= 16 && gap > 0.9 * before;
                if (!(gap > p.tol) || sweep >= p.limit || stalled) break;  // a NaN ends the search
                next = sweep + sweeps_ahead(sweep, last, before, gap, p.tol);
                last = sweep, before = gap, whole = true;
            }
        }
        const float theta = momentum;
        Sweep way;
        way.first = sweep == 0, way.cold = way.first && !p.warm;
        way.measured = sweep + 1 >= next || sweep + 1 >= p.limit;
        way.beta = TILED ? (restarted ? 0.0f : theta / (theta + 6.0f)) : beta_of(theta);
        way.push = restarted ? 0.0f : 0.45f;
        way.least = restarted ? 1.0f : 0.15f;
        way.start = p.before[sweep & 1], way.next = p.before[(sweep + 1) & 1];
        way.flow = p.flow, way.momentum = p.momentum;
        const double part = block_sum(sweep_over(p, share, way, round), scratch);
        double* const turns = p.parts + (8 + (sweep & 1)) * blocks;
        if (threadIdx.x == 0) turns[blockIdx.x] = part;
        image_barrier(p, share, round);
        if (threadIdx.x < 32) {
            const double sum = sum_of_team(turns, share.team, p.teams);
            if (threadIdx.x == 0) {
                momentum = TILED ? (restarted ? 1.0f : theta + 1.0f) : next_theta(theta);
                restarted = TILED ? sweep > 0 && sum > start + 1e-8 * fabs(sum) : sum > 0.0;
                if (restarted && !TILED) momentum = 1.0f;
                start = sum;
            }
        }
        __syncthreads();
        ++sweep;
    }
    if (TILED && sweep == 0)
        for (i64 k = image * own_flows + first; k < (image + 1) * own_flows; k += stride)
            p.flow[k] = p.before[0][k];
    if (share.block == 0 && threadIdx.x == 0) {
        double* const out = p.out + 6 * image;
        const double gap = totals[2];
        out[0] = gap == gap ? totals[0] + 1.5e-14 * totals[3] : gap;  // NaN for invalid weights
        for (int q = 1; q < 4; ++q) out[q] = totals[q];
        out[4] = sweep, out[5] = checks;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    field(const __grid_constant__ Arguments p) {
    const int team = blockIdx.x % p.teams, blocks = (gridDim.x - team + p.teams - 1) / p.teams;
    for (int image = team; image < p.images; image += p.teams)
        solve(p, {image, team, i64(blockIdx.x / p.teams), blocks});
    if (is_last_block(p.counter + 8 * p.images))
        for (int b = threadIdx.x; b <= p.images; b += THREADS) p.counter[8 * b] = 0;
}

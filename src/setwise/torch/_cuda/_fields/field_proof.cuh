// The bound, the bound minus the largest logits, and the gap of the flows of field_tiles.cuh.

// Scores and flows in double precision, of four labels at once and of the remaining ones.
struct Wide {
    const Image& image;
    const LOGIT* theta;
    const float *right, *down;
    const Cross& cross;

    __device__ static double of(float flow, int j) {
        return (PLANES > 1 ? 1.0 : j ? 0.5 : -0.5) * static_cast<double>(flow);
    }
    __device__ double logit(int j) const { return static_cast<double>(theta[i64(j) * image.n]); }
    __device__ double score(int j, double logit, float east, float west, float south, float north) const {
        double a = logit;
        a -= cross.has_east ? of(east, j) : 0.0, a += cross.has_west ? of(west, j) : 0.0;
        a -= cross.has_south ? of(south, j) : 0.0, a += cross.has_north ? of(north, j) : 0.0;
        return a;
    }
    // Call visit(j, score, logit) for every label.
    template <class Visit>
    __device__ void each(Visit visit) const {
#pragma unroll 2
        for (int g = 0; g < GROUPS; ++g) {
            const Four east = four_of(right, cross.here, g, true), west = four_of(right, cross.west, g, true);
            const Four south = four_of(down, cross.here, g, true), north = four_of(down, cross.north, g, true);
            double logits[4];
#pragma unroll
            for (int k = 0; k < 4; ++k) logits[k] = logit(4 * g + k);
#pragma unroll
            for (int k = 0; k < 4; ++k)
                visit(4 * g + k, score(4 * g + k, logits[k], east.v[k], west.v[k], south.v[k], north.v[k]),
                      logits[k]);
        }
#pragma unroll
        for (int j = 4 * GROUPS; j < LABELS; ++j) {
            const int plane = PLANES > 1 ? j : 0;
            const float east = right[label_at(cross.here, plane)], west = right[label_at(cross.west, plane)];
            const float south = down[label_at(cross.here, plane)], north = down[label_at(cross.north, plane)];
            visit(j, score(j, logit(j), east, west, south, north), logit(j));
        }
    }
    // Call visit(j, flow) for every label, with the flow to the east or to the south.
    template <class Visit>
    __device__ void each_flow(const float* flows, Visit visit) const {
#pragma unroll 2
        for (int g = 0; g < GROUPS; ++g) {
            const Four four = four_of(flows, cross.here, g, true);
#pragma unroll
            for (int k = 0; k < 4; ++k) visit(4 * g + k, of(four.v[k], 4 * g + k));
        }
#pragma unroll
        for (int j = 4 * GROUPS; j < LABELS; ++j) visit(j, of(flows[label_at(cross.here, PLANES > 1 ? j : 0)], j));
    }
};

// Write the probabilities of an image, and add its contributions to the bound, the bound minus the
// largest logits, the gap and the sizes. Only one of `every` tiles is evaluated. A tile contains
// one more column and row than it adds up, because the edges of its own pixels end there.
__device__ inline void certify(const Arguments& p, const Share& share, const float* flow, int every,
                               double* sums) {
    extern __shared__ float memory[];
    constexpr int ACROSS = WIDE - 1, DOWN = HIGH - 1;
    const Image image(p, share.image);
    const int across = (image.width + ACROSS - 1) / ACROSS;
    const int tiles = across * ((image.height + DOWN - 1) / DOWN);
    const float* const right = flow + share.image * 2 * flow_size(p);
    const float* const down = right + image.flows();
    float* const found = p.p + share.image * LABELS * p.n;
    int counted = 0;
    for (int k = int(share.block); k * every < tiles; k += int(share.blocks)) {
        const int t = min(k * every + k % every, tiles - 1);
        const int left = t % across * ACROSS, top = t / across * DOWN;
        __syncthreads();
#pragma unroll 1
        for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
            const int column = s & 31, row = s >> 5, x = left + column, y = top + row;
            if (x >= image.width || y >= image.height) continue;
            const Cross cross(image, x, y);
            const Wide wide = {image, image.theta + cross.pixel, right, down, cross};
            float* const here = memory + row * PITCH + column;
            double highest = -1e300, best = -1e300, sum = 0.0;
            wide.each([&](int, double score, double logit) {
                highest = fmax(highest, score), best = fmax(best, logit);
            });
            wide.each([&](int j, double score, double) {
                const double mass = exp(score - highest);
                here[j * SPACE] = static_cast<float>(mass);
                sum += mass;
            });
            const bool counts = column < ACROSS && row < DOWN;
            const double scale = 1.0 / sum;
#pragma unroll
            for (int j = 0; j < LABELS; ++j) {
                const float q = static_cast<float>(static_cast<double>(here[j * SPACE]) * scale);
                here[j * SPACE] = q;
                if (counts) found[i64(j) * image.n + cross.pixel] = q;
            }
            if (!counts) continue;
            const double value = highest + log(sum);
            sums[0] += value;
            sums[1] += value - best;
            sums[3] += size_of(value, best);
            ++counted;
        }
        __syncthreads();
#pragma unroll 1
        for (int s = threadIdx.x; s < WIDE * HIGH; s += THREADS) {
            const int column = s & 31, row = s >> 5, x = left + column, y = top + row;
            if (column == ACROSS || row == DOWN || x >= image.width || y >= image.height) continue;
            const Cross cross(image, x, y);
            const Wide wide = {image, image.theta + cross.pixel, right, down, cross};
            const float* const here = memory + row * PITCH + column;
#pragma unroll
            for (int d = 0; d < 2; ++d) {
                if (!(d == 0 ? cross.has_east : cross.has_south)) continue;
                const double half = half_of(image.weights[d * i64(image.n) + cross.pixel]);
                if (half == 0.0) continue;
                const float* const there = here + (d == 0 ? 1 : PITCH);
                // Bound on the effect of two roundings of p.
                double slack = 9.6e-7 * half, largest = 0.0;
                wide.each_flow(d == 0 ? right : down, [&](int j, double f) {
                    const double apart =
                        static_cast<double>(here[j * SPACE]) - static_cast<double>(there[j * SPACE]);
                    slack += half * fabs(apart) - f * apart;
                    largest = fmax(largest, fabs(f));
                });
                sums[2] += slack, sums[3] += 2.0 * largest;
            }
        }
    }
    sums[3] *= more_for(counted);
}

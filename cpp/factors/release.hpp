// The step in which a factor of a dual decomposition returns its costs to its variables.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

constexpr double unbounded = std::numeric_limits<double>::infinity();

// Work space for `release`, kept between calls.
struct ReleaseSpace {
    std::vector<double> step, trial;
};

// Move as much of a factor's costs out of it as its minimum allows. On return `out` is the part
// that the variables receive, and `costs` is the part that stays. The sum over the variables of the
// minima of `out`, plus the minimum of the part that stays, equals the minimum before, up to
// rounding. So the bound never decreases.
//
// Each round takes nearly the largest multiple of the min-marginals m for which this holds. The
// minimum of costs - t m is concave and piecewise linear in t, so Newton's method descends from t =
// 1 to the largest t, in a few minimisations if there are few pieces. With many pieces the function
// is nearly quadratic there, and Newton's method only halves the distance; then a step of twice the
// length ends close to it. The step t = 1 / (number of variables) of max-product linear programming
// is always possible.
template <class Factor, class Poll>
void release(Factor& factor, std::vector<double>& costs, std::vector<double>& out, int rounds,
             ReleaseSpace& space, Poll poll) {
    // The largest number of step lengths that are tried between the step that is always possible
    // and Newton's; not tuned.
    constexpr int most_tries = 16;
    auto& [step, trial] = space;
    out.assign(costs.size(), 0.0);
    trial.resize(costs.size());
    for (int round = 0; round < rounds && !costs.empty(); ++round) {
        const double best = factor.min_marginals(costs, step);
        const double least = factor.least(step);
        double size = std::abs(best);
        for (const double x : step) size += std::abs(x);
        double possible = 1 / factor.size(), multiple = 1, newton = 1;
        for (int tries = 0; tries < most_tries && possible < newton; ++tries) {
            poll();
            for (std::size_t i = 0; i < costs.size(); ++i) trial[i] = costs[i] - multiple * step[i];
            const double value = factor.minimize(trial) + multiple * least;
            const double slope = factor.at_minimizer(step) - least;
            if (value >= best - 4e-15 * size || slope <= 0) {
                possible = std::max(possible, multiple);
                if (possible >= 0.95 * newton) break;
                multiple = newton;
                continue;
            }
            const double move = (value - best) / slope;
            newton = multiple + move;
            multiple = newton + move > possible ? newton + move : newton;
        }
        multiple = possible;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            out[i] += multiple * step[i];
            costs[i] -= multiple * step[i];
        }
        if (multiple >= 1) return;
    }
}

}  // namespace setwise

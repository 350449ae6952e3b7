// The best mixture of labellings under convex functions of counts, by pairwise Frank-Wolfe steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace setwise {

// Convex functions g_s of 0..n by their slopes. The slope of function s in the middle of [k, k + 1]
// is slopes[which[s] * n + k], linear in between, and constant before the first and after the last.
// Slopes that jumped at whole counts would stop the steps there.
struct ConvexSlopes {
    const double* slopes;
    const std::int64_t* which;
    std::int64_t functions, n;

    double at(std::int64_t s, double count) const {
        if (n == 0) return 0.0;
        const double place = std::clamp(count - 0.5, 0.0, static_cast<double>(n - 1));
        const auto low = static_cast<std::int64_t>(place), high = std::min(low + 1, n - 1);
        const double *const row = slopes + which[s] * n, share = place - static_cast<double>(low);
        return row[low] + share * (row[high] - row[low]);
    }
};

// A minimiser of sum_j w_j energies[j] + sum_s g_s(sum_j w_j counts[j, s]) over w on the simplex.
// It ends when no labelling can lower the sum by more than the tolerance, or at a kink. counts:
// (labellings, functions).
class LabelingMixture {
  public:
    LabelingMixture(const double* energies, const double* counts, std::int64_t labelings,
                    ConvexSlopes tables)
        : energies_(energies),
          counts_(counts),
          labelings_(labelings),
          tables_(tables),
          mixed_(static_cast<std::size_t>(tables.functions)),
          slopes_(static_cast<std::size_t>(labelings)) {}

    void improve(double* weights, double tolerance) {
        for (int step = 0; step < most_steps; ++step) {
            mix(weights);
            double mean = 0;
            std::int64_t to = 0, away = -1;
            for (std::int64_t j = 0; j < labelings_; ++j) {
                const double slope = slope_of(j);
                slopes_[static_cast<std::size_t>(j)] = slope;
                mean += weights[j] * slope;
                if (slope < slopes_[static_cast<std::size_t>(to)]) to = j;
                if (weights[j] > 0 && (away < 0 || slope > slopes_[static_cast<std::size_t>(away)]))
                    away = j;
            }
            if (mean - slopes_[static_cast<std::size_t>(to)] <= tolerance) return;
            const double size = line_search(to, away, weights[away]);
            if (size == 0) return;
            weights[to] += size;
            weights[away] = size == weights[away] ? 0.0 : weights[away] - size;
        }
    }

  private:
    // The most steps, and the most halvings of an interval in a line search, which then has the width
    // 1e-12. The mixture is improved again in the next round. Not tuned.
    static constexpr int most_steps = 60, most_halvings = 40;

    double count(std::int64_t j, std::int64_t s) const {
        return counts_[j * tables_.functions + s];
    }
    void mix(const double* weights) {
        std::fill(mixed_.begin(), mixed_.end(), 0.0);
        for (std::int64_t j = 0; j < labelings_; ++j)
            for (std::int64_t s = 0; weights[j] > 0 && s < tables_.functions; ++s)
                mixed_[static_cast<std::size_t>(s)] += weights[j] * count(j, s);
    }
    double slope_of(std::int64_t j) const {
        double slope = energies_[j];
        for (std::int64_t s = 0; s < tables_.functions; ++s)
            slope += count(j, s) * tables_.at(s, mixed_[static_cast<std::size_t>(s)]);
        return slope;
    }

    // Return the step in [0, most] from one labelling to another at which the slope becomes
    // positive, to a hundredth of one variable.
    double line_search(std::int64_t to, std::int64_t away, double most) const {
        const double rise = energies_[to] - energies_[away];
        double largest = 0;
        for (std::int64_t s = 0; s < tables_.functions; ++s)
            largest = std::max(largest, std::abs(count(to, s) - count(away, s)));
        const auto falls = [&](double step) {
            double slope = rise;
            for (std::int64_t s = 0; s < tables_.functions; ++s) {
                const double change = count(to, s) - count(away, s);
                slope +=
                    change * tables_.at(s, mixed_[static_cast<std::size_t>(s)] + step * change);
            }
            return slope <= 0;
        };
        if (falls(most)) return most;
        double low = 0, high = most;
        for (int k = 0; k < most_halvings && (k == 0 || (high - low) * largest >= 0.01); ++k) {
            const double middle = 0.5 * (low + high);
            (falls(middle) ? low : high) = middle;
        }
        return low;
    }

    const double *energies_, *counts_;
    std::int64_t labelings_;
    ConvexSlopes tables_;
    std::vector<double> mixed_, slopes_;
};

}  // namespace setwise

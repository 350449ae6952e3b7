// A cycle of pairs: the sum of one table per edge.
#pragma once

#include <algorithm>
#include <vector>

#include "factors/release.hpp"

namespace setwise {

// A cycle has variables v_0, ..., v_{k-1}. Table t joins v_t (rows) and v_{t+1}, the last one
// v_{k-1} and v_0. The costs are the k tables, (k, L, L). Given the label of v_0 the cycle is a
// chain, so its minimum and the min-marginals of all its edges cost O(k L^3).
class CycleFactor {
  public:
    void reset(std::size_t length, std::size_t labels) {
        length_ = length;
        labels_ = labels;
    }

    double minimize(const std::vector<double>& costs) {
        double best = unbounded;
        from_start(costs);
        const double* const round = paths(length_);
        std::size_t start = 0;
        for (std::size_t x = 0; x < labels_; ++x)
            if (round[x * labels_ + x] < best) {
                best = round[x * labels_ + x];
                start = x;
            }
        // Trace back the shortest way round from `start`.
        chosen_.assign(length_ + 1, start);
        for (std::size_t t = length_ - 1; t > 0; --t) {
            const double* const way = paths(t) + start * labels_;
            const double* const table = costs.data() + t * labels_ * labels_;
            double least = unbounded;
            for (std::size_t x = 0; x < labels_; ++x) {
                const double value = way[x] + table[x * labels_ + chosen_[t + 1]];
                if (value < least) {
                    least = value;
                    chosen_[t] = x;
                }
            }
        }
        return best;
    }

    // marginals[t, x, y] = min with v_t = x and v_{t+1} = y, minus the minimum; 0 where that is +inf.
    double min_marginals(const std::vector<double>& costs, std::vector<double>& marginals) {
        const double best = minimize(costs);
        const std::size_t L = labels_;
        marginals.assign(costs.size(), unbounded);
        // back[y, x0]: the shortest way from v_{t+1} = y on to v_0 = x0.
        back_.assign(L * L, unbounded);
        for (std::size_t x = 0; x < L; ++x) back_[x * L + x] = 0;
        for (std::size_t t = length_; t-- > 0;) {
            const double* const table = costs.data() + t * L * L;
            double* const out = marginals.data() + t * L * L;
            next_.assign(L * L, unbounded);
            for (std::size_t x = 0; x < L; ++x)
                for (std::size_t y = 0; y < L; ++y) {
                    double around = unbounded;
                    for (std::size_t s = 0; s < L; ++s) {
                        around = std::min(around, paths(t)[s * L + x] + back_[y * L + s]);
                        next_[x * L + s] =
                            std::min(next_[x * L + s], table[x * L + y] + back_[y * L + s]);
                    }
                    const double value = around + table[x * L + y];
                    out[x * L + y] = value < unbounded ? value - best : 0;
                }
            back_.swap(next_);
        }
        return best;
    }

    // The labels of the last minimiser, from v_0 round to v_0 again.
    const std::vector<std::size_t>& chosen() const { return chosen_; }

    double least(const std::vector<double>&) const { return 0; }
    double at_minimizer(const std::vector<double>& steps) const {
        double sum = 0;
        for (std::size_t t = 0; t < length_; ++t)
            sum += steps[(t * labels_ + chosen_[t]) * labels_ + chosen_[t + 1]];
        return sum;
    }
    double size() const { return static_cast<double>(length_); }

  private:
    // paths(t)[x0, x]: the shortest way from v_0 = x0 to v_t = x.
    double* paths(std::size_t t) { return paths_.data() + t * labels_ * labels_; }

    void from_start(const std::vector<double>& costs) {
        const std::size_t L = labels_;
        paths_.assign((length_ + 1) * L * L, unbounded);
        for (std::size_t x = 0; x < L; ++x) paths(0)[x * L + x] = 0;
        for (std::size_t t = 0; t < length_; ++t) {
            const double* const table = costs.data() + t * L * L;
            for (std::size_t s = 0; s < L; ++s)
                for (std::size_t x = 0; x < L; ++x) {
                    const double way = paths(t)[s * L + x];
                    double* const on = paths(t + 1) + s * L;
                    for (std::size_t y = 0; y < L; ++y)
                        on[y] = std::min(on[y], way + table[x * L + y]);
                }
        }
    }

    std::size_t length_ = 0, labels_ = 0;
    std::vector<double> paths_, back_, next_;
    std::vector<std::size_t> chosen_;
};

}  // namespace setwise

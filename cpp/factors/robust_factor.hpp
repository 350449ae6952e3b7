// A robust region: weight min(1, least number of variables that differ from one label / truncation),
// plus a cost for each variable and label.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "factors/labeled_factor.hpp"
#include "factors/release.hpp"
#include "numeric/compensated_sum.hpp"

namespace setwise {

// The energy is the least of L + 1 sums over the variables: for each label j the costs plus weight
// / truncation for every variable that differs from j, and the costs plus weight. So a minimum
// costs O(K L), and so do all min-marginals, each leaving one variable out of the sums.
class RobustFactor : public LabeledFactor {
  public:
    // Costs are (K, labels), +inf where a label is forbidden.
    void reset(std::size_t labels, double weight, double truncation) {
        labels_ = labels;
        weight_ = weight;
        differ_ = weight / truncation;
    }

    double minimize(const std::vector<double>& costs) {
        count_ = costs.size() / labels_;
        sum_modes(costs);
        mode_ =
            static_cast<std::size_t>(std::min_element(sums_.begin(), sums_.end()) - sums_.begin());
        chosen_.resize(count_);
        for (std::size_t i = 0; i < count_; ++i) {
            const double* const c = costs.data() + i * labels_;
            const auto own = static_cast<std::size_t>(std::min_element(c, c + labels_) - c);
            chosen_[i] = mode_ < labels_ && c[mode_] <= c[own] + differ_ ? mode_ : own;
        }
        return sums_[mode_];
    }

    // marginals[i, x] = min with x_i = x, minus the minimum; 0 where x is forbidden.
    double min_marginals(const std::vector<double>& costs, std::vector<double>& marginals) {
        const double best = minimize(costs);
        marginals.resize(costs.size());
        rest_.resize(labels_ + 1);
        for (std::size_t i = 0; i < count_; ++i) {
            const double* const c = costs.data() + i * labels_;
            double* const m = marginals.data() + i * labels_;
            const double own = *std::min_element(c, c + labels_);
            std::size_t first = labels_;
            double second = unbounded;  // the second least remainder among the labels
            for (std::size_t j = 0; j < labels_; ++j) {
                rest_[j] = sums_[j] - std::min(c[j], own + differ_);
                if (first == labels_ || rest_[j] < rest_[first]) {
                    if (first < labels_) second = rest_[first];
                    first = j;
                } else {
                    second = std::min(second, rest_[j]);
                }
            }
            rest_[labels_] = sums_[labels_] - own;
            double least = unbounded;
            for (std::size_t x = 0; x < labels_; ++x) {
                const double other = first == x ? second : rest_[first];
                m[x] = c[x] + std::min({rest_[x], other + differ_, rest_[labels_]});
                least = std::min(least, m[x]);
            }
            for (std::size_t x = 0; x < labels_; ++x) m[x] = m[x] < unbounded ? m[x] - least : 0;
        }
        return best;
    }

  private:
    using Sum = CompensatedSum<double, 2>;

    void sum_modes(const std::vector<double>& costs) {
        std::vector<Sum>& sums = running_;
        sums.assign(labels_ + 1, Sum());
        for (std::size_t i = 0; i < count_; ++i) {
            const double* const c = costs.data() + i * labels_;
            const double own = *std::min_element(c, c + labels_);
            for (std::size_t j = 0; j < labels_; ++j) sums[j].add(std::min(c[j], own + differ_));
            sums[labels_].add(own);
        }
        sums[labels_].add(weight_);
        sums_.resize(labels_ + 1);
        for (std::size_t j = 0; j <= labels_; ++j) sums_[j] = sums[j].value();
    }

    std::size_t mode_ = 0;
    double weight_ = 0, differ_ = 0;
    std::vector<double> sums_, rest_;
    std::vector<Sum> running_;
};

}  // namespace setwise

// A table over the labels of a few variables, plus a cost for each variable and label.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "factors/labeled_factor.hpp"
#include "factors/release.hpp"

namespace setwise {

// A factor whose minimum is found by visiting every cell, in O(labels^size). The min-marginals take
// O(size labels^size).
class CliqueFactor : public LabeledFactor {
  public:
    // Costs are (size, labels), +inf where a label is forbidden; the table, with the last variable
    // fastest, must outlive its use here.
    void reset(std::size_t labels, std::size_t size, const double* table) {
        labels_ = labels;
        count_ = size;
        table_ = table;
    }

    double minimize(const std::vector<double>& costs) {
        double best = unbounded;
        chosen_.assign(count_, 0);
        each_cell(costs, [&](double energy) {
            if (energy < best) {
                best = energy;
                chosen_ = at_;
            }
        });
        return best;
    }

    // marginals[i, x] = min with x_i = x, minus the minimum; 0 where x is forbidden.
    double min_marginals(const std::vector<double>& costs, std::vector<double>& marginals) {
        marginals.assign(costs.size(), unbounded);
        double best = unbounded;
        chosen_.assign(count_, 0);
        each_cell(costs, [&](double energy) {
            if (energy < best) {
                best = energy;
                chosen_ = at_;
            }
            for (std::size_t i = 0; i < count_; ++i) {
                double& least = marginals[i * labels_ + at_[i]];
                least = std::min(least, energy);
            }
        });
        for (double& m : marginals) m = m < unbounded ? m - best : 0;
        return best;
    }

  private:
    // Call visit(table plus costs) at every cell, whose labels are in at_.
    template <class Visit>
    void each_cell(const std::vector<double>& costs, const Visit& visit) {
        at_.assign(count_, 0);
        sums_.assign(count_ + 1, 0.0);
        std::size_t from = 0;
        for (const double* cell = table_;; ++cell) {
            for (std::size_t i = from; i < count_; ++i)
                sums_[i + 1] = sums_[i] + costs[i * labels_ + at_[i]];
            visit(*cell + sums_[count_]);
            std::size_t i = count_;
            while (i > 0 && ++at_[i - 1] == labels_) at_[--i] = 0;
            if (i == 0) return;
            from = i - 1;
        }
    }

    const double* table_ = nullptr;
    std::vector<double> sums_;
    std::vector<std::size_t> at_;
};

}  // namespace setwise

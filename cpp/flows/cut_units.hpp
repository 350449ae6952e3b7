// The costs and weights of a cut as multiples of one power of two, so that it is computed without
// rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace setwise {

// Digits below the unit are dropped, so no labelling becomes more expensive, and the least energy
// in units is a lower bound. The unit is about 2^-58 of the largest weight. Therefore few numbers
// have such digits, and only the terms that the answer incurs matter.
class CutUnits {
  public:
    CutUnits() = default;

    // Weights above `largest` are lowered to it. No node has edges of more than `incident` in all.
    // Costs beyond that, including infinite ones, are lowered to 1.5 times `incident`, which does
    // not change the label.
    CutUnits(double largest, double incident) : largest_(largest) {
        // Excesses and residual capacities are less than four times `incident`, below 2^62.
        const int shift = 60 - std::ilogb(std::max(incident, std::numeric_limits<double>::min()));
        scale_ = std::ldexp(1.0, std::min(shift - 1, 1000));
        limit_ = 1.5 * incident * scale_ + 1;
    }

    std::int64_t weight(double w) const {
        return static_cast<std::int64_t>(std::min(w, largest_) * scale_);
    }
    // Return the cost of label 1 minus that of label 0.
    std::int64_t cost(double zero, double one) const {
        return static_cast<std::int64_t>(std::clamp((one - zero) * scale_, -limit_, limit_));
    }
    // Return the amount that a number has lost by rounding.
    double lost(double x, std::int64_t in_units) const {
        return std::abs(x - static_cast<double>(in_units) / scale_);
    }

  private:
    double largest_ = 0, scale_ = 1, limit_ = 1;
};

// Return a bound to which weights may be lowered, because an edge whose weight exceeds the energy
// of some labelling is never cut. The labellings with one label everywhere are used, with energies
// above the least unary of every node.
inline double largest_that_matters(double largest, const double* unary, std::int64_t n) {
    double zeros = 0, ones = 0;
    for (std::int64_t v = 0; v < n; ++v) {
        const double cost = unary[2 * v + 1] - unary[2 * v];
        (cost > 0 ? ones : zeros) += std::abs(cost);
        if (std::min(zeros, ones) > largest) return largest;
    }
    const auto [less, more] = std::minmax(zeros, ones);
    if (more == 0) return largest;
    return std::min(largest, less > 0 ? 2 * less : more);  // the sums are rounded
}

}  // namespace setwise

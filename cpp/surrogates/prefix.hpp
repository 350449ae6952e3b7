// F(A) = sum_i weights[i] min(|A and {0..i}|, caps[i]): early detection (equations (49), (50)).
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "numeric/poll.hpp"
#include "surrogates/order.hpp"

namespace setwise {

// Compute gains along one chain. Return false if an element lies outside {0, ..., p - 1}. O(m p).
inline bool prefix_gains(const double* weights, const double* caps, std::int64_t p,
                         const std::int64_t* order, std::int64_t m, double* gains,
                         std::vector<double>& remaining) {
    remaining.assign(caps, caps + p);
    for (std::int64_t k = 0; k < m; ++k) {
        if (order[k] < 0 || order[k] >= p) return false;
        double gain = 0;
        for (std::int64_t i = order[k]; i < p; ++i) {
            double& left = remaining[static_cast<std::size_t>(i)];
            gain += weights[i] * std::clamp(left, 0.0, 1.0);
            left -= 1.0;
        }
        gains[k] = gain;
    }
    return true;
}

// Compute margin rescaling, max_I F(I) - weight sum_{i in I} g_i y_i, by a dynamic programme over
// (i, number of mistakes up to i): O(p^2) time, p^2 bits.
template <class Scalar>
double rescale_prefix(const Row<Scalar>& row, const double* weights, const double* caps,
                      double weight, Scalar* gradient, Poll poll) {
    const auto p = static_cast<std::size_t>(row.p);
    std::vector<double> best(p + 1, -std::numeric_limits<double>::infinity());
    std::vector<bool> taken(p * (p + 1), false);
    best[0] = 0.0;
    for (std::size_t i = 0; i < p; ++i) {
        const double cost = weight * static_cast<double>(row.margin(static_cast<std::uint32_t>(i)));
        for (std::size_t k = i + 1; k > 0; --k) {
            if (best[k - 1] - cost > best[k]) {
                best[k] = best[k - 1] - cost;
                taken[i * (p + 1) + k] = true;
            }
        }
        for (std::size_t k = 1; k <= i + 1; ++k)
            best[k] += weights[i] * std::min(static_cast<double>(k), caps[i]);
        if ((i & 0xFF) == 0xFF) poll();
    }
    const auto top = std::max_element(best.begin(), best.end());
    auto k = static_cast<std::size_t>(top - best.begin());
    for (std::size_t i = p; i-- > 0;) {
        const bool chosen = taken[i * (p + 1) + k];
        gradient[i] = chosen
                          ? static_cast<Scalar>(-weight * row.sign(static_cast<std::uint32_t>(i)))
                          : Scalar(0);
        k -= chosen;
    }
    return *top;
}

}  // namespace setwise

// A convex function of a count in the relaxation of relaxation.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace setwise {

// Balance a convex function g of a count. It has no base polytope, but g(m) = max over v of v m -
// conjugate(v), so its block is v in every entry, and the objective has the additional term
// conjugate(v). Compute the best v for probabilities 1 / (1 + exp((v - z_i) / t)): their sum must
// be a count at which v is a subgradient. `slopes` g(k + 1) - g(k) do not decrease. O(n log n)
// exponentials at most.
template <class Scalar>
double balance_count(const Scalar* z, const Scalar* slopes, std::int64_t n, double t) {
    double derivative = 0;
    const auto expected = [&](double v) {
        double sum = 0;
        derivative = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const double x = (v - static_cast<double>(z[i])) / t;
            const double odds = std::exp(-std::abs(x));
            sum += (x > 0 ? odds : 1.0) / (1.0 + odds);
            derivative -= odds / ((1.0 + odds) * (1.0 + odds) * t);
        }
        return sum;
    };
    std::int64_t low = 0, high = n - 1;  // the first k with expected(slopes[k]) <= k + 1
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (expected(static_cast<double>(slopes[middle])) <= static_cast<double>(middle + 1))
            high = middle;
        else
            low = middle + 1;
    }
    const auto count = static_cast<double>(low);
    double above = static_cast<double>(slopes[low]);
    if (low == 0 || expected(above) >= count) return above;
    double below = static_cast<double>(slopes[low - 1]), v = (below + above) / 2;
    for (int step = 0; step < 100 && below < v && v < above; ++step) {
        const double rest = expected(v) - count;
        if (std::abs(rest) <= 1e-13 * static_cast<double>(n)) break;
        (rest > 0 ? below : above) = v;
        const double newton = v - rest / derivative;
        v = newton > below && newton < above ? newton : (below + above) / 2;
    }
    return v;
}

// Return conjugate(v) = max over m of v m - g(m) with g(0) = 0, at the best m.
template <class Scalar>
double conjugate_of_slopes(const Scalar* slopes, std::int64_t n, double v) {
    double value = 0;
    for (std::int64_t k = 0; k < n && static_cast<double>(slopes[k]) < v; ++k)
        value += v - static_cast<double>(slopes[k]);
    return value;
}

// Return g(m), interpolated between its values at whole numbers.
template <class Scalar>
double sum_of_slopes(const Scalar* slopes, std::int64_t n, double m) {
    double value = 0;
    for (std::int64_t k = 0; k < n && static_cast<double>(k) < m; ++k)
        value += std::min(m - static_cast<double>(k), 1.0) * static_cast<double>(slopes[k]);
    return value;
}

}  // namespace setwise

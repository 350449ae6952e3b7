// Properties of sums of an array's numbers: whether they are exact, and the sum of the least ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numeric/compensated_sum.hpp"

namespace setwise {

// A power of two of which all numbers are multiples, and an upper bound on differences of two sums
// of one number per row, or on the size of such sums. Infinite numbers are omitted.
struct NumberGrid {
    double step = std::numeric_limits<double>::infinity();  // infinite if all numbers are zero
    double total = 0;
};

// Return the largest power of two of which x, finite and not 0, is a multiple.
inline double last_bit(double x) {
    int exponent = 0;
    const auto digits = static_cast<std::int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
    return std::ldexp(static_cast<double>(digits & -digits), exponent - 53);
}

// Return whether x, which is not 0, is a multiple of a power of two.
inline bool is_multiple(double x, double step) {
    const double quotient = x / step;
    return std::abs(quotient) >= 1 && quotient == std::floor(quotient);
}

// Return the grid of numbers (rows, columns). With `above` the bound is on differences, which are
// sums of the ranges of the rows. Stop with a step of 0 if sums have more than 53 bits; most inputs
// show this in the first row.
inline NumberGrid number_grid(const double* values, std::int64_t rows, std::int64_t columns,
                              bool above) {
    constexpr double infinite = std::numeric_limits<double>::infinity(), bits = 0x1p53;
    NumberGrid grid;
    for (std::int64_t i = 0; i < rows; ++i) {
        double low = above ? infinite : 0.0, high = above ? -infinite : 0.0;
        for (std::int64_t k = 0; k < columns; ++k) {
            const double x = values[i * columns + k];
            if (std::abs(x) == infinite) continue;
            low = std::min(low, x);
            high = std::max(high, x);
            if (x != 0 && !is_multiple(x, grid.step)) grid.step = std::min(grid.step, last_bit(x));
        }
        if (low <= high) grid.total += above ? high - low : std::max(high, -low);
        if (!(grid.total <= bits * grid.step)) return {0.0, grid.total};
    }
    return grid;
}

// Sum the least number of each row (rows, columns) into two parts, the first exact to the last bit
// and the second to most bits.
inline void sum_of_least(const double* values, std::int64_t rows, std::int64_t columns,
                         double* parts) {
    CompensatedSum<double> sum;
    for (std::int64_t i = 0; i < rows; ++i)
        sum.add(*std::min_element(values + i * columns, values + (i + 1) * columns));
    parts[0] = sum.value();
    sum.add(-parts[0]);
    parts[1] = sum.value();
}

}  // namespace setwise

// Copies of the arrays that a field is made of, checked in the same pass over memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace setwise {

// Return the first edge whose ends are not two different variables, numbered from 0, or -1.
inline std::int64_t copy_edges(const std::int64_t* edges, std::int64_t count, std::int64_t* copy) {
    // The number of edges that are copied and checked in the L1 cache; not tuned.
    constexpr std::int64_t chunk = 4096;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
        const std::int64_t end = std::min(begin + chunk, count);
        bool good = true;
        for (std::int64_t e = begin; e < end; ++e) {
            const std::int64_t i = edges[2 * e], j = edges[2 * e + 1];
            good &= ((i | j) >= 0) & (i != j);
            copy[2 * e] = i;
            copy[2 * e + 1] = j;
        }
        if (good) continue;
        for (std::int64_t e = begin; e < end; ++e)
            if (edges[2 * e] < 0 || edges[2 * e + 1] < 0 || edges[2 * e] == edges[2 * e + 1])
                return e;
    }
    return -1;
}

// Copy weights. Return whether all of them are finite and not negative.
inline bool copy_weights(const double* weights, std::int64_t count, double* copy) {
    constexpr double most = std::numeric_limits<double>::max();
    bool good = true;
    for (std::int64_t e = 0; e < count; ++e) {
        copy[e] = weights[e];
        good &= (weights[e] >= 0) & (weights[e] <= most);
    }
    return good;
}

// Copy values. Return whether all of them are at most `largest` in absolute value.
inline bool copy_finite(const double* values, std::int64_t count, double largest, double* copy) {
    bool good = true;
    for (std::int64_t k = 0; k < count; ++k) {
        copy[k] = values[k];
        good &= std::abs(values[k]) <= largest;
    }
    return good;
}

// Copy unaries. Return whether all of them are +inf or at most `largest` in absolute value, and at
// least one in each row is not +inf.
inline bool copy_unary(const double* unary, std::int64_t rows, std::int64_t labels, double largest,
                       double* copy) {
    constexpr double forbidden = std::numeric_limits<double>::infinity();
    const std::int64_t chunk = std::max<std::int64_t>(2048 / labels, 1);
    bool good = true;
    for (std::int64_t begin = 0; begin < rows; begin += chunk) {
        const std::int64_t end = std::min(begin + chunk, rows);
        for (std::int64_t k = begin * labels; k < end * labels; ++k) {
            const double x = unary[k];
            copy[k] = x;
            good &= (std::abs(x) <= largest) | (x == forbidden);
        }
        for (std::int64_t i = begin; i < end; ++i) {
            double least = unary[i * labels];
            for (std::int64_t k = 1; k < labels; ++k)
                least = std::min(least, unary[i * labels + k]);
            good &= least < forbidden;
        }
    }
    return good;
}

}  // namespace setwise

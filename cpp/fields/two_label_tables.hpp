// Tables of two labels as weights of edges plus unary remainders.
//
// A table (a, b; c, d) of x_i and x_j is a + x_i ((c - a) + (d - b)) / 2 + x_j ((b - a) + (d - c))
// / 2 + w [x_i != x_j] with w = ((b - a) + (c - d)) / 2, which a cut can represent if w is not
// negative.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numeric/compensated_sum.hpp"

namespace setwise {

// Edges (i, j) one after the other, each with a table of four entries, or all of them with one,
// times their weights.
struct EdgeTables {
    const std::int64_t* ends;
    std::int64_t size;
    const double* tables;
    bool shared;
    const double* weights;

    std::array<double, 4> table(std::int64_t e) const {
        const double* const t = tables + (shared ? 0 : 4 * e);
        const double w = weights[e];
        return {w * t[0], w * t[1], w * t[2], w * t[3]};
    }
};

inline double least_entry(const std::array<double, 4>& t) {
    return std::min(std::min(t[0], t[1]), std::min(t[2], t[3]));
}
inline double largest_entry(const std::array<double, 4>& t) {
    return std::max(std::max(t[0], t[1]), std::max(t[2], t[3]));
}

// Write the weights, and add to unary (n, 2) the amount by which label 1 costs more than label 0.
// Return the largest range of a table's entries, or -1 if a weight is negative by more than `slack`
// times that range, which allows for rounding. `total` is the sum of the ranges of all tables.
inline double split_tables(const EdgeTables& edges, double slack, double* unary, double* weights,
                           double& total) {
    double largest = 0;
    total = 0;
    for (std::int64_t e = 0; e < edges.size; ++e) {
        const std::array<double, 4> t = edges.table(e);
        const double w = 0.5 * ((t[1] - t[0]) + (t[2] - t[3]));
        const double low = least_entry(t), high = largest_entry(t);
        if (w < -slack * (high - low)) return -1;
        weights[e] = std::max(w, 0.0);
        unary[2 * edges.ends[2 * e] + 1] += 0.5 * ((t[2] - t[0]) + (t[3] - t[1]));
        unary[2 * edges.ends[2 * e + 1] + 1] += 0.5 * ((t[1] - t[0]) + (t[3] - t[2]));
        largest = std::max(largest, high - low);
        total += high - low;
    }
    return largest;
}

// Return the energy of the labels above the least entry of every table.
inline double tables_above_least(const EdgeTables& edges, const std::int64_t* labels) {
    SumOfBlocks sum;
    for (std::int64_t e = 0; e < edges.size; ++e) {
        const std::array<double, 4> t = edges.table(e);
        const std::int64_t place = 2 * labels[edges.ends[2 * e]] + labels[edges.ends[2 * e + 1]];
        sum.add(t[static_cast<std::size_t>(place)] - least_entry(t));
    }
    return sum.sum().value();
}

// Return the energy of the labels above the least entry of every row of unary (n, 2).
inline double unary_above_least(const double* unary, std::int64_t n, const std::int64_t* labels) {
    SumOfBlocks sum;
    for (std::int64_t i = 0; i < n; ++i)
        sum.add(std::max(0.0, unary[2 * i + labels[i]] - unary[2 * i + 1 - labels[i]]));
    return sum.sum().value();
}

// Return the sum of the weights of all edges whose ends have different labels.
inline double weights_between(const std::int64_t* ends, std::int64_t size, const double* weights,
                              const std::int64_t* labels) {
    SumOfBlocks sum;
    for (std::int64_t e = 0; e < size; ++e)
        if (labels[ends[2 * e]] != labels[ends[2 * e + 1]]) sum.add(weights[e]);
    return sum.sum().value();
}

}  // namespace setwise

// Unaries and pairs in rows of labels that fill vector registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "factors/release.hpp"

namespace setwise {

// Rows of labels are padded to a multiple of this number, which the sweeps process at a time.
constexpr std::int64_t padding = 4;

// Energies of unaries and pairs in the layout that the sweeps read. Rows of labels have `stride`
// entries; those beyond the labels count as forbidden.
struct PaddedPairs {
    std::int64_t n = 0, labels = 0, stride = 0;
    std::vector<double> unary;                          // (n, stride), +inf where forbidden
    std::vector<std::int64_t> low, high;                // pairs, sorted by low
    std::vector<std::int64_t> first_pair;               // (n + 1,): pairs by their low end
    std::vector<std::int64_t> high_starts, high_pairs;  // pairs by their high end
    std::vector<double> weight;                         // Potts weight, or factor of the table
    std::vector<std::int64_t> table;                    // the offset of a pair's table in `tables`
    std::vector<double> to_low, to_high;  // (T, labels, stride): rows by the other end's label
    std::vector<double> share;            // (n,): the share that each pair ahead receives

    // Fill everything from the pairs, their tables (T, labels, labels) and the unaries (n, labels).
    void fill(const double* costs, const std::vector<double>& given);

    const double* tables(bool towards_high, std::int64_t e) const {
        const std::vector<double>& rows = towards_high || to_low.empty() ? to_high : to_low;
        return rows.data() + table[e] * labels * stride;
    }
    double energy(std::int64_t e, std::int64_t x, std::int64_t y) const {
        if (table[e] < 0) return x == y ? 0 : weight[e];
        return weight[e] * to_high[(table[e] * labels + x) * stride + y];
    }
};

inline void PaddedPairs::fill(const double* costs, const std::vector<double>& given) {
    stride = (labels + padding - 1) / padding * padding;
    unary.assign(static_cast<std::size_t>(n * stride), unbounded);
    for (std::int64_t i = 0; i < n; ++i)
        std::copy(costs + i * labels, costs + (i + 1) * labels, unary.begin() + i * stride);
    const std::size_t pairs = low.size();
    first_pair.assign(static_cast<std::size_t>(n + 1), 0);
    high_starts = first_pair;
    for (std::size_t e = 0; e < pairs; ++e) {
        ++first_pair[low[e] + 1];
        ++high_starts[high[e] + 1];
    }
    share.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t ahead = first_pair[i + 1], behind = high_starts[i + 1];
        share[i] = 1.0 / static_cast<double>(std::max<std::int64_t>({ahead, behind, 1}));
        first_pair[i + 1] += first_pair[i];
        high_starts[i + 1] += high_starts[i];
    }
    high_pairs.resize(pairs);
    std::vector<std::int64_t> next(high_starts);
    for (std::size_t e = 0; e < pairs; ++e)
        high_pairs[next[high[e]]++] = static_cast<std::int64_t>(e);
    const std::int64_t square = labels * labels;
    const std::int64_t count = static_cast<std::int64_t>(given.size()) / square;
    bool symmetric = true;
    for (std::int64_t t = 0; t < count && symmetric; ++t)
        for (std::int64_t x = 0; x < labels && symmetric; ++x)
            for (std::int64_t y = 0; y < x; ++y)
                symmetric &=
                    given[t * square + x * labels + y] == given[t * square + y * labels + x];
    // An entry beyond the labels is the largest, so it is never the minimum.
    const auto lay = [&](std::vector<double>& rows, bool turned) {
        rows.resize(static_cast<std::size_t>(count * labels * stride));
        for (std::int64_t t = 0; t < count; ++t) {
            const double* const from = given.data() + t * square;
            double* const to = rows.data() + t * labels * stride;
            std::fill(to, to + labels * stride, *std::max_element(from, from + square));
            for (std::int64_t x = 0; x < labels; ++x)
                for (std::int64_t y = 0; y < labels; ++y)
                    to[x * stride + y] = turned ? from[y * labels + x] : from[x * labels + y];
        }
    };
    lay(to_high, false);
    if (!symmetric) lay(to_low, true);
}

}  // namespace setwise

// Sums of several weightings of the rows at once, side by side: the inner loops of the stumps.
//
// A lane is one weighting. A single lane has a loop of its own; several lanes are stored in vectors
// of four, the last filled up with zeros. The sum of a lane does not depend on the other lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/prefetch.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// The number of vectors of four that fit into the registers together with their sums and extreme
// values.
constexpr int most_fours = 3, most_lanes = 4 * most_fours;

// Return the number of vectors for a number of lanes; none for one lane.
inline int fours_for(int lanes) { return lanes > 1 ? (lanes + 3) / 4 : 0; }
inline int lanes_of(int fours) { return fours > 0 ? 4 * fours : 1; }

using Lanes = std::array<double, most_lanes>;

// Sums along a walk, with the highest and the lowest of them where a threshold may lie.
struct Walk {
    Lanes now, high, low;

    explicit Walk(const Lanes& totals) : now(totals), high(totals), low(totals) {}
    void compare(int lanes) {
        for (int k = 0; k < lanes; ++k)
            high[k] = std::max(high[k], now[k]), low[k] = std::min(low[k], now[k]);
    }
};

// Marks the last row of a run of equal values: a threshold follows.
constexpr std::uint32_t mark = 0x80000000u;
inline std::int64_t row_of(std::uint32_t entry) { return entry & ~mark; }

namespace lanes {

// The number of rows between the prefetch of a value and its use. Chosen by hand; no measurement is
// on record.
constexpr std::size_t ahead = 24;

template <bool adds>
void walk_one(const std::vector<std::uint32_t>& rows, const double* values, Walk& sums) {
    const std::size_t n = rows.size();
    double now = sums.now[0], high = sums.high[0], low = sums.low[0];
    for (std::size_t k = 0; k < n; ++k) {
        prefetch(values + row_of(rows[std::min(k + ahead, n - 1)]));
        const double own = values[row_of(rows[k])];
        now = adds ? now + own : now - own;
        if (rows[k] & mark) high = std::max(high, now), low = std::min(low, now);
    }
    sums.now[0] = now, sums.high[0] = high, sums.low[0] = low;
}

template <int fours, bool adds>
SETWISE_INLINED void walk(const std::uint32_t* rows, std::size_t n, const double* values,
                          Walk& sums) {
    Four now[fours], high[fours], low[fours];
    for (int v = 0; v < fours; ++v) {
        load(&sums.now[4 * v], now[v]);
        load(&sums.high[4 * v], high[v]);
        load(&sums.low[4 * v], low[v]);
    }
    for (std::size_t k = 0; k < n; ++k) {
        const double* const soon = values + 4 * fours * row_of(rows[std::min(k + ahead, n - 1)]);
        prefetch(soon);
        // the last part may lie on another cache line
        if constexpr (fours > 2) prefetch(soon + 4 * fours - 1);
        const double* const own = values + 4 * fours * row_of(rows[k]);
        for (int v = 0; v < fours; ++v) {
            Four x;
            load(own + 4 * v, x);
            now[v] = adds ? now[v] + x : now[v] - x;
        }
        if (rows[k] & mark)
            for (int v = 0; v < fours; ++v) higher(now[v], high[v]), lower(now[v], low[v]);
    }
    for (int v = 0; v < fours; ++v) {
        store(now[v], &sums.now[4 * v]);
        store(high[v], &sums.high[4 * v]);
        store(low[v], &sums.low[4 * v]);
    }
}

template <int fours, class Code>
SETWISE_INLINED void sum(const Code* codes, std::size_t n, const double* values, double* sums) {
    for (std::size_t i = 0; i < n; ++i) {
        double* const own = sums + std::size_t(codes[i]) * 4 * fours;
        for (int v = 0; v < fours; ++v) {
            Four x, y;
            load(own + 4 * v, x);
            load(values + (i * fours + v) * 4, y);
            store(x + y, own + 4 * v);
        }
    }
}

template <class Code>
SETWISE_INLINED void sum(int fours, const Code* codes, std::size_t n, const double* values,
                         double* sums) {
    if (fours == 1)
        sum<1>(codes, n, values, sums);
    else if (fours == 2)
        sum<2>(codes, n, values, sums);
    else
        sum<3>(codes, n, values, sums);
}

template <bool adds>
SETWISE_INLINED void walk(int fours, const std::uint32_t* rows, std::size_t n, const double* values,
                          Walk& sums) {
    if (fours == 1)
        walk<1, adds>(rows, n, values, sums);
    else if (fours == 2)
        walk<2, adds>(rows, n, values, sums);
    else
        walk<3, adds>(rows, n, values, sums);
}

}  // namespace lanes

SETWISE_VECTORIZED inline void walk_fours(bool adds, int fours, const std::uint32_t* rows,
                                          std::size_t n, const double* values, Walk& sums) {
    if (adds)
        lanes::walk<true>(fours, rows, n, values, sums);
    else
        lanes::walk<false>(fours, rows, n, values, sums);
}

// Add (or subtract) the values of the rows one after the other, and compare at the marks.
inline void walk_rows(bool adds, int fours, const std::vector<std::uint32_t>& rows,
                      const double* values, Walk& sums) {
    if (fours > 0)
        walk_fours(adds, fours, rows.data(), rows.size(), values, sums);
    else if (adds)
        lanes::walk_one<true>(rows, values, sums);
    else
        lanes::walk_one<false>(rows, values, sums);
}

SETWISE_VECTORIZED inline void sum_fours(int fours, const std::uint8_t* codes, std::size_t n,
                                         const double* values, double* sums) {
    lanes::sum(fours, codes, n, values, sums);
}
SETWISE_VECTORIZED inline void sum_fours(int fours, const std::uint16_t* codes, std::size_t n,
                                         const double* values, double* sums) {
    lanes::sum(fours, codes, n, values, sums);
}

// Return the sums of the values for each code, the rows in the order of memory: (bins, lanes).
template <class Code>
std::vector<double> sums_by_code(int fours, const std::vector<Code>& codes, std::size_t bins,
                                 const double* values) {
    std::vector<double> sums(bins * lanes_of(fours), 0.0);
    if (fours > 0)
        sum_fours(fours, codes.data(), codes.size(), values, sums.data());
    else
        for (std::size_t i = 0; i < codes.size(); ++i) sums[codes[i]] += values[i];
    return sums;
}

}  // namespace setwise

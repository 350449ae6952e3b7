// Sums of several weightings of the rows at once, side by side: the inner loops of the stumps.
//
// A lane is a weighting. One has a loop of its own; more come in vectors of four, the last filled up
// with zeros. No lane's sum depends on the others.
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

// As many vectors as the registers hold, with their sums and what is known of them.
constexpr int most_fours = 3, most_lanes = 4 * most_fours;

// So many vectors for so many lanes; none for one lane.
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

// The last row of a run of equal values: a threshold follows.
constexpr std::uint32_t mark = 0x80000000u;
inline std::int64_t row_of(std::uint32_t entry) { return entry & ~mark; }

namespace lanes {

SETWISE_INLINED void load(const double* from, double& to) { to = *from; }
SETWISE_INLINED void store(const double& from, double* to) { *to = from; }
SETWISE_INLINED void lower(const double& x, double& low) { low = x < low ? x : low; }
SETWISE_INLINED void higher(const double& x, double& high) { high = x > high ? x : high; }
using setwise::higher;
using setwise::load;
using setwise::lower;
using setwise::store;

template <class Vector, int vectors, bool adds>
SETWISE_INLINED void walk(const std::uint32_t* rows, std::size_t n, const double* values,
                          Walk& sums) {
    constexpr std::size_t ahead = 24;
    constexpr int width = sizeof(Vector) / sizeof(double), lanes = width * vectors;
    Vector now[vectors], high[vectors], low[vectors];
    for (int v = 0; v < vectors; ++v) {
        load(&sums.now[v * width], now[v]);
        load(&sums.high[v * width], high[v]);
        load(&sums.low[v * width], low[v]);
    }
    for (std::size_t k = 0; k < n; ++k) {
        prefetch(values + lanes * row_of(rows[std::min(k + ahead, n - 1)]));
        const double* const own = values + lanes * row_of(rows[k]);
        for (int v = 0; v < vectors; ++v) {
            Vector x;
            load(own + v * width, x);
            now[v] = adds ? now[v] + x : now[v] - x;
        }
        if (rows[k] & mark)
            for (int v = 0; v < vectors; ++v) higher(now[v], high[v]), lower(now[v], low[v]);
    }
    for (int v = 0; v < vectors; ++v) {
        store(now[v], &sums.now[v * width]);
        store(high[v], &sums.high[v * width]);
        store(low[v], &sums.low[v * width]);
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
    if (fours == 0)
        for (std::size_t i = 0; i < n; ++i) sums[codes[i]] += values[i];
    else if (fours == 1)
        sum<1>(codes, n, values, sums);
    else if (fours == 2)
        sum<2>(codes, n, values, sums);
    else
        sum<3>(codes, n, values, sums);
}

template <bool adds>
SETWISE_INLINED void walk(int fours, const std::uint32_t* rows, std::size_t n,
                          const double* values, Walk& sums) {
    if (fours == 0)
        walk<double, 1, adds>(rows, n, values, sums);
    else if (fours == 1)
        walk<Four, 1, adds>(rows, n, values, sums);
    else if (fours == 2)
        walk<Four, 2, adds>(rows, n, values, sums);
    else
        walk<Four, 3, adds>(rows, n, values, sums);
}

}  // namespace lanes

// Adds (or subtracts) the values of the rows one after the other, and compares at the marks.
SETWISE_VECTORIZED inline void walk_rows(bool adds, int fours, const std::uint32_t* rows,
                                         std::size_t n, const double* values, Walk& sums) {
    if (adds)
        lanes::walk<true>(fours, rows, n, values, sums);
    else
        lanes::walk<false>(fours, rows, n, values, sums);
}

// sums[code] += value, the rows in the order of memory.
SETWISE_VECTORIZED inline void sum_by_code(int fours, const std::uint8_t* codes, std::size_t n,
                                           const double* values, double* sums) {
    lanes::sum(fours, codes, n, values, sums);
}
SETWISE_VECTORIZED inline void sum_by_code(int fours, const std::uint16_t* codes, std::size_t n,
                                           const double* values, double* sums) {
    lanes::sum(fours, codes, n, values, sums);
}

// The values summed code by code: (bins, lanes).
template <class Code>
std::vector<double> sums_by_code(int fours, const std::vector<Code>& codes, std::size_t bins,
                                 const double* values) {
    std::vector<double> sums(bins * lanes_of(fours), 0.0);
    sum_by_code(fours, codes.data(), codes.size(), values, sums.data());
    return sums;
}

}  // namespace setwise

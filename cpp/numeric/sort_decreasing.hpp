// Sorting of the values of a block, for projections onto functions of counts and their gaps.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace setwise {

struct DecreasingOrder {
    std::vector<std::uint32_t> index;  // result of sort_decreasing
    std::vector<std::uint32_t> items, other;
};

// order.index: 0..n-1 by decreasing value; equal values by increasing index, so that the order is
// the same on every machine. Values are divided into 2^16 steps of equal height, which takes two
// counting passes; the few values that share a step are then compared. O(n), or O(n log n) if most
// share one.
template <class Scalar>
void sort_decreasing(const Scalar* values, std::int64_t n, DecreasingOrder& order) {
    const auto size = static_cast<std::size_t>(n);
    if (order.index.size() < size) order.index.resize(size);
    std::uint32_t* const index = order.index.data();
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        return values[a] > values[b] || (values[a] == values[b] && a < b);
    };
    Scalar low = n > 0 ? values[0] : Scalar(0), high = low;
    for (std::int64_t i = 0; i < n; ++i) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    const double range = static_cast<double>(high) - static_cast<double>(low),
                 scale = 65535.0 / range;
    // the index, or the number of a step, would not fit
    if (n > 65536 || !(range > 1e-300 && range < 1e300)) {
        for (std::int64_t i = 0; i < n; ++i) index[i] = static_cast<std::uint32_t>(i);
        std::sort(index, index + n, before);
        return;
    }
    if (order.items.size() < size) {
        order.items.resize(size);
        order.other.resize(size);
    }
    std::uint32_t* const items = order.items.data();  // the step, then the index
    for (std::int64_t i = 0; i < n; ++i) {
        const double depth = (static_cast<double>(high) - static_cast<double>(values[i])) * scale;
        items[i] = static_cast<std::uint32_t>(static_cast<std::int32_t>(depth)) << 16 |
                   static_cast<std::uint32_t>(i);
    }
    std::array<std::uint32_t, 256> counts[2] = {};
    for (std::int64_t i = 0; i < n; ++i) {
        ++counts[0][items[i] >> 16 & 255];
        ++counts[1][items[i] >> 24];
    }
    for (auto& count : counts) {
        std::uint32_t start = 0;
        for (auto& c : count) {
            const std::uint32_t here = c;
            c = start;
            start += here;
        }
    }
    std::uint32_t* const other = order.other.data();
    for (std::int64_t i = 0; i < n; ++i) other[counts[0][items[i] >> 16 & 255]++] = items[i];
    for (std::int64_t i = 0; i < n; ++i) items[counts[1][other[i] >> 24]++] = other[i];
    for (std::int64_t i = 0; i < n; ++i) index[i] = items[i] & 0xffff;
    for (std::int64_t begin = 0; begin + 1 < n;) {
        std::int64_t end = begin + 1;
        while (end < n && (items[end] ^ items[begin]) < 0x10000) ++end;
        if (end - begin > 1) std::sort(index + begin, index + end, before);
        begin = end;
    }
}

}  // namespace setwise

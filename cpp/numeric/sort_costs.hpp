// Sorting of many costs, with the element that each belongs to.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace setwise {

using Cost = std::pair<double, std::size_t>;

// Return an unsigned integer that orders like the double it comes from.
inline std::uint64_t ordered_bits(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ ((0u - (bits >> 63)) | (std::uint64_t(1) << 63));
}

// Sort by cost: by comparison if the costs are few, otherwise digit by digit (radix 2^11), skipping
// digits that all costs share. Sorted input is left as it is.
inline void sort_costs(std::vector<Cost>& costs, std::vector<Cost>& space) {
    const auto cheaper = [](const Cost& a, const Cost& b) { return a.first < b.first; };
    if (std::is_sorted(costs.begin(), costs.end(), cheaper)) return;
    if (costs.size() < 2048) {
        std::stable_sort(costs.begin(), costs.end(), cheaper);
        return;
    }
    // Six digits of 11 bits cover 64 bits; the counts of 2^11 values stay in the cache.
    constexpr int bits = 11, digits = 6;
    constexpr std::size_t radix = std::size_t(1) << bits;
    static thread_local std::array<std::array<std::size_t, radix>, digits> counts;
    for (auto& count : counts) count.fill(0);
    for (const Cost& cost : costs) {
        const std::uint64_t key = ordered_bits(cost.first);
        for (int d = 0; d < digits; ++d) ++counts[d][key >> (d * bits) & (radix - 1)];
    }
    space.resize(costs.size());
    for (int d = 0; d < digits; ++d) {
        auto& count = counts[d];
        if (count[ordered_bits(costs[0].first) >> (d * bits) & (radix - 1)] == costs.size())
            continue;
        std::size_t start = 0;
        for (auto& c : count) start += std::exchange(c, start);
        for (const Cost& cost : costs)
            space[count[ordered_bits(cost.first) >> (d * bits) & (radix - 1)]++] = cost;
        costs.swap(space);
    }
}

}  // namespace setwise

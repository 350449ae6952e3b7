// Connected parts of a set of variables.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace setwise {

// Return the number of variables in the largest part of a set that the edges between its variables
// connect. Uses union-find by size with path halving: O(n + edges), nearly.
inline std::int64_t largest_part(const bool* inside, std::int64_t n, const std::int64_t* edges,
                                 std::int64_t count) {
    std::vector<std::int32_t> above(static_cast<std::size_t>(n));
    std::vector<std::int32_t> size(static_cast<std::size_t>(n), 1);
    std::int64_t largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        above[i] = static_cast<std::int32_t>(i);
        if (inside[i]) largest = 1;
    }
    const auto root = [&](std::int32_t i) {
        while (above[i] != i) i = above[i] = above[above[i]];
        return i;
    };
    for (std::int64_t e = 0; e < count; ++e) {
        const std::int64_t a = edges[2 * e], b = edges[2 * e + 1];
        if (!inside[a] || !inside[b]) continue;
        std::int32_t i = root(static_cast<std::int32_t>(a)), j = root(static_cast<std::int32_t>(b));
        if (i == j) continue;
        if (size[i] < size[j]) std::swap(i, j);
        above[j] = i;
        size[i] += size[j];
        if (size[i] > largest) largest = size[i];
    }
    return largest;
}

}  // namespace setwise

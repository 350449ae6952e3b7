// An order of the variables of a graph in which each has few edges to later ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace setwise {

// Repeatedly remove the variable with the fewest edges left (of several, the one that reached that
// number last) and its edges: in a forest leaves come first. O(n + count).
inline void fewest_edges_first(std::int64_t n, const std::int64_t* edges, std::int64_t count,
                               std::int64_t* order) {
    using Index = std::int64_t;
    std::vector<Index> starts(static_cast<std::size_t>(n + 1), 0);
    for (Index k = 0; k < 2 * count; ++k) ++starts[edges[k] + 1];
    for (Index i = 0; i < n; ++i) starts[i + 1] += starts[i];
    std::vector<Index> neighbors(static_cast<std::size_t>(2 * count)),
        next(starts.begin(), starts.end() - 1), degree(static_cast<std::size_t>(n));
    Index largest = 0;
    for (Index e = 0; e < count; ++e) {
        neighbors[next[edges[2 * e]]++] = edges[2 * e + 1];
        neighbors[next[edges[2 * e + 1]]++] = edges[2 * e];
    }
    for (Index i = 0; i < n; ++i) {
        degree[i] = starts[i + 1] - starts[i];
        largest = std::max(largest, degree[i]);
    }
    std::vector<std::vector<Index>> waiting(static_cast<std::size_t>(largest + 1));
    for (Index i = n; i-- > 0;) waiting[degree[i]].push_back(i);
    Index fewest = 0;
    for (Index done = 0; done < n;) {
        while (waiting[fewest].empty()) ++fewest;
        const Index i = waiting[fewest].back();
        waiting[fewest].pop_back();
        if (degree[i] != fewest) continue;  // the variable now has fewer edges, or was removed
        order[done++] = i;
        degree[i] = -1;
        for (Index k = starts[i]; k < starts[i + 1]; ++k) {
            const Index j = neighbors[k];
            if (degree[j] < 0) continue;
            --degree[j];
            waiting[degree[j]].push_back(j);
            fewest = std::min(fewest, degree[j]);
        }
    }
}

}  // namespace setwise

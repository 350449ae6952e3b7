// Forests of a graph by the strength of its edges: components that are trees with all edges among their
// variables, and spanning forests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

namespace setwise {

// kept[e] = 1 for the edges of the components: from the first of `order` to the last, an edge joins two
// components when it is the only edge between them; edges that are not in `order` join none.
inline void induced_forest(std::int64_t n, const std::int64_t* edges, std::int64_t count,
                           const std::int64_t* order, std::int64_t ordered, std::uint8_t* kept) {
    using Index = std::int64_t;
    std::vector<Index> parent(static_cast<std::size_t>(n));
    std::iota(parent.begin(), parent.end(), Index(0));
    const auto root = [&](Index i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    // how many edges lead to each other component
    std::vector<std::unordered_map<Index, Index>> between(static_cast<std::size_t>(n));
    for (Index e = 0; e < count; ++e) {
        ++between[edges[2 * e]][edges[2 * e + 1]];
        ++between[edges[2 * e + 1]][edges[2 * e]];
    }
    std::fill(kept, kept + count, std::uint8_t(0));
    for (Index k = 0; k < ordered; ++k) {
        const Index e = order[k];
        Index a = root(edges[2 * e]), b = root(edges[2 * e + 1]);
        kept[e] = a != b && between[a][b] == 1;
        if (!kept[e]) continue;
        if (between[a].size() < between[b].size()) std::swap(a, b);
        between[a].erase(b);
        for (const auto& [other, edges_there] : between[b]) {
            if (other == a) continue;
            between[a][other] += edges_there;
            between[other][a] += edges_there;
            between[other].erase(b);
        }
        std::unordered_map<Index, Index>().swap(between[b]);
        parent[b] = a;
    }
}

// kept[e] = 1 for the edges of a spanning forest of the largest sum of strengths; ties go to the first.
inline void spanning_forest(std::int64_t n, const std::int64_t* edges, const double* strengths,
                            std::int64_t count, std::uint8_t* kept) {
    using Index = std::int64_t;
    std::vector<Index> order(static_cast<std::size_t>(count)), parent(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index(0));
    std::iota(parent.begin(), parent.end(), Index(0));
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return strengths[a] > strengths[b]; });
    const auto root = [&](Index i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    for (const Index e : order) {
        const Index a = root(edges[2 * e]), b = root(edges[2 * e + 1]);
        kept[e] = a != b;
        parent[a] = b;
    }
}

}  // namespace setwise

// Forests of a graph by the strength of its edges: components that are trees with all edges among
// their variables, and spanning forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace setwise {

// kept[e] = 1 for the edges of the components. The edges of `order` are taken from first to last;
// an edge joins two components if it is the only edge between them. Edges that are not in `order`
// join none. The edges between two components are counted at the members of the smaller one, up to
// two: components of an image have about ten members.
inline void induced_forest(std::int64_t n, const std::int64_t* edges, std::int64_t count,
                           const std::int64_t* order, std::int64_t ordered, std::uint8_t* kept) {
    using Member = std::int32_t;
    std::vector<std::int64_t> starts(static_cast<std::size_t>(n) + 1, 0);
    for (std::int64_t k = 0; k < 2 * count; ++k) ++starts[edges[k] + 1];
    for (std::int64_t i = 0; i < n; ++i) starts[i + 1] += starts[i];
    std::vector<Member> neighbours(static_cast<std::size_t>(2 * count));
    std::vector<std::int64_t> place(starts.begin(), starts.end() - 1);
    for (std::int64_t k = 0; k < 2 * count; ++k)
        neighbours[place[edges[k]]++] = static_cast<Member>(edges[k ^ 1]);
    std::vector<Member> component(static_cast<std::size_t>(n)), next, size(component.size(), 1);
    std::iota(component.begin(), component.end(), Member(0));
    next = component;  // the members of a component are a circular list
    const auto each_member = [&](Member first, const auto& visit) {
        Member v = first;
        while (visit(v) && (v = next[v]) != first) {
        }
    };
    std::fill(kept, kept + count, std::uint8_t(0));
    for (std::int64_t k = 0; k < ordered; ++k) {
        const std::int64_t e = order[k];
        auto i = static_cast<Member>(edges[2 * e]), j = static_cast<Member>(edges[2 * e + 1]);
        if (component[i] == component[j]) continue;
        if (size[component[i]] < size[component[j]]) std::swap(i, j);
        const Member larger = component[i], smaller = component[j];
        int between = 0;
        each_member(j, [&](Member v) {
            for (std::int64_t at = starts[v]; at < starts[v + 1]; ++at)
                between += component[neighbours[at]] == larger;
            return between < 2;
        });
        if (between != 1) continue;
        kept[e] = 1;
        each_member(j, [&](Member v) {
            component[v] = larger;
            return true;
        });
        size[larger] += size[smaller];
        std::swap(next[i], next[j]);
    }
}

// kept[e] = 1 for the edges of a spanning forest of the largest sum of strengths; ties go to the
// first edge.
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

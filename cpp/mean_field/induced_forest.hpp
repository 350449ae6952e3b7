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

// The pairs of components that have an edge between them, and whether they have several. This is
// one hash table that closes the gap of a removed pair, so that it never grows.
class JoinedPairs {
  public:
    using Index = std::int64_t;
    enum Edges : std::uint64_t { none = 0, one = 1, several = 2 };

    JoinedPairs(Index n, Index pairs) : n_(n) {
        while ((std::size_t(1) << (64 - shift_)) < static_cast<std::size_t>(2 * pairs + 16))
            --shift_;
        slots_.assign(std::size_t(1) << (64 - shift_), empty);
    }

    Edges get(Index a, Index b) const {
        const std::uint64_t slot = slots_[place(key(a, b))];
        return slot == empty ? none : static_cast<Edges>(slot & 3);
    }
    // Add edges to a pair. Return whether the pair had none before.
    bool add(Index a, Index b, Edges edges) {
        const std::uint64_t wanted = key(a, b);
        std::uint64_t& slot = slots_[place(wanted)];
        const bool is_new = slot == empty;
        slot = wanted << 2 | (is_new ? edges : several);
        return is_new;
    }
    // Remove a pair and return its edges.
    Edges take(Index a, Index b) {
        std::size_t gap = place(key(a, b));
        if (slots_[gap] == empty) return none;
        const auto edges = static_cast<Edges>(slots_[gap] & 3);
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = (gap + 1) & mask; slots_[at] != empty; at = (at + 1) & mask)
            if (((at - home(slots_[at] >> 2)) & mask) >= ((at - gap) & mask)) {
                slots_[gap] = slots_[at];
                gap = at;
            }
        slots_[gap] = empty;
        return edges;
    }

  private:
    static constexpr std::uint64_t empty = ~std::uint64_t(0);

    std::uint64_t key(Index a, Index b) const {
        const auto [low, high] = std::minmax(a, b);
        return static_cast<std::uint64_t>(low) * static_cast<std::uint64_t>(n_) +
               static_cast<std::uint64_t>(high);
    }
    std::size_t home(std::uint64_t wanted) const {
        return (wanted * 0x9E3779B97F4A7C15u) >> shift_;
    }
    std::size_t place(std::uint64_t wanted) const {
        std::size_t at = home(wanted);
        while (slots_[at] != empty && slots_[at] >> 2 != wanted)
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }

    Index n_;
    std::vector<std::uint64_t> slots_;  // a pair's key and, in the last two bits, its edges
    int shift_ = 63;
};

// kept[e] = 1 for the edges of the components. The edges of `order` are taken from first to last;
// an edge joins two components if it is the only edge between them. Edges that are not in `order`
// join none.
inline void induced_forest(std::int64_t n, const std::int64_t* edges, std::int64_t count,
                           const std::int64_t* order, std::int64_t ordered, std::uint8_t* kept) {
    using Index = std::int64_t;
    struct Neighbour {
        Index component, next;
    };
    std::vector<Index> parent(static_cast<std::size_t>(n));
    std::iota(parent.begin(), parent.end(), Index(0));
    const auto root = [&](Index i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    JoinedPairs between(n, count);
    // lists of each component, which may contain components that no longer exist
    std::vector<Neighbour> neighbours;
    neighbours.reserve(static_cast<std::size_t>(3 * count));
    std::vector<Index> first(parent.size(), -1), length(parent.size(), 0);
    const auto add_to = [&](Index a, Index b) {
        neighbours.push_back({b, first[a]});
        first[a] = static_cast<Index>(neighbours.size()) - 1;
        ++length[a];
    };
    const auto join = [&](Index a, Index b, JoinedPairs::Edges edges_there) {
        if (!between.add(a, b, edges_there)) return;
        add_to(a, b);
        add_to(b, a);
    };
    for (Index e = 0; e < count; ++e) join(edges[2 * e], edges[2 * e + 1], JoinedPairs::one);
    std::fill(kept, kept + count, std::uint8_t(0));
    for (Index k = 0; k < ordered; ++k) {
        const Index e = order[k];
        Index a = root(edges[2 * e]), b = root(edges[2 * e + 1]);
        kept[e] = a != b && between.get(a, b) == JoinedPairs::one;
        if (!kept[e]) continue;
        if (length[a] < length[b]) std::swap(a, b);
        between.take(a, b);
        for (Index at = first[b]; at >= 0; at = neighbours[at].next) {
            const Index other = neighbours[at].component;
            const auto there = other == a ? JoinedPairs::none : between.take(b, other);
            if (there != JoinedPairs::none) join(a, other, there);
        }
        parent[b] = a;
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

// Forests of a graph by the strength of its edges: components that are trees with all edges among their
// variables, and spanning forests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace setwise {

// Numbers of pairs of components, in one table: a map for each component is several times as slow.
class PairCounts {
  public:
    using Index = std::int64_t;

    PairCounts(Index n, Index pairs) : n_(n) { reset(static_cast<std::size_t>(4 * pairs + 16)); }

    Index get(Index a, Index b) const { return slots_[place(key(a, b))].count; }
    // Whether the pair had none before; count > 0.
    bool add(Index a, Index b, Index count) {
        if (2 * (used_ + 1) > slots_.size()) grow();
        const std::uint64_t wanted = key(a, b);
        Slot& slot = slots_[place(wanted)];
        used_ += slot.key == none;
        slot.key = wanted;
        slot.count += count;
        return slot.count == count;
    }
    Index take(Index a, Index b) { return std::exchange(slots_[place(key(a, b))].count, 0); }

  private:
    struct Slot {
        std::uint64_t key;
        Index count;
    };
    static constexpr std::uint64_t none = ~std::uint64_t(0);

    std::uint64_t key(Index a, Index b) const {
        const auto [low, high] = std::minmax(a, b);
        return static_cast<std::uint64_t>(low) * static_cast<std::uint64_t>(n_) +
               static_cast<std::uint64_t>(high);
    }
    std::size_t place(std::uint64_t wanted) const {
        std::size_t at = (wanted * 0x9E3779B97F4A7C15u) >> shift_;
        while (slots_[at].key != wanted && slots_[at].key != none)
            at = (at + 1) & (slots_.size() - 1);
        return at;
    }
    void reset(std::size_t least) {
        shift_ = 63;
        while ((std::size_t(1) << (64 - shift_)) < least) --shift_;
        slots_.assign(std::size_t(1) << (64 - shift_), {none, 0});
        used_ = 0;
    }
    // A larger table, or the same one without pairs that were taken.
    void grow() {
        std::vector<Slot> before = std::move(slots_);
        std::size_t live = 0;
        for (const Slot& slot : before) live += slot.count > 0;
        reset(4 * live + 16);
        for (const Slot& slot : before)
            if (slot.count > 0) {
                slots_[place(slot.key)] = slot;
                ++used_;
            }
    }

    Index n_;
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
    int shift_ = 63;
};

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
    PairCounts between(n, count);
    // of each component, some that are no more
    std::vector<std::vector<Index>> neighbours(static_cast<std::size_t>(n));
    const auto join = [&](Index a, Index b, Index edges_there) {
        if (!between.add(a, b, edges_there)) return;
        neighbours[a].push_back(b);
        neighbours[b].push_back(a);
    };
    for (Index e = 0; e < count; ++e) join(edges[2 * e], edges[2 * e + 1], 1);
    std::fill(kept, kept + count, std::uint8_t(0));
    for (Index k = 0; k < ordered; ++k) {
        const Index e = order[k];
        Index a = root(edges[2 * e]), b = root(edges[2 * e + 1]);
        kept[e] = a != b && between.get(a, b) == 1;
        if (!kept[e]) continue;
        if (neighbours[a].size() < neighbours[b].size()) std::swap(a, b);
        between.take(a, b);
        for (const Index other : neighbours[b])
            if (const Index there = other == a ? 0 : between.take(b, other)) join(a, other, there);
        std::vector<Index>().swap(neighbours[b]);
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

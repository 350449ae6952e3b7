// The arcs of a graph without their capacities: built once, shared by any number of solvers.
//
// Every edge is two arcs, one each way, and each of the two is the other's sister. The arcs that
// leave node u are [begin(u), end(u)). Some of them may belong to no edge: their capacity and that
// of their sister stay zero. Such arcs may have heads among the `margin` nodes in front of the
// graph and behind it. These may be read, but they are not nodes of the graph.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "flows/grid_numbering.hpp"
#include "numeric/large_array.hpp"

namespace setwise {

using FlowNode = std::int32_t;
using FlowArc = std::int32_t;

constexpr std::int64_t most_flow_arcs = (std::int64_t(1) << 31) - 1;

// Edges as rows (tail, head) of an array; the ends must lie in [0, n) and differ.
template <class Index>
struct EdgeList {
    const Index* ends;
    std::int64_t count;

    FlowNode tail(std::int64_t e) const { return static_cast<FlowNode>(ends[2 * e]); }
    FlowNode head(std::int64_t e) const { return static_cast<FlowNode>(ends[2 * e + 1]); }
};

// Any graph: rows of arcs one after the other, with an array of heads and one of sisters.
class CsrTopology {
  public:
    // The data that a search reads, small enough to be held by value, so that the compiler knows
    // that writes of the search do not change the topology. u is always the node that arc a leaves.
    struct Rows {
        const FlowArc *first, *sisters;
        const FlowNode* heads;

        FlowArc begin(FlowNode u) const { return first[u]; }
        FlowArc end(FlowNode u) const { return first[u + 1]; }
        FlowNode head(FlowNode, FlowArc a) const { return heads[a]; }
        FlowArc sister(FlowNode, FlowArc a) const { return sisters[a]; }
    };

    template <class Index>
    CsrTopology(std::int64_t n, EdgeList<Index> edges) {
        if (n < 0 || n >= most_flow_arcs || 2 * edges.count > most_flow_arcs)
            throw std::length_error("a graph must have fewer than 2**31 nodes and 2**30 edges");
        const auto size = static_cast<std::size_t>(n),
                   arcs = static_cast<std::size_t>(2 * edges.count);
        first_.assign(size + 1, 0);
        for (std::int64_t e = 0; e < edges.count; ++e) {
            ++first_[static_cast<std::size_t>(edges.tail(e)) + 1];
            ++first_[static_cast<std::size_t>(edges.head(e)) + 1];
        }
        for (std::size_t u = 0; u < size; ++u) first_[u + 1] += first_[u];
        head_.resize(arcs);
        sister_.resize(arcs);
        forward_.resize(static_cast<std::size_t>(edges.count));
        // first_[u] runs through the row of u and ends at the next one; shifting it back restores it.
        for (std::int64_t e = 0; e < edges.count; ++e) {
            const FlowNode u = edges.tail(e), v = edges.head(e);
            const FlowArc a = first_[static_cast<std::size_t>(u)]++;
            const FlowArc b = first_[static_cast<std::size_t>(v)]++;
            head_[static_cast<std::size_t>(a)] = v;
            head_[static_cast<std::size_t>(b)] = u;
            sister_[static_cast<std::size_t>(a)] = b;
            sister_[static_cast<std::size_t>(b)] = a;
            forward_[static_cast<std::size_t>(e)] = a;
        }
        for (std::size_t u = size; u > 0; --u) first_[u] = first_[u - 1];
        first_[0] = 0;
    }

    FlowNode nodes() const { return static_cast<FlowNode>(first_.size()) - 1; }
    FlowNode margin() const { return 0; }
    FlowArc arcs() const { return static_cast<FlowArc>(head_.size()); }
    std::int64_t edges() const { return static_cast<std::int64_t>(forward_.size()); }

    // Return the arc from tail to head of edge e, and the arc from head to tail.
    FlowArc forward(std::int64_t e) const { return forward_[static_cast<std::size_t>(e)]; }
    FlowArc reverse(std::int64_t e) const { return sister_[static_cast<std::size_t>(forward(e))]; }
    std::pair<FlowNode, FlowNode> ends(std::int64_t e) const {
        return {head_[static_cast<std::size_t>(reverse(e))],
                head_[static_cast<std::size_t>(forward(e))]};
    }

    // Call visit(edge, forward arc, backward arc) for all edges.
    template <class Visit>
    void for_edges(Visit visit) const {
        for (std::int64_t e = 0; e < edges(); ++e) visit(e, forward(e), reverse(e));
    }

    Rows rows() const { return {first_.data(), sister_.data(), head_.data()}; }

  private:
    LargeArray<FlowArc> first_, sister_, forward_;
    LargeArray<FlowNode> head_;
};

// A graph whose edges have few different distances between their ends, as those of a grid do. Arc k
// of node u leads to node u + offsets[k], so heads and sisters are computed and not stored.
template <int pairs>
class OffsetTopology {
    static constexpr FlowArc degree = 2 * pairs;

  public:
    struct Rows {
        FlowNode margin = 0;
        std::array<FlowNode, degree> offsets{};
        std::array<FlowArc, degree> sisters{};  // the sister's number minus the arc's

        FlowArc begin(FlowNode u) const { return (u + margin) * degree; }
        FlowArc end(FlowNode u) const { return (u + margin + 1) * degree; }
        FlowNode head(FlowNode u, FlowArc a) const {
            return u + offsets[static_cast<std::size_t>(a - begin(u))];
        }
        FlowArc sister(FlowNode u, FlowArc a) const {
            return a + sisters[static_cast<std::size_t>(a - begin(u))];
        }
    };

    // Return nothing if the edges have more than `pairs` distances, if two edges of one distance
    // leave one node, or if there are so few edges that the unused arcs would need more memory than
    // heads and sisters.
    template <class Index>
    static std::optional<OffsetTopology> recognize(std::int64_t n, EdgeList<Index> edges) {
        OffsetTopology g;
        int known = 0;
        std::array<std::int64_t, pairs> counts{};
        std::int64_t widest = 0;
        for (std::int64_t e = 0, k = 0; e < edges.count; ++e) {
            const FlowNode offset = std::abs(edges.head(e) - edges.tail(e));
            if (k == known || g.rows_.offsets[static_cast<std::size_t>(2 * k)] != offset) {
                for (k = 0;
                     k < known && g.rows_.offsets[static_cast<std::size_t>(2 * k)] != offset;)
                    ++k;
                if (k == pairs) return std::nullopt;
                if (k == known) {
                    g.rows_.offsets[static_cast<std::size_t>(2 * known++)] = offset;
                    widest = std::max<std::int64_t>(widest, offset);
                }
            }
            ++counts[static_cast<std::size_t>(k)];
        }
        if (known < pairs || !fits(n, edges.count, widest)) return std::nullopt;
        g.lay(n, widest);
        g.forward_.resize(static_cast<std::size_t>(edges.count));
        std::vector<bool> taken(static_cast<std::size_t>(n * pairs), false);
        for (std::int64_t e = 0, k = 0; e < edges.count; ++e) {
            const FlowNode u = edges.tail(e), v = edges.head(e), offset = std::abs(v - u);
            while (g.rows_.offsets[static_cast<std::size_t>(2 * k)] != offset) k = (k + 1) % pairs;
            const auto place = static_cast<std::size_t>(std::int64_t(std::min(u, v)) * pairs + k);
            if (taken[place]) return std::nullopt;
            taken[place] = true;
            g.forward_[static_cast<std::size_t>(e)] =
                g.rows_.begin(u) + static_cast<FlowArc>(2 * k) + (u < v ? 0 : 1);
        }
        return g;
    }

    // Make the topology from known, different distances, for a caller that computes the arcs of its
    // edges: arcs 2 k and 2 k + 1 of a node lead distances[k] forwards and backwards.
    static std::optional<OffsetTopology> of(std::int64_t n, std::int64_t edges,
                                            const std::int64_t* distances) {
        const std::int64_t widest = *std::max_element(distances, distances + pairs);
        if (!fits(n, edges, widest)) return std::nullopt;
        OffsetTopology g;
        for (std::size_t k = 0; k < pairs; ++k)
            g.rows_.offsets[2 * k] = static_cast<FlowNode>(distances[k]);
        g.lay(n, widest);
        return g;
    }

    // Make a topology of any distances, in which the caller writes only arcs that have heads.
    // `widest` is the largest distance. Unlike those of edges, distances may be negative.
    static OffsetTopology of_box(std::int64_t n, const std::int64_t* distances,
                                 std::int64_t widest) {
        if ((n + 2 * widest) * degree > most_flow_arcs)
            throw std::length_error("a grid must have fewer than 2**31 arcs");
        OffsetTopology g;
        for (std::size_t k = 0; k < pairs; ++k)
            g.rows_.offsets[2 * k] = static_cast<FlowNode>(distances[k]);
        g.lay(n, widest);
        return g;
    }

    // Make the topology of a grid, whose edges are computed and not stored.
    static std::optional<OffsetTopology> of_grid(const GridNumbering& grid) {
        if (grid.distances().size() != pairs) return std::nullopt;
        auto g = of(grid.pixels(), grid.count(), grid.distances().data());
        if (g) g->grid_ = grid;
        return g;
    }

    FlowNode nodes() const { return nodes_; }
    FlowNode margin() const { return rows_.margin; }
    FlowArc arcs() const { return (nodes_ + 2 * rows_.margin) * degree; }
    std::int64_t edges() const {
        return is_grid() ? grid_.count() : static_cast<std::int64_t>(forward_.size());
    }
    bool is_grid() const { return grid_.count() > 0; }
    const GridNumbering& grid() const { return grid_; }

    FlowArc forward(std::int64_t e) const {
        if (!is_grid()) return forward_[static_cast<std::size_t>(e)];
        const auto [direction, pixel] = grid_.find(e);
        return first_arc(direction, pixel);
    }
    FlowArc reverse(std::int64_t e) const { return sister(forward(e)); }
    std::pair<FlowNode, FlowNode> ends(std::int64_t e) const { return ends_of(forward(e)); }

    // For a grid: return the arc from a pixel in a direction.
    FlowArc first_arc(std::size_t direction, std::int64_t pixel) const {
        const GridNumbering::Direction& d = grid_.directions()[direction];
        return rows_.begin(static_cast<FlowNode>(pixel)) +
               static_cast<FlowArc>(2 * d.slot + (d.offset < 0));
    }
    FlowArc sister(FlowArc a) const {
        return a + rows_.sisters[static_cast<std::size_t>(a % degree)];
    }
    std::pair<FlowNode, FlowNode> ends_of(FlowArc a) const {
        return {a / degree - rows_.margin, sister(a) / degree - rows_.margin};
    }

    template <class Visit>
    void for_edges(Visit visit) const {
        if (!is_grid()) {
            for (std::int64_t e = 0; e < edges(); ++e) visit(e, forward(e), reverse(e));
            return;
        }
        for_runs(
            [&](std::size_t, const auto&, std::int64_t e, std::int64_t run, FlowArc a, FlowArc b) {
                for (const std::int64_t end = e + run; e < end; ++e, a += degree, b += degree)
                    visit(e, a, b);
            });
    }

    // For a grid: call visit(direction, coordinates of the first pixel, first edge, number of
    // edges, first arc, its sister) for every run of edges along the last axis. The numbers of the
    // following arcs are `stride` larger each.
    static constexpr FlowArc stride = degree;
    template <class Visit>
    void for_runs(Visit visit) const {
        grid_.for_runs([&](std::size_t direction, const auto& at, std::int64_t pixel,
                           std::int64_t e, std::int64_t run) {
            const FlowArc a = first_arc(direction, pixel);
            visit(direction, at, e, run, a, sister(a));
        });
    }

    const Rows& rows() const { return rows_; }

  private:
    OffsetTopology() = default;

    // Return whether the unused arcs need less memory than heads and sisters would.
    static bool fits(std::int64_t n, std::int64_t edges, std::int64_t widest) {
        return 4 * widest <= n && 3 * edges >= 2 * pairs * n &&
               (n + 2 * widest) * degree <= most_flow_arcs;
    }
    void lay(std::int64_t n, std::int64_t widest) {
        nodes_ = static_cast<FlowNode>(n);
        rows_.margin = static_cast<FlowNode>(widest);
        for (std::size_t k = 0; k < degree; k += 2) {
            const FlowNode offset = rows_.offsets[k];
            rows_.offsets[k + 1] = -offset;
            rows_.sisters[k] = offset * degree + 1;
            rows_.sisters[k + 1] = -offset * degree - 1;
        }
    }

    FlowNode nodes_ = 0;
    Rows rows_;
    LargeArray<FlowArc> forward_;
    GridNumbering grid_;  // used instead of forward_
};

}  // namespace setwise

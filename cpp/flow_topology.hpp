// The arcs of a graph, apart from their capacities: built once, shared by any number of solvers.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace setwise {

using FlowNode = std::int32_t;
using FlowArc = std::int32_t;

constexpr std::int64_t most_flow_arcs = (std::int64_t(1) << 31) - 1;

// Rows of arcs: those that leave node u are [begin(u), end(u)). Every edge is two arcs, one each
// way, and each of the two is the other's sister.
class CsrTopology {
  public:
    CsrTopology() : first_(1, 0) {}

    // Edge e joins tails[e] and heads[e], both in [0, n) and different.
    template <class Index>
    CsrTopology(std::int64_t n, std::int64_t edges, const Index* tails, const Index* heads,
                std::int64_t stride = 1) {
        if (n < 0 || n > most_flow_arcs || edges < 0 || 2 * edges > most_flow_arcs)
            throw std::length_error("a graph must have fewer than 2**31 nodes and arcs");
        const auto size = static_cast<std::size_t>(n);
        first_.assign(size + 1, 0);
        for (std::int64_t e = 0; e < edges; ++e) {
            ++first_[static_cast<std::size_t>(tails[e * stride]) + 1];
            ++first_[static_cast<std::size_t>(heads[e * stride]) + 1];
        }
        for (std::size_t u = 0; u < size; ++u) first_[u + 1] += first_[u];
        head_.resize(static_cast<std::size_t>(2 * edges));
        sister_.resize(static_cast<std::size_t>(2 * edges));
        forward_.resize(static_cast<std::size_t>(edges));
        // first_[u] runs through the row of u and ends at the next one; shifting it back restores it.
        for (std::int64_t e = 0; e < edges; ++e) {
            const auto u = static_cast<FlowNode>(tails[e * stride]);
            const auto v = static_cast<FlowNode>(heads[e * stride]);
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
    FlowArc arcs() const { return static_cast<FlowArc>(head_.size()); }
    std::int64_t edges() const { return static_cast<std::int64_t>(forward_.size()); }

    // The arc from tail to head of edge e, and the one back.
    FlowArc forward(std::int64_t e) const { return forward_[static_cast<std::size_t>(e)]; }
    FlowArc reverse(std::int64_t e) const { return sister_[static_cast<std::size_t>(forward(e))]; }

    std::pair<FlowNode, FlowNode> ends(std::int64_t e) const {
        return {head_[static_cast<std::size_t>(reverse(e))],
                head_[static_cast<std::size_t>(forward(e))]};
    }

    FlowArc begin(FlowNode u) const { return first_[static_cast<std::size_t>(u)]; }
    FlowArc end(FlowNode u) const { return first_[static_cast<std::size_t>(u) + 1]; }
    // u is the node that arc a leaves.
    FlowNode head(FlowNode, FlowArc a) const { return head_[static_cast<std::size_t>(a)]; }
    FlowArc sister(FlowNode, FlowArc a) const { return sister_[static_cast<std::size_t>(a)]; }

  private:
    std::vector<FlowArc> first_, sister_, forward_;
    std::vector<FlowNode> head_;
};

}  // namespace setwise

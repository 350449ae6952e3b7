// Of all minimum cuts of a solved flow the one with the smallest sink side.
#pragma once

#include <cstddef>
#include <vector>

#include "flows/flow_topology.hpp"

namespace setwise {

using Side = unsigned char;  // of the cut: 1 for the sink's

// The nodes that reach a deficit that is left: of those on the sink's side all but the ones that might
// as well be on the other. sides has an entry for each node.
template <class Flow>
void read_least_sink_side(const Flow& flow, std::vector<Side>& sides) {
    constexpr Side zero = 0, one = 1, either = 2;
    const FlowNode n = flow.topology().nodes();
    const Side sink = flow.sink_side_is_least() ? one : either;
    for (FlowNode v = 0; v < n; ++v)
        sides[static_cast<std::size_t>(v)] = flow.source_side(v)  ? zero
                                             : flow.excess(v) < 0 ? one
                                                                  : sink;
    if (sink == one) return;
    const auto g = flow.topology().rows();
    std::vector<FlowNode> stack;
    const auto settle = [&](FlowNode v) {
        sides[static_cast<std::size_t>(v)] = one;
        stack.push_back(v);
    };
    for (FlowNode v = 0; v < n; ++v) {
        if (sides[static_cast<std::size_t>(v)] != either) continue;
        for (FlowArc a = g.begin(v); a < g.end(v); ++a)
            if (flow.residual(a) > 0 && sides[static_cast<std::size_t>(g.head(v, a))] == one) {
                settle(v);
                break;
            }
        while (!stack.empty()) {
            const FlowNode u = stack.back();
            stack.pop_back();
            for (FlowArc a = g.begin(u); a < g.end(u); ++a)
                if (flow.residual(g.sister(u, a)) > 0 &&
                    sides[static_cast<std::size_t>(g.head(u, a))] == either)
                    settle(g.head(u, a));
        }
    }
    for (Side& side : sides) side &= one;
}

}  // namespace setwise

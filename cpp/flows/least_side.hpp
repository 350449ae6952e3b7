// The minimum cut with the smallest sink side among all minimum cuts of a solved flow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flows/flow_topology.hpp"
#include "flows/slabs.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

using Side = unsigned char;  // side of the cut: 1 for the sink's

// The nodes from which a remaining deficit can be reached. These are all nodes of the sink's side
// that no minimum cut has on the other side. They are found in each slab by itself, and then from
// slab to slab.
template <class Flow>
class LeastSinkSide {
  public:
    // sides has an entry for each node.
    LeastSinkSide(const Flow& flow, std::vector<Side>& sides)
        : flow_(flow), g_(flow.topology().rows()), sides_(sides) {}

    void read(const Slabs& slabs, int n_threads, Poll poll) {
        const Side sink = flow_.sink_side_is_least() ? one : either;
        each_task(slabs.count(), n_threads, poll, [&](std::int64_t k, int) {
            const FlowNode low = slabs.first(k), high = slabs.first(k + 1);
            for (FlowNode v = low; v < high; ++v)
                side(v) = flow_.source_side(v) ? zero : flow_.excess(v) < 0 ? one : sink;
            if (sink == either) spread(low, high, low, high);
        });
        if (sink == one) return;
        const FlowNode n = flow_.topology().nodes();
        for (std::int64_t k = 1; k < slabs.count(); ++k)
            spread(slabs.before(k), slabs.after(k), 0, n);
        for (Side& side : sides_) side &= one;
    }

  private:
    static constexpr Side zero = 0, one = 1, either = 2;

    Side& side(FlowNode v) { return sides_[static_cast<std::size_t>(v)]; }

    // Settle the nodes of [begin, end) that reach a settled node, and all nodes in [low, high) that
    // reach them.
    void spread(FlowNode begin, FlowNode end, FlowNode low, FlowNode high) {
        std::vector<FlowNode> stack;
        const auto inside = [&](FlowNode v) { return low <= v && v < high; };
        const auto settle = [&](FlowNode v) {
            side(v) = one;
            stack.push_back(v);
        };
        for (FlowNode v = begin; v < end; ++v) {
            if (side(v) != either) continue;
            for (FlowArc a = g_.begin(v); a < g_.end(v); ++a) {
                const FlowNode w = g_.head(v, a);
                if (flow_.residual(a) > 0 && inside(w) && side(w) == one) {
                    settle(v);
                    break;
                }
            }
            while (!stack.empty()) {
                const FlowNode u = stack.back();
                stack.pop_back();
                for (FlowArc a = g_.begin(u); a < g_.end(u); ++a) {
                    const FlowNode w = g_.head(u, a);
                    if (flow_.residual(g_.sister(u, a)) > 0 && inside(w) && side(w) == either)
                        settle(w);
                }
            }
        }
    }

    const Flow& flow_;
    const typename Flow::Rows g_;
    std::vector<Side>& sides_;
};

template <class Flow>
void read_least_sink_side(const Flow& flow, std::vector<Side>& sides, const Slabs& slabs,
                          int n_threads, Poll poll) {
    LeastSinkSide<Flow>(flow, sides).read(slabs, n_threads, poll);
}

}  // namespace setwise

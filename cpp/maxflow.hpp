// Maximum flow and minimum cut by incremental breadth-first search.
//
// After Goldberg, Hed, Kaplan, Tarjan, Werneck, "Maximum flows by incremental breadth-first search"
// (ESA 2011), and the dynamic form of Goldberg, Hed, Kaplan, Kohli, Tarjan, Werneck, "Faster and
// more dynamic maximum flow by incremental breadth-first search" (ESA 2015). Ours differs in that
// one tree grows at a time, over one side of a cut that is already closed:
//
// A state is a pseudoflow: residual capacities of the arcs and a signed excess of every node (what
// the source can still send there minus what the sink can still take). A cut (A, B) with no residual
// arc from A to B is closed. It is minimum when no node of A has a deficit and no node of B an excess.
//  1. In A, trees of arcs that lead to deficits grow level by level; a node with excess that they
//     meet sends it down its tree. When they cannot grow, their nodes go over to B.
//  2. In B, in the same way, trees that come from excesses grow and meet deficits. When they cannot
//     grow, their nodes go over to A.
// Each step keeps the cut closed, so two of them solve the problem from any closed cut, at a cost
// that follows what is wrong with that cut and not the size of the graph.
//
// Labels are distances in the tree. An orphan, whose arc to its parent was saturated, looks for a
// parent of the same label, then for the least label, else it leaves the tree. Every augmentation
// makes a residual capacity or an excess exactly zero, also in floating point: no tolerance is used.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "flow_topology.hpp"
#include "order.hpp"

namespace setwise {

// Capacity: std::int64_t (the sum of all capacities and excesses must fit) or double, where an
// excess may be infinite. A solver may be copied; a copy shares the topology.
template <class Topology, class Capacity>
class MaxFlow {
  public:
    explicit MaxFlow(std::shared_ptr<const Topology> topology)
        : topology_(std::move(topology)),
          nodes_(static_cast<std::size_t>(topology_->nodes())),
          residual_(static_cast<std::size_t>(topology_->arcs())) {}

    const Topology& topology() const { return *topology_; }

    // The state, to be written before a call of solve and to be read after it.
    Capacity& residual(FlowArc a) { return residual_[static_cast<std::size_t>(a)]; }
    Capacity residual(FlowArc a) const { return residual_[static_cast<std::size_t>(a)]; }
    Capacity& excess(FlowNode v) { return node(v).excess; }
    Capacity excess(FlowNode v) const { return node(v).excess; }

    // The side of the minimum cut that was found.
    bool source_side(FlowNode v) const { return node(v).label == on_source_side; }

    // Solves from scratch. Returns what flowed from excesses to deficits.
    Capacity solve(Poll poll) {
        poll_ = poll;
        for (Node& v : nodes_) v.label = on_source_side;
        roots_.clear();
        for (FlowNode v = 0; v < topology_->nodes(); ++v)
            if (node(v).excess < 0) roots_.push_back(v);
        return grow<true, on_source_side>();
    }

    // Solves again after changes, from the cut of the last call. `changed` are the nodes whose excess
    // was written since; residual arcs from the source side to the sink side must not have appeared
    // (saturate them, which changes the excess of their ends).
    Capacity solve_again(const std::vector<FlowNode>& changed, Poll poll) {
        poll_ = poll;
        roots_.clear();
        for (const FlowNode v : changed)
            if (node(v).label == on_source_side && node(v).excess < 0) roots_.push_back(v);
        Capacity flow = grow<true, on_source_side>();
        roots_.clear();
        for (const FlowNode v : changed)
            if (node(v).label == on_sink_side && node(v).excess > 0) roots_.push_back(v);
        return flow + grow<false, on_sink_side>();
    }

    // Lets what the nodes of one side have too much flow to where that side has too little, and
    // leaves the cut as it is: written as an excess where there is too much on the source side, or a
    // deficit where there is too little on the sink side, and the opposite sign where it can go.
    Capacity balance(bool source, Poll poll) {
        poll_ = poll;
        const Label side = source ? on_source_side : on_sink_side;
        roots_.clear();
        for (FlowNode v = 0; v < topology_->nodes(); ++v)
            if (node(v).label == side && (source ? node(v).excess > 0 : node(v).excess < 0))
                roots_.push_back(v);
        return source ? grow<false, on_source_side>() : grow<true, on_sink_side>();
    }

  private:
    using Label = std::int32_t;
    static constexpr Label on_source_side = 0, on_sink_side = -1;  // in a tree: 1, 2, ...
    static constexpr FlowArc root = -1, orphan = -2;
    static constexpr FlowNode nobody = -1;

    struct Node {
        Capacity excess = 0;
        Label label = on_source_side;
        FlowArc parent = orphan;   // the arc to the parent
        FlowArc current = 0;       // arcs before it lead to no parent of this label
        FlowNode next = nobody;    // in the list of the orphans of this label
    };

    Node& node(FlowNode v) { return nodes_[static_cast<std::size_t>(v)]; }
    const Node& node(FlowNode v) const { return nodes_[static_cast<std::size_t>(v)]; }

    // A tree with `sink` leads to deficits, one without comes from excesses. The trees of one kind
    // are those of the other with all arcs turned round and all signs changed.
    template <bool sink>
    static Capacity supply(const Node& v) { return sink ? v.excess : -v.excess; }
    template <bool sink>
    static void send(Node& v, Capacity amount) { v.excess += sink ? amount : -amount; }

    // What can pass between a node and its parent, where a is the arc from the node to the parent.
    template <bool sink>
    Capacity& room(FlowNode v, FlowArc a) {
        return sink ? residual(a) : residual(topology_->sister(v, a));
    }
    template <bool sink>
    Capacity& room_back(FlowNode v, FlowArc a) {
        return room<!sink>(v, a);
    }

    // Dissolves the trees, also those of a call that was abandoned.
    struct Settle {
        MaxFlow& solver;
        Label side;
        ~Settle() {
            for (const FlowNode v : solver.touched_)
                if (solver.node(v).label > 0) solver.node(v).label = side;
        }
    };

    // Grows trees from roots_ over the nodes of label `free` and returns what flowed. In the end the
    // nodes of the trees lie on the side of their roots.
    template <bool sink, Label free>
    Capacity grow() {
        const Topology& g = *topology_;
        Capacity flow = 0;
        queue_.clear();
        touched_.clear();
        const Settle settle{*this, sink ? on_sink_side : on_source_side};
        for (const FlowNode v : roots_) {
            if (node(v).label != free) continue;  // named twice
            node(v).label = 1;
            node(v).parent = root;
            node(v).current = g.begin(v);
            queue_.push_back(v);
            touched_.push_back(v);
        }
        std::size_t steps = 0;
        for (depth_ = 1; !queue_.empty(); ++depth_) {
            next_queue_.clear();
            for (std::size_t k = 0; k < queue_.size(); ++k) {
                if ((++steps & 4095) == 0) poll_();
                const FlowNode u = queue_[k];
                if (node(u).label != depth_) continue;
                for (FlowArc b = g.begin(u); b < g.end(u); ++b) {
                    const FlowNode v = g.head(u, b);
                    if (node(v).label != free) continue;
                    const FlowArc a = g.sister(u, b);
                    if (room<sink>(v, a) == 0) continue;
                    while (supply<sink>(node(v)) > 0 && room<sink>(v, a) > 0 &&
                           node(u).label == depth_) {
                        flow += augment<sink>(v, a, u);
                        adopt<sink, free>();
                    }
                    if (node(u).label != depth_) break;
                    if (room<sink>(v, a) == 0) continue;
                    node(v).label = depth_ + 1;
                    node(v).parent = node(v).current = a;
                    next_queue_.push_back(v);
                    touched_.push_back(v);
                }
            }
            queue_.swap(next_queue_);
        }
        return flow;
    }

    // Sends what it can from v, whose arc a leads to u in the tree, down to the root.
    template <bool sink>
    Capacity augment(FlowNode v, FlowArc a, FlowNode u) {
        const Topology& g = *topology_;
        Capacity amount = std::min(supply<sink>(node(v)), room<sink>(v, a));
        FlowNode w = u;
        for (FlowArc p; (p = node(w).parent) != root; w = g.head(w, p))
            amount = std::min(amount, room<sink>(w, p));
        amount = std::min(amount, -supply<sink>(node(w)));
        send<sink>(node(v), -amount);
        room<sink>(v, a) -= amount;
        room_back<sink>(v, a) += amount;
        w = u;
        for (FlowArc p; (p = node(w).parent) != root; w = g.head(w, p)) {
            room_back<sink>(w, p) += amount;
            if ((room<sink>(w, p) -= amount) == 0) path_orphans_.push_back(w);
        }
        send<sink>(node(w), amount);
        if (node(w).excess == 0) path_orphans_.push_back(w);
        for (const FlowNode x : path_orphans_) disown(x);
        path_orphans_.clear();
        return amount;
    }

    void disown(FlowNode v) {
        Node& x = node(v);
        x.parent = orphan;
        const auto level = static_cast<std::size_t>(x.label);
        if (orphans_.size() <= level) orphans_.resize(level + 16, nobody);
        x.next = orphans_[level];
        orphans_[level] = v;
        lowest_ = std::min(lowest_, level);
        highest_ = std::max(highest_, level);
    }

    // Finds parents for the orphans, those of small label first.
    template <bool sink, Label free>
    void adopt() {
        const Topology& g = *topology_;
        for (; lowest_ <= highest_; ++lowest_) {
            while (orphans_[lowest_] != nobody) {
                const FlowNode v = orphans_[lowest_];
                Node& x = node(v);
                orphans_[lowest_] = x.next;
                if (find_parent<sink>(v, x)) continue;
                const FlowArc begin = g.begin(v), end = g.end(v);
                Label least = depth_ + 1;
                FlowArc best = orphan;
                for (FlowArc a = begin; a < end; ++a) {
                    const FlowNode w = g.head(v, a);
                    const Node& y = node(w);
                    if (y.label <= 0) continue;
                    if (y.label == x.label + 1 && y.parent == g.sister(v, a)) disown(w);
                    if (y.label < least && room<sink>(v, a) > 0) {
                        least = y.label;
                        best = a;
                    }
                }
                if (best == orphan) {
                    x.label = free;
                    continue;
                }
                x.label = least + 1;
                x.parent = x.current = best;
                if (x.label == depth_ + 1)
                    next_queue_.push_back(v);
                else if (x.label == depth_)
                    queue_.push_back(v);
            }
        }
        lowest_ = std::numeric_limits<std::size_t>::max();
        highest_ = 0;
    }

    template <bool sink>
    bool find_parent(FlowNode v, Node& x) {
        if (x.label == 1) return false;
        const FlowArc end = topology_->end(v);
        for (FlowArc a = x.current; a < end; ++a)
            if (node(topology_->head(v, a)).label == x.label - 1 && room<sink>(v, a) > 0) {
                x.parent = x.current = a;
                return true;
            }
        return false;
    }

    std::shared_ptr<const Topology> topology_;
    std::vector<Node> nodes_;
    std::vector<Capacity> residual_;
    std::vector<FlowNode> roots_, queue_, next_queue_, touched_, path_orphans_;
    std::vector<FlowNode> orphans_;  // of each label, the first of their list
    std::size_t lowest_ = std::numeric_limits<std::size_t>::max(), highest_ = 0;
    Label depth_ = 0;
    Poll poll_ = nullptr;
};

}  // namespace setwise

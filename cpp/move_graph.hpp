// The arcs of one move: a topology for MaxFlow that is laid again for each move, in the same memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "flow_topology.hpp"

namespace setwise {

// Rows are laid one after the other: open a row, add its arcs, open the next. An arc whose head has
// no row yet is joined to its sister when that one is laid.
class MoveGraph {
  public:
    void clear() {
        first_.clear();
        head_.clear();
        sister_.clear();
        first_.push_back(0);
    }
    FlowArc add(FlowNode head) {
        if (static_cast<std::int64_t>(head_.size()) >= most_flow_arcs)
            throw std::length_error("a graph must have fewer than 2**31 nodes and arcs");
        head_.push_back(head);
        sister_.push_back(0);
        return static_cast<FlowArc>(head_.size()) - 1;
    }
    void join(FlowArc a, FlowArc b) {
        sister_[static_cast<std::size_t>(a)] = b;
        sister_[static_cast<std::size_t>(b)] = a;
    }
    void close_row() { first_.push_back(static_cast<FlowArc>(head_.size())); }

    FlowNode nodes() const { return static_cast<FlowNode>(first_.size()) - 1; }
    FlowNode margin() const { return 0; }
    FlowArc arcs() const { return static_cast<FlowArc>(head_.size()); }
    FlowArc begin(FlowNode u) const { return first_[static_cast<std::size_t>(u)]; }
    FlowArc end(FlowNode u) const { return first_[static_cast<std::size_t>(u) + 1]; }
    FlowNode head(FlowNode, FlowArc a) const { return head_[static_cast<std::size_t>(a)]; }
    FlowArc sister(FlowNode, FlowArc a) const { return sister_[static_cast<std::size_t>(a)]; }

  private:
    std::vector<FlowArc> first_{0}, sister_;
    std::vector<FlowNode> head_;
};

}  // namespace setwise

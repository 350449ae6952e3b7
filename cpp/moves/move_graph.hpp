// The arcs of one move: a topology for MaxFlow that is rebuilt for each move, in the same memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "flows/flow_topology.hpp"

namespace setwise {

// Rows are built one after the other: add the arcs of a row, then close it. Sisters are joined when
// both exist.
class MoveGraph {
  public:
    // Start again, with memory for the given numbers of nodes and arcs.
    void clear(std::size_t nodes, std::size_t arcs) {
        if (static_cast<std::int64_t>(std::max(nodes, arcs)) >= most_flow_arcs)
            throw std::length_error("a graph must have fewer than 2**31 nodes and arcs");
        if (first_.size() < nodes + 1) first_.resize(nodes + 1);
        if (head_.size() < arcs) {
            head_.resize(arcs);
            sister_.resize(arcs);
        }
        nodes_ = arcs_ = 0;
    }
    FlowArc add(FlowNode head) {
        head_[static_cast<std::size_t>(arcs_)] = head;
        return arcs_++;
    }
    void join(FlowArc a, FlowArc b) {
        sister_[static_cast<std::size_t>(a)] = b;
        sister_[static_cast<std::size_t>(b)] = a;
    }
    void close_row() { first_[static_cast<std::size_t>(++nodes_)] = arcs_; }

    FlowNode nodes() const { return nodes_; }
    FlowNode margin() const { return 0; }
    FlowArc arcs() const { return arcs_; }
    using Rows = CsrTopology::Rows;
    Rows rows() const { return {first_.data(), sister_.data(), head_.data()}; }

  private:
    FlowNode nodes_ = 0;
    FlowArc arcs_ = 0;
    std::vector<FlowArc> first_{0}, sister_;
    std::vector<FlowNode> head_;
};

}  // namespace setwise

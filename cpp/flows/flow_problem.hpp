// A flow problem that can be changed and solved again, as its callers see it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "flows/maxflow.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// A first flow is computed in blocks of nodes. Their number is the largest power of two for which
// blocks are neither too small nor too thin compared with the region that a border disturbs. The
// thickness of a block is its number of nodes divided by the size of its border. The sizes are not
// tuned.
struct BlockSizes {
    std::int64_t most_blocks = 16, least_nodes = std::int64_t(1) << 16, least_thickness = 32;
    std::int64_t deepest = 2;  // bound on the length of paths, in multiples of the thickness
};

// The part of a problem that a batch needs.
class AnyFlowProblem {
  public:
    virtual ~AnyFlowProblem() = default;
    // Solve the problem. The answer does not depend on the number of threads.
    virtual void solve(Poll poll, int n_threads = 1, BlockSizes sizes = {}) = 0;
    std::mutex& mutex() const { return mutex_; }  // must be held during every other call

  private:
    mutable std::mutex mutex_;
};

// A flow problem with any form of arcs. Arrays over nodes have nodes() entries, those over edges
// edges(); `which` lists distinct ones, or means all of them if it is null.
template <class Capacity>
class FlowProblem : public AnyFlowProblem {
  public:
    virtual std::unique_ptr<FlowProblem> clone() const = 0;
    virtual FlowNode nodes() const = 0;
    virtual std::int64_t edges() const = 0;
    virtual bool is_solved() const = 0;
    virtual bool compact() const = 0;  // whether heads and sisters are computed instead of stored

    // Return false, and do nothing, if the sum of all capacities would reach 2^63, or 2^1022 for
    // floats, without infinite terminals. A null `back` stands for zeros.
    virtual bool set_capacities(const std::int64_t* which, std::int64_t count,
                                const Capacity* there, const Capacity* back) = 0;
    virtual bool set_terminals(const std::int64_t* which, std::int64_t count,
                               const Capacity* source, const Capacity* sink) = 0;
    // Return the capacity of all arcs out of a node, or into it.
    virtual Capacity through(FlowNode v, bool out) const = 0;

    // Call these functions only while the present problem is solved. read_flows changes the state.
    virtual Capacity value() const = 0;  // the flow out of the source
    virtual Capacity cut() const = 0;  // capacity of the cut, from the problem and the sides alone
    // Return the largest possible distance of the cut from the least one, and the flow over edges
    // and terminals without the lesser capacity of each node's two terminals. Rounding errors of
    // sums are a few units in the last place of this flow.
    virtual std::pair<Capacity, Capacity> unproved() const = 0;
    virtual void read_sides(bool* on_source_side) const = 0;
    // The sink side of the minimum cut whose sink side is smallest; it is unique.
    virtual void read_least_sink_side(bool* on_sink_side, Poll poll) = 0;
    virtual void read_flows(Capacity* flows, Capacity* residuals,
                            Poll poll) = 0;  // either may be null
    virtual void read_problem(Capacity* there, Capacity* back, Capacity* source,
                              Capacity* sink) const = 0;
    virtual void read_edges(std::int64_t* ends) const = 0;
};

}  // namespace setwise

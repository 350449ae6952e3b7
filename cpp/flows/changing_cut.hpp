// Minimum cuts of one graph while the costs of its nodes change, each computed from the flow of the
// one before.
//
// E(A) = sum_{i in A} c_i + sum_e there_e [i in A, j not in A] + back_e [j in A, i not in A] for an
// edge e = (i, j). The costs c are those of the graph plus a tilt that is new in each call. A is
// the sink's side. Of all minimisers the smallest set is found, whatever was solved before.
//
// A change of a cost changes the node's excess by the same amount, and nothing else is recomputed;
// the rounding errors are summed. A flow whose rounding error exceeds a given share of the cut is
// recomputed from zero. FlowGraph also sums up the flow that is sent and recomputes every excess
// from the flow around it, which takes several times as long.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "flows/block_flow.hpp"
#include "flows/flow_topology.hpp"
#include "flows/maxflow.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/poll.hpp"

namespace setwise {

struct ChangedCut {
    double value = 0;        // the value of E for the set found, without the tilt
    double above_least = 0;  // the value of E with the tilt, minus the sum of all negative costs
    // An upper bound on the amount by which another set is better, because of rounding in the flow.
    double lost = 0;
};

class ChangingCut {
  public:
    virtual ~ChangingCut() = default;
    virtual std::int64_t nodes() const = 0;

    // tilt: for the first `count` nodes; +inf keeps a node out of the set, -inf in it. `inside` has
    // as many entries. The rounding error is at most `share` of `above_least`, or 64 units in its
    // last place, unless double precision cannot do better. With `apart`, changes of many nodes are
    // solved in blocks, on several threads. This gives the same set, but the rounding error may
    // differ.
    virtual ChangedCut solve(const double* tilt, std::int64_t count, double share, bool apart,
                             bool* inside, Poll poll, int n_threads) = 0;
};

template <class Topology>
class ChangingCutOf final : public ChangingCut {
  public:
    // there and back: capacities of the edges of the topology. costs: those of its nodes.
    ChangingCutOf(Topology&& topology, const double* costs, const double* there, const double* back)
        : flow_(std::make_shared<const Topology>(std::move(topology))),
          capacity_(static_cast<std::size_t>(flow_.topology().arcs())),
          own_(costs, costs + flow_.topology().nodes()),
          costs_(own_.size()) {
        // The arc that leads from the source's side to the sink's is cut, from outside the set to
        // its inside.
        flow_.topology().for_edges([&](std::int64_t e, FlowArc a, FlowArc b) {
            capacity(a) = back[e];
            capacity(b) = there[e];
        });
        for (const double x : capacity_) largest_ = std::max(largest_, x);
    }

    std::int64_t nodes() const override { return flow_.topology().nodes(); }

    ChangedCut solve(const double* tilt, std::int64_t count, double share, bool apart, bool* inside,
                     Poll poll, int n_threads) override {
        const auto cost = [&](FlowNode v) {
            return own_[static_cast<std::size_t>(v)] + (v < count ? tilt[v] : 0.0);
        };
        const double most = std::max(share, 64 * std::numeric_limits<double>::epsilon());
        ChangedCut found;
        found.lost = unlimited;
        if (std::exchange(solved_, false)) {  // stays false if the call is abandoned
            change(cost);
            const bool many = static_cast<std::int64_t>(wrong_.size()) > nodes() / few_nodes;
            if (apart && many)
                solve_in_blocks(flow_, poll, n_threads);  // the present flow is kept
            else
                flow_.solve_again(wrong_, poll);
            found = read(poll);
        }
        double limit = unlimited;
        if (found.lost > most * found.above_least) {
            for (FlowNode v = 0; v < nodes(); ++v) costs_[static_cast<std::size_t>(v)] = cost(v);
            found = from_nothing(limit, poll, n_threads);
        }
        // Capacities far above the cut cause rounding errors. Lowering them to twice the cut
        // changes no minimum cut.
        while (found.lost > most * found.above_least) {
            const double lower =
                std::max(2 * found.above_least, std::numeric_limits<double>::min());
            if (!(2 * lower < std::min(limit, largest_))) break;
            limit = lower;
            found = from_nothing(limit, poll, n_threads);
        }
        for (FlowNode v = 0; v < count; ++v) inside[v] = !flow_.source_side(v);
        solved_ = limit == unlimited;
        found.lost = unproved(flow_, found.above_least);
        return found;
    }

  private:
    using Flow = MaxFlow<Topology, double>;
    static constexpr double unlimited = std::numeric_limits<double>::infinity();
    // blocks are used only if more than one node in few_nodes changes; not tuned
    static constexpr std::int64_t few_nodes = 100;

    double& capacity(FlowArc a) { return capacity_[static_cast<std::size_t>(a)]; }

    // Changes of costs change excesses. `wrong_` are the nodes that are then on the wrong side.
    template <class Cost>
    void change(Cost cost) {
        wrong_.clear();
        double lost = 0, lent = 0;
        for (FlowNode v = 0; v < nodes(); ++v) {
            double& before = costs_[static_cast<std::size_t>(v)];
            const double after = cost(v);
            if (before == after) continue;
            double& excess = flow_.excess(v);
            if (std::max(std::abs(before), std::abs(after)) <= counted_) {
                const double more = after - before, had = excess;
                excess = had + more;
                lost += std::abs(lost_in_sum(after, -before, more)) +
                        std::abs(lost_in_sum(had, more, excess));
            } else {
                lost += write_excess(v, after);
            }
            before = after;
            lent = std::max(lent, beyond_terminals(excess, after));
            if (flow_.source_side(v) ? excess < 0 : excess > 0) wrong_.push_back(v);
        }
        flow_.lose(lost);
        flow_.lend(lent);
    }

    // Write the excess that follows from a cost and from the inflow over the edges. Return its
    // rounding error, without one unit in the last place of the cost itself, which does not matter
    // while the cost stays the same.
    double write_excess(FlowNode v, double cost) {
        double& excess = flow_.excess(v);
        if (std::isinf(cost)) {
            excess = cost;
            return 0;
        }
        CompensatedSum<double, 2> sum;
        const auto g = flow_.topology().rows();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a) {
            if (flow_.residual(a) == capacity(a)) continue;
            sum.add(flow_.residual(a));
            sum.add(-capacity(a));
        }
        sum.add(cost);
        excess = sum.value();
        sum.add(-excess);
        const double unit = std::numeric_limits<double>::epsilon() * std::abs(cost);
        return std::max(std::abs(sum.value()) - unit, 0.0);
    }

    // Return the median size of the costs. Rounding errors of excesses up to this size are counted
    // in full.
    double usual_cost() {
        std::vector<double> sizes(costs_.size());
        std::transform(costs_.begin(), costs_.end(), sizes.begin(),
                       [](double cost) { return std::abs(cost); });
        const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
        if (middle == sizes.end()) return 0;
        std::nth_element(sizes.begin(), middle, sizes.end());
        return std::isinf(*middle) ? 0 : *middle;
    }

    ChangedCut from_nothing(double limit, Poll poll, int n_threads) {
        for (std::size_t a = 0; a < capacity_.size(); ++a)
            flow_.residual(static_cast<FlowArc>(a)) = std::min(capacity_[a], limit);
        for (FlowNode v = 0; v < nodes(); ++v)
            flow_.excess(v) = costs_[static_cast<std::size_t>(v)];
        flow_.forget_lost();
        flow_.lend(usual_cost());
        counted_ = 16 * flow_.lent();
        solve_in_blocks(flow_, poll, n_threads);
        return read(poll);
    }

    ChangedCut read(Poll poll) {
        flow_.make_sink_side_least(poll);
        const auto g = flow_.topology().rows();
        ChangedCut found;
        double border = 0;
        for (FlowNode v = 0; v < nodes(); ++v) {
            const auto place = static_cast<std::size_t>(v);
            const bool in = !flow_.source_side(v);
            const double cost = costs_[place];
            found.above_least += in ? std::max(cost, 0.0) : std::max(-cost, 0.0);
            if (!in) continue;
            found.value += own_[place];
            for (FlowArc a = g.begin(v); a < g.end(v); ++a) {
                const FlowArc b = g.sister(v, a);  // the arc into the set
                if (capacity(b) > 0 && flow_.source_side(g.head(v, a))) border += capacity(b);
            }
        }
        found.value += border;
        found.above_least += border;
        found.lost = flow_.lost();
        return found;
    }

    Flow flow_;
    LargeArray<double> capacity_;
    std::vector<double> own_, costs_;  // costs of the graph; costs with the last tilt
    std::vector<FlowNode> wrong_;
    // A node whose cost exceeds this bound may be a seed. The rounding error of its excess is not
    // counted while the cost stays large. When its cost changes, its excess is recomputed from the
    // flow around it.
    double counted_ = 0;
    double largest_ = 0;  // the largest capacity
    bool solved_ = false;
};

// Return the cuts of an edge list, in the most compact form that can hold it.
inline std::unique_ptr<ChangingCut> make_changing_cut(std::int64_t n, EdgeList<std::int64_t> edges,
                                                      const double* costs, const double* there,
                                                      const double* back) {
    std::unique_ptr<ChangingCut> cut;
    const auto offer = [&](auto topology) {
        if (topology)
            cut = std::make_unique<ChangingCutOf<typename decltype(topology)::value_type>>(
                std::move(*topology), costs, there, back);
        return cut != nullptr;
    };
    if (!offer(OffsetTopology<2>::recognize(n, edges)) &&
        !offer(OffsetTopology<3>::recognize(n, edges)) &&
        !offer(OffsetTopology<4>::recognize(n, edges)))
        cut =
            std::make_unique<ChangingCutOf<CsrTopology>>(CsrTopology(n, edges), costs, there, back);
    return cut;
}

}  // namespace setwise

// A flow problem with its capacities, its terminals, and the state of the solver.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "flows/block_flow.hpp"
#include "flows/flow_problem.hpp"
#include "flows/maxflow.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"

namespace setwise {

// Excesses are kept as source - sink + inflow. The excess of a node of a true flow lies in [-sink,
// source]; a change of the problem may leave that range, and make_flow restores it.
//
// Rounding. The value is the sum of the flow that was sent, and of min(source, sink) of all nodes.
// If the rounding errors of residual capacities exceed a few units in the last place of the flow,
// it is recomputed from zero, because the errors may come from capacities that have since changed.
// If the errors of the new flow are as large, because some capacities are far above the cut, these
// are lowered to twice the cut, which changes no minimum cut.
template <class Topology, class Capacity>
class FlowGraph final : public FlowProblem<Capacity> {
  public:
    explicit FlowGraph(Topology&& topology)
        : solver_(std::make_shared<const Topology>(std::move(topology))),
          capacity_(static_cast<std::size_t>(solver_.topology().arcs())),
          terminals_(static_cast<std::size_t>(nodes())) {}

    std::unique_ptr<FlowProblem<Capacity>> clone() const override {
        return std::unique_ptr<FlowProblem<Capacity>>(new FlowGraph(*this));
    }
    FlowNode nodes() const override { return topology().nodes(); }
    std::int64_t edges() const override { return topology().edges(); }
    bool is_solved() const override { return solved_ && changed_.empty() && !stale_; }
    bool compact() const override { return !std::is_same_v<Topology, CsrTopology>; }

    bool set_capacities(const std::int64_t* which, std::int64_t count, const Capacity* there,
                        const Capacity* back) override {
        const auto edge = [&](std::int64_t k) { return which ? which[k] : k; };
        Capacity total = total_;
        if (total > 0)
            for (std::int64_t k = 0; k < count; ++k)
                total -=
                    capacity(topology().forward(edge(k))) + capacity(topology().reverse(edge(k)));
        for (std::int64_t k = 0; k < count; ++k)
            if (!add_checked(total, there[k]) || !add_checked(total, back ? back[k] : 0))
                return false;
        total_ = total;
        lift_limit();
        for (std::int64_t k = 0; k < count; ++k)
            set_capacity(edge(k), there[k], back ? back[k] : Capacity(0));
        return true;
    }

    // Set the capacities of a grid whose arcs have none yet, before any flow, from arrays of any
    // layout.
    bool set_grid_capacities(const GridWeights<Capacity>& there,
                             const GridWeights<Capacity>& back) {
        const bool same = there == back;
        bool fits = true;
        topology().for_runs([&](std::size_t direction, const auto& at, std::int64_t,
                                std::int64_t run, FlowArc a, FlowArc b) {
            const Capacity *x = there.at(direction, at), *y = back.at(direction, at);
            const std::ptrdiff_t dx = there.step(), dy = back.step();
            Capacity sum = 0;  // the sum of the finite numbers
            for (std::int64_t k = 0; k < run; ++k, x += dx, y += dy) {
                const Capacity forth = *x, hither = same ? forth : *y;
                fits = fits && add_checked(sum, forth) && add_checked(sum, hither);
                capacity_[static_cast<std::size_t>(a)] = solver_.residual(a) = forth;
                capacity_[static_cast<std::size_t>(b)] = solver_.residual(b) = hither;
                a += Topology::stride;
                b += Topology::stride;
            }
            fits = fits && add_checked(total_, sum);
        });
        return fits;
    }

    bool set_terminals(const std::int64_t* which, std::int64_t count, const Capacity* source,
                       const Capacity* sink) override {
        const auto vertex = [&](std::int64_t k) {
            return static_cast<FlowNode>(which ? which[k] : k);
        };
        Capacity total = total_;
        for (std::int64_t k = 0; k < count; ++k)
            total -= finite(terminals(vertex(k)).source) + finite(terminals(vertex(k)).sink);
        for (std::int64_t k = 0; k < count; ++k)
            if (!add_checked(total, finite(source[k])) || !add_checked(total, finite(sink[k])))
                return false;
        total_ = total;
        lift_limit();
        // The number of nodes between a prefetch and its use; not tuned.
        constexpr std::int64_t ahead = 8;
        for (std::int64_t k = 0; k < count; ++k) {
            if (started_ && k + ahead < count) prefetch_node(vertex(k + ahead));
            set_terminals_of(vertex(k), {source[k], sink[k]});
        }
        return true;
    }

    Capacity through(FlowNode v, bool out) const override {
        Capacity sum = 0;
        const auto g = topology().rows();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a) sum += capacity(out ? a : g.sister(v, a));
        return sum;
    }

    void solve(Poll poll, int n_threads, BlockSizes sizes) override {
        const auto run = [&] { return this->run(poll, n_threads, sizes); };
        bool is_new = run();
        if constexpr (is_float) {
            if (base_.value() < 1e-30 * largest_base_) count_base();
            if (is_new) largest_change_ = 0;
            // After large changes that cancelled each other, the sum of the flow that was sent may
            // be a rounding error.
            if (sent_.value() < forgetful * std::exchange(largest_change_, 0)) {
                const Capacity most = cut_beyond_base().value();
                if (std::abs(sent_.value() - most) > most_lost * most) {
                    write(unlimited);
                    is_new = run();
                }
            }
            if (lost() <= std::max(most_lost, 2 * usual_lost_)) return;
            if (!is_new) {
                write(unlimited);
                run();
            }
            while (lost() > most_lost && lower_limit()) run();
            usual_lost_ = lost();
        }
    }

    Capacity value() const override {
        Sum sum = base_;
        sum.add(sent_);
        return sum.value();
    }

    // Rounding errors may raise the cut but never lower it.
    Capacity cut() const override {
        Sum sum = cut_beyond_base();
        sum.add(base_);
        return std::max(sum.value(), value());
    }

    std::pair<Capacity, Capacity> unproved() const override {
        if constexpr (!is_float) return {0, value()};
        Sum gap, flows = sent_;
        gap.add(solver_.lost());
        for (FlowNode v = 0; v < nodes(); ++v) {
            const Capacity excess = rounded_excess(v, inflow(v)).first;
            gap.add(std::max<Capacity>(solver_.source_side(v) ? -excess : excess, 0));
        }
        topology().for_edges(
            [&](std::int64_t, FlowArc a, FlowArc b) { flows.add(std::abs(flow(a, b))); });
        return {gap.value(), flows.value()};
    }

    void read_sides(bool* on_source_side) const override {
        for (FlowNode v = 0; v < nodes(); ++v) on_source_side[v] = solver_.source_side(v);
    }

    void read_least_sink_side(bool* on_sink_side, Poll poll) override {
        solver_.make_sink_side_least(poll);
        for (FlowNode v = 0; v < nodes(); ++v) on_sink_side[v] = !solver_.source_side(v);
    }

    void read_flows(Capacity* flows, Capacity* residuals, Poll poll) override {
        make_flow(poll);
        if constexpr (is_float) {
            // Returning flow over large capacities may cause rounding errors in the flow that is
            // sent over them.
            while (unbalanced() > forgetful * std::max(sent_.value(), least) && lower_limit()) {
                run(poll, 1, {});
                make_flow(poll);
            }
        }
        topology().for_edges([&](std::int64_t e, FlowArc a, FlowArc b) {
            if (flows) flows[e] = flow(a, b);
            if (!residuals) return;
            residuals[2 * e] = solver_.residual(a) + (capacity(a) - usable(a));
            residuals[2 * e + 1] = solver_.residual(b) + (capacity(b) - usable(b));
        });
    }

    void read_problem(Capacity* there, Capacity* back, Capacity* source,
                      Capacity* sink) const override {
        topology().for_edges([&](std::int64_t e, FlowArc a, FlowArc b) {
            there[e] = capacity(a);
            back[e] = capacity(b);
        });
        for (FlowNode v = 0; v < nodes(); ++v) {
            source[v] = terminals(v).source;
            sink[v] = terminals(v).sink;
        }
    }

    void read_edges(std::int64_t* ends) const override {
        for (std::int64_t e = 0; e < edges(); ++e)
            std::tie(ends[2 * e], ends[2 * e + 1]) = topology().ends(e);
    }

  private:
    using Sum = CompensatedSum<Capacity>;
    static constexpr bool is_float = std::is_floating_point_v<Capacity>;
    static constexpr Capacity unlimited = std::numeric_limits<Capacity>::max();
    static constexpr Capacity least = is_float ? std::numeric_limits<Capacity>::min() : 1;
    static constexpr Capacity unit =
        is_float ? std::numeric_limits<Capacity>::epsilon() : Capacity(0);
    // A flow below this share of the largest change of capacities may be a rounding error, so it is
    // compared with the cut. Not tuned.
    static constexpr Capacity forgetful = is_float ? Capacity(1e-9) : Capacity(0);
    // If the rounding error of a flow, as a share of the flow, is above this, the flow is computed
    // again. It allows a few roundings per level of the sums. Not tuned.
    static constexpr Capacity most_lost = 64 * unit;

    struct Terminals {
        Capacity source, sink;
    };

    FlowGraph(const FlowGraph& other)
        : FlowProblem<Capacity>(),
          solver_(other.solver_),
          capacity_(other.capacity_),
          terminals_(other.terminals_),
          changed_(other.changed_),
          base_(other.base_),
          sent_(other.sent_),
          total_(other.total_),
          limit_(other.limit_),
          largest_base_(other.largest_base_),
          largest_change_(other.largest_change_),
          usual_lost_(other.usual_lost_),
          counted_(other.counted_),
          started_(other.started_),
          solved_(other.solved_),
          stale_(other.stale_) {}

    // While some capacities are replaced, sums of old and new ones occur. For floats, a quarter of
    // the largest number keeps these finite and leaves room for the rounding of their total.
    static constexpr Capacity most() {
        constexpr Capacity highest = std::numeric_limits<Capacity>::max();
        return is_float ? highest / 4 : highest;
    }
    static bool add_checked(Capacity& total, Capacity x) {
        if (x > most() - total) return false;
        total += x;
        return true;
    }
    static bool is_infinite(Capacity x) {
        if constexpr (is_float)
            return std::isinf(x);
        else
            return static_cast<void>(x), false;
    }

    static Capacity finite(Capacity x) { return is_infinite(x) ? Capacity(0) : x; }

    const Topology& topology() const { return solver_.topology(); }
    Capacity capacity(FlowArc a) const { return capacity_[static_cast<std::size_t>(a)]; }
    const Terminals& terminals(FlowNode v) const { return terminals_[static_cast<std::size_t>(v)]; }

    // Return the capacity that the solver uses, at most `limit_`.
    Capacity usable(FlowArc a) const { return std::min(capacity(a), limit_); }
    Capacity net(FlowNode v) const { return terminals(v).source - terminals(v).sink; }

    // Solve from the present state. Return whether that state was without flow.
    bool run(Poll poll, int n_threads, BlockSizes sizes) {
        const bool is_new = !std::exchange(started_, true);
        if (std::exchange(solved_, false)) {  // stays false if the call is abandoned
            sent_.add(solver_.solve_again(changed_, poll));
            if (counted_ > 16 * static_cast<std::int64_t>(nodes())) count_sent();
        } else {
            sent_ = {};
            if (!is_new) count_sent();
            sent_.add(solve_in_blocks(solver_, poll, n_threads, sizes));
        }
        changed_.clear();
        stale_ = false;
        solved_ = true;
        return is_new;
    }

    // Write the problem into the solver, without flow.
    void write(Capacity limit) {
        limit_ = limit;
        for (FlowArc a = 0; a < topology().arcs(); ++a) solver_.residual(a) = usable(a);
        for (FlowNode v = 0; v < nodes(); ++v) solver_.excess(v) = net(v);
        solver_.forget_lost();
        changed_.clear();
        started_ = solved_ = false;
    }

    // Write the problem with capacities of at most twice the cut, if some are far above it.
    bool lower_limit() {
        const Capacity limit = std::max(2 * cut_beyond_base().value(), least);
        if (!(2 * limit < std::min(limit_, largest()))) return false;
        write(limit);
        return true;
    }

    // Return the rounding error as a share of what is sent.
    Capacity lost() const {
        return solver_.lost() > 0 ? solver_.lost() / std::max(sent_.value(), least) : 0;
    }
    Capacity largest() const { return *std::max_element(capacity_.begin(), capacity_.end()); }

    // Return the cut's capacity minus min(source, sink) of all nodes.
    Sum cut_beyond_base() const {
        Sum sum;
        const auto g = topology().rows();
        for (FlowNode v = 0; v < nodes(); ++v) {
            const Terminals& t = terminals(v);
            const bool here = solver_.source_side(v);
            if (here ? t.sink > t.source : t.source > t.sink) {
                sum.add(here ? t.sink : t.source);
                sum.add(here ? -t.source : -t.sink);
            }
            for (FlowArc a = g.begin(v); here && a < g.end(v); ++a)
                if (capacity(a) > 0 && !solver_.source_side(g.head(v, a))) sum.add(capacity(a));
        }
        return sum;
    }

    // The inflow over the edges minus the outflow. Two levels of compensation suffice: if their
    // error is larger, the rounding error of the excess is large too, and it is recorded.
    using Inflow = CompensatedSum<Capacity, 2>;
    Inflow inflow(FlowNode v) const {
        Inflow sum;
        const auto g = topology().rows();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a) {
            if (solver_.residual(a) == usable(a)) continue;
            sum.add(solver_.residual(a));
            sum.add(-usable(a));
        }
        return sum;
    }

    // Return the excess that follows from the inflow, and its rounding error.
    std::pair<Capacity, Capacity> rounded_excess(FlowNode v, Inflow excess) const {
        if (is_infinite(net(v))) return {net(v), 0};
        excess.add(terminals(v).source);
        excess.add(-terminals(v).sink);
        const Capacity rounded = excess.value();
        excess.add(-rounded);
        return {rounded, excess.value()};
    }

    // Return the flow that the source sends to a node beyond min(source, sink): max(net, 0) -
    // max(net + inflow, 0). An augmentation adds its flow to the sum of these, so a second solution
    // needs no pass over all nodes.
    Inflow sent(FlowNode v, const Inflow& in) const {
        Inflow sum;
        const bool gives = net(v) > 0, has_left = solver_.excess(v) > 0;
        if (has_left) sum.subtract(in);
        if (gives != has_left) {
            sum.add(gives ? terminals(v).source : -terminals(v).source);
            sum.add(gives ? -terminals(v).sink : terminals(v).sink);
        }
        return sum;
    }
    // Recompute this sum, which also removes the rounding of many changes.
    void count_sent() {
        sent_ = {};
        counted_ = 0;
        for (FlowNode v = 0; v < nodes(); ++v) sent_.add(sent(v, inflow(v)));
    }

    // Recompute the sum of min(source, sink), which removes the rounding of terminals far above the
    // present ones.
    void count_base() {
        base_ = {};
        largest_base_ = 0;
        for (const Terminals& t : terminals_) {
            base_.add(std::min(t.source, t.sink));
            largest_base_ = std::max(largest_base_, std::min(t.source, t.sink));
        }
    }

    Capacity flow(FlowArc a, FlowArc b) const {
        const Capacity there = usable(a) - solver_.residual(a);
        return there > 0 ? there : solver_.residual(b) - usable(b);
    }

    void prefetch_node(FlowNode v) const {
        const auto a = static_cast<std::size_t>(topology().rows().begin(v));
        prefetch(terminals_.data() + v);
        prefetch(capacity_.data() + a);
        solver_.prefetch_node(v);
    }

    void set_terminals_of(FlowNode v, Terminals t) {
        Terminals& here = terminals_[static_cast<std::size_t>(v)];
        if (started_ && here.source == t.source && here.sink == t.sink) return;
        const Capacity before = std::min(here.source, here.sink),
                       after = std::min(t.source, t.sink);
        if (before != after) {
            base_.add(-before);
            base_.add(after);
            largest_base_ = std::max({largest_base_, before, after});
        }
        if (!started_) {
            here = t;
            solver_.excess(v) = net(v);
            return;
        }
        const Inflow in = inflow(v);
        const Inflow sent_before = sent(v, in);
        note_rounding(v, in);
        here = t;
        const auto [excess, rounding] = rounded_excess(v, in);
        solver_.excess(v) = excess;
        lose(v, rounding);
        lend_beyond(v);
        if (!solved_) return;
        Inflow more = sent(v, in);
        more.subtract(sent_before);
        if (!more.is_zero()) sent_.add(more);
        note_change(sent_before.value());
        note_change(more.value());
        changed_.push_back(v);
        ++counted_;
    }

    void set_capacity(std::int64_t e, Capacity there, Capacity back) {
        const FlowArc a = topology().forward(e), b = topology().reverse(e);
        if (!started_) {
            write_capacity(a, there, Capacity(0));
            write_capacity(b, back, Capacity(0));
            return;
        }
        const auto [tail, head] = topology().ends(e);
        const Capacity before = flow(a, b);
        Capacity after = std::min(std::max(before, -back), there);
        // No residual arc may lead out of the source side.
        const bool first = solver_.source_side(tail), second = solver_.source_side(head);
        if (solved_ && first != second) after = first ? there : -back;
        stale_ = true;
        write_capacity(a, there, after);
        write_capacity(b, back, -after);
        if (after == before) return;
        add_inflow(tail, before, -after);
        add_inflow(head, after, -before);
    }

    // Add x + y to a node's excess.
    void add_inflow(FlowNode v, Capacity x, Capacity y) {
        Capacity& excess = solver_.excess(v);
        const Capacity before = excess, more = x + y;
        excess += more;
        if constexpr (is_float)
            if (!is_infinite(excess))
                lose(v, std::abs(lost_in_sum(before, more, excess)) +
                            std::abs(lost_in_sum(x, y, more)));
        lend_beyond(v);
        if (!solved_) return;
        note_change(x);
        note_change(y);
        if (excess > 0) {
            sent_.add(-x);
            sent_.add(-y);
            if (before < 0) sent_.add(-before);
        } else if (before > 0) {
            sent_.add(before);
        }
        changed_.push_back(v);
        ++counted_;
    }

    void note_change(Capacity x) {
        largest_change_ = std::max<Capacity>(largest_change_, std::abs(x));
    }

    // Before a node's terminals change, record the rounding error of its excess beyond that of the
    // remaining excess. This error is part of the flow and is no longer covered by the flow of the
    // terminals.
    void note_rounding(FlowNode v, Inflow excess) {
        if constexpr (is_float) {
            if (is_infinite(net(v))) return;
            excess.add(terminals(v).source);
            excess.add(-terminals(v).sink);
            excess.add(-solver_.excess(v));
            const Capacity rounding = std::abs(excess.value());
            if (rounding > 64 * unit * std::abs(solver_.excess(v))) solver_.lose(rounding);
        } else {
            static_cast<void>(v), static_cast<void>(excess);
        }
    }

    // Record the rounding of an excess. A unit in the last place of the node's own terminals does
    // not matter while part of their flow is left, and is small compared with the flow that they
    // sent if nothing is left.
    void lose(FlowNode v, Capacity rounding) {
        if constexpr (is_float) {
            const Capacity matters = std::abs(rounding) - unit * std::abs(net(v));
            if (matters > 0) solver_.lose(matters);
        } else {
            static_cast<void>(v), static_cast<void>(rounding);
        }
    }

    void lend_beyond(FlowNode v) {
        if constexpr (is_float)
            if (!is_infinite(net(v))) solver_.lend(beyond_terminals(solver_.excess(v), net(v)));
    }

    void write_capacity(FlowArc a, Capacity capacity, Capacity flow) {
        capacity_[static_cast<std::size_t>(a)] = capacity;
        const Capacity residual = capacity - flow;
        solver_.residual(a) = residual;
        if constexpr (is_float) solver_.lose(std::abs(lost_in_sum(capacity, -flow, residual)));
    }
    // Restore lowered capacities before a change, so that the flow is recomputed.
    void lift_limit() {
        if (limit_ < unlimited) write(unlimited);
    }

    // Return the surplus of a node over its terminal on the source side, or its deficit on the sink
    // side. For a hard seed this would be lost in the rounding error of the excess, so it is
    // computed from the inflow.
    Capacity beyond_terminal(FlowNode v, bool on_source) const {
        const Terminals& t = terminals(v);
        if constexpr (is_float) {
            Capacity flowing = 0;
            const auto g = topology().rows();
            for (FlowArc a = g.begin(v); a < g.end(v); ++a)
                flowing += std::abs(solver_.residual(a) - usable(a));
            if (std::abs(solver_.excess(v)) > 1024 * flowing) {
                Inflow in = inflow(v);
                in.add(on_source ? -t.sink : t.source);
                return std::abs(in.value()) <= 4 * unit * flowing ? 0 : in.value();
            }
        }
        return solver_.excess(v) - (on_source ? t.source : -t.sink);
    }

    // Turn the pseudoflow into a flow: each side sends back the flow that it cannot send on. The
    // cut and its value do not change.
    void make_flow(Poll poll) {
        for (const bool on_source : {true, false}) {
            const auto here = [&](FlowNode v) { return solver_.source_side(v) == on_source; };
            const auto beyond = [&](FlowNode v) { return beyond_terminal(v, on_source); };
            Sum all;
            for (FlowNode v = 0; v < nodes(); ++v)
                if (here(v)) all.add(std::max<Capacity>(on_source ? beyond(v) : -beyond(v), 0));
            const Capacity most = all.value();  // no node has to receive more than this
            if (most == 0) continue;
            std::vector<std::pair<Capacity, Capacity>> before(static_cast<std::size_t>(nodes()));
            for (FlowNode v = 0; v < nodes(); ++v) {
                if (!here(v)) continue;
                const Capacity x =
                    on_source ? std::max(beyond(v), -2 * most) : std::min(beyond(v), 2 * most);
                before[static_cast<std::size_t>(v)] = {solver_.excess(v), x};
                solver_.excess(v) = x;
            }
            const auto restore = [&] {
                for (FlowNode v = 0; v < nodes(); ++v) {
                    if (!here(v)) continue;
                    const auto [excess, x] = before[static_cast<std::size_t>(v)];
                    solver_.excess(v) = excess + (solver_.excess(v) - x);
                    if (!is_infinite(net(v)))
                        lose(v, solver_.excess(v) - rounded_excess(v, inflow(v)).first);
                }
            };
            try {
                solver_.balance(on_source, poll);
            } catch (...) {
                restore();
                throw;
            }
            restore();
        }
    }

    // Return the largest imbalance of a node: flow that it receives and cannot send on, or the
    // reverse.
    Capacity unbalanced() const {
        Sum sum;
        for (FlowNode v = 0; v < nodes(); ++v) {
            Inflow beyond = inflow(v);
            const bool in = beyond.value() > 0;
            const Capacity terminal = in ? terminals(v).sink : terminals(v).source;
            if (is_infinite(terminal)) continue;
            beyond.add(in ? -terminal : terminal);
            sum.add(std::max<Capacity>(in ? beyond.value() : -beyond.value(), 0));
        }
        return sum.value();
    }

    MaxFlow<Topology, Capacity> solver_;
    ZeroedArray<Capacity> capacity_;
    ZeroedArray<Terminals> terminals_;
    std::vector<FlowNode> changed_;
    Sum base_, sent_;            // min(source, sink) of all nodes, and the flow sent beyond it
    Capacity total_ = 0, limit_ = unlimited;
    Capacity largest_base_ = 0;  // largest base_ since it was summed
    // the largest change of the flow that is sent since it was last compared with the cut
    Capacity largest_change_ = 0;
    Capacity usual_lost_ = 0;   // the share lost by a flow computed from zero
    std::int64_t counted_ = 0;  // number of changes of nodes since sent_ was summed
    // Whether flow may have been sent, whether the sides are those of a closed cut, and whether
    // capacities have changed since.
    bool started_ = false, solved_ = false, stale_ = false;
};

}  // namespace setwise

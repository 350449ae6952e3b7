// A flow problem that can be changed and solved again: capacities, terminals, and the state of the
// solver that answers for them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "maxflow.hpp"

namespace setwise {

// Neumaier's compensated sum of doubles, the plain sum of integers.
template <class Capacity>
class FlowSum {
  public:
    void add(Capacity x) {
        if constexpr (std::is_floating_point_v<Capacity>) {
            const Capacity sum = sum_ + x;
            lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
            sum_ = sum;
        } else {
            sum_ += x;
        }
    }
    Capacity value() const { return sum_ + lost_; }

  private:
    Capacity sum_ = 0, lost_ = 0;
};

// What a batch needs to know of a graph, whatever its arcs and numbers are.
class AnyFlowGraph {
  public:
    virtual ~AnyFlowGraph() = default;
    virtual void solve(Poll poll) = 0;
    std::mutex& mutex() const { return mutex_; }

  private:
    mutable std::mutex mutex_;
};

// Excesses are kept as source - sink + inflow, so the excess of a node of a true flow lies in
// [-sink, source]; a change of the problem may leave that range, and make_flow brings it back.
template <class Topology, class Capacity>
class FlowGraph final : public AnyFlowGraph {
  public:
    explicit FlowGraph(std::shared_ptr<const Topology> topology)
        : solver_(std::move(topology)),
          capacity_(static_cast<std::size_t>(solver_.topology().arcs())),
          source_(static_cast<std::size_t>(nodes())),
          sink_(static_cast<std::size_t>(nodes())) {}

    FlowGraph(const FlowGraph& other)
        : AnyFlowGraph(),
          solver_(other.solver_),
          capacity_(other.capacity_),
          source_(other.source_),
          sink_(other.sink_),
          changed_(other.changed_),
          total_(other.total_),
          started_(other.started_),
          solved_(other.solved_),
          stale_(other.stale_) {}

    const Topology& topology() const { return solver_.topology(); }
    FlowNode nodes() const { return topology().nodes(); }
    std::int64_t edges() const { return topology().edges(); }
    bool is_current() const { return solved_ && changed_.empty() && !stale_; }

    Capacity capacity(std::int64_t e) const { return at(capacity_, topology().forward(e)); }
    Capacity reverse(std::int64_t e) const { return at(capacity_, topology().reverse(e)); }
    Capacity source(FlowNode v) const { return at(source_, v); }
    Capacity sink(FlowNode v) const { return at(sink_, v); }
    Capacity residual(std::int64_t e) const { return solver_.residual(topology().forward(e)); }
    Capacity residual_back(std::int64_t e) const { return solver_.residual(topology().reverse(e)); }
    Capacity flow(std::int64_t e) const {
        // Each arc has lost what the other has gained; the one that lost is the exact one.
        const Capacity there = capacity(e) - residual(e), back = reverse(e) - residual_back(e);
        return there > 0 ? there : -back;
    }
    bool source_side(FlowNode v) const { return solver_.source_side(v); }

    // The sum of all capacities must fit into an integer, which makes every later sum fit.
    // Announce what will be replaced, then what replaces it; false where it does not fit.
    bool fits(const std::vector<std::pair<const Capacity*, std::int64_t>>& added, Capacity removed) {
        if constexpr (std::is_integral_v<Capacity>) {
            Capacity total = total_ - removed;
            for (const auto& [values, count] : added)
                for (std::int64_t k = 0; k < count; ++k) {
                    if (values[k] > std::numeric_limits<Capacity>::max() - total) return false;
                    total += values[k];
                }
            total_ = total;
        }
        return true;
    }
    Capacity total_of_edges(const std::int64_t* which, std::int64_t count) const {
        Capacity sum = 0;
        for (std::int64_t k = 0; k < count; ++k) {
            const std::int64_t e = which ? which[k] : k;
            sum += capacity(e) + reverse(e);
        }
        return sum;
    }
    Capacity total_of_terminals(const std::int64_t* which, std::int64_t count) const {
        Capacity sum = 0;
        for (std::int64_t k = 0; k < count; ++k) {
            const auto v = static_cast<FlowNode>(which ? which[k] : k);
            sum += source(v) + sink(v);
        }
        return sum;
    }

    // The capacity of all arcs out of a node, or into it.
    Capacity through(FlowNode v, bool out) const {
        Capacity sum = 0;
        const Topology& g = topology();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a)
            sum += at(capacity_, out ? a : g.sister(v, a));
        return sum;
    }

    void set_terminals(FlowNode v, Capacity source, Capacity sink) {
        if (solved_ && this->source(v) == source && this->sink(v) == sink) return;
        at(source_, v) = source;
        at(sink_, v) = sink;
        solver_.excess(v) = source - sink;
        if (started_) solver_.excess(v) += inflow(v);
        if (solved_) changed_.push_back(v);
    }

    void set_capacity(std::int64_t e, Capacity there, Capacity back) {
        const FlowArc a = topology().forward(e), b = topology().reverse(e);
        if (!started_) {
            at(capacity_, a) = solver_.residual(a) = there;
            at(capacity_, b) = solver_.residual(b) = back;
            return;
        }
        const auto [tail, head] = topology().ends(e);
        const Capacity before = flow(e);
        Capacity after = std::min(std::max(before, -back), there);
        // No residual arc may lead out of the source side.
        if (solved_ && source_side(tail) != source_side(head)) after = source_side(tail) ? there : -back;
        at(capacity_, a) = there;
        at(capacity_, b) = back;
        solver_.residual(a) = there - after;
        solver_.residual(b) = back + after;
        if (after == before) {
            stale_ = true;  // the cut stands, its residuals do not
            return;
        }
        solver_.excess(tail) += before - after;
        solver_.excess(head) += after - before;
        if (!solved_) return;
        changed_.push_back(tail);
        changed_.push_back(head);
    }

    void solve(Poll poll) override {
        const bool again = std::exchange(solved_, false);  // stays so if the call is abandoned
        started_ = true;
        if (again)
            solver_.solve_again(changed_, poll);
        else
            solver_.solve(poll);
        changed_.clear();
        stale_ = false;
        solved_ = true;
    }

    // The value of the flow: what leaves the source.
    Capacity value() const {
        FlowSum<Capacity> sum;
        for (FlowNode v = 0; v < nodes(); ++v) {
            if (!source_side(v))
                sum.add(source(v));
            else if (is_infinite(source(v)))
                sum.add(sink(v) - inflow(v));
            else
                sum.add(source(v) - solver_.excess(v));
        }
        return sum.value();
    }

    // The capacity of the cut, from the problem and the sides alone.
    Capacity cut() const {
        FlowSum<Capacity> sum;
        const Topology& g = topology();
        for (FlowNode v = 0; v < nodes(); ++v) {
            if (!source_side(v)) {
                sum.add(source(v));
                continue;
            }
            sum.add(sink(v));
            for (FlowArc a = g.begin(v); a < g.end(v); ++a)
                if (at(capacity_, a) > 0 && !source_side(g.head(v, a))) sum.add(at(capacity_, a));
        }
        return sum.value();
    }

    // Makes a flow of the pseudoflow: each side sends back what it cannot send on. The cut, the
    // value and the optimality stay.
    void make_flow(Poll poll) {
        for (const bool on_source : {true, false}) {
            const auto limit = [&](FlowNode v) { return on_source ? source(v) : -sink(v); };
            bool needed = false;
            for (FlowNode v = 0; v < nodes() && !needed; ++v) {
                const Capacity excess = solver_.excess(v);
                needed = source_side(v) == on_source &&
                         (on_source ? excess > limit(v) : excess < limit(v));
            }
            if (!needed) continue;
            // Where the limit is infinite the excess is too: it stays out of the subtraction.
            for (FlowNode v = 0; v < nodes(); ++v)
                if (source_side(v) == on_source)
                    solver_.excess(v) = is_infinite(limit(v)) ? -limit(v) : solver_.excess(v) - limit(v);
            const auto restore = [&] {
                for (FlowNode v = 0; v < nodes(); ++v)
                    if (source_side(v) == on_source)
                        solver_.excess(v) =
                            is_infinite(limit(v)) ? limit(v) : solver_.excess(v) + limit(v);
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

  private:
    static bool is_infinite(Capacity x) {
        if constexpr (std::is_floating_point_v<Capacity>)
            return std::isinf(x);
        else
            return static_cast<void>(x), false;
    }
    template <class Index>
    static const Capacity& at(const std::vector<Capacity>& values, Index i) {
        return values[static_cast<std::size_t>(i)];
    }
    template <class Index>
    static Capacity& at(std::vector<Capacity>& values, Index i) {
        return values[static_cast<std::size_t>(i)];
    }

    // What comes in over the edges minus what goes out.
    Capacity inflow(FlowNode v) const {
        Capacity sum = 0;
        const Topology& g = topology();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a)
            sum += solver_.residual(a) - at(capacity_, a);
        return sum;
    }

    MaxFlow<Topology, Capacity> solver_;
    std::vector<Capacity> capacity_, source_, sink_;
    std::vector<FlowNode> changed_;
    Capacity total_ = 0;
    // Whether flow may have been sent, whether the sides are those of a closed cut, and whether
    // capacities changed that left the cut minimum.
    bool started_ = false, solved_ = false, stale_ = false;
};

}  // namespace setwise

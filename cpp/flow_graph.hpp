// A flow problem that can be changed and solved again: capacities, terminals, and the state of the
// solver that answers for them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "large_array.hpp"
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

// What a batch needs to know of a problem.
class AnyFlowProblem {
  public:
    virtual ~AnyFlowProblem() = default;
    virtual void solve(Poll poll) = 0;
    std::mutex& mutex() const { return mutex_; }  // to be held during every other call

  private:
    mutable std::mutex mutex_;
};

// A flow problem, whatever its arcs look like. Arrays of nodes have nodes() entries, those of edges
// edges(); `which` names distinct ones, or all of them if it is null.
template <class Capacity>
class FlowProblem : public AnyFlowProblem {
  public:
    virtual std::unique_ptr<FlowProblem> clone() const = 0;
    virtual FlowNode nodes() const = 0;
    virtual std::int64_t edges() const = 0;
    virtual bool is_solved() const = 0;
    virtual bool compact() const = 0;  // whether heads and sisters are computed and not stored

    // False, and nothing is done, if the sum of all capacities would reach 2^63, or 2^1022 for
    // floats, infinite terminals apart. A null `back` stands for zeros.
    virtual bool set_capacities(const std::int64_t* which, std::int64_t count,
                                const Capacity* there, const Capacity* back) = 0;
    virtual bool set_terminals(const std::int64_t* which, std::int64_t count,
                               const Capacity* source, const Capacity* sink) = 0;
    // The capacity of all arcs out of a node, or into it.
    virtual Capacity through(FlowNode v, bool out) const = 0;

    // Of the present problem, so to be called while it is solved: read_flows writes the state.
    virtual Capacity value() const = 0;  // of the flow: what leaves the source
    virtual Capacity cut() const = 0;    // the cut's capacity, from the problem and the sides alone
    virtual void read_sides(bool* on_source_side) const = 0;
    virtual void read_flows(Capacity* flows, Capacity* residuals, Poll poll) = 0;  // either may be null
    virtual void read_problem(Capacity* there, Capacity* back, Capacity* source,
                              Capacity* sink) const = 0;
    virtual void read_edges(std::int64_t* ends) const = 0;
};

// Excesses are kept as source - sink + inflow, so the excess of a node of a true flow lies in
// [-sink, source]; a change of the problem may leave that range, and make_flow brings it back.
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
        for (std::int64_t k = 0; k < count; ++k)
            total -= capacity(topology().forward(edge(k))) + capacity(topology().reverse(edge(k)));
        for (std::int64_t k = 0; k < count; ++k)
            if (!add_checked(total, there[k]) || !add_checked(total, back ? back[k] : 0))
                return false;
        total_ = total;
        for (std::int64_t k = 0; k < count; ++k)
            set_capacity(edge(k), there[k], back ? back[k] : Capacity(0));
        return true;
    }

    bool set_terminals(const std::int64_t* which, std::int64_t count, const Capacity* source,
                       const Capacity* sink) override {
        const auto vertex = [&](std::int64_t k) { return static_cast<FlowNode>(which ? which[k] : k); };
        Capacity total = total_;
        for (std::int64_t k = 0; k < count; ++k)
            total -= finite(terminals(vertex(k)).source) + finite(terminals(vertex(k)).sink);
        for (std::int64_t k = 0; k < count; ++k)
            if (!add_checked(total, finite(source[k])) || !add_checked(total, finite(sink[k])))
                return false;
        total_ = total;
        for (std::int64_t k = 0; k < count; ++k) set_terminals_of(vertex(k), {source[k], sink[k]});
        return true;
    }

    Capacity through(FlowNode v, bool out) const override {
        Capacity sum = 0;
        const auto g = topology().rows();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a)
            sum += capacity(out ? a : g.sister(v, a));
        return sum;
    }

    void solve(Poll poll) override {
        const bool again = std::exchange(solved_, false);  // stays so if the call is abandoned
        started_ = true;
        if (again) {
            value_.add(solver_.solve_again(changed_, poll));
        } else {
            solver_.solve(poll);
            value_ = {};
            for (FlowNode v = 0; v < nodes(); ++v) value_.add(from_source(v));
        }
        changed_.clear();
        stale_ = false;
        solved_ = true;
    }

    Capacity value() const override { return value_.value(); }

    Capacity cut() const override {
        FlowSum<Capacity> sum;
        const auto g = topology().rows();
        for (FlowNode v = 0; v < nodes(); ++v) {
            if (!solver_.source_side(v)) {
                sum.add(terminals(v).source);
                continue;
            }
            sum.add(terminals(v).sink);
            for (FlowArc a = g.begin(v); a < g.end(v); ++a)
                if (capacity(a) > 0 && !solver_.source_side(g.head(v, a))) sum.add(capacity(a));
        }
        return sum.value();
    }

    void read_sides(bool* on_source_side) const override {
        for (FlowNode v = 0; v < nodes(); ++v) on_source_side[v] = solver_.source_side(v);
    }

    void read_flows(Capacity* flows, Capacity* residuals, Poll poll) override {
        make_flow(poll);
        for (std::int64_t e = 0; e < edges(); ++e) {
            if (flows) flows[e] = flow(e);
            if (!residuals) continue;
            residuals[2 * e] = solver_.residual(topology().forward(e));
            residuals[2 * e + 1] = solver_.residual(topology().reverse(e));
        }
    }

    void read_problem(Capacity* there, Capacity* back, Capacity* source,
                      Capacity* sink) const override {
        for (std::int64_t e = 0; e < edges(); ++e) {
            there[e] = capacity(topology().forward(e));
            back[e] = capacity(topology().reverse(e));
        }
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
    struct Terminals {
        Capacity source = 0, sink = 0;
    };

    FlowGraph(const FlowGraph& other)
        : FlowProblem<Capacity>(),
          solver_(other.solver_),
          capacity_(other.capacity_),
          terminals_(other.terminals_),
          changed_(other.changed_),
          value_(other.value_),
          total_(other.total_),
          started_(other.started_),
          solved_(other.solved_),
          stale_(other.stale_) {}

    // While some capacities are replaced, sums of old and new ones occur: for floats a quarter of
    // what there is keeps those finite, and the rounding of the total out of it.
    static constexpr Capacity most() {
        constexpr Capacity largest = std::numeric_limits<Capacity>::max();
        return std::is_floating_point_v<Capacity> ? largest / 4 : largest;
    }
    static bool add_checked(Capacity& total, Capacity x) {
        if (x > most() - total) return false;
        total += x;
        return true;
    }
    static bool is_infinite(Capacity x) {
        if constexpr (std::is_floating_point_v<Capacity>)
            return std::isinf(x);
        else
            return static_cast<void>(x), false;
    }

    static Capacity finite(Capacity x) { return is_infinite(x) ? Capacity(0) : x; }

    const Topology& topology() const { return solver_.topology(); }
    Capacity capacity(FlowArc a) const { return capacity_[static_cast<std::size_t>(a)]; }
    const Terminals& terminals(FlowNode v) const { return terminals_[static_cast<std::size_t>(v)]; }

    // What comes in over the edges minus what goes out.
    Capacity inflow(FlowNode v) const {
        Capacity sum = 0;
        const auto g = topology().rows();
        for (FlowArc a = g.begin(v); a < g.end(v); ++a) sum += solver_.residual(a) - capacity(a);
        return sum;
    }

    // What the source sends to a node. An augmentation adds to the sum of these what it sends, so
    // that a second solution costs no pass over all nodes.
    Capacity from_source(FlowNode v) const {
        const Terminals& t = terminals(v);
        if (!(solver_.excess(v) > 0)) return t.source;
        return is_infinite(t.source) ? t.sink - inflow(v) : t.source - solver_.excess(v);
    }

    Capacity flow(std::int64_t e) const {
        const FlowArc a = topology().forward(e), b = topology().reverse(e);
        const Capacity there = capacity(a) - solver_.residual(a);
        return there > 0 ? there : solver_.residual(b) - capacity(b);
    }

    void set_terminals_of(FlowNode v, Terminals t) {
        Terminals& before = terminals_[static_cast<std::size_t>(v)];
        if (solved_ && before.source == t.source && before.sink == t.sink) return;
        if (solved_) value_.add(-from_source(v));
        before = t;
        solver_.excess(v) = t.source - t.sink;
        if (started_) solver_.excess(v) += inflow(v);
        if (!solved_) return;
        value_.add(from_source(v));
        changed_.push_back(v);
    }

    void set_capacity(std::int64_t e, Capacity there, Capacity back) {
        const FlowArc a = topology().forward(e), b = topology().reverse(e);
        if (!started_) {
            write_capacity(a, there, Capacity(0));
            write_capacity(b, back, Capacity(0));
            return;
        }
        const auto [tail, head] = topology().ends(e);
        const Capacity before = flow(e);
        Capacity after = std::min(std::max(before, -back), there);
        // No residual arc may lead out of the source side.
        const bool first = solver_.source_side(tail), second = solver_.source_side(head);
        if (solved_ && first != second) after = first ? there : -back;
        const bool moved = after != before;
        stale_ = true;
        if (solved_ && moved) {
            value_.add(-from_source(tail));
            value_.add(-from_source(head));
        }
        write_capacity(a, there, after);
        write_capacity(b, back, -after);
        if (!moved) return;
        solver_.excess(tail) += before - after;
        solver_.excess(head) += after - before;
        if (!solved_) return;
        value_.add(from_source(tail));
        value_.add(from_source(head));
        changed_.insert(changed_.end(), {tail, head});
    }

    void write_capacity(FlowArc a, Capacity capacity, Capacity flow) {
        capacity_[static_cast<std::size_t>(a)] = capacity;
        solver_.residual(a) = capacity - flow;
    }

    // Makes a flow of the pseudoflow: each side sends back what it cannot send on. The cut, the
    // value and the optimality stay.
    void make_flow(Poll poll) {
        for (const bool on_source : {true, false}) {
            const auto here = [&](FlowNode v) { return solver_.source_side(v) == on_source; };
            const auto limit = [&](FlowNode v) {
                return on_source ? terminals(v).source : -terminals(v).sink;
            };
            bool needed = false;
            for (FlowNode v = 0; v < nodes() && !needed; ++v)
                needed = here(v) && (on_source ? solver_.excess(v) > limit(v)
                                               : solver_.excess(v) < limit(v));
            if (!needed) continue;
            // Where the limit is infinite the excess is too, and stays out of the subtraction.
            for (FlowNode v = 0; v < nodes(); ++v)
                if (here(v))
                    solver_.excess(v) =
                        is_infinite(limit(v)) ? -limit(v) : solver_.excess(v) - limit(v);
            const auto restore = [&] {
                for (FlowNode v = 0; v < nodes(); ++v)
                    if (here(v))
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

    MaxFlow<Topology, Capacity> solver_;
    LargeArray<Capacity> capacity_;
    LargeArray<Terminals> terminals_;
    std::vector<FlowNode> changed_;
    FlowSum<Capacity> value_;
    Capacity total_ = 0;
    // Whether flow may have been sent, whether the sides are those of a closed cut, and whether
    // capacities changed since.
    bool started_ = false, solved_ = false, stale_ = false;
};

// The graph of an edge list, in the most compact form that holds it.
template <class Capacity, class Index>
std::unique_ptr<FlowProblem<Capacity>> make_flow_graph(std::int64_t n, EdgeList<Index> edges) {
    std::unique_ptr<FlowProblem<Capacity>> graph;
    const auto offer = [&](auto topology) {
        if (topology)
            graph = std::make_unique<
                FlowGraph<typename decltype(topology)::value_type, Capacity>>(std::move(*topology));
        return graph != nullptr;
    };
    if (!offer(OffsetTopology<2>::recognise(n, edges)) &&
        !offer(OffsetTopology<3>::recognise(n, edges)) &&
        !offer(OffsetTopology<4>::recognise(n, edges)))
        graph = std::make_unique<FlowGraph<CsrTopology, Capacity>>(CsrTopology(n, edges));
    return graph;
}

}  // namespace setwise

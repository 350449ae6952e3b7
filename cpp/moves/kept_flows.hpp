// Flows over the whole field, one per label, for expansions that may change much of it.
//
// The graph is built once. The flow of a label is kept for the next expansion to it. It is then
// repaired where labels have changed, and the solution continues from there, as in Alahari, Kohli,
// Torr, "Reduce, reuse & recycle: efficiently solving multi-label MRFs" (CVPR 2008). Variables that
// already have the target label are nodes without arcs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "flows/maxflow.hpp"
#include "moves/move_field.hpp"
#include "moves/move_graph.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// The amount that an edge adds to the excess of its end i, in an expansion to `target`, and the
// capacity of the arc from there. Each end takes half of the joint cost of the two switches, so
// that capacities are equal both ways.
struct EdgeHalf {
    double excess, capacity;

    EdgeHalf(const MoveField& field, std::int32_t e, Variable i, LabelIndex target) {
        const LabelIndex mine = field.label(i), other = field.label(field.pairs.neighbor(e));
        const double stays = mine == target ? 0.0 : 1.0, moves = other == target ? 0.0 : stays;
        if (field.pairs.is_table(e)) {
            set_table(field.pairs, e, mine, other, target);
            capacity *= moves;
            return;
        }
        const double half = 0.5 * field.pairs.range(e), dissent = mine == other ? 0.0 : half;
        excess = moves * half - stays * (dissent + half);
        capacity = moves * (2.0 * half - dissent);
    }

  private:
    // If one end already has the target, t00 = t01 and t10 = t11, or t00 = t10 and t01 = t11.
    void set_table(const Pairs& pairs, std::int32_t e, LabelIndex mine, LabelIndex other,
                   LabelIndex target) {
        const double t00 = pairs.cost(e, mine, other), t01 = pairs.cost(e, mine, target);
        const double t10 = pairs.cost(e, target, other), t11 = pairs.cost(e, target, target);
        excess = 0.5 * ((t10 - t00) + (t11 - t01));
        capacity = std::max(0.0, 0.5 * ((t01 - t00) + (t10 - t11)));
    }
};

// The amounts that functions of counts, taken as linear, add to the excess of a variable.
struct NoTilts {
    static constexpr bool any = false;
    double operator()(Variable) const { return 0.0; }  // the whole amount of a variable
    double change(Variable) const { return 0.0; }      // the change since the stored flow
};

class KeptFlows {
  public:
    explicit KeptFlows(const MoveField& field) : field_(field), pairs_(field.pairs) {
        const std::size_t bytes =
            32 * at(field.variables()) + 8 * at(pairs_.entries()) + 8 * at(field.functions());
        kept_.resize(bytes * at(field.labels()) <= most_bytes ? at(field.labels()) : 1);
        stamp_.assign(at(field.variables()), 0);
    }

    // Return whether there is a flow to continue from.
    bool has(LabelIndex target) const { return kept_.size() > 1 && kept_[at(target)].is_valid; }
    double excess(LabelIndex target, Variable i) const { return of(target).flow->excess(i); }

    // Return the tilts of a label's flow, for each (layer, region, group), to be written before it
    // is solved.
    std::vector<double>& tilts(LabelIndex target) {
        kept_of(target).tilts.resize(at(field_.functions()), 0.0);
        return kept_of(target).tilts;
    }

    // Call take(i) for the variables of the smallest best set of switches, those from which a
    // remaining deficit can still be reached. take returns whether i is new. Return an upper bound
    // on the amount by which another set is better, because of rounding. A flow whose rounding
    // error has become too large since it was computed from zero is recomputed.
    template <class Tilts, class Take>
    double solve(LabelIndex target, Poll poll, const Tilts& tilts, Take take) {
        Kept& kept = kept_of(target);
        if (!kept.flow) kept.flow = std::make_unique<Flow>(graph());
        Flow& flow = *kept.flow;
        if (std::exchange(kept.is_valid, false) && unproved(flow, kept.sent) == 0.0) {
            mend(flow, target, kept.since, tilts);
            if constexpr (Tilts::any) tilt(flow, tilts);
            flow.solve_again(fresh_, poll);
            // Without tilts, nodes with an old deficit have been switched.
            if constexpr (!Tilts::any) return take_switches(kept, fresh_, take);
        } else {
            write(flow, target, tilts);
            kept.sent = flow.solve(poll).value();
        }
        return take_switches(kept, all(), take);
    }
    // Solve again from the flow just solved, when only tilts have changed.
    template <class Tilts, class Take>
    double solve_again(LabelIndex target, Poll poll, const Tilts& tilts, Take take) {
        Kept& kept = kept_of(target);
        fresh_.clear();
        ++now_;
        tilt(*kept.flow, tilts);
        kept.flow->solve_again(fresh_, poll);
        return take_switches(kept, all(), take);
    }

    // Keep the flow just solved, whose switches were made. `since` is the number of changes before
    // these switches. With tilts, any other switches may have been made.
    void keep(LabelIndex target, std::int64_t since) {
        if (kept_.size() == 1) return;
        kept_[at(target)].is_valid = true;
        kept_[at(target)].since = since;
    }

  private:
    // Flows of all labels are kept if they take at most 256 MiB; otherwise one flow is used for all
    // labels. Not tuned.
    static constexpr std::size_t most_bytes = std::size_t(1) << 28;

    using Flow = MaxFlow<MoveGraph, double>;
    struct Kept {
        std::unique_ptr<Flow> flow;
        bool is_valid = false;
        std::int64_t since = 0;
        double sent = 0.0;  // flow sent when it was computed from zero
        std::vector<double> tilts;
    };
    const Kept& of(LabelIndex target) const { return kept_[kept_.size() > 1 ? at(target) : 0]; }
    Kept& kept_of(LabelIndex target) { return kept_[kept_.size() > 1 ? at(target) : 0]; }

    struct All {
        Variable n;
        struct Each {
            Variable i;
            Variable operator*() const { return i; }
            Each& operator++() {
                ++i;
                return *this;
            }
            bool operator!=(const Each& other) const { return i != other.i; }
        };
        Each begin() const { return {0}; }
        Each end() const { return {n}; }
    };
    All all() const { return {field_.variables()}; }

    // Look for remaining deficits among `where`.
    template <class Where, class Take>
    double take_switches(const Kept& kept, const Where& where, Take take) {
        const Flow& flow = *kept.flow;
        stack_.clear();
        const auto visit = [&](Variable i) {
            if (take(i)) stack_.push_back(i);
        };
        for (const Variable i : where)
            if (flow.excess(i) < 0) visit(i);
        const auto rows = flow.topology().rows();
        while (!stack_.empty()) {
            const Variable i = stack_.back();
            stack_.pop_back();
            for (FlowArc a = rows.begin(i); a < rows.end(i); ++a)
                if (flow.residual(rows.sister(i, a)) > 0) visit(rows.head(i, a));
        }
        return unproved(flow, kept.sent);
    }

    std::shared_ptr<const MoveGraph> graph() {
        if (graph_) return graph_;
        graph_ = std::make_shared<MoveGraph>();
        graph_->clear(at(field_.variables()), at(pairs_.entries()));
        for (Variable i = 0; i < field_.variables(); ++i) {
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                graph_->add(pairs_.neighbor(e));
                if (pairs_.neighbor(e) < i) graph_->join(e, pairs_.sister(e));
            }
            graph_->close_row();
        }
        return graph_;
    }

    template <class Tilts>
    void write(Flow& flow, LabelIndex target, const Tilts& tilts) const {
        flow.forget_lost();
        for (Variable i = 0; i < field_.variables(); ++i) {
            double excess = field_.unary(i, target) - field_.unary_now(i);
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                const EdgeHalf half(field_, e, i, target);
                excess += half.excess;
                flow.residual(e) = half.capacity;
            }
            flow.excess(i) = excess + tilts(i);
        }
    }

    // Give the edges of changed variables their new capacities and as much of their flow as these
    // allow, then give their ends the excess that follows.
    template <class Tilts>
    void mend(Flow& flow, LabelIndex target, std::int64_t since, const Tilts& tilts) {
        fresh_.clear();
        ++now_;
        for (std::int64_t c = since; c < field_.now(); ++c) refresh(field_.changes()[at(c)]);
        const std::size_t changed = fresh_.size();
        for (std::size_t k = 0; k < changed; ++k) {
            const Variable i = fresh_[k];
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                refresh(pairs_.neighbor(e));
                const double capacity = EdgeHalf(field_, e, i, target).capacity;
                const double passed = std::clamp(passing(flow, e), -capacity, capacity);
                flow.residual(e) = capacity - passed;
                flow.residual(pairs_.sister(e)) = capacity + passed;
            }
        }
        for (const Variable i : fresh_) {
            double excess = field_.unary(i, target) - field_.unary_now(i);
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
                excess += EdgeHalf(field_, e, i, target).excess - passing(flow, e);
            flow.excess(i) = excess + tilts(i);
        }
        // No arc may lead from the source side to the sink side of the last cut. An edge with an
        // end that is not fresh has not changed.
        for (const Variable i : fresh_)
            for (std::int32_t e = pairs_.begin(i); !flow.source_side(i) && e < pairs_.end(i); ++e) {
                const Variable j = pairs_.neighbor(e);
                if (!flow.source_side(j)) continue;
                const double capacity = std::exchange(flow.residual(pairs_.sister(e)), 0.0);
                flow.residual(e) += capacity;
                flow.excess(i) += capacity;
                flow.excess(j) -= capacity;
            }
    }
    // Add the changes of the tilts to the excesses that are not fresh. Rounding counts as in the
    // flow.
    template <class Tilts>
    void tilt(Flow& flow, const Tilts& tilts) {
        for (Variable i = 0; i < field_.variables(); ++i) {
            if (stamp_[at(i)] == now_) continue;
            const double change = tilts.change(i);
            if (change == 0.0) continue;
            const double before = flow.excess(i), after = before + change;
            if (std::abs(after) <= 16 * std::abs(change))
                flow.lose(std::abs((before - after) + change));
            flow.excess(i) = after;
            if (flow.source_side(i) ? after < 0 : after > 0) fresh_.push_back(i);
        }
    }
    // Return the flow along an entry's arc, whose two directions have had the same capacity.
    double passing(const Flow& flow, std::int32_t e) const {
        return 0.5 * (flow.residual(pairs_.sister(e)) - flow.residual(e));
    }
    void refresh(Variable i) {
        if (std::exchange(stamp_[at(i)], now_) != now_) fresh_.push_back(i);
    }

    const MoveField& field_;
    const Pairs& pairs_;
    std::shared_ptr<MoveGraph> graph_;
    std::vector<Kept> kept_;           // one per label, or a single one that is rewritten each time
    std::vector<Variable> fresh_, stack_;
    std::vector<std::int64_t> stamp_;  // the last repair in which a variable was fresh
    std::int64_t now_ = 0;
};

}  // namespace setwise

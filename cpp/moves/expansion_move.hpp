// Expansion moves, each solved over the part of the field that it can change.
//
// See Boykov, Veksler, Zabih, "Fast approximate energy minimization via graph cuts" (PAMI 2001),
// and Delong, Osokin, Isack, Boykov, "Fast approximate energy minimization with label costs" (IJCV
// 2012).
//
// A flow over a part S of the graph, without the arcs that leave S, is a flow of the whole graph.
// If S contains all deficits and no arc leads from outside S to the nodes that still reach a
// deficit, their cut is the minimum of the whole graph. Otherwise S grows around these nodes. A
// node has a deficit only if its unary energy or a neighbour's label favours the target, which
// holds for few nodes.
//
// Label costs: the cost of a label is first taken as constant. The excess that remains at its
// variables is the least cost of switching all of them. If this exceeds the label cost, the cost is
// indeed constant. Otherwise it becomes part of the cut, with an auxiliary node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moves/bracketed_move.hpp"
#include "moves/kept_flows.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class ExpansionMove : public BracketedMove {
  public:
    explicit ExpansionMove(MoveField& field)
        : BracketedMove(field), stamp_(at(field.variables()), 0) {
        is_expansion_ = true;
        for (const Layer& layer : field.layers()) n_cost_layers_ += layer.charge == Charge::cost;
        is_lazy_ = n_cost_layers_ == field.layers().size();
        last_.assign(at(field.labels()), {});
    }

    // Make the best expansion to label a. Return the change of the energy, which is never positive.
    double expand(LabelIndex a, Poll poll) {
        Last& last = last_[at(a)];
        if (last.seen == field_.now()) return 0.0;
        target_ = a;
        is_charged_.assign(at(field_.functions()), 0);
        any_charged_ = false;
        // The cost of an unused label is due as soon as one variable switches to it. The best
        // answer is either the best one without this cost, or not to switch at all.
        double toll = 0.0;
        for (const Layer& layer : field_.layers()) {
            const std::int32_t g = layer.groups[at(a)];
            if (layer.charge == Charge::cost && g >= 0 && layer.counts[at(g)] == 0)
                toll += layer.costs[at(g)];
        }
        double made = 0.0;
        bool solved = false;
        if (is_lazy_ || toll > 0.0) {
            offer(last.is_best ? last.seen : never);
        } else {
            is_whole_ = false;
            made = bracket(poll);
            solved = active_.empty();
            eliminate();
            begin_rounds();
        }
        while (!solved) solved = round(poll);
        const bool wanted = best_change_.value() < -tolerance_;
        const std::int64_t since = field_.now();
        const bool stays = active_.empty();
        const double change = made + take_best(toll);
        if (is_whole_ && (stays || change < 0.0)) flows_.keep(target_, since);
        for (const Variable i : settled_) local_[at(i)] = nothing;
        settled_.clear();
        last = {field_.now(), change < 0.0 || !wanted};
        return change;
    }

  private:
    static constexpr std::int64_t never = -1;
    static constexpr std::int32_t settled = -2;  // a value in local_

    struct Last {
        // number of changes before the end of the last expansion to a label
        std::int64_t seen = never;
        // whether the labelling was then the best of the expansion, apart from tolls
        bool is_best = false;
    };

    bool round(Poll poll) {
        if (is_whole_) {
            unproved_ = flows_.solve(target_, poll, NoTilts{}, [&](Variable i) { return take(i); });
            begin_rounds();
            switched_.assign(active_.size(), 1);
        } else {
            build([&](Variable j) { return is_lazy_ && may_switch(j); });
            solve(poll);
            if (is_lazy_ && grow()) return false;
        }
        if (assess(n_cost_layers_ > 0 && is_lazy_ ? savings() : 0.0)) return true;
        if (is_lazy_ && charge_costs()) {
            offer(never);
            return false;
        }
        return !refine();
    }

    // ------------------------------------------------------------------ who takes part

    void offer(std::int64_t seen) {
        leave_out_all();
        levels_ = halo;
        is_whole_ = is_lazy_ && !any_charged_ && flows_.has(target_);
        if (is_whole_) return;
        if (!is_lazy_) {
            for (Variable i = 0; i < field_.variables(); ++i) consider(i);
            eliminate();
        } else {
            for (const Layer& layer : field_.layers()) consider_charged(layer);
            const std::size_t many = at(field_.variables()) / (any_charged_ ? 1 : 16);
            const double* row = field_.unary_row(target_);
            for (Variable i = 0; i < field_.variables() && active_.size() <= many; ++i)
                if (row[i] - field_.unary_now(i) < field_.dissent(i) && has_deficit(i)) consider(i);
            is_whole_ = active_.size() > many;
            if (is_whole_) {
                leave_out_all();
                return;
            }
            widen(0);
            if (seen != never) leave_out_settled(seen);
        }
        begin_rounds();
    }
    void consider(Variable i) {
        if (local_[at(i)] < 0 && may_switch(i)) take(i);
    }
    void consider_charged(const Layer& layer) {
        for (Variable i = 0; any_charged_ && i < field_.variables(); ++i) {
            const std::int32_t g = layer.groups[at(field_.label(i))];
            if (g >= 0 && !is_deferred(layer, g)) consider(i);
        }
    }
    bool has_deficit(Variable i) const {
        return field_.label(i) != target_ && shared_excess(i) < 0;
    }
    // Add neighbours of the active variables from place `begin` on, level by level.
    void widen(std::size_t begin) {
        for (int level = 0; level < levels_; ++level) {
            const std::size_t end = active_.size();
            for (std::size_t k = begin; k < end; ++k) consider_neighbors(active_[k]);
            begin = end;
        }
    }
    void consider_neighbors(Variable i) {
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) consider(pairs_.neighbor(e));
    }

    // The energy is submodular in the switches, so a switch gains most when all others switch too.
    // If the switch is a loss even then, the variable keeps its label.
    bool may_switch(Variable i) const {
        const LabelIndex own_label = field_.label(i);
        if (own_label == target_) return false;
        double margin = field_.unary(i, target_) - field_.unary_now(i) - field_.pair_range(i);
        for (const Layer& layer : field_.layers()) margin += least_slope(layer, i, own_label);
        return margin < 0;
    }
    double least_slope(const Layer& layer, Variable i, LabelIndex own_label) const {
        const std::int64_t r = layer.region(i);
        const std::int32_t from = layer.groups[at(own_label)], to = layer.groups[at(target_)];
        if (r < 0 || from == to) return 0.0;
        if (layer.charge == Charge::cost)
            return from >= 0 && !is_deferred(layer, from) ? -layer.costs[at(from)] : 0.0;
        const double* h = layer.table + layer.starts[r];
        const std::int64_t size = layer.sizes[at(r)];
        return (from >= 0 ? h[0] - h[1] : 0.0) + (to >= 0 ? h[size] - h[size - 1] : 0.0);
    }

    // A connected part of the active variables has nothing to gain if neither its labels nor those
    // of its neighbours have changed since the last expansion to this label.
    void leave_out_settled(std::int64_t seen) {
        ++stamp_now_;
        for (std::int64_t c = seen; c < field_.now(); ++c) {
            const Variable i = field_.changes()[at(c)];
            stamp_[at(i)] = stamp_now_;
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
                stamp_[at(pairs_.neighbor(e))] = stamp_now_;
        }
        all_.swap(active_);
        active_.clear();
        for (const Variable i : all_) local_[at(i)] = settled;
        for (const Variable i : all_)
            if (stamp_[at(i)] == stamp_now_) consider_settled(i);
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
                consider_settled(pairs_.neighbor(e));
        }
        settled_.insert(settled_.end(), all_.begin(), all_.end());
    }
    void consider_settled(Variable i) {
        if (local_[at(i)] == settled) take(i);
    }

    // Enlarge the part if its answer reaches its border. Return whether it was enlarged.
    bool grow() {
        const std::size_t before = active_.size();
        for (std::size_t k = 0; k < before; ++k)
            if (switched_[k]) consider_neighbors(active_[k]);
        if (active_.size() == before) return false;
        widen(before);
        levels_ *= 2;
        begin_rounds();
        return true;
    }

    // Return the cost of a switch of i when all other active variables switch.
    double margin(Variable i) {
        const LabelIndex mine = field_.label(i);
        double cost = field_.unary(i, target_) - field_.unary_now(i);
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
            const Variable j = pairs_.neighbor(e);
            const LabelIndex other = local_[at(j)] < 0 ? field_.label(j) : target_;
            cost += pairs_.cost(e, target_, other) - pairs_.cost(e, mine, other);
        }
        known_functions_at(i, mine, [&](const CountFunction& f) { cost += f.last_slope(); });
        return cost;
    }
    // Remove variables that keep their labels, repeatedly while enough are removed: the fewer
    // variables may switch, the less the others gain.
    void eliminate() {
        collect_functions();
        for (std::size_t before = active_.size() + 1; 20 * active_.size() < 19 * before;) {
            before = active_.size();
            std::size_t kept = 0;
            for (const Variable i : active_) {
                if (margin(i) < 0) {
                    active_[kept++] = i;
                    continue;
                }
                local_[at(i)] = nothing;
                known_functions_at(i, field_.label(i), [](CountFunction& f) { f.drop_member(); });
            }
            active_.resize(kept);
        }
        for (std::size_t k = 0; k < active_.size(); ++k)
            local_[at(active_[k])] = static_cast<std::int32_t>(k);
    }

    // ------------------------------------------------------------------ label costs

    // Visit the costs that could be saved and are taken as constant.
    template <class Visit>
    void for_deferred(Visit visit) {
        for (const Layer& layer : field_.layers())
            for (std::int32_t g = 0; g < layer.n_groups; ++g)
                if (g != layer.groups[at(target_)] && layer.counts[at(g)] > 0 &&
                    is_deferred(layer, g))
                    visit(at(layer.first + g), layer.costs[at(g)]);
    }
    // Return the most that can be saved by removing labels whose costs are not part of the cut.
    double savings() {
        resistance_.assign(at(field_.functions()), 0.0);
        const double* row = field_.unary_row(target_);
        for (const Layer& layer : field_.layers())
            for (Variable i = 0; i < field_.variables(); ++i) {
                const std::int32_t g = layer.groups[at(field_.label(i))];
                if (g >= 0) resistance_[at(layer.first + g)] += std::max(0.0, excess_left(i, row));
            }
        double most = 0.0;
        for_deferred([&](std::size_t f, double cost) {
            resistance_[f] /= static_cast<double>(n_cost_layers_);  // each layer has an equal share
            most += std::max(0.0, cost - resistance_[f]);
        });
        return most;
    }
    double excess_left(Variable i, const double* row) const {
        if (is_whole_) return flows_.excess(target_, i);
        const std::int32_t place = local_[at(i)];
        if (place >= 0) return switched_[at(place)] ? 0.0 : excess_[at(place)];
        if (place == settled) return 0.0;
        // Part of the excess of a variable that keeps its label may come from its edges, and part
        // is needed for the costs that are already part of the cut.
        double excess = row[i] - field_.unary_now(i);
        excess -= excess >= field_.pair_range(i) ? field_.pair_range(i) : field_.dissent(i);
        for (const Layer& layer : field_.layers()) {
            const std::int32_t g = layer.groups[at(field_.label(i))];
            if (g >= 0 && !is_deferred(layer, g)) excess -= layer.costs[at(g)];
        }
        return excess;
    }
    // Make those costs part of the cut. Return whether there were any.
    bool charge_costs() {
        bool any = false;
        for_deferred([&](std::size_t f, double cost) {
            if (cost > resistance_[f]) is_charged_[f] = any = true;
        });
        any_charged_ |= any;
        return any;
    }

    std::size_t n_cost_layers_ = 0;
    std::vector<Last> last_;
    int levels_ = halo;
    bool is_whole_ = false, any_charged_ = false;
    std::vector<Variable> all_, settled_;
    std::vector<std::int64_t> stamp_;
    std::int64_t stamp_now_ = 0;
    std::vector<double> resistance_;
};

}  // namespace setwise

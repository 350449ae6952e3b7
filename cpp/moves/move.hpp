// One move: every active variable is offered two labels, and the best of all answers is a cut.
//
// A function of a count is concave in the number k of its m active members that switch. So it is
// linear plus a sum of hats d min(k (m - q), q (m - k)) / m over its breakpoints q, with one
// auxiliary node per hat. A power has a breakpoint at every count. The move interpolates between a
// few of them. The cut then minimises a function that is never above the energy. If the counts of
// its answer are breakpoints, the answer is the best one. Otherwise these counts become
// breakpoints, and the cut is repeated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "flows/maxflow.hpp"
#include "moves/move_field.hpp"
#include "moves/move_graph.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class Move {
  public:
    explicit Move(MoveField& field)
        : field_(field),
          pairs_(field.pairs),
          local_(at(field.variables()), nothing),
          slot_(at(field.functions()), nothing),
          arc_of_entry_(at(pairs_.entries())),
          graph_(std::make_shared<MoveGraph>()),
          flow_(graph_) {}

  protected:
    static constexpr std::int32_t nothing = -1;

    // ------------------------------------------------------------------ functions of counts

    // Call visit(layer, region, group, the other label's group, whether a switch adds to the count)
    // for each function that the switch of i from its first label to the target changes.
    template <class Visit>
    void functions_at(Variable i, LabelIndex own, Visit visit) {
        for (const Layer& layer : field_.layers()) {
            const std::int64_t r = layer.region(i);
            const std::int32_t from = layer.groups[at(own)], to = layer.groups[at(target_)];
            if (r < 0 || from == to) continue;
            if (from >= 0 && !is_deferred(layer, from)) visit(layer, r, from, to, false);
            const bool once =
                layer.charge == Charge::robust || (is_expansion_ && layer.charge == Charge::cost);
            if (to >= 0 && !once) visit(layer, r, to, from, true);
        }
    }
    template <class Visit>
    void known_functions_at(Variable i, LabelIndex own, Visit visit) {
        if (functions_.empty()) return;
        functions_at(i, own,
                     [&](const Layer& layer, std::int64_t r, std::int32_t g, std::int32_t, bool) {
                         visit(functions_[at(slot_[at(layer.first) + layer.place(r, g)])]);
                     });
    }
    // Return whether a cost is taken as constant, because its last member is not expected to
    // switch.
    bool is_deferred(const Layer& layer, std::int32_t g) const {
        return is_lazy_ && !is_charged_[at(layer.first + g)];
    }

    void collect_functions() {
        forget_functions();
        if (field_.layers().empty()) return;
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const bool is_switched = field_.label(i) == target_;
            functions_at(i, own(i),
                         [&](const Layer& layer, std::int64_t r, std::int32_t g, std::int32_t other,
                             bool rises) {
                             std::int32_t& slot = slot_[at(layer.first) + layer.place(r, g)];
                             if (slot == nothing) {
                                 slot = static_cast<std::int32_t>(functions_.size());
                                 functions_.push_back(CountFunction(layer, r, g, other, rises));
                             }
                             functions_[at(slot)].add_member(is_switched);
                         });
        }
    }
    void forget_functions() {
        for (const CountFunction& f : functions_)
            slot_[at(f.layer->first) + f.layer->place(f.region, f.group)] = nothing;
        functions_.clear();
    }

    LabelIndex own(Variable i) const { return is_expansion_ ? field_.label(i) : first_; }

    // ------------------------------------------------------------------ the graph

    void begin_rounds() {
        collect_functions();
        for (CountFunction& f : functions_) f.start_breaks();
        best_.assign(active_.size(), 0);
        if (!is_expansion_)
            for (std::size_t k = 0; k < active_.size(); ++k)
                best_[k] = field_.label(active_[k]) == target_;
        best_change_ = {};
        is_bounded_ = false;
        tolerance_ = 0.0;
    }

    // Build the graph. Each end of an edge takes half of the joint cost of the two switches, so
    // that a row can be built without reading the other: residual capacities are equal both ways.
    // `is_outside` tells the variables that may switch but are not active: their arcs are omitted.
    template <class IsOutside>
    void build(IsOutside is_outside) {
        lay_graph(lay_hats(), is_outside);
    }
    // Build the graph with linear functions, given by their tilts.
    template <class IsOutside>
    void build_linear(IsOutside is_outside) {
        n_hats_ = 0;
        lay_graph(0, is_outside);
    }
    template <class IsOutside>
    void lay_graph(std::size_t arcs, IsOutside is_outside) {
        for (const Variable i : active_) arcs += at(pairs_.end(i) - pairs_.begin(i));
        graph_->clear(active_.size() + n_hats_, arcs);
        if (capacity_.size() < arcs) capacity_.resize(arcs);
        excess_.resize(active_.size() + n_hats_);
        const double* after = field_.unary_row(target_);
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const LabelIndex mine = own(i);
            double excess =
                after[i] - (is_expansion_ ? field_.unary_now(i) : field_.unary(i, first_));
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                const Variable j = pairs_.neighbor(e);
                const std::int32_t place = local_[at(j)];
                const bool is_active = place >= 0;
                const LabelIndex other = is_active ? own(j) : field_.label(j);
                const double t00 = pairs_.cost(e, mine, other);
                const double t10 = pairs_.cost(e, target_, other);
                if (!is_active && !is_outside(j)) {
                    excess += t10 - t00;
                    continue;
                }
                const double t01 = pairs_.cost(e, mine, target_);
                const double t11 = pairs_.cost(e, target_, target_);
                excess += 0.5 * ((t10 - t00) + (t11 - t01));
                if (!is_active) continue;
                const FlowArc arc = add_arc(place, 0.5 * ((t01 - t00) + (t10 - t11)));
                if (at(place) < k)
                    graph_->join(arc, arc_of_entry_[at(pairs_.sister(e))]);
                else
                    arc_of_entry_[at(e)] = arc;
            }
            known_functions_at(i, mine, [&](const CountFunction& f) {
                excess += f.tilt;
                for (std::size_t t = 0; t < f.breaks.size(); ++t) {
                    Hat& hat = hats_[at(f.first_hat) + t];
                    const auto z = static_cast<FlowNode>(active_.size() + at(f.first_hat) + t);
                    hat.arcs.push_back({static_cast<FlowNode>(k), add_arc(z, hat.to)});
                }
            });
            excess_[k] = excess;
            graph_->close_row();
        }
        for (std::size_t z = 0; z < n_hats_; ++z) {
            for (const auto& [member, arc] : hats_[z].arcs)
                graph_->join(add_arc(member, hats_[z].from), arc);
            excess_[active_.size() + z] = 0.0;
            graph_->close_row();
        }
    }
    FlowArc add_arc(FlowNode head, double capacity) {
        capacity_[at(graph_->arcs())] = std::max(capacity, 0.0);  // negative only by rounding
        return graph_->add(head);
    }
    // Return the number of arcs at the hats' nodes and back.
    std::size_t lay_hats() {
        std::size_t arcs = 0;
        n_hats_ = 0;
        for (CountFunction& f : functions_) {
            f.first_hat = static_cast<std::int32_t>(n_hats_);
            f.tilt = f.slope();
            for (std::size_t t = 0; t < f.breaks.size(); ++t) {
                if (hats_.size() == n_hats_) hats_.emplace_back();
                Hat& hat = hats_[n_hats_++];
                const double fall = f.fall(t);
                const double share =
                    static_cast<double>(f.breaks[t]) / static_cast<double>(f.members);
                hat.to = fall * share;
                hat.from = fall * (1.0 - share);
                hat.arcs.clear();
                arcs += 2 * at(f.members);
            }
        }
        return arcs;
    }

    // Find the smallest best set of switches: nodes from which a remaining deficit can still be
    // reached. Afterwards excess_ is what remains of the excess.
    void solve(Poll poll) {
        flow_.fit();
        const auto graph = flow_.topology().rows();
        const FlowNode n = flow_.topology().nodes();
        constexpr double unlimited = std::numeric_limits<double>::infinity();
        for (double limit = unlimited, lower = unlimited;; limit = lower) {
            for (FlowArc a = 0; a < graph_->arcs(); ++a)
                flow_.residual(a) = std::min(capacity_[at(a)], limit);
            for (FlowNode v = 0; v < n; ++v) flow_.excess(v) = excess_[at(v)];
            flow_.forget_lost();
            unproved_ = unproved(flow_, flow_.solve(poll).value());
            if (unproved_ == 0.0) break;
            // Capacities above twice the cut are in no minimum cut, and would hide smaller numbers
            // in their rounding errors.
            const auto most = capacity_.begin() + graph_->arcs();
            lower = std::max(2.0 * cut(), std::numeric_limits<double>::min());
            if (!(2.0 * lower < std::min(limit, *std::max_element(capacity_.begin(), most)))) break;
        }
        switched_.assign(at(n), 0);
        stack_.clear();
        for (FlowNode v = 0; v < n; ++v)
            if ((excess_[at(v)] = flow_.excess(v)) < 0) {
                switched_[at(v)] = 1;
                stack_.push_back(v);
            }
        while (!stack_.empty()) {
            const FlowNode u = stack_.back();
            stack_.pop_back();
            for (FlowArc a = graph.begin(u); a < graph.end(u); ++a) {
                const FlowNode v = graph.head(u, a);
                if (switched_[at(v)] || flow_.residual(graph.sister(u, a)) <= 0) continue;
                switched_[at(v)] = 1;
                stack_.push_back(v);
            }
        }
    }

    // Return the capacity of the flow's cut.
    double cut() const {
        CompensatedSum<double> sum;
        const auto graph = flow_.topology().rows();
        for (FlowNode u = 0; u < flow_.topology().nodes(); ++u) {
            const bool here = flow_.source_side(u);
            sum.add(std::max(0.0, here ? -excess_[at(u)] : excess_[at(u)]));
            for (FlowArc a = graph.begin(u); here && a < graph.end(u); ++a)
                if (!flow_.source_side(graph.head(u, a))) sum.add(capacity_[at(a)]);
        }
        return sum.value();
    }

    // ------------------------------------------------------------------ the answer

    // Compare the answer with the best so far. `unseen` is an upper bound on the amount by which
    // the energy may be below the function that the cut minimised, apart from interpolation. Return
    // whether the move is solved, up to rounding. The sums are compensated: the cost of switching a
    // seed to its own label may for instance be 1e20, and smaller numbers must not be lost.
    bool assess(double unseen) {
        double magnitude = 0.0, slack = unseen + unproved_;
        count_answer();
        const Change change = change_of_answer(magnitude);
        for (const CountFunction& f : functions_) slack += f(f.answer) - f.interpolated(f.answer);
        tolerance_ = std::max(tolerance_, 1e-13 * magnitude);
        Change bound = change;
        bound.add(-slack);
        if (!std::exchange(is_bounded_, true) || difference(bound, bound_) > 0) bound_ = bound;
        if (difference(change, best_change_) < 0) {
            best_change_ = change;
            best_ = switched_;
        }
        return gap() <= tolerance_;
    }
    // Return the gap, an upper bound on the amount by which another answer is better.
    double gap() const {
        if (!is_bounded_) return std::numeric_limits<double>::infinity();
        return std::max(0.0, difference(best_change_, bound_));
    }

    // Return the rounding error of the last flow, however small.
    double rounding() const { return flow_.lost(); }

    // Make breakpoints of the answer's counts. Return whether any was new.
    bool refine() {
        bool refined = false;
        for (CountFunction& f : functions_)
            if (f(f.answer) > f.interpolated(f.answer)) refined |= f.add_break(f.answer);
        return refined;
    }

    using Change = CompensatedSum<double>;
    static double difference(Change x, const Change& y) {
        x.subtract(y);
        return x.value();
    }

    void count_answer() {
        for (CountFunction& f : functions_) f.answer = 0;
        for (std::size_t k = 0; k < active_.size(); ++k)
            if (switched_[k])
                known_functions_at(active_[k], own(active_[k]),
                                   [](CountFunction& f) { ++f.answer; });
    }
    // Return what the answer changes; `magnitude` receives the sum that its rounding error is
    // relative to.
    Change change_of_answer(double& magnitude) const {
        Change change = edges_and_unaries(magnitude);
        for (const CountFunction& f : functions_) {
            const double value = f(f.answer), before = f(f.present);
            change.add(value);
            change.add(-before);
            magnitude += std::abs(value) + std::abs(before);
        }
        return change;
    }
    Change edges_and_unaries(double& magnitude) const {
        Change change;
        const auto add = [&](double after, double before) {
            change.add(after);
            change.add(-before);
            magnitude += std::max(0.0, after - before);
        };
        for_changed(switched_, [&](Variable i, LabelIndex before, LabelIndex after) {
            add(field_.unary(i, after), field_.unary(i, before));
            for_edges_of_changed(
                switched_, i, [&](std::int32_t e, LabelIndex other, LabelIndex moved) {
                    add(pairs_.cost(e, after, moved), pairs_.cost(e, before, other));
                });
        });
        return change;
    }

    LabelIndex answer_at(const std::vector<char>& answer, Variable j) const {
        const std::int32_t place = local_[at(j)];
        if (place < 0) return field_.label(j);
        return answer[at(place)] ? target_ : own(j);
    }
    // Call visit(variable, label before, label after).
    template <class Visit>
    void for_changed(const std::vector<char>& answer, Visit visit) const {
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const LabelIndex before = field_.label(active_[k]);
            const LabelIndex after = answer[k] ? target_ : own(active_[k]);
            if (after != before) visit(active_[k], before, after);
        }
    }
    // Call visit(entry, the neighbour's label before, and after) for a changed i, once per edge.
    template <class Visit>
    void for_edges_of_changed(const std::vector<char>& answer, Variable i, Visit visit) const {
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
            const Variable j = pairs_.neighbor(e);
            const LabelIndex other = field_.label(j), moved = answer_at(answer, j);
            if (moved == other || i < j) visit(e, other, moved);
        }
    }

    // End the move: take the best answer of all rounds if it is better than no change. `toll` is
    // the cost of any change. Return the change of the energy.
    double take_best(double toll) {
        const double change = best_change_.value() + toll;
        const bool better = change < -tolerance_;
        if (better) {
            const std::int64_t since = field_.now();
            for (std::size_t k = 0; k < active_.size(); ++k) {
                const LabelIndex label = best_[k] ? target_ : own(active_[k]);
                if (label != field_.label(active_[k])) field_.relabel(active_[k], label);
            }
            field_.settle(since);
        }
        for (const Variable i : active_) local_[at(i)] = nothing;
        active_.clear();
        forget_functions();
        return better ? change : 0.0;
    }

    MoveField& field_;
    Pairs& pairs_;

    bool is_expansion_ = false, is_lazy_ = false;
    LabelIndex first_ = 0, target_ = 0;  // in an expansion, the first labels are the present ones
    std::vector<Variable> active_;
    std::vector<std::int32_t> local_;    // the place of a variable in active_, or negative
    std::vector<CountFunction> functions_;
    std::vector<std::int32_t> slot_;     // for each (layer, region, group), its place in functions_
    std::vector<char> is_charged_;  // for each function, whether its cost is part of a lazy move
    std::vector<char> switched_, best_;
    CompensatedSum<double> best_change_, bound_;
    bool is_bounded_ = false;
    double tolerance_ = 0.0, unproved_ = 0.0;

    struct Hat {
        double to = 0.0, from = 0.0;  // capacities from a member to the node and back
        std::vector<std::pair<FlowNode, FlowArc>> arcs;
    };
    std::vector<Hat> hats_;
    std::size_t n_hats_ = 0;
    std::vector<FlowArc> arc_of_entry_;
    std::shared_ptr<MoveGraph> graph_;
    MaxFlow<MoveGraph, double> flow_;
    std::vector<double> capacity_, excess_;
    std::vector<FlowNode> stack_;
};

}  // namespace setwise

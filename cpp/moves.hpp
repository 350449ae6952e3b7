// Moves: every variable is offered two labels, and the best of all answers is a minimum cut.
//
// After Boykov, Veksler, Zabih, "Fast approximate energy minimization via graph cuts" (PAMI 2001) and
// Delong, Osokin, Isack, Boykov, "Fast approximate energy minimization with label costs" (IJCV 2012).
// An expansion offers every variable its own label and a; a swap offers all variables labelled a
// or b both; with two labels one swap is the whole problem.
//
// A function of a count is concave in the number k of its m movable members that switch, so it is
// linear plus a sum of hats d min(k (m - q), q (m - k)) / m, one auxiliary node each, over its
// breakpoints q. A power has a breakpoint at every count. We interpolate between a few of them: the
// cut then minimises a function that is never above the energy, and where the counts of its answer
// are breakpoints the answer is the best one. Else these counts become breakpoints, and again.
//
// Variables that cannot want to switch are left out: an energy that is submodular in the switches
// gains most from a variable's switch when all others switch too, and where even that is a loss
// the variable keeps its label in some best answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "maxflow.hpp"
#include "move_counts.hpp"
#include "move_graph.hpp"
#include "move_pairs.hpp"

namespace setwise {

class Moves {
  public:
    // unary (labels, n), +inf where a label is forbidden, must outlive this.
    Moves(Variable n, LabelIndex labels, const double* unary)
        : n_(n), labels_(labels), unary_(unary), pairs_(n, labels), graph_(new MoveGraph) {}

    Pairs& pairs() { return pairs_; }

    // Region numbers must be in range; the tables must outlive this.
    void add_layer(Layer layer) {
        layer.first = static_cast<std::int32_t>(slot_.size());
        layer.counts.assign(layer.sizes.size() * static_cast<std::size_t>(layer.n_groups), 0);
        slot_.resize(slot_.size() + layer.counts.size(), nothing);
        layers_.push_back(std::move(layer));
    }

    // The first labelling, none of whose labels is forbidden; after all terms are there.
    void start(const std::int64_t* labels) {
        pairs_.lay();
        const auto n = static_cast<std::size_t>(n_);
        labels_of_.assign(labels, labels + n);
        local_.assign(n, nothing);
        arc_of_entry_.assign(static_cast<std::size_t>(pairs_.entries()), 0);
        const auto count = static_cast<std::size_t>(labels_);
        seen_expansion_.assign(count, never);
        seen_swap_.assign(count * count, never);
        reach_.assign(n, 0.0);
        for (Variable i = 0; i < n_; ++i)
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
                reach_[at(i)] += pairs_.range(e);
        for (Layer& layer : layers_)
            for (Variable i = 0; i < n_; ++i) count_label(layer, i, labels_of_[at(i)], 1);
        for (Transitions& term : pairs_.transitions())
            for (std::size_t e = 0; e < term.tails.size(); ++e)
                join(term, labels_of_[at(term.tails[e])], labels_of_[at(term.heads[e])], 1);
    }

    const std::vector<LabelIndex>& labels() const { return labels_of_; }

    // The best expansion to label a. Returns the change of the energy, never positive.
    double expand(LabelIndex a, Poll poll) {
        const std::int64_t seen = std::exchange(seen_expansion_[at(a)], now());
        if (seen == now()) return 0.0;
        offer(a, a, seen);
        eliminate();
        prepare();
        while (!round(poll)) {
        }
        const double change = commit();
        seen_expansion_[at(a)] = now();
        return change;
    }

    // The best swap of labels a and b; of the majorants tried, where there are transitions.
    double swap(LabelIndex a, LabelIndex b, Poll poll) {
        if (!pairs_.transitions().empty()) return swap_transitions(a, b, poll);
        std::int64_t& seen = seen_swap_[at(a) * at(labels_) + at(b)];
        if (seen == now()) return 0.0;
        offer_swap(a, b, seen);
        while (!round(poll)) {
        }
        const double change = commit();
        seen = now();
        return change;
    }

    // A swap in rounds, for one who wants to look on: offer, then rounds until one returns true; the
    // energy of the best answer is that of the present labelling plus between `bound` and `change`.
    void offer_swap(LabelIndex a, LabelIndex b) { offer_swap(a, b, never); }
    bool round(Poll poll) {
        build();
        MaxFlow<MoveGraph, double> flow(graph_);
        for (FlowArc a = 0; a < graph_->arcs(); ++a) flow.residual(a) = capacity_[at(a)];
        for (FlowNode v = 0; v < graph_->nodes(); ++v) flow.excess(v) = excess_[at(v)];
        flow.solve(poll);
        switched_.resize(active_.size());
        for (std::size_t k = 0; k < active_.size(); ++k)
            switched_[k] = !flow.source_side(static_cast<FlowNode>(k));
        return judge();
    }
    double bound() const { return bound_; }
    double change() const { return best_change_; }

    // Takes the best answer of the rounds if it is better than the present labelling.
    double commit() {
        for (const Variable i : active_) local_[at(i)] = nothing;
        for (const CountFunction& f : functions_)
            slot_[at(f.layer->first) + f.layer->place(f.region, f.group)] = nothing;
        double change = best_change_ + activation_;
        if (!(change < -tolerance_)) return 0.0;
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const LabelIndex label = best_[k] ? target_ : own_[k];
            if (label != labels_of_[at(i)]) relabel(i, label);
        }
        return change;
    }

  private:
    static constexpr std::int32_t nothing = -1;
    static constexpr std::int64_t never = -1;

    template <class Index>
    static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

    std::int64_t now() const { return static_cast<std::int64_t>(changed_.size()); }
    double unary(Variable i, LabelIndex label) const {
        return unary_[at(label) * at(n_) + at(i)];
    }

    // ------------------------------------------------------------------ the offers

    void offer_swap(LabelIndex a, LabelIndex b, std::int64_t seen) {
        offer(a, b, seen);
        prepare();
    }

    // Gathers the variables that may switch. A connected part of them whose labels, and whose
    // neighbours' labels, have not changed since the same move was last made has nothing to gain:
    // so where nothing but edges joins variables, parts without a change are left out.
    void offer(LabelIndex first, LabelIndex target, std::int64_t seen) {
        first_ = first;
        target_ = target;
        active_.clear();
        if (seen == never || !layers_.empty()) {
            for (Variable i = 0; i < n_; ++i) consider(i);
        } else {
            for (std::int64_t c = seen; c < now(); ++c) {
                const Variable i = changed_[at(c)];
                consider(i);
                consider_neighbors(i);
            }
            for (std::size_t k = 0; k < active_.size(); ++k) consider_neighbors(active_[k]);
        }
    }
    void consider_neighbors(Variable i) {
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) consider(pairs_.neighbor(e));
    }
    void consider(Variable i) {
        if (local_[at(i)] != nothing) return;
        const LabelIndex own = labels_of_[at(i)];
        if (first_ == target_) {
            if (own == target_) return;
            double margin = unary(i, target_) - unary(i, own) - reach_[at(i)];
            for (const Layer& layer : layers_) margin += least_slope(layer, i, own);
            if (margin >= 0) return;
        } else {
            if (own != first_ && own != target_) return;
            constexpr double forbidden = std::numeric_limits<double>::infinity();
            if (unary(i, first_) == forbidden || unary(i, target_) == forbidden) return;
        }
        local_[at(i)] = static_cast<std::int32_t>(active_.size());
        active_.push_back(i);
    }
    // A bound from below on what the layer charges for a switch of i, in any expansion.
    double least_slope(const Layer& layer, Variable i, LabelIndex own) const {
        const std::int64_t r = layer.region(i);
        const std::int32_t from = layer.groups[at(own)], to = layer.groups[at(target_)];
        if (r < 0 || from == to) return 0.0;
        if (layer.charge == Charge::cost) return from >= 0 ? -layer.cost : 0.0;
        const double* h = layer.table + layer.starts[r];
        const std::int64_t size = layer.sizes[at(r)];
        return (from >= 0 ? h[0] - h[1] : 0.0) + (to >= 0 ? h[size] - h[size - 1] : 0.0);
    }

    // ------------------------------------------------------------------ functions of counts

    template <class Visit>
    void functions_at(Variable i, LabelIndex own, Visit visit) {
        for (const Layer& layer : layers_) {
            const std::int64_t r = layer.region(i);
            const std::int32_t from = layer.groups[at(own)], to = layer.groups[at(target_)];
            if (r < 0 || from == to) continue;
            if (from >= 0) visit(layer, r, from, to, false);
            if (to >= 0 && layer.charge != Charge::robust) visit(layer, r, to, from, true);
        }
    }
    template <class Visit>
    void known_functions_at(Variable i, LabelIndex own, Visit visit) {
        functions_at(i, own, [&](const Layer& layer, std::int64_t r, std::int32_t g, std::int32_t,
                                 bool) { visit(function(layer, r, g)); });
    }
    CountFunction& function(const Layer& layer, std::int64_t r, std::int32_t g) {
        return functions_[at(slot_[at(layer.first) + layer.place(r, g)])];
    }

    void collect_functions() {
        functions_.clear();
        if (layers_.empty()) return;
        for (const Variable i : active_) {
            const LabelIndex now_label = labels_of_[at(i)];
            const LabelIndex own = first_ == target_ ? now_label : first_;
            const bool is_switched = now_label == target_;
            functions_at(i, own, [&](const Layer& layer, std::int64_t r, std::int32_t g,
                                     std::int32_t other, bool rises) {
                std::int32_t& slot = slot_[at(layer.first) + layer.place(r, g)];
                if (slot == nothing) {
                    slot = static_cast<std::int32_t>(functions_.size());
                    CountFunction f;
                    f.layer = &layer;
                    f.region = r;
                    f.group = g;
                    f.rises = rises;
                    f.fixed = layer.counts[layer.place(r, g)];
                    if (layer.charge == Charge::robust) {
                        f.other_fixed = layer.counts[layer.place(r, other)];
                        for (std::int32_t j = 0; j < layer.n_groups; ++j)
                            if (j != g && j != other)
                                f.rest = std::max(f.rest, layer.counts[layer.place(r, j)]);
                    }
                    functions_.push_back(std::move(f));
                }
                CountFunction& f = functions_[at(slot)];
                ++f.members;
                f.present += is_switched;
                f.fixed -= is_switched == rises;
                f.other_fixed -= is_switched;
            });
        }
    }

    // ------------------------------------------------------------------ variables that keep

    // What a switch of i costs when all other active variables switch.
    double margin(Variable i, LabelIndex own) {
        double cost = unary(i, target_) - unary(i, own);
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
            const Variable j = pairs_.neighbor(e);
            const LabelIndex other = local_[at(j)] == nothing ? labels_of_[at(j)] : target_;
            cost += pairs_.cost(e, target_, other) - pairs_.cost(e, own, other);
        }
        known_functions_at(i, own, [&](const CountFunction& f) { cost += f.last_slope(); });
        return cost;
    }

    // Leaves out, in an expansion, variables that keep; repeated while it pays, because what one
    // leaves out makes others keep.
    void eliminate() {
        collect_functions();
        for (std::size_t before = active_.size() + 1; 20 * active_.size() < 19 * before;) {
            before = active_.size();
            std::size_t kept = 0;
            for (const Variable i : active_) {
                const LabelIndex own = labels_of_[at(i)];
                if (margin(i, own) >= 0) {
                    local_[at(i)] = nothing;
                    known_functions_at(i, own, [](CountFunction& f) {
                        --f.members;
                        f.fixed += !f.rises;
                    });
                } else {
                    active_[kept++] = i;
                }
            }
            active_.resize(kept);
        }
        for (std::size_t k = 0; k < active_.size(); ++k)
            local_[at(active_[k])] = static_cast<std::int32_t>(k);
    }

    // ------------------------------------------------------------------ the graph of a move

    void prepare() {
        const bool expansion = first_ == target_;
        if (!expansion) collect_functions();
        own_.resize(active_.size());
        for (std::size_t k = 0; k < active_.size(); ++k)
            own_[k] = expansion ? labels_of_[at(active_[k])] : first_;
        activation_ = 0.0;
        for (CountFunction& f : functions_) {
            // The cost of a label that nobody uses is due as soon as anybody switches to it: the
            // best answer without it is the best with it, or not to switch is.
            const bool opens = expansion && f.rises && f.layer->charge == Charge::cost &&
                               f.fixed == 0 && f.members > 0;
            if (opens) activation_ += f.layer->cost;
            f.is_charged = f.members > 0 && !opens;
            f.breaks.clear();
            if (f.is_charged) f.start_breaks();
        }
        best_.assign(active_.size(), false);
        if (!expansion)
            for (std::size_t k = 0; k < active_.size(); ++k)
                best_[k] = labels_of_[at(active_[k])] == target_;
        best_change_ = 0.0;
        bound_ = -std::numeric_limits<double>::infinity();
        tolerance_ = 0.0;
    }

    // Both ends of an edge take half of what their switches cost together, so that a row can be
    // laid without a look at the other: residual capacities are equal both ways.
    void build() {
        graph_->clear();
        capacity_.clear();
        excess_.clear();
        lay_hats();
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const LabelIndex own = own_[k];
            double excess = unary(i, target_) - unary(i, own);
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                const Variable j = pairs_.neighbor(e);
                const std::int32_t place = local_[at(j)];
                if (place == nothing) {
                    const LabelIndex other = labels_of_[at(j)];
                    excess += pairs_.cost(e, target_, other) - pairs_.cost(e, own, other);
                    continue;
                }
                const LabelIndex other = own_[at(place)];
                const double t00 = pairs_.cost(e, own, other), t01 = pairs_.cost(e, own, target_);
                const double t10 = pairs_.cost(e, target_, other);
                const double t11 = pairs_.cost(e, target_, target_);
                excess += 0.5 * ((t10 - t00) + (t11 - t01));
                const FlowArc arc = add_arc(place, 0.5 * ((t01 - t00) + (t10 - t11)));
                if (at(place) < k)
                    graph_->join(arc, arc_of_entry_[at(pairs_.sister(e))]);
                else
                    arc_of_entry_[at(e)] = arc;
            }
            known_functions_at(i, own, [&](const CountFunction& f) {
                if (!f.is_charged) return;
                excess += f.slope();
                for (std::size_t t = 0; t < f.breaks.size(); ++t) {
                    Hat& hat = hats_[at(f.first_hat) + t];
                    const FlowNode z = static_cast<FlowNode>(active_.size() + at(f.first_hat) + t);
                    hat.arcs.push_back({static_cast<FlowNode>(k), add_arc(z, hat.to)});
                }
            });
            excess_.push_back(excess);
            graph_->close_row();
        }
        for (std::size_t z = 0; z < n_hats_; ++z) {
            for (const auto& [member, arc] : hats_[z].arcs)
                graph_->join(add_arc(member, hats_[z].from), arc);
            excess_.push_back(0.0);
            graph_->close_row();
        }
    }
    FlowArc add_arc(FlowNode head, double capacity) {
        capacity_.push_back(std::max(capacity, 0.0));
        return graph_->add(head);
    }

    void lay_hats() {
        n_hats_ = 0;
        for (CountFunction& f : functions_) {
            f.first_hat = static_cast<std::int32_t>(n_hats_);
            for (std::size_t t = 0; t < f.breaks.size(); ++t) {
                if (hats_.size() == n_hats_) hats_.emplace_back();
                Hat& hat = hats_[n_hats_++];
                const double share =
                    static_cast<double>(f.breaks[t]) / static_cast<double>(f.members);
                const double fall = f.fall(t);
                hat.to = fall * share;
                hat.from = fall * (1.0 - share);
                hat.arcs.clear();
            }
        }
    }

    // ------------------------------------------------------------------ the answer of a cut

    // Compares the answer with the best so far. Whether the move is solved: else the interpolation
    // has been refined where the answer's counts lie.
    bool judge() {
        double magnitude = 0.0;
        double change = edges_and_unaries(magnitude), slack = 0.0;
        for (CountFunction& f : functions_) f.answer = 0;
        if (!functions_.empty())
            for (std::size_t k = 0; k < active_.size(); ++k)
                if (switched_[k])
                    known_functions_at(active_[k], own_[k], [](CountFunction& f) { ++f.answer; });
        for (const CountFunction& f : functions_) {
            if (!f.is_charged) continue;
            const double value = f(f.answer), before = f(f.present);
            change += value - before;
            magnitude += std::abs(value) + std::abs(before);
            slack += value - f.interpolated(f.answer);
        }
        tolerance_ = std::max(tolerance_, 1e-13 * magnitude);
        bound_ = std::max(bound_, change - slack);
        if (change < best_change_) {
            best_change_ = change;
            best_.swap(switched_);
        }
        if (best_change_ - bound_ <= tolerance_) return true;
        bool refined = false;
        for (CountFunction& f : functions_)
            if (f.is_charged && f(f.answer) > f.interpolated(f.answer))
                refined |= f.add_break(f.answer);
        return !refined;
    }

    double edges_and_unaries(double& magnitude) const {
        double change = 0.0;
        const auto add = [&](double after, double before) {
            change += after - before;
            magnitude += std::abs(after) + std::abs(before);
        };
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const LabelIndex before = labels_of_[at(i)], after = switched_[k] ? target_ : own_[k];
            if (after == before) continue;
            add(unary(i, after), unary(i, before));
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                const Variable j = pairs_.neighbor(e);
                const LabelIndex other = labels_of_[at(j)], moved = answer_at(j);
                if (moved != other && j < i) continue;  // counted at j
                add(pairs_.cost(e, after, moved), pairs_.cost(e, before, other));
            }
        }
        return change;
    }
    LabelIndex answer_at(Variable j) const {
        const std::int32_t place = local_[at(j)];
        if (place == nothing) return labels_of_[at(j)];
        return switched_[at(place)] ? target_ : own_[at(place)];
    }

    void relabel(Variable i, LabelIndex label) {
        LabelIndex& present = labels_of_[at(i)];
        for (Layer& layer : layers_) {
            count_label(layer, i, present, -1);
            count_label(layer, i, label, 1);
        }
        present = label;
        changed_.push_back(i);
    }
    static void count_label(Layer& layer, Variable i, LabelIndex label, int one) {
        const std::int64_t r = layer.region(i);
        const std::int32_t g = layer.groups[at(label)];
        if (r >= 0 && g >= 0) layer.counts[layer.place(r, g)] += one;
    }

    // ------------------------------------------------------------------ transitions

    // A line through (n, h(n)) that is nowhere below h, steep or flat, or the chord from 0, which
    // is below h and sees what the end of the last such edge would save.
    enum class Tangent { steep, flat, chord };

    // Majorises every transition cost by a line in its number of edges, and makes the swap that is
    // best for it, as long as the energy falls: the true one decides, whatever the line.
    double swap_transitions(LabelIndex a, LabelIndex b, Poll poll) {
        std::int64_t& seen = seen_swap_[at(a) * at(labels_) + at(b)];
        if (seen == now()) return 0.0;
        double total = 0.0;
        for (bool better = true; better;) {
            better = false;
            for (const Tangent tangent : {Tangent::steep, Tangent::flat, Tangent::chord})
                for (double change; (change = swap_majorant(a, b, tangent, poll)) < 0.0;) {
                    total += change;
                    better = true;
                }
        }
        seen = now();
        return total;
    }

    double swap_majorant(LabelIndex a, LabelIndex b, Tangent tangent, Poll poll) {
        for (Transitions& term : pairs_.transitions()) set_slopes(term, tangent);
        offer_swap(a, b, never);
        while (!round(poll)) {
        }
        switched_ = best_;
        double correction = 0.0;
        for (Transitions& term : pairs_.transitions()) {
            term.before = term.joins;
            move_joins(term);
            for (std::size_t p = 0; p < term.joins.size(); ++p) {
                const std::int64_t before = term.before[p], after = term.joins[p];
                if (before == after) continue;
                const double rise = term.concave[after] - term.concave[before];
                correction += term.costs[p] * rise -
                              term.slopes[p] * static_cast<double>(after - before);
            }
        }
        best_change_ += correction;
        const double change = commit();
        if (change == 0.0)
            for (Transitions& term : pairs_.transitions()) term.joins.swap(term.before);
        return change;
    }

    void set_slopes(Transitions& term, Tangent tangent) const {
        const auto last = static_cast<std::int64_t>(term.tails.size());
        for (LabelIndex a = 0; a < labels_; ++a)
            for (LabelIndex b = a + 1; b < labels_; ++b) {
                const std::size_t p = term.pair(a, b, labels_);
                const std::int64_t n = term.joins[p];
                const double* h = term.concave;
                double slope = 0.0;
                if (last > 0) {
                    if (n == 0 || (tangent == Tangent::flat && n < last))
                        slope = h[n + 1] - h[n];
                    else if (tangent == Tangent::chord)
                        slope = (h[n] - h[0]) / static_cast<double>(n);
                    else
                        slope = h[n] - h[n - 1];
                }
                term.slopes[p] = term.slopes[at(b * labels_ + a)] = term.costs[p] * slope;
            }
    }

    void join(Transitions& term, LabelIndex a, LabelIndex b, int one) const {
        if (a != b) term.joins[term.pair(a, b, labels_)] += one;
    }
    void move_joins(Transitions& term) const {
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const LabelIndex before = labels_of_[at(i)], after = answer_at(i);
            if (after == before) continue;
            for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) {
                if (!pairs_.has_table(e, term.slopes.data())) continue;
                const Variable j = pairs_.neighbor(e);
                const LabelIndex other = labels_of_[at(j)], moved = answer_at(j);
                if (moved != other && j < i) continue;  // counted at j
                join(term, before, other, -1);
                join(term, after, moved, 1);
            }
        }
    }

    Variable n_;
    LabelIndex labels_;
    const double* unary_;
    Pairs pairs_;
    std::vector<Layer> layers_;
    std::vector<double> reach_;  // the most that its edges can make a variable want to switch

    std::vector<LabelIndex> labels_of_;
    std::vector<Variable> changed_;  // every change of a label so far, in order
    std::vector<std::int64_t> seen_expansion_, seen_swap_;  // the changes before the last such move

    // The present move.
    LabelIndex first_ = 0, target_ = 0;  // equal: an expansion, whose first labels are the present ones
    std::vector<Variable> active_;
    std::vector<LabelIndex> own_;       // the first label offered to each active variable
    std::vector<std::int32_t> local_;   // the place of a variable in active_, or nothing
    std::vector<CountFunction> functions_;
    std::vector<std::int32_t> slot_;    // of each (layer, region, group), its place in functions_
    double activation_ = 0.0;           // the costs of the label that an expansion would open
    std::vector<char> switched_, best_;
    double best_change_ = 0.0, bound_ = 0.0, tolerance_ = 0.0;

    struct Hat {
        double to = 0.0, from = 0.0;  // capacities from a member to the node and back
        std::vector<std::pair<FlowNode, FlowArc>> arcs;
    };
    std::vector<Hat> hats_;
    std::size_t n_hats_ = 0;
    std::shared_ptr<MoveGraph> graph_;
    std::vector<FlowArc> arc_of_entry_;
    std::vector<double> capacity_, excess_;
};

}  // namespace setwise

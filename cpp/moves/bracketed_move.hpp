// Expansions with functions of counts: cuts without auxiliary nodes bracket the best set of
// switches between two sets.
//
// Assume that all best answers lie in U and contain L. Each function f(k) is concave in the number
// k of switches, where k counts the m members that are in U and not in L. For a set x of switches
// with counts j:
//     1. Let every f be linear with the slope (f(m) - f(j)) / (m - j), and x the smallest best answer.
//        Any b switches outside x, beside up to j within, cost f at least b times that slope. So the
//        switches outside x can be removed from any answer, and the smallest best one lies in x.
//     2. Let every f be linear with the slope (f(j) - f(0)) / j, and x the smallest best answer. Any b
//        switches of x, beside any others, cost f at most b times that slope. So x can be added to any
//        answer, and all best ones contain x.
// In step 1 the slopes fall while x grows from the empty set, in step 2 they rise while x shrinks
// from U. Both end at a set that is the answer to its own slopes. The new U makes m smaller, the
// new L becomes part of the labelling, and the steps are repeated. If U = L the move is solved;
// otherwise the hats of move.hpp solve the rest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "moves/kept_flows.hpp"
#include "moves/move.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class BracketedMove : public Move {
  protected:
    explicit BracketedMove(MoveField& field) : Move(field), flows_(field) {}

    // Make the switches of L, and keep those of U as active ones. Return the change of the energy.
    // If the rounding error is too large for a decision, every variable that may switch is active.
    double bracket(Poll poll) {
        Change total;
        if (!rise_over_field(poll)) {
            leave_out_all();
            for (Variable i = 0; i < field_.variables(); ++i)
                if (is_candidate(i)) take(i);
            return 0.0;
        }
        while (!active_.empty()) {
            const std::size_t before = active_.size();
            if (!fall(poll) || !make(total) || active_.empty() || !rise(poll)) break;
            keep_active(1);
            if (10 * active_.size() > 9 * before) break;
        }
        return total.value();
    }

    // Make i active. Return whether it was not active before.
    bool take(Variable i) {
        if (local_[at(i)] >= 0) return false;
        local_[at(i)] = static_cast<std::int32_t>(active_.size());
        active_.push_back(i);
        return true;
    }
    void leave_out_all() {
        for (const Variable i : active_) local_[at(i)] = nothing;
        active_.clear();
    }
    // Return the cost of a switch of i without functions of counts. The ends of an edge share its
    // cost.
    double shared_excess(Variable i) const {
        double excess = field_.unary(i, target_) - field_.unary_now(i);
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
            excess += EdgeHalf(field_, e, i, target_).excess;
        return excess;
    }
    static constexpr int halo = 2;  // the number of levels of neighbours around a change; not tuned
    KeptFlows flows_;

  private:
    bool is_candidate(Variable i) const {
        return field_.label(i) != target_ &&
               field_.unary(i, target_) < std::numeric_limits<double>::infinity();
    }

    // ------------------------------------------------------------------ the first U

    // Step 1 over the flow of the field, or over parts if few variables can gain. Like the
    // functions below, return whether the answer is certain in spite of rounding errors.
    bool rise_over_field(Poll poll) {
        leave_out_all();
        collect_all_functions();
        for (CountFunction& f : functions_) f.tilt = f.slope();
        if (!flows_.has(target_)) {
            take_deficits();
            if (16 * active_.size() <= at(field_.variables())) return rise_over_parts(poll);
            leave_out_all();
        }
        return rise_over_all(poll);
    }
    bool rise_over_all(Poll poll) {
        std::vector<double>& tilts = flows_.tilts(target_);
        changes_.assign(at(field_.functions()), 0.0);
        for (const CountFunction& f : functions_) renew(tilts, f);
        const std::int64_t since = field_.now();
        const auto take_it = [&](Variable i) { return take(i); };
        unproved_ = flows_.solve(target_, poll, Tilts{*this, tilts}, take_it);
        for (std::size_t counted = 0; unproved_ == 0.0 && counted < active_.size();) {
            changes_.assign(at(field_.functions()), 0.0);
            for (; counted < active_.size(); ++counted)
                known_functions_at(active_[counted], field_.label(active_[counted]),
                                   [&](CountFunction& f) { ++f.answer; });
            for (CountFunction& f : functions_) {
                steepen(f);
                renew(tilts, f);
            }
            unproved_ = flows_.solve_again(target_, poll, Tilts{*this, tilts}, take_it);
        }
        if (unproved_ == 0.0) flows_.keep(target_, since);
        return unproved_ == 0.0;
    }
    void renew(std::vector<double>& tilts, const CountFunction& f) {
        const std::size_t place = at(f.layer->first) + f.layer->place(f.region, f.group);
        changes_[place] = f.tilt - tilts[place];
        tilts[place] = f.tilt;
    }
    struct Tilts {
        static constexpr bool any = true;
        const BracketedMove& move;
        const std::vector<double>& tilts;
        double operator()(Variable i) const { return move.sum_at(i, tilts); }
        double change(Variable i) const { return move.sum_at(i, move.changes_); }
    };
    // Return the sum of `each` over the functions that a switch of i changes.
    double sum_at(Variable i, const std::vector<double>& each) const {
        const LabelIndex own_label = field_.label(i);
        double sum = 0.0;
        if (own_label == target_) return sum;
        for (const Layer& layer : field_.layers()) {
            const std::int64_t r = layer.region(i);
            const std::int32_t from = layer.groups[at(own_label)], to = layer.groups[at(target_)];
            if (r < 0 || from == to) continue;
            const double* here = each.data() + at(layer.first) + layer.place(r, 0);
            if (from >= 0) sum += here[from];
            if (to >= 0 && layer.charge == Charge::concave) sum += here[to];
        }
        return sum;
    }

    bool rise_over_parts(Poll poll) {
        inside_.clear();
        std::size_t begin = 0;
        do {
            int levels = halo;
            widen(begin, levels);
            for (bool grew = true; grew;) {
                build_linear([&](Variable j) { return is_candidate(j); });
                solve(poll);
                if (unproved_ > 0.0) return false;
                const std::size_t end = active_.size();
                for (std::size_t k = 0; k < end; ++k)
                    if (switched_[k]) take_neighbors(active_[k]);
                grew = active_.size() > end;
                widen(end, levels);
                levels *= 2;
            }
            begin = active_.size();
        } while (steepen() && (take_deficits(), true));
        keep_active(1);
        return true;
    }
    void collect_all_functions() {
        forget_functions();
        for (const Layer& layer : field_.layers()) {
            const std::int32_t to = layer.groups[at(target_)];
            for (std::int64_t r = 0; r < static_cast<std::int64_t>(layer.sizes.size()); ++r)
                for (std::int32_t g = 0; g < layer.n_groups; ++g) {
                    const bool rises = g == to;
                    const std::int64_t count = layer.counts[layer.place(r, g)];
                    const std::int64_t members = rises ? layer.sizes[at(r)] - count : count;
                    if (members == 0 || (rises && layer.charge == Charge::cost)) continue;
                    slot_[at(layer.first) + layer.place(r, g)] =
                        static_cast<std::int32_t>(functions_.size());
                    functions_.push_back(CountFunction(layer, r, g, nothing, rises));
                    functions_.back().set_members(members);
                }
        }
    }
    // Take the candidates that would switch while their neighbours keep their labels.
    void take_deficits() {
        double least = 0.0;
        for (std::size_t f = 0; f < functions_.size();) {
            const Layer* layer = functions_[f].layer;
            double falls = 0.0, rises = 0.0;
            for (; f < functions_.size() && functions_[f].layer == layer; ++f) {
                double& side = functions_[f].rises ? rises : falls;
                side = std::min(side, functions_[f].tilt);
            }
            least += falls + rises;
        }
        const double* row = field_.unary_row(target_);
        for (Variable i = 0; i < field_.variables(); ++i) {
            double excess = row[i] - field_.unary_now(i) - field_.dissent(i);
            if (excess + least >= 0.0 || local_[at(i)] >= 0 || !is_candidate(i)) continue;
            double tilt = 0.0;
            known_functions_at(i, field_.label(i), [&](CountFunction& f) { tilt += f.tilt; });
            if (excess + tilt < 0.0 && shared_excess(i) + tilt < 0.0) take(i);
        }
    }
    void widen(std::size_t begin, int levels) {
        for (; levels > 0; --levels) {
            const std::size_t end = active_.size();
            for (std::size_t k = begin; k < end; ++k) take_neighbors(active_[k]);
            begin = end;
        }
    }
    void take_neighbors(Variable i) {
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e)
            if (is_candidate(pairs_.neighbor(e))) take(pairs_.neighbor(e));
    }

    // ------------------------------------------------------------------ smaller U, larger L

    bool rise(Poll poll) {
        collect_functions();
        for (CountFunction& f : functions_) f.tilt = f.slope();
        inside_.clear();
        do {
            if (!solve_linear(poll)) return false;
        } while (steepen());
        return true;
    }
    // Add the switches made so far to the answer. Return whether some slopes have fallen.
    bool steepen() {
        for (std::size_t k = 0; k < inside_.size(); ++k) switched_[k] |= inside_[k];
        inside_ = switched_;
        return recount([](CountFunction& f) { steepen(f); });
    }
    static void steepen(CountFunction& f) {
        f.tilt = f.answer < f.members ? f.chord(f.answer, f.members) : f.last_slope();
    }
    bool fall(Poll poll) {
        collect_functions();
        for (CountFunction& f : functions_) {
            f.answer = f.members;
            f.tilt = f.slope();
        }
        inside_.assign(active_.size(), 1);
        do {
            if (!solve_linear(poll)) return false;
            for (std::size_t k = 0; k < inside_.size(); ++k) switched_[k] &= inside_[k];
            inside_ = switched_;
        } while (recount(
            [](CountFunction& f) { f.tilt = f.chord(0, std::max<std::int64_t>(f.answer, 1)); }));
        return true;
    }
    bool solve_linear(Poll poll) {
        build_linear([](Variable) { return false; });
        solve(poll);
        return unproved_ == 0.0;
    }
    // Count the answer, and call changed(f) where a count differs from the last one. Return whether
    // one differs.
    template <class Changed>
    bool recount(Changed changed) {
        counts_.clear();
        for (const CountFunction& f : functions_) counts_.push_back(f.answer);
        count_answer();
        bool any = false;
        for (std::size_t f = 0; f < functions_.size(); ++f) {
            if (functions_[f].answer == counts_[f]) continue;
            changed(functions_[f]);
            any = true;
        }
        return any;
    }

    // Make the switches of the answer, unless they gain nothing beyond rounding. Return whether
    // they gain, or there are none.
    bool make(Change& total) {
        double magnitude = 0.0;
        const Change change = change_of_answer(magnitude);
        const std::int64_t since = field_.now();
        bool any = false;
        for (std::size_t k = 0; k < active_.size(); ++k) any |= switched_[k] != 0;
        if (!any) return true;
        if (!(change.value() < -1e-13 * magnitude)) return false;
        for (std::size_t k = 0; k < active_.size(); ++k)
            if (switched_[k]) field_.relabel(active_[k], target_);
        field_.settle(since);
        total.add(change.value());
        keep_active(0);
        return true;
    }
    // Keep the variables active that have this answer.
    void keep_active(char answer) {
        std::size_t kept = 0;
        for (std::size_t k = 0; k < active_.size(); ++k) {
            const Variable i = active_[k];
            const bool keeps = switched_[k] == answer;
            local_[at(i)] = keeps ? static_cast<std::int32_t>(kept) : nothing;
            if (keeps) active_[kept++] = i;
        }
        active_.resize(kept);
    }

    std::vector<double> changes_;  // changes of the tilts since the last flow
    std::vector<char> inside_;
    std::vector<std::int64_t> counts_;
};

}  // namespace setwise

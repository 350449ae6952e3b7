// Swap moves, and the label transitions that they majorise.
//
// See Boykov, Veksler, Zabih, "Fast approximate energy minimization via graph cuts" (PAMI 2001).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "moves/move.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class SwapMove : public Move {
  public:
    explicit SwapMove(MoveField& field) : Move(field) {
        seen_.assign(at(field.labels()) * at(field.labels()), never);
    }

    // Make the best swap of labels a and b; with transitions, the best of those tried. Return the
    // change of the energy, which is never positive.
    double swap(LabelIndex a, LabelIndex b, Poll poll) {
        std::int64_t& seen = seen_[Transitions::pair(a, b, field_.labels())];
        if (seen == field_.now()) return 0.0;
        const double change =
            pairs_.transitions().empty() ? swap_once(a, b, seen, poll) : majorise(a, b, poll);
        seen = field_.now();
        return change;
    }

    // Swap in rounds, so that a caller can observe them: call offer, then rounds until one returns
    // true. The best answer changes the energy by at least `bound` and at most `change`. `gap` is
    // their difference, which is more accurate than subtracting them.
    void offer(LabelIndex a, LabelIndex b) { offer(a, b, never); }
    bool round(Poll poll) {
        build([](Variable) { return false; });
        solve(poll);
        return assess(0.0) || !refine();
    }
    double bound() const {
        return is_bounded_ ? bound_.value() : -std::numeric_limits<double>::infinity();
    }
    double change() const { return best_change_.value(); }
    using Move::gap;
    using Move::rounding;
    double commit() { return take_best(0.0); }

  private:
    static constexpr std::int64_t never = -1;

    double swap_once(LabelIndex a, LabelIndex b, std::int64_t seen, Poll poll) {
        offer(a, b, seen);
        while (!round(poll)) {
        }
        return commit();
    }

    // A connected part of the variables labelled a or b has nothing to gain from another swap if
    // neither its labels nor those of its neighbours have changed since the last one. So if only
    // edges join variables, parts without a change are left out.
    void offer(LabelIndex a, LabelIndex b, std::int64_t seen) {
        for (const Variable i : active_) local_[at(i)] = nothing;
        active_.clear();
        first_ = a;
        target_ = b;
        if (seen == never || !field_.layers().empty()) {
            for (Variable i = 0; i < field_.variables(); ++i) consider(i);
        } else {
            for (std::int64_t c = seen; c < field_.now(); ++c) {
                consider(field_.changes()[at(c)]);
                consider_neighbors(field_.changes()[at(c)]);
            }
            for (std::size_t k = 0; k < active_.size(); ++k) consider_neighbors(active_[k]);
        }
        begin_rounds();
    }
    void consider_neighbors(Variable i) {
        for (std::int32_t e = pairs_.begin(i); e < pairs_.end(i); ++e) consider(pairs_.neighbor(e));
    }
    void consider(Variable i) {
        const LabelIndex label = field_.label(i);
        if (local_[at(i)] >= 0 || (label != first_ && label != target_)) return;
        constexpr double forbidden = std::numeric_limits<double>::infinity();
        if (field_.unary(i, label == first_ ? target_ : first_) == forbidden) return;
        local_[at(i)] = static_cast<std::int32_t>(active_.size());
        active_.push_back(i);
    }

    // ------------------------------------------------------------------ transitions

    // A line through (n, h(n)) that is nowhere below h, the steepest or the flattest one; or the
    // chord from n = 0, which is not a majorant but shows the gain of removing the last edge
    // between two labels.
    enum class Line { steep, flat, chord };

    // A line in the number of edges replaces each transition cost. The best swap for the lines is
    // made if the energy decreases. If the lines are majorants, it decreases whenever the sum of
    // the lines does.
    double majorise(LabelIndex a, LabelIndex b, Poll poll) {
        double total = 0.0;
        for (bool better = true; better;) {
            better = false;
            for (const Line line : {Line::steep, Line::flat, Line::chord})
                for (double change; (change = swap_lines(a, b, line, poll)) < 0.0;) {
                    total += change;
                    better = true;
                }
        }
        return total;
    }

    double swap_lines(LabelIndex a, LabelIndex b, Line line, Poll poll) {
        for (Transitions& term : pairs_.transitions()) set_slopes(term, line);
        offer(a, b, never);
        while (!round(poll)) {
        }
        for (Transitions& term : pairs_.transitions()) {
            term.before = term.joins;
            for_changed(best_, [&](Variable i, LabelIndex before, LabelIndex after) {
                for_edges_of_changed(best_, i,
                                     [&](std::int32_t e, LabelIndex other, LabelIndex moved) {
                                         if (!pairs_.has_table(e, term.slopes.data())) return;
                                         term.join(before, other, field_.labels(), -1);
                                         term.join(after, moved, field_.labels(), 1);
                                     });
            });
            for (std::size_t p = 0; p < term.joins.size(); ++p) {
                const std::int64_t before = term.before[p], after = term.joins[p];
                if (before == after) continue;
                best_change_.add(term.costs[p] * (term.concave[after] - term.concave[before]) -
                                 term.slopes[p] * static_cast<double>(after - before));
            }
        }
        const double change = commit();
        if (change == 0.0)
            for (Transitions& term : pairs_.transitions()) term.joins.swap(term.before);
        return change;
    }

    void set_slopes(Transitions& term, Line line) const {
        const auto last = static_cast<std::int64_t>(term.tails.size());
        const double* h = term.concave;
        for (LabelIndex a = 0; last > 0 && a < field_.labels(); ++a)
            for (LabelIndex b = a + 1; b < field_.labels(); ++b) {
                const std::size_t p = Transitions::pair(a, b, field_.labels());
                const std::int64_t n = term.joins[p];
                double slope;
                if (n == 0 || (line == Line::flat && n < last))
                    slope = h[n + 1] - h[n];
                else if (line == Line::chord)
                    slope = (h[n] - h[0]) / static_cast<double>(n);
                else
                    slope = h[n] - h[n - 1];
                term.slopes[p] = term.slopes[at(b * field_.labels() + a)] = term.costs[p] * slope;
            }
    }

    // number of changes before the end of the last swap of each pair
    std::vector<std::int64_t> seen_;
};

}  // namespace setwise

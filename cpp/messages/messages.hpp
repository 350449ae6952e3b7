// Messages in a factor graph: the bound that they prove, and steps along its supergradient.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "factors/release.hpp"
#include "messages/cycle_messages.hpp"
#include "messages/factor_graph.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class Messages : public CycleMessages {
  public:
    using CycleMessages::CycleMessages;

    // Return sum_i min_x (unary plus messages) + the sum of the minima of the factors minus their
    // messages. It is computed from the messages alone, so earlier rounding errors do not matter.
    // If messages are so large that rounding in these sums could matter, a bound on the rounding
    // error is subtracted.
    template <class Poll>
    double bound(Poll poll) {
        gather();
        gather_cycles();
        CompensatedSum<double, 2> sum;
        sum.add(g_.constant);
        for (Index i = 0; i < g_.n; ++i) {
            if ((i & 63) == 63) poll();
            reparametrize(i, total_.data());
            sum.add(*std::min_element(total_.begin(), total_.end()));
        }
        for (Index e = 0; e < g_.pairs(); ++e) {
            if ((e & 63) == 63) poll();
            sum.add(pair_minimum(e));
        }
        for (Index f = 0; f < g_.counts(); ++f) {
            poll();
            collect_count(f, nullptr);
            sum.add(count_solver_.minimize(costs_));
        }
        for (Index r = 0; r < g_.robusts(); ++r) {
            poll();
            collect_robust(r, nullptr);
            sum.add(robust_solver_.minimize(costs_));
        }
        for (Index c = 0; c < g_.cliques(); ++c) {
            if ((c & 15) == 15) poll();
            collect_clique(c, nullptr);
            sum.add(clique_solver_.minimize(costs_));
        }
        for (std::size_t c = 0; c + 1 < cycle_starts_.size(); ++c) {
            if ((c & 15) == 15) poll();
            collect_cycle(static_cast<Index>(c), false);
            sum.add(cycle_solver_.minimize(costs_));
        }
        const double rounding = 8 * std::numeric_limits<double>::epsilon() * magnitude();
        const double total = sum.value();
        return rounding <= 1e-12 * std::abs(total) ? total : total - rounding;
    }

    // Step along a supergradient of the bound: messages move from the labels that factors choose to
    // those that variables choose (for cycles, that their pairs choose). Coordinate ascent can end
    // below the highest bound. Such a step leads away from this point, and may lower the bound at
    // first. It has Polyak's length: if the bound were linear, the step would raise it by `rise`.
    template <class Poll>
    void step(double rise, Poll poll) {
        choose_all(poll);
        double size = 0;
        each_disagreement([&](double&, double change) { size += change * change; });
        if (size == 0) return;
        each_disagreement([&](double& held, double change) { held += rise / size * change; });
        gather();
        gather_cycles();
    }

    // Return the sum of the largest finite absolute values, over labels, of all unaries and
    // messages.
    double magnitude() const {
        double sum = std::abs(g_.constant);
        const auto add = [&](const std::vector<double>& values, Index labels) {
            for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(labels)) {
                double most = 0;
                for (Index x = 0; x < labels; ++x)
                    if (std::abs(values[k + x]) < unbounded)
                        most = std::max(most, std::abs(values[k + x]));
                sum += most;
            }
        };
        add(g_.unary, g_.labels);
        add(pair_, g_.labels);
        add(count_, 1);
        add(robust_, g_.labels);
        add(clique_, g_.labels);
        add(cycle_, g_.labels * g_.labels);
        return sum;
    }

  private:
    // Compute the labels at which every part has its minimum.
    template <class Poll>
    void choose_all(Poll poll) {
        const Index L = g_.labels;
        gather();
        gather_cycles();
        chosen_.resize(g_.n);
        for (Index i = 0; i < g_.n; ++i) {
            reparametrize(i, total_.data());
            chosen_[i] = std::min_element(total_.begin(), total_.end()) - total_.begin();
        }
        pair_chosen_.resize(g_.pairs());
        for (Index e = 0; e < g_.pairs(); ++e) {
            if ((e & 63) == 63) poll();
            const double *const low = message(e, 0), *const high = message(e, 1);
            double least = unbounded;
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y)
                    if (held_energy(e, x, y) - low[x] - high[y] < least) {
                        least = held_energy(e, x, y) - low[x] - high[y];
                        pair_chosen_[e] = {x, y};
                    }
        }
        side_.assign(count_.size(), 0);
        for (Index f = 0; f < g_.counts(); ++f) {
            poll();
            collect_count(f, nullptr);
            count_solver_.minimize(costs_);
            count_solver_.each_chosen([&](std::size_t k) { side_[members_[k]] = 1; });
        }
        robust_chosen_.clear();
        for (Index r = 0; r < g_.robusts(); ++r) {
            collect_robust(r, nullptr);
            robust_solver_.minimize(costs_);
            for (const auto x : robust_solver_.chosen()) robust_chosen_.push_back(x);
        }
        clique_chosen_.clear();
        for (Index c = 0; c < g_.cliques(); ++c) {
            if ((c & 15) == 15) poll();
            collect_clique(c, nullptr);
            clique_solver_.minimize(costs_);
            for (const auto x : clique_solver_.chosen()) clique_chosen_.push_back(x);
        }
        cycle_chosen_.clear();
        for (std::size_t c = 0; c + 1 < cycle_starts_.size(); ++c) {
            if ((c & 15) == 15) poll();
            collect_cycle(static_cast<Index>(c), false);
            cycle_solver_.minimize(costs_);
            const auto& way = cycle_solver_.chosen();
            for (std::size_t t = 0; t + 1 < way.size(); ++t)
                cycle_chosen_.push_back(static_cast<Index>(way[t]) * L +
                                        static_cast<Index>(way[t + 1]));
        }
    }

    // Call visit(message, its supergradient) wherever the supergradient is not zero.
    template <class Visit>
    void each_disagreement(Visit visit_one) {
        const Index L = g_.labels;
        const auto differ = [&](double* held, Index rise, Index fall) {
            if (rise == fall) return;
            visit_one(held[rise], 1.0);
            visit_one(held[fall], -1.0);
        };
        for (Index e = 0; e < g_.pairs(); ++e) {
            differ(message(e, 0), chosen_[g_.low[e]], pair_chosen_[e].first);
            differ(message(e, 1), chosen_[g_.high[e]], pair_chosen_[e].second);
        }
        for (std::size_t m = 0; m < count_.size(); ++m) {
            if (g_.sides[m] != FactorGraph::free) continue;
            const int in = g_.pattern_of(m)[chosen_[g_.count_variables[m]]] != 0;
            if (in != side_[m]) visit_one(count_[m], in - side_[m]);
        }
        for (std::size_t m = 0; m < robust_chosen_.size(); ++m)
            differ(robust_.data() + m * L, chosen_[g_.robust_variables[m]],
                   static_cast<Index>(robust_chosen_[m]));
        for (std::size_t m = 0; m < clique_chosen_.size(); ++m)
            differ(clique_.data() + m * L, chosen_[g_.clique_variables[m]],
                   static_cast<Index>(clique_chosen_[m]));
        for (std::size_t k = 0; k < cycle_pairs_.size(); ++k) {
            const auto [x, y] = pair_chosen_[cycle_pairs_[k].pair];
            differ(cycle_.data() + k * L * L, cycle_pairs_[k].turned ? y * L + x : x * L + y,
                   cycle_chosen_[k]);
        }
    }

    // minimisers, from which the supergradient is computed
    std::vector<Index> chosen_, cycle_chosen_;
    std::vector<std::pair<Index, Index>> pair_chosen_;
    std::vector<std::size_t> robust_chosen_, clique_chosen_;
};

}  // namespace setwise

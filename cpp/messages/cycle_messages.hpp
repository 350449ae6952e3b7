// Messages between cycles of pairs and their pairs.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "factors/cycle_factor.hpp"
#include "factors/release.hpp"
#include "messages/factor_graph.hpp"
#include "messages/factor_messages.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class CycleMessages : public FactorMessages {
  public:
    using FactorMessages::FactorMessages;

    // Add cycles of pairs as further factors, which collect the costs of their pairs and give them
    // back. With them the bound can exceed that of the relaxation in which pairs agree on single
    // variables only. Cycle c has the variables [starts[c], starts[c + 1]), all different and at
    // least three. Return false, and do nothing, if two neighbours are not a pair or if cycles were
    // added before.
    bool add_cycles(const std::vector<Index>& starts, const std::vector<Index>& variables) {
        if (!cycle_pairs_.empty()) return false;
        std::vector<CyclePair> pairs(variables.size());
        for (std::size_t c = 0; c + 1 < starts.size(); ++c)
            for (Index k = starts[c]; k < starts[c + 1]; ++k) {
                const Index i = variables[k];
                const Index j = variables[k + 1 < starts[c + 1] ? k + 1 : starts[c]];
                const auto first = g_.high.begin() + g_.first_pair[std::min(i, j)];
                const auto last = g_.high.begin() + g_.first_pair[std::min(i, j) + 1];
                const auto found = std::find(first, last, std::max(i, j));
                if (found == last) return false;
                pairs[k] = {static_cast<Index>(found - g_.high.begin()), i > j};
            }
        cycle_starts_ = starts;
        cycle_pairs_ = std::move(pairs);
        const Index square = g_.labels * g_.labels;
        cycle_.assign(variables.size() * square, 0.0);
        // Pairs in cycles need tables of their own.
        plain_ = g_.tables;
        std::vector<Index> uses(plain_.size() / static_cast<std::size_t>(square), 0);
        for (const Index t : table_)
            if (t >= 0) ++uses[t];
        std::vector<char> is_own(table_.size(), 0);
        for (const auto& [e, turned] : cycle_pairs_) {
            if (is_own[e]) continue;
            is_own[e] = 1;
            if (table_[e] >= 0 && uses[table_[e]] == 1 && weight_[e] == 1.0) continue;
            table_[e] = static_cast<Index>(plain_.size()) / square;
            weight_[e] = 1.0;
            for (Index x = 0; x < g_.labels; ++x)
                for (Index y = 0; y < g_.labels; ++y) plain_.push_back(g_.pair_energy(e, x, y));
        }
        tables_ = plain_;
        return true;
    }

    // Let every cycle collect all costs of its pairs and return as much as possible.
    template <class Poll>
    void update_cycles(bool forward, Poll poll) {
        const Index count = static_cast<Index>(cycle_starts_.size()) - 1;
        for (Index k = 0; k < count; ++k) {
            if ((k & 15) == 15) poll();
            update_cycle(forward ? k : count - 1 - k, poll);
        }
        gather_cycles();
    }

  protected:
    // Write the tables of the pairs with the messages of all cycles.
    void gather_cycles() {
        if (cycle_pairs_.empty()) return;
        const Index L = g_.labels;
        tables_ = plain_;
        for (std::size_t k = 0; k < cycle_pairs_.size(); ++k)
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y)
                    tables_[cell(k, x, y)] += cycle_[(static_cast<Index>(k) * L + x) * L + y];
    }

    // Write the costs in the cycle: minus its messages, and with `take` plus all costs of its
    // pairs.
    void collect_cycle(Index c, bool take) {
        const Index L = g_.labels;
        costs_.clear();
        for (Index k = cycle_starts_[c]; k < cycle_starts_[c + 1]; ++k) {
            const auto& [e, turned] = cycle_pairs_[k];
            const double *const from = message(e, turned), *const to = message(e, !turned);
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y) {
                    double cost = -cycle_[(k * L + x) * L + y];
                    if (take) cost += tables_[cell(k, x, y)] - from[x] - to[y];
                    const bool may = from[x] > -unbounded && to[y] > -unbounded;
                    costs_.push_back(may ? cost : unbounded);
                }
        }
        cycle_solver_.reset(static_cast<std::size_t>(cycle_starts_[c + 1] - cycle_starts_[c]),
                            static_cast<std::size_t>(L));
    }

    struct CyclePair {
        Index pair;
        bool turned;  // whether the cycle goes from the pair's high end to its low end
    };

    std::vector<Index> cycle_starts_{0};
    std::vector<CyclePair> cycle_pairs_;
    std::vector<double> cycle_;  // (steps of all cycles, labels, labels)
    CycleFactor cycle_solver_;

  private:
    // Return where labels x, y of step k of a cycle lie in the tables.
    std::size_t cell(std::size_t k, Index x, Index y) const {
        const auto& [e, turned] = cycle_pairs_[k];
        const Index L = g_.labels;
        return static_cast<std::size_t>((table_[e] * L + (turned ? y : x)) * L + (turned ? x : y));
    }

    template <class Poll>
    void update_cycle(Index c, Poll poll) {
        const Index L = g_.labels;
        collect_cycle(c, true);
        held_ = costs_;
        release(cycle_solver_, costs_, released_, rounds, space_, poll);
        std::size_t place = 0;
        for (Index k = cycle_starts_[c]; k < cycle_starts_[c + 1]; ++k)
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y, ++place) {
                    if (held_[place] == unbounded) continue;
                    double& old = cycle_[(k * L + x) * L + y];
                    const double now = released_[place] - held_[place];
                    tables_[cell(k, x, y)] += now - old;
                    old = now;
                }
    }

    std::vector<double> plain_;  // the tables without the messages of cycles
};

}  // namespace setwise

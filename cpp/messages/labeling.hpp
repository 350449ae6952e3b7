// Energies of labellings of a factor graph, and descent by one variable at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "messages/factor_graph.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// A labelling with the counts that its factors need, so that a change of one variable costs
// O(number of its factors).
class Labeling {
  public:
    explicit Labeling(const FactorGraph& graph) : graph_(graph) {}

    const std::vector<Index>& labels() const { return labels_; }

    void set(const std::vector<Index>& labels) {
        const FactorGraph& g = graph_;
        labels_ = labels;
        chosen_.assign(g.counts(), 0);
        for (std::size_t m = 0; m < g.count_variables.size(); ++m)
            chosen_[g.count_factor[m]] += g.pattern_of(m)[labels[g.count_variables[m]]] != 0;
        taken_.assign(g.robusts() * g.labels, 0);
        for (std::size_t m = 0; m < g.robust_variables.size(); ++m)
            ++taken_[g.robust_factor[m] * g.labels + labels[g.robust_variables[m]]];
    }

    double energy() const {
        const FactorGraph& g = graph_;
        CompensatedSum<double, 2> sum;
        sum.add(g.constant);
        for (Index i = 0; i < g.n; ++i) {
            if (!g.allowed(i, labels_[i])) return unbounded;
            sum.add(g.unary_of(i)[labels_[i]]);
        }
        for (Index e = 0; e < g.pairs(); ++e)
            sum.add(g.pair_energy(e, labels_[g.low[e]], labels_[g.high[e]]));
        for (Index f = 0; f < g.counts(); ++f)
            sum.add(g.count_values[g.count_tables[f] + chosen_[f]]);
        for (Index r = 0; r < g.robusts(); ++r) {
            const Index* const taken = taken_.data() + r * g.labels;
            sum.add(robust_energy(r, *std::max_element(taken, taken + g.labels)));
        }
        for (Index c = 0; c < g.cliques(); ++c)
            sum.add(clique_cells(c, g.clique_starts[c + 1]).first[0]);
        return sum.value();
    }

    // Run iterated conditional modes: each variable in turn takes its best label given the others,
    // until none changes. The energy never rises; `most_rounds` ends descents that make slow
    // progress.
    template <class Poll>
    void descend(int most_rounds, Poll poll) {
        bool changed = true;
        for (int round = 0; round < most_rounds && changed; ++round) {
            changed = false;
            for (Index i = 0; i < graph_.n; ++i) {
                if ((i & 63) == 63) poll();
                changed |= improve(i);
            }
        }
    }

  private:
    // Return the cell of a table at the labels of its members, with label 0 for the member `free`,
    // and the stride between the cells of that member's labels.
    std::pair<const double*, Index> clique_cells(Index c, Index free) const {
        const FactorGraph& g = graph_;
        Index cell = 0, stride = 0;
        for (Index m = g.clique_starts[c]; m < g.clique_starts[c + 1]; ++m) {
            cell = cell * g.labels + (m == free ? 0 : labels_[g.clique_variables[m]]);
            stride = m == free ? 1 : stride * g.labels;
        }
        return {g.clique_values.data() + g.clique_tables[c] + cell, stride};
    }

    double robust_energy(Index r, Index most) const {
        const Index size = graph_.robust_starts[r + 1] - graph_.robust_starts[r];
        const double differ = static_cast<double>(size - most);
        return graph_.robust_weights[r] * std::min(1.0, differ / graph_.robust_truncations[r]);
    }

    // costs_[x]: the energy with label x at variable i, up to a constant that does not depend on x.
    void weigh(Index i) {
        const FactorGraph& g = graph_;
        const Index L = g.labels, old = labels_[i];
        costs_.assign(g.unary_of(i), g.unary_of(i) + L);
        for (Index e = g.first_pair[i]; e < g.first_pair[i + 1]; ++e)
            for (Index x = 0; x < L; ++x) costs_[x] += g.pair_energy(e, x, labels_[g.high[e]]);
        for (Index k = g.high_starts[i]; k < g.high_starts[i + 1]; ++k) {
            const Index e = g.high_pairs[k];
            for (Index x = 0; x < L; ++x) costs_[x] += g.pair_energy(e, labels_[g.low[e]], x);
        }
        for (Index k = g.count_member_starts[i]; k < g.count_member_starts[i + 1]; ++k) {
            const Index m = g.count_members[k], f = g.count_factor[m];
            const std::uint8_t* const in = g.pattern_of(m);
            const double* const h =
                g.count_values.data() + g.count_tables[f] + chosen_[f] - (in[old] != 0);
            for (Index x = 0; x < L; ++x) costs_[x] += h[in[x] != 0];
        }
        for (Index k = g.robust_member_starts[i]; k < g.robust_member_starts[i + 1]; ++k) {
            const Index r = g.robust_factor[g.robust_members[k]];
            Index* const taken = taken_.data() + r * L;
            --taken[old];
            const Index most = *std::max_element(taken, taken + L);
            for (Index x = 0; x < L; ++x)
                costs_[x] += robust_energy(r, std::max(most, taken[x] + 1));
            ++taken[old];
        }
        for (Index k = g.clique_member_starts[i]; k < g.clique_member_starts[i + 1]; ++k) {
            const Index m = g.clique_members[k];
            const auto [cells, stride] = clique_cells(g.clique_factor[m], m);
            for (Index x = 0; x < L; ++x) costs_[x] += cells[x * stride];
        }
    }

    void change(Index i, Index label) {
        const FactorGraph& g = graph_;
        const Index old = labels_[i];
        labels_[i] = label;
        for (Index k = g.count_member_starts[i]; k < g.count_member_starts[i + 1]; ++k) {
            const Index m = g.count_members[k];
            const std::uint8_t* const in = g.pattern_of(m);
            chosen_[g.count_factor[m]] += (in[label] != 0) - (in[old] != 0);
        }
        for (Index k = g.robust_member_starts[i]; k < g.robust_member_starts[i + 1]; ++k) {
            Index* const taken = taken_.data() + g.robust_factor[g.robust_members[k]] * g.labels;
            --taken[old];
            ++taken[label];
        }
    }

    bool improve(Index i) {
        weigh(i);
        const Index best = std::min_element(costs_.begin(), costs_.end()) - costs_.begin();
        // Accepting gains that are only rounding could cycle.
        const double now = costs_[labels_[i]];
        double size = 0.0;
        for (const double cost : costs_)
            if (std::abs(cost) < unbounded) size = std::max(size, std::abs(cost));
        if (!(costs_[best] < now - 1e-12 * size)) return false;
        change(i, best);
        return true;
    }

    const FactorGraph& graph_;
    std::vector<Index> labels_, chosen_, taken_;
    std::vector<double> costs_;
};

}  // namespace setwise

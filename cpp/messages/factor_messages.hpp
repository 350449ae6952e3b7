// Messages between variables and count factors, robust regions or tables over a few variables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "factors/clique_factor.hpp"
#include "factors/count_factor.hpp"
#include "factors/release.hpp"
#include "factors/robust_factor.hpp"
#include "messages/factor_graph.hpp"
#include "messages/pair_messages.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class FactorMessages : public PairMessages {
  public:
    FactorMessages(const FactorGraph& graph, std::vector<double> forward,
                   std::vector<double> backward, double damping)
        : PairMessages(graph, std::move(forward), std::move(backward), damping),
          count_(graph.count_variables.size(), 0.0),
          robust_(graph.robust_variables.size() * graph.labels, 0.0),
          clique_(graph.clique_variables.size() * graph.labels, 0.0) {}

    // Let every count factor, robust region and table collect all costs of its variables
    // and return as much as possible. A count factor over all variables proposes its minimiser to offer(labels).
    template <class Offer, class Poll>
    void update_factors(bool forward, Offer offer, Poll poll) {
        if (g_.only_pairs()) return;
        totals_.resize(g_.n * g_.labels);
        for (Index i = 0; i < g_.n; ++i) reparametrize(i, totals_.data() + i * g_.labels);
        for (Index k = 0; k < g_.counts(); ++k) {
            poll();
            update_count(forward ? k : g_.counts() - 1 - k, offer, poll);
        }
        for (Index k = 0; k < g_.robusts(); ++k) {
            poll();
            update_robust(forward ? k : g_.robusts() - 1 - k, poll);
        }
        for (Index k = 0; k < g_.cliques(); ++k) {
            poll();
            update_clique(forward ? k : g_.cliques() - 1 - k, poll);
        }
        gather();
    }

    // The sum of the messages of all these factors: (n, labels).
    const std::vector<double>& gathered() const { return gathered_; }

  protected:
    void gather() {
        const Index L = g_.labels;
        std::fill(gathered_.begin(), gathered_.end(), 0.0);
        for (std::size_t m = 0; m < count_.size(); ++m)
            for (Index x = 0; x < L; ++x)
                if (g_.pattern_of(m)[x]) gathered_[g_.count_variables[m] * L + x] += count_[m];
        for (std::size_t m = 0; m < g_.robust_variables.size(); ++m)
            for (Index x = 0; x < L; ++x)
                gathered_[g_.robust_variables[m] * L + x] += robust_[m * L + x];
        for (std::size_t m = 0; m < g_.clique_variables.size(); ++m)
            for (Index x = 0; x < L; ++x)
                gathered_[g_.clique_variables[m] * L + x] += clique_[m * L + x];
    }

    // Compute the costs, inside the factor, of the members that have a choice: minus their
    // messages, and with `totals` plus the costs of their variables, which then contain all that
    // the variables have.
    void collect_count(Index f, const double* totals) {
        costs_.clear();
        members_.clear();
        Index forced = 0;
        for (Index m = g_.count_starts[f]; m < g_.count_starts[f + 1]; ++m) {
            forced += g_.sides[m] == FactorGraph::always;
            if (g_.sides[m] != FactorGraph::free) continue;
            members_.push_back(m);
            costs_.push_back(-count_[m]);
            if (!totals) continue;
            const double* const total = totals + g_.count_variables[m] * g_.labels;
            double least[2] = {unbounded, unbounded};
            for (Index x = 0; x < g_.labels; ++x) {
                double& side = least[g_.pattern_of(m)[x] != 0];
                side = std::min(side, total[x]);
            }
            costs_.back() += least[1] - least[0];
        }
        count_solver_.reset(g_.count_values.data() + g_.count_tables[f] + forced);
    }

    // Do the same by label, for the members begin..end - 1 of factors with such messages.
    void collect(const std::vector<Index>& variables, const std::vector<double>& messages,
                 Index begin, Index end, const double* totals) {
        const Index L = g_.labels;
        costs_.clear();
        for (Index m = begin; m < end; ++m)
            for (Index x = 0; x < L; ++x) {
                const Index i = variables[m];
                costs_.push_back(g_.allowed(i, x)
                                     ? (totals ? totals[i * L + x] : 0.0) - messages[m * L + x]
                                     : unbounded);
            }
    }

    void collect_clique(Index c, const double* totals) {
        const Index begin = g_.clique_starts[c], end = g_.clique_starts[c + 1];
        collect(g_.clique_variables, clique_, begin, end, totals);
        clique_solver_.reset(static_cast<std::size_t>(g_.labels),
                             static_cast<std::size_t>(end - begin),
                             g_.clique_values.data() + g_.clique_tables[c]);
    }

    void collect_robust(Index r, const double* totals) {
        const Index L = g_.labels;
        collect(g_.robust_variables, robust_, g_.robust_starts[r], g_.robust_starts[r + 1], totals);
        robust_solver_.reset(static_cast<std::size_t>(L), g_.robust_weights[r],
                             g_.robust_truncations[r]);
    }

    // The rounds in which costs are returned. Two return nearly all; no measurement is on record.
    static constexpr int rounds = 2;

    std::vector<double> count_;   // (members,): a cost of the labels in the pattern
    std::vector<double> robust_;  // (members, labels)
    std::vector<double> clique_;  // (members, labels)
    std::vector<double> costs_, held_, released_;
    std::vector<Index> members_;
    std::vector<std::uint8_t> side_;
    CountFactor count_solver_;
    RobustFactor robust_solver_;
    CliqueFactor clique_solver_;
    ReleaseSpace space_;

  private:
    // Split the costs of a factor into a part that it keeps and a part that it returns.
    template <class Solver, class Poll>
    void answer(Solver& solver, Poll poll) {
        held_ = costs_;
        if (is_max_product())
            solver.min_marginals(costs_, released_);
        else
            release(solver, costs_, released_, rounds, space_, poll);
    }
    double damped(std::size_t k, double old) const {
        const double now = released_[k] - held_[k];
        return is_max_product() ? (1 - damping_) * now + damping_ * old : now;
    }

    template <class Offer, class Poll>
    void update_count(Index f, Offer offer, Poll poll) {
        collect_count(f, totals_.data());
        if (g_.count_starts[f + 1] - g_.count_starts[f] == g_.n) propose(f, offer);
        answer(count_solver_, poll);
        for (std::size_t k = 0; k < members_.size(); ++k) {
            const Index m = members_[k];
            const double now = damped(k, count_[m]);
            double* const total = totals_.data() + g_.count_variables[m] * g_.labels;
            for (Index x = 0; x < g_.labels; ++x)
                if (g_.pattern_of(m)[x]) total[x] += now - count_[m];
            count_[m] = now;
        }
    }

    template <class Offer>
    void propose(Index f, Offer offer) {
        count_solver_.minimize(costs_);
        side_.assign(g_.count_starts[f + 1] - g_.count_starts[f], 0);
        for (std::size_t m = 0; m < side_.size(); ++m)
            side_[m] = g_.sides[g_.count_starts[f] + m] == FactorGraph::always;
        count_solver_.each_chosen(
            [&](std::size_t k) { side_[members_[k] - g_.count_starts[f]] = 1; });
        proposal_.resize(g_.n);
        for (std::size_t k = 0; k < side_.size(); ++k) {
            const Index m = g_.count_starts[f] + static_cast<Index>(k), i = g_.count_variables[m];
            double least = unbounded;
            for (Index x = 0; x < g_.labels; ++x)
                if ((g_.pattern_of(m)[x] != 0) == (side_[k] != 0) &&
                    totals_[i * g_.labels + x] < least) {
                    least = totals_[i * g_.labels + x];
                    proposal_[i] = x;
                }
        }
        offer(proposal_);
    }

    template <class Poll>
    void update_robust(Index r, Poll poll) {
        collect_robust(r, totals_.data());
        answer(robust_solver_, poll);
        give_back(g_.robust_variables, g_.robust_starts[r], robust_);
    }

    template <class Poll>
    void update_clique(Index c, Poll poll) {
        collect_clique(c, totals_.data());
        answer(clique_solver_, poll);
        give_back(g_.clique_variables, g_.clique_starts[c], clique_);
    }

    // Set the messages of a factor's members, from member `start` on, to its answer.
    void give_back(const std::vector<Index>& variables, Index start,
                   std::vector<double>& messages) {
        const Index L = g_.labels;
        for (std::size_t k = 0; k < costs_.size(); ++k) {
            if (held_[k] == unbounded) continue;
            double& old = messages[start * L + static_cast<Index>(k)];
            const double now = damped(k, old);
            const Index m = start + static_cast<Index>(k) / L, x = static_cast<Index>(k) % L;
            totals_[variables[m] * L + x] += now - old;
            old = now;
        }
    }

    std::vector<double> totals_;  // (n, labels): the unaries plus all messages
    std::vector<Index> proposal_;
};

}  // namespace setwise

// Sum-product belief propagation over pairs and cliques, in logarithms, one variable after the
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "fields/pair_energies.hpp"
#include "marginals/clique_messages.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class SumProduct {
  public:
    using Index = std::int64_t;

    SumProduct(const double* unary, Index n, Index n_labels)
        : n_(n),
          n_labels_(n_labels),
          unary_(unary, unary + n * n_labels),
          pairs_(n, n_labels),
          cliques_(n, n_labels),
          belief_(static_cast<std::size_t>(n_labels)),
          mass_(belief_),
          fresh_(belief_) {
        pairs_.close();
    }

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    PairEnergies& pairs() { return pairs_; }
    CliqueMessages& cliques() { return cliques_; }

    // Start with flat messages. Call this after all pairs are added.
    void close() {
        pairs_.close();
        messages_.assign(static_cast<std::size_t>(2 * pairs_.edges() * n_labels_), 0.0);
    }

    // Update all variables in order, then back. Return the largest change of a message, measured in
    // exp(message) in [0, 1], before damping.
    double sweep(double temperature, double damping, Poll poll) {
        double largest = 0;
        for (Index i = 0; i < n_; ++i)
            largest = std::max(largest, send(i, temperature, damping, poll));
        for (Index i = n_; i-- > 0;)
            largest = std::max(largest, send(i, temperature, damping, poll));
        return largest;
    }

    void probabilities(double temperature, double* p) {
        for (Index i = 0; i < n_; ++i) {
            gather(i, temperature);
            double* const row = p + i * n_labels_;
            const double most = *std::max_element(belief_.begin(), belief_.end());
            double sum = 0;
            for (Index a = 0; a < n_labels_; ++a) sum += row[a] = std::exp(belief_[a] - most);
            for (Index a = 0; a < n_labels_; ++a) row[a] /= sum;
        }
    }

  private:
    double* message(Index arc) { return messages_.data() + arc * n_labels_; }

    // Set belief_ to the log of the product of the variable's own factor and all messages to it.
    void gather(Index i, double temperature) {
        for (Index a = 0; a < n_labels_; ++a) belief_[a] = -unary_[i * n_labels_ + a] / temperature;
        for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc) {
            const double* const to = message(*arc ^ 1);
            for (Index a = 0; a < n_labels_; ++a) belief_[a] += to[a];
        }
        cliques_.add_to(i, belief_.data());
    }

    double send(Index i, double temperature, double damping, Poll poll) {
        if (i % 256 == 0) poll();
        double largest = cliques_.receive(i, temperature, damping, fresh_);
        gather(i, temperature);
        cliques_.send(i, belief_);
        for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc) {
            const double* const back = message(*arc ^ 1);
            for (Index a = 0; a < n_labels_; ++a) mass_[a] = belief_[a] - back[a];
            const double most = *std::max_element(mass_.begin(), mass_.end());
            double sum = 0;
            for (Index a = 0; a < n_labels_; ++a) sum += mass_[a] = std::exp(mass_[a] - most);
            if (pairs_.is_table(*arc))
                marginalise(*arc, temperature);
            else
                potts(*arc, temperature, sum);
            double* const out = message(*arc);
            const double top = *std::max_element(fresh_.begin(), fresh_.end());
            for (Index b = 0; b < n_labels_; ++b) {
                const double next = fresh_[b] - top;
                largest = std::max(largest, std::abs(std::exp(next) - std::exp(out[b])));
                out[b] = damping * out[b] + (1 - damping) * next;
            }
        }
        return largest;
    }

    // Compute a Potts message in O(L): every label is reached at the cost of a change, or without
    // one.
    void potts(Index arc, double temperature, double sum) {
        const double change = std::exp(-pairs_.weight(arc) / temperature);
        for (Index b = 0; b < n_labels_; ++b)
            fresh_[b] = std::log(std::max(change * (sum - mass_[b]) + mass_[b], tiny));
    }

    void marginalise(Index arc, double temperature) {
        for (Index b = 0; b < n_labels_; ++b) {
            double least = pairs_.at(arc, 0, b);
            for (Index a = 1; a < n_labels_; ++a) least = std::min(least, pairs_.at(arc, a, b));
            double sum = 0;
            for (Index a = 0; a < n_labels_; ++a)
                sum += mass_[a] * std::exp((least - pairs_.at(arc, a, b)) / temperature);
            fresh_[b] = std::log(std::max(sum, tiny)) - least / temperature;
        }
    }

    static constexpr double tiny = 1e-300;  // replaces 0 in a logarithm; a normal number

    Index n_, n_labels_;
    std::vector<double> unary_, messages_;
    PairEnergies pairs_;
    CliqueMessages cliques_;
    std::vector<double> belief_, mass_, fresh_;
};

}  // namespace setwise

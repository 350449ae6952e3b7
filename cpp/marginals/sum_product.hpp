// Sum-product belief propagation over pairs and cliques, in logarithms, one variable after the
// other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "fields/pair_energies.hpp"
#include "marginals/clique_messages.hpp"
#include "marginals/tree_loops.hpp"
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
          fresh_(belief_),
          before_(belief_) {
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
        change_.resize(static_cast<std::size_t>(pairs_.edges()));
        for (Index e = 0; e < pairs_.edges(); ++e)
            change_[e] = std::exp(-pairs_.weight(2 * e) / temperature);
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
            if (pairs_.is_table(*arc)) {
                masses(belief_.data(), back, n_labels_, mass_.data());
                marginalise(*arc, temperature);
            } else {
                potts_message(belief_.data(), back, change_[*arc >> 1], n_labels_, mass_.data(),
                              fresh_.data());
            }
            double* const out = message(*arc);
            exponentials_of(fresh_.data(), n_labels_, mass_.data());
            exponentials_of(out, n_labels_, before_.data());
            for (Index b = 0; b < n_labels_; ++b) {
                largest = std::max(largest, std::abs(mass_[b] - before_[b]));
                out[b] = damping * out[b] + (1 - damping) * fresh_[b];
            }
        }
        return largest;
    }

    void marginalise(Index arc, double temperature) {
        for (Index b = 0; b < n_labels_; ++b) {
            double least = pairs_.at(arc, 0, b);
            for (Index a = 1; a < n_labels_; ++a) least = std::min(least, pairs_.at(arc, a, b));
            double sum = 0;
            for (Index a = 0; a < n_labels_; ++a)
                sum += mass_[a] * std::exp((least - pairs_.at(arc, a, b)) / temperature);
            fresh_[b] = std::log(std::max(sum, tiny_mass)) - least / temperature;
        }
        const double top = *std::max_element(fresh_.begin(), fresh_.end());
        for (double& value : fresh_) value -= top;
    }

    Index n_, n_labels_;
    std::vector<double> unary_, messages_;
    PairEnergies pairs_;
    CliqueMessages cliques_;
    std::vector<double> change_;  // (E,): exp(-weight / t), for Potts
    std::vector<double> belief_, mass_, fresh_, before_;
};

}  // namespace setwise

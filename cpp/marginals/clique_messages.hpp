// Sum-product messages between tables over a few variables and these variables, in logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace setwise {

class CliqueMessages {
  public:
    using Index = std::int64_t;

    CliqueMessages(Index n, Index n_labels)
        : n_labels_(n_labels), of_(static_cast<std::size_t>(n)) {}

    // cliques (C, k) of distinct variables, tables (C, sides) of energies in C order; a label
    // beyond its side is forbidden, and so is an infinite energy.
    void add(const Index* cliques, Index count, const std::vector<Index>& sides,
             const double* tables) {
        const auto size = static_cast<Index>(sides.size());
        Index cells = 1;
        for (const Index side : sides) cells *= side;
        for (Index c = 0; c < count; ++c) {
            const auto which = static_cast<Index>(cliques_.size());
            const auto entries = static_cast<std::size_t>(size * n_labels_);
            cliques_.push_back({sides,
                                {tables + c * cells, tables + (c + 1) * cells},
                                std::vector<double>(entries, 1.0),
                                std::vector<double>(entries, 0.0)});
            for (Index k = 0; k < size; ++k) of_[cliques[c * size + k]].push_back({which, k});
        }
    }

    // Compute the messages to variable i from those of the other variables. Return the largest
    // change of one, measured in exp(message) in [0, 1], before damping.
    double receive(Index i, double temperature, double damping, std::vector<double>& fresh) {
        double largest = 0;
        for (const auto& [which, position] : of_[i]) {
            Clique& clique = cliques_[which];
            sum(clique, position, temperature, fresh);
            const double top = *std::max_element(fresh.begin(), fresh.end());
            double* const out = clique.to.data() + position * n_labels_;
            for (Index a = 0; a < n_labels_; ++a) {
                const double next = std::log(std::max(top > 0 ? fresh[a] / top : 1.0, tiny));
                largest = std::max(largest, std::abs(std::exp(next) - std::exp(out[a])));
                out[a] = damping * out[a] + (1 - damping) * next;
            }
        }
        return largest;
    }

    void add_to(Index i, double* belief) const {
        for (const auto& [which, position] : of_[i]) {
            const double* const to = cliques_[which].to.data() + position * n_labels_;
            for (Index a = 0; a < n_labels_; ++a) belief[a] += to[a];
        }
    }

    // Send the message of variable i to each of its tables: its belief without the table's own
    // message.
    void send(Index i, const std::vector<double>& belief) {
        for (const auto& [which, position] : of_[i]) {
            Clique& clique = cliques_[which];
            const double* const to = clique.to.data() + position * n_labels_;
            double* const from = clique.from.data() + position * n_labels_;
            double most = belief[0] - to[0], total = 0;
            for (Index a = 1; a < n_labels_; ++a) most = std::max(most, belief[a] - to[a]);
            for (Index a = 0; a < n_labels_; ++a)
                total += from[a] = std::exp(belief[a] - to[a] - most);
            for (Index a = 0; a < n_labels_; ++a) from[a] /= total;
        }
    }

  private:
    static constexpr double tiny = 1e-300;  // replaces 0 in a logarithm; a normal number
    struct Clique {
        std::vector<Index> sides;
        std::vector<double> table;
        std::vector<double> from, to;  // (k, L): probabilities from variables, logarithms to them
    };
    struct Place {
        Index clique, position;
    };

    // fresh[a]: the sum over the labels of the other variables, relative to the least energy of the
    // table.
    void sum(const Clique& clique, Index free, double temperature,
             std::vector<double>& fresh) const {
        const auto size = static_cast<Index>(clique.sides.size());
        const double least = *std::min_element(clique.table.begin(), clique.table.end());
        std::fill(fresh.begin(), fresh.end(), 0.0);
        std::vector<Index> at(clique.sides.size(), 0);
        for (const double height : clique.table) {
            double mass = std::exp((least - height) / temperature);
            for (Index k = 0; k < size && mass > 0; ++k)
                if (k != free) mass *= clique.from[k * n_labels_ + at[k]];
            fresh[at[free]] += mass;
            for (Index k = size; k-- > 0;) {
                if (++at[k] < clique.sides[k]) break;
                at[k] = 0;
            }
        }
    }

    Index n_labels_;
    std::vector<Clique> cliques_;
    std::vector<std::vector<Place>> of_;  // the places of each variable
};

}  // namespace setwise

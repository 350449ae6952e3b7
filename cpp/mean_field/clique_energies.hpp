// Tables over a few variables each, under a factorised Q: their expectations given a label, and in
// total.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace setwise {

class CliqueEnergies {
  public:
    using Index = std::int64_t;

    CliqueEnergies(Index n, Index n_labels)
        : n_labels_(n_labels), of_(static_cast<std::size_t>(n)) {}

    // cliques (C, k) of distinct variables, tables (C, sides) in C order; a label beyond its side
    // is forbidden. Where labels are compared, infinite entries count as `price`.
    void add(const Index* cliques, Index count, const std::vector<Index>& sides,
             const double* tables, double price) {
        const auto size = static_cast<Index>(sides.size());
        Index cells = 1;
        for (const Index side : sides) cells *= side;
        for (Index c = 0; c < count; ++c) {
            const auto which = static_cast<Index>(cliques_.size());
            cliques_.push_back({{cliques + c * size, cliques + (c + 1) * size},
                                sides,
                                {tables + c * cells, tables + (c + 1) * cells},
                                price});
            for (Index k = 0; k < size; ++k) of_[cliques[c * size + k]].push_back({which, k});
        }
    }

    // Add the expected cost of each label of variable i.
    void add_expected(Index i, const double* q, double* expected) const {
        for (const auto& [which, position] : of_[i]) {
            const Clique& clique = cliques_[which];
            each_cell(clique, q, position, [&](double mass, Index label, double height) {
                expected[label] += mass * (height < infinite ? height : clique.price);
            });
            for (Index j = clique.sides[position]; j < n_labels_; ++j) expected[j] += clique.price;
        }
    }

    // Add the expected energy of a Q without mass on forbidden labels.
    template <class Sum>
    void add_energy(const double* q, Sum& energy) const {
        for (const Clique& clique : cliques_)
            each_cell(clique, q, -1,
                      [&](double mass, Index, double height) { energy.add(mass * height); });
    }

    // Return whether Q puts mass on forbidden labels.
    bool forbids(const double* q) const {
        bool found = false;
        for (const Clique& clique : cliques_) {
            each_cell(clique, q, -1,
                      [&](double, Index, double height) { found = found || !(height < infinite); });
            for (std::size_t k = 0; k < clique.sides.size(); ++k)
                for (Index j = clique.sides[k]; j < n_labels_; ++j)
                    found = found || q[clique.variables[k] * n_labels_ + j] > 0;
        }
        return found;
    }

  private:
    static constexpr double infinite = std::numeric_limits<double>::infinity();
    struct Clique {
        std::vector<Index> variables, sides;
        std::vector<double> table;
        double price;
    };
    struct Place {
        Index clique, position;
    };

    // Call body(mass, label of `free`, height) for every cell of positive mass under q, without the
    // factor of the position `free`.
    template <class Body>
    void each_cell(const Clique& clique, const double* q, Index free, const Body& body) const {
        const auto size = static_cast<Index>(clique.variables.size());
        std::vector<Index> at(clique.variables.size(), 0);
        for (const double height : clique.table) {
            double mass = 1;
            for (Index k = 0; k < size && mass > 0; ++k)
                if (k != free) mass *= q[clique.variables[k] * n_labels_ + at[k]];
            if (mass > 0) body(mass, free < 0 ? Index(0) : at[free], height);
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

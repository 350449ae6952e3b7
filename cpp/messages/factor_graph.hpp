// An energy as a factor graph: unaries, pairs of variables, functions of counts, robust regions, tables
// over a few variables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "factors/release.hpp"

namespace setwise {

using Index = std::int64_t;

// Variables are numbered in the order in which messages visit them.
struct FactorGraph {
    Index n = 0, labels = 0;
    double constant = 0;
    std::vector<double> unary;  // (n, labels), +inf where forbidden

    // Pairs low < high, sorted by low: a Potts weight where table is -1, else the weight times
    // tables[table].
    std::vector<Index> low, high, table;
    std::vector<double> weight, tables;

    // Factor f: h(number of its members whose label is in the member's pattern).
    std::vector<Index> count_starts, count_variables, count_patterns, count_tables;
    std::vector<double> count_values;
    std::vector<std::uint8_t> patterns;  // (any, labels)

    // Region r: weight min(1, least number of members that differ from one label / truncation).
    std::vector<Index> robust_starts, robust_variables;
    std::vector<double> robust_weights, robust_truncations;

    // Table c over its members: clique_values from clique_tables[c] on, the last member fastest.
    std::vector<Index> clique_starts{0}, clique_variables, clique_tables;
    std::vector<double> clique_values;

    // Computed from the above: pairs with this low (first_pair) or high end, members by variable.
    std::vector<Index> first_pair, high_starts, high_pairs;
    std::vector<Index> count_member_starts, count_members, count_factor;
    std::vector<Index> robust_member_starts, robust_members, robust_factor;
    std::vector<Index> clique_member_starts, clique_members, clique_factor;
    enum Side : std::uint8_t { free, always, never };
    std::vector<Side> sides;  // for each count member: whether forbidden labels leave a choice
    bool forbids = false;

    Index pairs() const { return static_cast<Index>(low.size()); }
    Index counts() const { return static_cast<Index>(count_tables.size()); }
    Index robusts() const { return static_cast<Index>(robust_weights.size()); }
    Index cliques() const { return static_cast<Index>(clique_tables.size()); }
    bool only_pairs() const { return counts() + robusts() + cliques() == 0; }
    const double* unary_of(Index i) const { return unary.data() + i * labels; }
    bool allowed(Index i, Index x) const { return unary[i * labels + x] < unbounded; }
    const std::uint8_t* pattern_of(Index member) const {
        return patterns.data() + count_patterns[member] * labels;
    }
    double pair_energy(Index e, Index x, Index y) const {
        if (table[e] < 0) return x == y ? 0 : weight[e];
        return weight[e] * tables[(table[e] * labels + x) * labels + y];
    }

    void index() {
        first_pair = by_group(low, n, nullptr);
        high_starts = by_group(high, n, &high_pairs);
        count_member_starts = by_group(count_variables, n, &count_members);
        robust_member_starts = by_group(robust_variables, n, &robust_members);
        clique_member_starts = by_group(clique_variables, n, &clique_members);
        clique_factor = owners(clique_starts);
        count_factor = owners(count_starts);
        robust_factor = owners(robust_starts);
        forbids = std::find(unary.begin(), unary.end(), unbounded) != unary.end();
        sides.assign(count_variables.size(), free);
        for (std::size_t m = 0; m < sides.size(); ++m) {
            bool in = false, out = false;
            for (Index x = 0; x < labels; ++x)
                if (allowed(count_variables[m], x)) (pattern_of(m)[x] ? in : out) = true;
            if (!out) sides[m] = always;
            if (!in) sides[m] = never;
        }
    }

  private:
    // Return the starts of the groups 0..count-1, and optionally the items sorted by group.
    static std::vector<Index> by_group(const std::vector<Index>& group, Index count,
                                       std::vector<Index>* items) {
        std::vector<Index> starts(count + 1, 0);
        for (const Index g : group) ++starts[g + 1];
        for (Index g = 0; g < count; ++g) starts[g + 1] += starts[g];
        if (items) {
            std::vector<Index> next(starts.begin(), starts.end() - 1);
            items->resize(group.size());
            for (std::size_t k = 0; k < group.size(); ++k)
                (*items)[next[group[k]]++] = static_cast<Index>(k);
        }
        return starts;
    }

    static std::vector<Index> owners(const std::vector<Index>& starts) {
        std::vector<Index> owner(starts.back());
        for (std::size_t f = 0; f + 1 < starts.size(); ++f)
            std::fill(owner.begin() + starts[f], owner.begin() + starts[f + 1],
                      static_cast<Index>(f));
        return owner;
    }
};

}  // namespace setwise

// Marginals for the sanitizers, on random fields so small that all labellings can be summed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "marginals/fewest_edges_first.hpp"
#include "marginals/junction_tree.hpp"
#include "marginals/sum_product.hpp"
#include "marginals/tree_bound.hpp"
#include "mean_field/forest_field.hpp"
#include "mean_field/induced_forest.hpp"
#include "mean_field/mean_field.hpp"
#include "relaxation/frank_wolfe.hpp"
#include "sampling/forest_sampler.hpp"

namespace setwise {

// A path of n variables: unaries with forbidden labels, Potts terms and tables in turn, a function
// of the counts of all variables, one of the variables at label 0, and a cost of two labels.
struct SmallField {
    std::int64_t n, labels;
    std::vector<double> unary, weights, factors, tables, heights, own_heights;
    std::vector<std::int64_t> potts, pairs, which, all, own;
    std::vector<std::uint8_t> costly;

    SmallField(std::mt19937& random, std::int64_t size)
        : n(size), labels(1 + static_cast<std::int64_t>(random() % 3)) {
        std::normal_distribution<double> normal;
        for (std::int64_t i = 0; i < n; ++i) {
            const auto open = static_cast<std::int64_t>(random()) % labels;
            for (std::int64_t j = 0; j < labels; ++j)
                unary.push_back(j != open && random() % 4 == 0
                                    ? std::numeric_limits<double>::infinity()
                                    : normal(random));
            all.push_back(i);
            own.push_back(0);
            if (i == 0) continue;
            if (i % 2 == 0) {
                potts.insert(potts.end(), {i - 1, i});
                weights.push_back(std::abs(normal(random)));
            } else {
                pairs.insert(pairs.end(), {i, i - 1});
                which.push_back(static_cast<std::int64_t>(which.size()));
                factors.push_back(1.0);
                for (std::int64_t k = 0; k < labels * labels; ++k) tables.push_back(normal(random));
            }
        }
        for (std::int64_t k = 0; k <= n; ++k) {
            heights.push_back(normal(random));
            own_heights.push_back(normal(random));
        }
        for (std::int64_t j = 0; j < labels; ++j) costly.push_back(j < 2);
    }

    double energy(const std::vector<std::int64_t>& x, bool higher) const {
        double sum = 0;
        std::vector<std::int64_t> counts(static_cast<std::size_t>(labels));
        bool used = false;
        for (std::int64_t i = 0; i < n; ++i) {
            sum += unary[i * labels + x[i]];
            ++counts[x[i]];
            used = used || x[i] < 2;
        }
        for (std::size_t e = 0; e < weights.size(); ++e)
            sum += x[potts[2 * e]] != x[potts[2 * e + 1]] ? weights[e] : 0;
        for (std::size_t e = 0; 2 * e < pairs.size(); ++e)
            sum += tables[(static_cast<std::int64_t>(e) * labels + x[pairs[2 * e]]) * labels +
                          x[pairs[2 * e + 1]]];
        if (!higher || n == 0) return sum;
        for (const std::int64_t count : counts) sum += heights[count];
        return sum + own_heights[counts[0]] + (used ? 0.7 : 0.0);
    }

    // Return the log of the sum of exp(-E) over all labellings, and the probability of label 0 at
    // variable 0.
    std::pair<double, double> sums(bool higher) const {
        std::vector<std::int64_t> x(static_cast<std::size_t>(n));
        double total = 0, first = 0;
        for (;;) {
            const double weight = std::exp(-energy(x, higher));
            total += weight;
            if (n > 0 && x[0] == 0) first += weight;
            std::int64_t i = 0;
            while (i < n && ++x[i] == labels) x[i++] = 0;
            if (i == n) break;
        }
        return {std::log(total), first / total};
    }
};

template <class State>
void add_tables(State& state, const SmallField& field) {
    const auto count = static_cast<std::int64_t>(field.which.size());
    state.pairs().add_tables(field.pairs.data(), field.which.data(), field.factors.data(), count,
                             field.tables.data(), count);
}

inline void check_mean_field(std::mt19937& random, std::int64_t small, std::int64_t n) {
    const SmallField field(random, n);
    MeanField state(field.unary.data(), field.n, field.labels, small);
    state.pairs().add_potts(field.potts.data(), field.weights.data(),
                            static_cast<std::int64_t>(field.weights.size()));
    add_tables(state, field);
    state.pairs().close();
    if (field.n > 0) {
        CountBlocks counts;
        counts.variables = field.all;
        counts.starts = {0, field.n};
        counts.table = field.heights;
        state.add_counts(counts);
        counts.own = field.own;
        counts.table = field.own_heights;
        state.add_counts(counts);
        state.add_cost(0.7, field.costly.data());
    }
    if (field.n > 0) {
        // another start: a copy with other own labels, and back again
        MeanField other(state);
        std::vector<std::int64_t> own(field.own);
        for (auto& label : own) label = (label + 1) % field.labels;
        other.replace_own(1, own.data());
        other.replace_own(1, field.own.data());
        other.sweep(1.0, [] {});
        MeanField same(state);
        same.sweep(1.0, [] {});
        if (other.q() != same.q()) throw std::runtime_error("a copy is not what was copied");
    }
    constexpr double unknown = std::numeric_limits<double>::infinity();
    const double truth = n < 10 ? field.sums(true).first : unknown;
    double before = -std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < 4; ++pass) {
        state.sweep(1.0, [] {});
        const auto value = state.value(small, 1, [] {});
        const auto threaded = state.value(small, 2, [] {});
        const double bound = value.entropy - value.energy;
        if (bound > truth + 1e-9) throw std::runtime_error("mean field passed log Z");
        if (bound < before - 1e-9 * static_cast<double>(1 + n))
            throw std::runtime_error("a sweep lowered the bound");
        if (value.energy != threaded.energy) throw std::runtime_error("threads changed a bound");
        before = bound;
    }
}

inline void check_sum_product(std::mt19937& random) {
    const SmallField field(random, static_cast<std::int64_t>(random() % 6));
    SumProduct state(field.unary.data(), field.n, field.labels);
    state.pairs().add_potts(field.potts.data(), field.weights.data(),
                            static_cast<std::int64_t>(field.weights.size()));
    add_tables(state, field);
    state.close();
    state.sweep(1.0, 0.0, [] {});
    std::vector<double> p(field.unary.size());
    state.probabilities(1.0, p.data());
    if (field.n > 0 && std::abs(p[0] - field.sums(false).second) > 1e-9)
        throw std::runtime_error("messages on a path are not exact");
}

template <class State>
void add_pairs(State& state, const SmallField& field) {
    state.pairs().add_potts(field.potts.data(), field.weights.data(),
                            static_cast<std::int64_t>(field.weights.size()));
    add_tables(state, field);
}

// Check a path, which is a tree: its upper bounds, its lower bounds and the sum itself are log Z.
inline void check_trees(std::mt19937& random, std::int64_t n, int n_threads) {
    const SmallField field(random, n);
    const bool known = n < 10;
    const double truth = known ? field.sums(false).first : 0;
    std::vector<std::int64_t> edges(field.potts), order(static_cast<std::size_t>(n)), starts{0};
    edges.insert(edges.end(), field.pairs.begin(), field.pairs.end());
    const auto count = static_cast<std::int64_t>(edges.size()) / 2;
    fewest_edges_first(n, edges.data(), count, order.data());
    for (std::int64_t k = 7; k < n; k += 7) starts.push_back(k);
    if (n > 0) starts.push_back(n);
    TreeBound<double> above(field.unary.data(), n, field.labels);
    add_pairs(above, field);
    above.close(order.data(), starts.data(), static_cast<std::int64_t>(starts.size()) - 1);
    const std::vector<double> rho(static_cast<std::size_t>(count), 1.0);
    above.set_shares(rho.data());
    std::vector<double> logs(field.unary.size()), informations(rho);
    double bound = above.forward(n_threads, [] {});
    above.backward(1.0, logs.data(), n_threads, [] {});
    bound = above.forward(n_threads, [] {});
    const double dual = above.dual(logs.data(), informations.data(), n_threads, [] {});
    const double slack = 1e-9 * static_cast<double>(1 + n);
    if (std::abs(bound - dual) > slack) throw std::runtime_error("a gap on a path");
    if (std::abs(above.cover_bound(order.data(), rho.data(), [] {}) - bound) > slack)
        throw std::runtime_error("a cover of a path is not the path");
    std::vector<double> marginal(static_cast<std::size_t>(field.labels * field.labels));
    if (count > 0) above.pair_marginal(0, logs.data(), marginal.data());

    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    for (std::int64_t e = 0; e < count; ++e) all[e] = e;
    std::vector<std::uint8_t> kept(static_cast<std::size_t>(count)), spanning(kept);
    induced_forest(n, edges.data(), count, all.data(), count, kept.data());
    spanning_forest(n, edges.data(), rho.data(), count, spanning.data());
    if (kept != spanning) throw std::runtime_error("a path is not its own forest");
    ForestField below(field.unary.data(), n, field.labels);
    add_pairs(below, field);
    below.pairs().close();
    below.set_forest(kept.data(), 1.0);
    below.sweep(1.0, 1, [] {});
    if (std::abs(below.value(1.0, 1, [] {}) - bound) > slack)
        throw std::runtime_error("the tree of a path is not the path");
    // short trees: several tasks of one colour
    for (std::int64_t e = 0; e < count; e += 3) kept[e] = 0;
    below.set_forest(kept.data(), 1.0);
    ForestField alone(below);
    below.sweep(1.0, n_threads, [] {});
    alone.sweep(1.0, 1, [] {});
    if (below.q() != alone.q() || below.value(1.0, n_threads, [] {}) != alone.value(1.0, 1, [] {}))
        throw std::runtime_error("threads changed a forest");
    if (below.value(1.0, 1, [] {}) > bound + slack)
        throw std::runtime_error("a forest passed log Z");
    if (!known) return;
    if (std::abs(bound - truth) > slack) throw std::runtime_error("a path's bound is not log Z");

    std::vector<double> minus(field.unary), p(field.unary);
    for (double& value : minus) value = -value;
    JunctionTree tree(minus.data(), n, field.labels);
    std::vector<double> table(marginal.size());
    for (std::int64_t e = 0; e < count; ++e) {
        const auto potts = static_cast<std::int64_t>(field.weights.size());
        for (std::int64_t a = 0; a < field.labels; ++a)
            for (std::int64_t b = 0; b < field.labels; ++b) {
                const std::int64_t cell = a * field.labels + b;
                table[cell] = e < potts
                                  ? (a == b ? 0.0 : -field.weights[e])
                                  : -field.tables[(e - potts) * field.labels * field.labels + cell];
            }
        const std::int64_t sides[] = {field.labels, field.labels};
        tree.add_factor(edges.data() + 2 * e, 2, sides, table.data());
    }
    tree.plan(n % 2 ? 1e6 : 9.0, 1e6, [] {});  // a pair has nine cells at most
    if (std::abs(tree.log_partition(2, [] {}) - truth) > slack)
        throw std::runtime_error("elimination is not log Z");
    std::vector<double> expected(static_cast<std::size_t>(count));
    tree.marginals(p.data(), expected.data(), 2, [] {});
    if (n > 0 && std::abs(p[0] - field.sums(false).second) > 1e-9)
        throw std::runtime_error("marginals of elimination are not exact");
    std::vector<std::int64_t> labels(static_cast<std::size_t>(n));
    const double best = tree.best(labels.data(), 2, [] {});
    if (best > truth + slack || best < truth - double(n) * std::log(double(field.labels)) - slack)
        throw std::runtime_error("the best labelling is no summand of Z");
}

// Check chains of samples: threads change nothing, forbidden labels are not drawn, and a Metropolis
// step without terms of many variables accepts everything. On a grid of Potts terms, eight edges at
// a time, no lower bound is above an upper bound, and no dual is.
template <class Real>
void check_grid(std::mt19937& random, std::int64_t side, std::int64_t n_labels, int n_threads) {
    const std::int64_t n = side * side;
    std::vector<double> unary(static_cast<std::size_t>(n * n_labels)), weights;
    std::vector<std::int64_t> edges, order(static_cast<std::size_t>(n)), all;
    std::uniform_real_distribution<double> draw(0.0, 3.0);
    for (double& u : unary) u = draw(random);
    for (std::int64_t i = 0; i < n; ++i) {
        order[i] = i;
        if ((i + 1) % side) edges.insert(edges.end(), {i, i + 1});
        if (i + side < n) edges.insert(edges.end(), {i, i + side});
    }
    const auto count = static_cast<std::int64_t>(edges.size()) / 2;
    for (std::int64_t e = 0; e < count; ++e) {
        weights.push_back(draw(random));
        all.push_back(e);
    }
    const std::int64_t starts[] = {0, n / 2, n};
    TreeBound<Real> above(unary.data(), n, n_labels);
    above.pairs().add_potts(edges.data(), weights.data(), count);
    above.close(order.data(), starts, 2);
    const std::vector<double> rho(weights.size(), 0.5);
    above.set_shares(rho.data());
    std::vector<double> logs(unary.size()), informations(rho);
    above.forward(n_threads, [] {});
    above.backward(1.0, nullptr, n_threads, [] {});
    const double bound = above.forward(n_threads, [] {});
    above.beliefs(logs.data(), n_threads, [] {});
    if (above.dual(logs.data(), informations.data(), n_threads, [] {}) > bound + 1e-9)
        throw std::runtime_error("a dual is above its bound");
    std::vector<std::uint8_t> kept(weights.size());
    induced_forest(n, edges.data(), count, all.data(), count, kept.data());
    ForestField below(unary.data(), n, n_labels);
    below.pairs().add_potts(edges.data(), weights.data(), count);
    below.pairs().close();
    below.set_forest(kept.data(), 1.0);
    double last = below.value(1.0, n_threads, [] {});
    for (int sweep = 0; sweep < 3; ++sweep) {
        below.sweep(1.0, n_threads, [] {});
        const double value = below.value(1.0, n_threads, [] {});
        if ((sweep > 0 && value < last - 1e-9) || value > bound + 1e-9)
            throw std::runtime_error("trees from below fall, or pass the bound from above");
        last = value;
    }
}

inline void check_samples(std::mt19937& random, std::int64_t n) {
    const SmallField field(random, n);
    std::vector<double> logs;
    for (const double u : field.unary) logs.push_back(-u);
    for (const bool higher : {false, true}) {
        ForestSampler state(logs.data(), n, field.labels);
        state.pairs().add_potts(field.potts.data(), field.weights.data(),
                                static_cast<std::int64_t>(field.weights.size()));
        add_tables(state, field);
        if (higher && n > 0) {
            const std::vector<std::int64_t> one(static_cast<std::size_t>(n), 0);
            state.add_term(std::make_unique<SampledCounts>(
                field.labels, one, std::vector<std::int64_t>{0, n + 1}, field.heights,
                std::vector<std::int64_t>{}));
            state.add_term(std::make_unique<SampledCounts>(field.labels, one,
                                                           std::vector<std::int64_t>{0, n + 1},
                                                           field.own_heights, field.own));
            state.add_term(std::make_unique<SampledRobust>(
                field.labels, one, std::vector<double>{1.0}, std::vector<double>{2.0}));
            state.add_term(std::make_unique<SampledCost>(0.7, field.costly));
            std::vector<double> rises, costs;
            for (std::size_t k = 0; 2 * k <= field.potts.size(); ++k)
                rises.push_back(std::sqrt(static_cast<double>(k)));
            for (std::int64_t k = 0; k < field.labels * field.labels; ++k)
                costs.push_back(k % (field.labels + 1) == 0 ? 0.0 : 1.0);
            state.add_term(std::make_unique<SampledTransitions>(
                n, field.labels, field.potts.data(),
                static_cast<std::int64_t>(field.potts.size()) / 2, costs, rises));
            auto tables = std::make_unique<SampledTables>(n, field.labels);
            if (n > 1 && !field.tables.empty())
                tables->add(field.pairs.data(), 2, field.tables.data(),
                            field.labels * field.labels);
            state.add_term(std::move(tables));
        }
        state.close();
        const std::vector<std::uint8_t> all(static_cast<std::size_t>(state.pairs().edges()), 1);
        state.add_forest(all.data());
        std::vector<std::int64_t> start;
        for (int c = 0; c < 3; ++c)
            for (std::int64_t i = 0; i < n; ++i)
                start.push_back(std::max_element(logs.begin() + i * field.labels,
                                                 logs.begin() + (i + 1) * field.labels) -
                                (logs.begin() + i * field.labels));
        auto labels = start, threaded = start;
        std::vector<ForestSampler::Tally> tally(3), other(3);
        state.sweep(labels.data(), 3, 1, 0, 4, 0.25, tally.data(), 1, [] {});
        state.sweep(threaded.data(), 3, 1, 0, 4, 0.25, other.data(), 2, [] {});
        if (labels != threaded) throw std::runtime_error("threads changed a sample");
        if (!higher && tally[0].proposed > 0) throw std::runtime_error("a step for nothing");
        for (std::size_t k = 0; k < labels.size(); ++k) {
            const auto i = static_cast<std::int64_t>(k) % n;
            if (std::isinf(field.unary[i * field.labels + labels[k]]))
                throw std::runtime_error("a forbidden label was drawn");
        }
    }
}

// Check Frank-Wolfe over blocks of every kind: the gap is never negative and bounds the gain of a
// step.
inline void check_frank_wolfe(std::mt19937& random, std::int64_t n) {
    std::normal_distribution<double> normal;
    std::vector<double> unary;
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < n; ++i) {
        all.push_back(i);
        for (int j = 0; j < 3; ++j) unary.push_back(normal(random));
    }
    FrankWolfe state(unary.data(), n, 3);
    for (const BlockKind kind : {BlockKind::chain, BlockKind::count, BlockKind::simplex}) {
        Group<double> group{};
        group.kind = kind;
        group.variables = all;
        group.starts = {0, n};
        group.slot_starts = {0, 1, 2, 3};
        group.slot_labels = {0, 1, 2};
        for (std::int64_t k = 0; k < (kind == BlockKind::simplex ? 3 : n); ++k)
            group.parameters.push_back(1.0 / static_cast<double>(k + 1));
        state.add(group);
    }
    state.start(1);
    std::vector<double> p(unary.size()), x(unary.size()), d(unary.size());
    double before = state.evaluate(1.0, 1, [] {}).objective;
    for (int k = 0; k < 5; ++k) {
        state.probabilities(1.0, p.data(), 1, [] {});
        state.vertex(p.data(), x.data(), 2, [] {});
        for (std::size_t e = 0; e < d.size(); ++e) d[e] = x[e] - state.total()[e];
        const double gap = -state.slope(d.data(), 0, 1.0, 2, [] {});
        if (gap < -1e-9) throw std::runtime_error("a gap of Frank-Wolfe is negative");
        state.shift(d.data(), 2.0 / (k + 2.0), 2);
        const double after = state.evaluate(1.0, 1, [] {}).objective;
        if (before - after > gap + 1e-9 * static_cast<double>(n))
            throw std::runtime_error("a step gained more than the gap");
        before = after;
    }
}

}  // namespace setwise

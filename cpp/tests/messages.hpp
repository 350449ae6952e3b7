// Message passing for the sanitizers, on random factor graphs so small that all labellings are
// tried.
#pragma once

#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "messages/message_search.hpp"
#include "messages/tree_reweighted.hpp"

namespace setwise {

inline FactorGraph random_graph(std::mt19937& random) {
    const auto below = [&](Index end) { return static_cast<Index>(random() % end); };
    std::normal_distribution<double> normal;
    FactorGraph g;
    g.n = below(6);
    g.labels = 1 + below(3);
    g.constant = normal(random);
    for (Index i = 0; i < g.n; ++i) {
        const Index open = below(g.labels);
        for (Index x = 0; x < g.labels; ++x)
            g.unary.push_back(x != open && below(4) == 0 ? unbounded : normal(random));
    }
    for (Index i = 0; i < g.n; ++i)
        for (Index j = i + 1; j < g.n; ++j) {
            if (below(2)) continue;
            g.low.push_back(i);
            g.high.push_back(j);
            g.weight.push_back(std::abs(normal(random)));
            g.table.push_back(-1);
            if (below(2)) continue;
            g.table.back() = static_cast<Index>(g.tables.size()) / (g.labels * g.labels);
            for (Index k = 0; k < g.labels * g.labels; ++k) g.tables.push_back(normal(random));
        }
    for (Index k = 0; k < 2 * g.labels; ++k) g.patterns.push_back(below(2) != 0);
    g.count_starts = g.robust_starts = {0};
    for (Index f = below(3); f > 0; --f) {
        g.count_tables.push_back(static_cast<Index>(g.count_values.size()));
        for (Index i = 0; i < g.n; ++i) {
            if (below(4) == 0) continue;
            g.count_variables.push_back(i);
            g.count_patterns.push_back(below(2));
        }
        g.count_starts.push_back(static_cast<Index>(g.count_variables.size()));
        for (Index k = *(g.count_starts.end() - 2); k <= g.count_starts.back(); ++k)
            g.count_values.push_back(normal(random));
    }
    for (Index r = g.n > 0 ? below(2) : 0; r > 0; --r) {
        for (Index i = below(g.n); i < g.n; ++i) g.robust_variables.push_back(i);
        g.robust_starts.push_back(static_cast<Index>(g.robust_variables.size()));
        g.robust_weights.push_back(std::abs(normal(random)));
        g.robust_truncations.push_back(0.5 + static_cast<double>(below(4)));
    }
    g.index();
    return g;
}

inline double least_energy(const FactorGraph& g) {
    Labeling labeling(g);
    std::vector<Index> labels(g.n, 0);
    double least = unbounded;
    for (;;) {
        labeling.set(labels);
        least = std::min(least, labeling.energy());
        Index i = 0;
        while (i < g.n && ++labels[i] == g.labels) labels[i++] = 0;
        if (i == g.n) return least;
    }
}

// Return the unaries and pairs of a graph in the layout that sweeps for the bound alone read.
inline PaddedPairs padded(const FactorGraph& graph) {
    PaddedPairs pairs;
    pairs.n = graph.n;
    pairs.labels = graph.labels;
    pairs.low = graph.low;
    pairs.high = graph.high;
    pairs.weight = graph.weight;
    pairs.table = graph.table;
    pairs.fill(graph.unary.data(), graph.tables);
    return pairs;
}

// Throw if a pass lowers the bound, raises it above the minimum, or decodes a forbidden label.
inline void check_sweeps(FactorGraph graph) {
    const auto no_poll = [] {};
    graph.count_starts = graph.robust_starts = {0};
    graph.count_variables.clear();
    graph.count_patterns.clear();
    graph.count_tables.clear();
    graph.robust_variables.clear();
    graph.robust_weights.clear();
    graph.robust_truncations.clear();
    graph.index();
    const double least = least_energy(graph);
    TreeReweighted sweeps(padded(graph), graph.constant);
    Labeling labeling(graph);
    std::vector<Index> labels(graph.n);
    double before = -unbounded;
    for (int pass = 0; pass < 6; ++pass) {
        const double bound = sweeps.pass(no_poll);
        sweeps.decode(labels.data(), no_poll);
        labeling.set(labels);
        if (bound > least + 1e-9 || bound < before - 1e-9 || !(labeling.energy() < unbounded))
            throw std::runtime_error("sweeps bound the energy wrongly");
        before = bound;
    }
}

// Throw if a bound or a value is on the wrong side of the minimum.
inline void check_messages(std::mt19937& random) {
    const auto no_poll = [] {};
    FactorGraph graph = random_graph(random);
    check_sweeps(graph);
    const double least = least_energy(graph);
    std::vector<double> shares(graph.n, 1.0);
    for (Index i = 0; i < graph.n; ++i) shares[i] = 1.0 / static_cast<double>(graph.n + 1);
    std::vector<Index> order(graph.n), first(graph.n, 0);
    std::iota(order.begin(), order.end(), Index(0));
    std::vector<Index> starts{0}, triangles;
    const auto linked = [&](Index i, Index j) {
        const auto begin = graph.high.begin() + graph.first_pair[i];
        const auto end = graph.high.begin() + graph.first_pair[i + 1];
        return std::find(begin, end, j) != end;
    };
    for (Index i = 0; i < graph.n; ++i)
        for (Index j = i + 1; j < graph.n; ++j)
            for (Index k = j + 1; k < graph.n; ++k)
                if (linked(i, j) && linked(j, k) && linked(i, k)) {
                    triangles.insert(triangles.end(), {i, k, j});
                    starts.push_back(static_cast<Index>(triangles.size()));
                }
    const std::vector<double> noise(graph.unary.size(), 0.1);
    MessageSearch search(std::move(graph), shares, shares, 0.5);
    search.offer(first, no_poll);
    for (int pass = 0; pass < 8; ++pass) {
        if (pass == 3 && !search.add_cycles(starts, triangles))
            throw std::runtime_error("a triangle was not found");
        if (pass == 6) search.step(0.1, no_poll);
        search.pass(true, no_poll);
        search.pass(false, no_poll);
        search.move_tree(pass == 0, order, noise, no_poll);
        if (search.bound(no_poll) > least + 1e-9 || search.value() < least - 1e-9)
            throw std::runtime_error("messages bound the energy wrongly");
    }
}

}  // namespace setwise

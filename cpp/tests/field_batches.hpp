// Batches of small fields for the sanitizers: answers against all labellings, with several threads.
#pragma once

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "moves/batch_search.hpp"
#include "moves/field_batch.hpp"
#include "moves/tree_proof.hpp"
#include "numeric/threads.hpp"
#include "tests/cases.hpp"

namespace setwise {

inline double least_energy(const FieldOfBatch& field) {
    std::vector<std::int64_t> z(at(field.n), 0);
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < z.size() || z.empty();) {
        least = std::min(least, field.energy(z.data()));
        if (z.empty()) break;
        for (i = 0; i < z.size() && ++z[i] == field.labels; ++i) z[i] = 0;
    }
    return least;
}

// Check graphs of a few nodes with one region each, and a larger one that messages solve with a
// proof.
inline void check_field_batch(std::mt19937& random, int n_threads) {
    std::uniform_real_distribution<double> uniform;
    FieldBatch batch;
    batch.labels = 2 + static_cast<LabelIndex>(random() % 2);
    batch.node_starts = batch.edge_starts = batch.region_starts = batch.table_starts = {0};
    batch.layers.emplace_back();
    const bool higher = random() % 2 == 0;
    for (std::int64_t g = 0; g < 12; ++g) {
        const std::int64_t n = g == 5 ? 30 : static_cast<std::int64_t>(random() % 6);
        const std::int64_t first = batch.node_starts.back();
        for (std::int64_t i = 0; i < n; ++i) {
            batch.layers[0].push_back(g);
            for (std::int64_t j = i + 1; j < std::min(n, i + 4); ++j)
                if (random() % 3) batch.edges.insert(batch.edges.end(), {first + i, first + j});
        }
        for (std::int64_t k = 0; k <= n; ++k)
            batch.table.push_back(
                std::min(0.5 * static_cast<double>(n), static_cast<double>(n - k)));
        batch.node_starts.push_back(first + n);
        batch.edge_starts.push_back(static_cast<std::int64_t>(batch.edges.size() / 2));
        batch.region_starts.push_back(g + 1);
        batch.table_starts.push_back(static_cast<std::int64_t>(batch.table.size()));
    }
    if (!higher) batch.layers.clear();
    const auto draw = [&](std::size_t count) {
        std::vector<double> values(count);
        for (double& x : values) x = uniform(random);
        return values;
    };
    const auto unary = draw(at(batch.node_starts.back() * batch.labels));
    const auto edges = draw(batch.edges.size() / 2), regions = draw(12);
    const auto costs = draw(at(12 * batch.labels));
    const BatchWeights weights{unary.data(), edges.data(), regions.data(),
                               higher ? costs.data() : nullptr};
    std::vector<std::int64_t> labels(at(batch.node_starts.back()), 0);
    each_long_task(
        batch.count(), n_threads, [] {},
        [&](std::int64_t g, Poll poll) {
            const FieldOfBatch field(batch, weights, g);
            std::int64_t* const z = labels.data() + field.first_node;
            field.least(z);
            const double start = field.energy(z);
            double gap = std::numeric_limits<double>::infinity();
            if (batch.labels == 2)
                gap = higher ? swap_both(field, z, poll) : KeptCut(field).cut(field, z, poll);
            else if (higher)
                expand_all(field, z, poll);
            else {
                std::vector<double> messages;
                gap = TreeProof(field).search(z, messages, poll);
                gap = std::min(gap, TreeProof(field).search(z, messages, poll));
            }
            const double value = field.energy(z);
            require(value <= start + 1e-9, "field batch: worse than the start");
            if (field.n > 5) return;
            const double least = least_energy(field);
            require(value >= least - 1e-9 && value - gap <= least + 1e-9,
                    "field batch: a bound above the best");
            require(batch.labels > 2 || value <= least + 1e-9,
                    "field batch: not the best of two labels");
        });
}

}  // namespace setwise

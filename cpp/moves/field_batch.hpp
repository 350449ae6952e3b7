// Many small fields stored end to end, and the data that their searches share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "moves/move_field.hpp"

namespace setwise {

// n graphs stored end to end: M nodes, E edges and R regions in all, numbered consecutively. Graph
// i has the nodes [node_starts[i], node_starts[i + 1]), and likewise for edges and regions. A
// region may lie in any layer; regions of one layer do not overlap. A region costs its weight times
// the sum over labels of table[table_starts[r] + count], concave in the number of its nodes that
// have the label.
struct FieldBatch {
    LabelIndex labels = 2;
    std::vector<std::int64_t> node_starts, edge_starts, region_starts;  // (n + 1,)
    std::vector<std::int64_t> edges;                                    // (E, 2)
    std::vector<std::vector<std::int64_t>> layers;                      // (M,) each, -1 for none
    std::vector<std::int64_t> table_starts;                             // (R + 1,)
    std::vector<double> table;

    std::int64_t count() const { return static_cast<std::int64_t>(node_starts.size()) - 1; }
};

// The data that changes from one search to the next. All numbers are finite, and only unaries may
// be negative.
struct BatchWeights {
    const double* unary;    // (M, L)
    const double* edges;    // (E,)
    const double* regions;  // (R,)
    const double* costs;    // (n, L): costs of the labels that a graph uses, or null
};

// The field of one graph, with nodes and edges numbered from 0.
class FieldOfBatch {
  public:
    FieldOfBatch(const FieldBatch& batch, const BatchWeights& weights, std::int64_t graph)
        : n(static_cast<Variable>(batch.node_starts[at(graph + 1)] - batch.node_starts[at(graph)])),
          labels(batch.labels),
          n_edges(batch.edge_starts[at(graph + 1)] - batch.edge_starts[at(graph)]),
          unary(weights.unary + batch.node_starts[at(graph)] * batch.labels),
          weight(weights.edges + batch.edge_starts[at(graph)]),
          costs(weights.costs ? weights.costs + graph * batch.labels : nullptr),
          first_node(batch.node_starts[at(graph)]),
          first_region(batch.region_starts[at(graph)]),
          n_regions(batch.region_starts[at(graph + 1)] - first_region),
          batch_(batch),
          region_weights_(weights.regions) {
        const std::int64_t* const first = batch.edges.data() + 2 * batch.edge_starts[at(graph)];
        edges.resize(at(2 * n_edges));
        std::transform(first, first + 2 * n_edges, edges.begin(),
                       [&](std::int64_t v) { return v - first_node; });
    }

    const Variable n;
    const LabelIndex labels;
    const std::int64_t n_edges;
    const double *const unary, *const weight, *const costs;  // (n, L), (n_edges,), (L,)
    const std::int64_t first_node, first_region, n_regions;
    std::vector<std::int64_t> edges;                         // (n_edges, 2)

    bool has_edges_only() const { return costs == nullptr && batch_.layers.empty(); }

    double energy(const std::int64_t* z) const {
        double sum = 0.0;
        for (std::int64_t i = 0; i < n; ++i) sum += unary[i * labels + z[i]];
        double pairs = 0.0;
        for (std::int64_t e = 0; e < n_edges; ++e)
            if (z[edges[at(2 * e)]] != z[edges[at(2 * e + 1)]]) pairs += weight[e];
        return has_edges_only() ? sum + pairs : sum + pairs + of_counts(z);
    }

    // Write the label of least unary of each node; of equal ones, the first.
    void least(std::int64_t* z) const {
        for (std::int64_t i = 0; i < n; ++i) {
            const double* const row = unary + i * labels;
            z[i] = std::min_element(row, row + labels) - row;
        }
    }

    // The terms for moves; the arrays that they read must outlive them.
    struct Terms {
        std::vector<double> unary, table;  // (L, n), and the tables times their weights
        std::vector<std::int64_t> starts;
        std::vector<std::vector<std::int64_t>> regions;
    };
    void write(Terms& terms) const {
        terms.unary.resize(at(n) * at(labels));
        for (std::int64_t i = 0; i < n; ++i)
            for (LabelIndex l = 0; l < labels; ++l)
                terms.unary[at(l) * at(n) + at(i)] = unary[i * labels + l];
        terms.regions.clear();
        if (batch_.layers.empty()) return;
        const std::int64_t begin = batch_.table_starts[at(first_region)];
        terms.starts.assign(1, 0);
        terms.table.clear();
        for (std::int64_t r = first_region; r < first_region + n_regions; ++r) {
            for (std::int64_t k = batch_.table_starts[at(r)]; k < batch_.table_starts[at(r + 1)];
                 ++k)
                terms.table.push_back(region_weights_[r] * batch_.table[at(k)]);
            terms.starts.push_back(batch_.table_starts[at(r + 1)] - begin);
        }
        for (const auto& layer : batch_.layers) {
            auto& regions = terms.regions.emplace_back(at(n));
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t r = layer[at(first_node + i)];
                regions[at(i)] = r < 0 ? -1 : r - first_region;
            }
        }
    }
    void add_to(MoveField& field, const Terms& terms) const {
        field.pairs.add_potts(edges.data(), weight, n_edges);
        std::vector<std::int32_t> own(at(labels));
        for (LabelIndex l = 0; l < labels; ++l) own[at(l)] = l;
        for (const auto& regions : terms.regions) {
            Layer layer{};
            layer.charge = Charge::concave;
            layer.groups = own;
            layer.n_groups = labels;
            layer.regions = regions.data();
            layer.sizes.assign(at(n_regions), 0);
            for (const std::int64_t r : regions)
                if (r >= 0) ++layer.sizes[at(r)];
            layer.starts = terms.starts.data();
            layer.table = terms.table.data();
            field.add_layer(std::move(layer));
        }
        if (!costs) return;
        Layer layer{};
        layer.charge = Charge::cost;
        layer.groups = own;
        layer.n_groups = labels;
        layer.costs.assign(costs, costs + labels);
        layer.sizes.assign(1, n);
        field.add_layer(std::move(layer));
    }

  private:
    double of_counts(const std::int64_t* z) const {
        double sum = 0.0;
        std::vector<std::int64_t> counts(at(n_regions) * at(labels), 0);
        for (const auto& layer : batch_.layers)
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int64_t r = layer[at(first_node + i)];
                if (r >= 0) ++counts[at((r - first_region) * labels + z[i])];
            }
        for (std::int64_t r = 0; r < n_regions; ++r) {
            const double* const h = batch_.table.data() + batch_.table_starts[at(first_region + r)];
            for (LabelIndex l = 0; l < labels; ++l)
                sum += region_weights_[first_region + r] * h[counts[at(r * labels + l)]];
        }
        if (!costs) return sum;
        std::vector<char> used(at(labels), 0);
        for (std::int64_t i = 0; i < n; ++i) used[at(z[i])] = 1;
        for (LabelIndex l = 0; l < labels; ++l)
            if (used[at(l)]) sum += costs[l];
        return sum;
    }

    const FieldBatch& batch_;
    const double* const region_weights_;
};

}  // namespace setwise

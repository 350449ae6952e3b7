// Flows for the sanitizers: small graphs against all sets, warm starts with seeds, copies in
// threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "flows/changing_cut.hpp"
#include "flows/field_cut.hpp"
#include "flows/make_flow_graph.hpp"
#include "flows/volume_block.hpp"
#include "numeric/threads.hpp"
#include "tests/cases.hpp"

namespace setwise {

// Solve, change and solve again a graph, or a grid; compare small ones with all sets.
template <class Capacity>
void check_flow(std::mt19937& random) {
    const bool grid = random() % 2 == 0;
    const int width = 3 + static_cast<int>(random() % 6),
              height = 9 + static_cast<int>(random() % 9);
    const int n = grid ? width * height : 1 + static_cast<int>(random() % 9);
    std::vector<std::int32_t> ends;
    const auto join = [&](int u, int v) { ends.insert(ends.end(), {u, v}); };
    for (int v = 0; grid && v < n; ++v) {
        if (v % width + 1 < width) join(v, v + 1);
        if (v + width < n) join(v, v + width);
    }
    for (int k = 0; !grid && n > 1 && k < 2 * n; ++k) {
        const int u = static_cast<int>(random() % static_cast<unsigned>(n));
        join(u, (u + 1 + static_cast<int>(random() % static_cast<unsigned>(n - 1))) % n);
    }
    const auto edges = static_cast<std::int64_t>(ends.size() / 2);
    auto graph = make_flow_graph<Capacity>(n, EdgeList<std::int32_t>{ends.data(), edges});
    const auto draw = [&](std::int64_t count) {
        std::vector<Capacity> values(static_cast<std::size_t>(count));
        for (auto& x : values) x = static_cast<Capacity>(random() % 20);
        return values;
    };
    for (int round = 0; round < 4; ++round) {
        const auto there = draw(edges), back = draw(edges), source = draw(n), sink = draw(n);
        require(graph->set_capacities(nullptr, edges, there.data(), back.data()) &&
                    graph->set_terminals(nullptr, n, source.data(), sink.data()),
                "flow: capacities were refused");
        if (round == 2) graph = graph->clone();
        graph->solve(no_poll);
        require(close(static_cast<double>(graph->value()), static_cast<double>(graph->cut())),
                "flow: flow and cut differ");
        std::vector<Capacity> flows(static_cast<std::size_t>(edges)), residuals(2 * flows.size());
        graph->read_flows(flows.data(), residuals.data(), no_poll);
        for (const Capacity r : residuals) require(r >= 0, "flow: a capacity is exceeded");
        const std::unique_ptr<bool[]> least(new bool[static_cast<std::size_t>(n)]);
        graph->read_least_sink_side(least.get(), no_poll);
        double best = std::numeric_limits<double>::infinity();
        std::uint32_t on_source_side = 0;  // in some minimum cut
        for (std::uint32_t set = 0; n <= 9 && set < (1u << n); ++set) {
            const auto in = [&](std::int64_t v) { return ((set >> v) & 1) != 0; };
            double cost = 0;
            for (std::size_t v = 0; v < source.size(); ++v)
                cost += static_cast<double>(in(static_cast<std::int64_t>(v)) ? sink[v] : source[v]);
            for (std::size_t e = 0; e < there.size(); ++e) {
                const bool u = in(ends[2 * e]), v = in(ends[2 * e + 1]);
                if (u != v) cost += static_cast<double>(u ? there[e] : back[e]);
            }
            if (cost < best) on_source_side = 0;
            best = std::min(best, cost);
            if (cost == best) on_source_side |= set;
        }
        for (int v = 0; n <= 9 && v < n; ++v)
            require(least[static_cast<std::size_t>(v)] == ((on_source_side >> v & 1) == 0),
                    "flow: the least sink side has other nodes");
        require(n > 9 || close(static_cast<double>(graph->value()), best),
                "flow: flow and enumeration differ");
    }
}

// Set hard seeds and strong edges, solve, and remove them: the answer must be that of a new graph.
inline void check_seeded_flow(std::mt19937& random) {
    const int side = 12, n = side * side;
    std::vector<std::int32_t> ends;
    for (int v = 0; v < n; ++v) {
        if (v % side + 1 < side) ends.insert(ends.end(), {v, v + 1});
        if (v + side < n) ends.insert(ends.end(), {v, v + side});
    }
    const auto edges = static_cast<std::int64_t>(ends.size() / 2);
    const EdgeList<std::int32_t> list{ends.data(), edges};
    std::uniform_real_distribution<double> uniform;
    const auto draw = [&](std::int64_t count, double large) {
        std::vector<double> values(static_cast<std::size_t>(count));
        for (double& x : values) x = large > 0 && random() % 20 == 0 ? large : uniform(random);
        return values;
    };
    const auto set = [&](FlowProblem<double>& graph, const std::vector<double>& weights,
                         const std::vector<double>& source, const std::vector<double>& sink) {
        require(graph.set_capacities(nullptr, edges, weights.data(), weights.data()) &&
                    graph.set_terminals(nullptr, n, source.data(), sink.data()),
                "flow: capacities were refused");
        graph.solve(no_poll);
        require(graph.value() <= graph.cut(), "flow: the value is above the cut");
    };
    auto graph = make_flow_graph<double>(n, list);
    for (const double large : {1e12, 0.0, 1e17, 1e20, 0.0}) {
        const auto weights = draw(edges, large == 1e17 ? large : 0), source = draw(n, large);
        const auto sink = draw(n, large);
        set(*graph, weights, source, sink);
        auto fresh = make_flow_graph<double>(n, list);
        set(*fresh, weights, source, sink);
        require(std::abs(graph->cut() - fresh->cut()) <= 1e-13 * fresh->cut() &&
                    std::abs(graph->value() - fresh->value()) <= 1e-13 * fresh->value(),
                "flow: a second solution is not that of a fresh graph");
        const auto [gap, flowing] = graph->unproved();
        require(gap <= 1e-13 * flowing, "flow: a cut is not proved");
    }
}

// Check that blocks of a volume decide labels of the best labelling, and all of them in the end.
template <int pairs>
void check_volume_blocks(std::mt19937& random, const GridNumbering& grid,
                         const std::vector<double>& unary, const std::vector<double>& weights,
                         const std::vector<std::int64_t>& best) {
    const std::int64_t n = grid.pixels();
    std::vector<std::int32_t> costs, units(static_cast<std::size_t>(pairs * n));
    for (std::size_t v = 0; v < best.size(); ++v)
        costs.push_back(static_cast<std::int32_t>(8 * (unary[2 * v + 1] - unary[2 * v])));
    grid.for_runs_in_order(
        [&](std::size_t k, const auto&, std::int64_t first, std::int64_t e, std::int64_t size) {
            for (std::int64_t c = 0; c < size; ++c)
                units[k * best.size() + static_cast<std::size_t>(first + c)] =
                    static_cast<std::int32_t>(8 * weights[static_cast<std::size_t>(e + c)]);
        });
    const std::int64_t width = grid.sides()[1];
    const GridWeights<std::int32_t> both{units.data(), {n, width, 1}};
    const UnitEnergy<std::int32_t> energy{&grid, costs.data(), both, both};
    std::vector<Known> known(best.size(), Known(open_voxel));
    for (int round = 0; round < 4; ++round) {
        Box core{{0, grid.sides()[0]}, {0, width}};
        if (round < 3)
            for (auto& [low, high] : core) {
                low = static_cast<std::int64_t>(random() % static_cast<unsigned>(high));
                high = low + 1 +
                       static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low));
            }
        const VolumeBlockSizes sizes{1 + static_cast<std::int64_t>(random() % 20),
                                     static_cast<std::int64_t>(random() % 4),
                                     round < 3 ? static_cast<std::int64_t>(random() % 30) : n};
        const auto left =
            VolumeBlock<pairs, std::int32_t>(energy, sizes).solve(core, known.data(), no_poll);
        require(round < 3 || left == 0, "volume block: the whole is not decided");
        for (std::size_t v = 0; v < best.size(); ++v)
            require(known[v] == open_voxel || known[v] == best[v], "volume block: a wrong label");
    }
}

// Check that a grid in blocks has the same cut as its edges, and a changing cut one as good.
inline void check_field_cut(std::mt19937& random) {
    const std::int64_t sides[] = {5 + static_cast<std::int64_t>(random() % 6),
                                  1 + static_cast<std::int64_t>(random() % 5)};
    const std::int64_t steps[] = {0, 1, 1, 0, 1, -1, -1, -1};
    const std::int64_t n = sides[0] * sides[1], directions = random() % 2 ? 4 : 2;
    const GridNumbering grid(sides, 2, steps, directions);
    std::vector<std::int64_t> ends(static_cast<std::size_t>(2 * grid.count()));
    std::vector<double> weights(ends.size() / 2), unary(static_cast<std::size_t>(2 * n));
    grid.for_runs_in_order(
        [&](std::size_t k, const auto&, std::int64_t first, std::int64_t e, std::int64_t size) {
            for (std::int64_t c = 0; c < size; ++c) {
                ends[static_cast<std::size_t>(2 * (e + c))] = first + c;
                ends[static_cast<std::size_t>(2 * (e + c) + 1)] =
                    first + c + grid.directions()[k].offset;
            }
        });
    for (auto* const array : {&weights, &unary})
        for (double& x : *array) x = static_cast<double>(random() % 100) / 8;  // sums are exact
    std::vector<std::int64_t> labels(static_cast<std::size_t>(n)), others(labels);
    FieldCut cut;
    const auto offer = [&](auto solve) {
        const BlockShape shape{1 + static_cast<std::int64_t>(random() % 20), 0,
                               static_cast<std::int64_t>(random() % 4), random() % 2 == 0};
        return solve(grid, unary.data(), weights.data(), labels.data(), cut, no_poll, 2, shape);
    };
    const FieldCut other = cut_edges({ends.data(), grid.count()}, n, unary.data(), weights.data(),
                                     others.data(), no_poll);
    require(other.rounding == 0, "field cut: whole units are rounded");
    // Solve with cuts that start from other costs, with changing seeds: the labels must be as good.
    std::vector<double> zeros(static_cast<std::size_t>(n)), tilt(zeros);
    const auto changing = make_changing_cut(n, {ends.data(), grid.count()}, zeros.data(),
                                            weights.data(), weights.data());
    const auto inside = std::make_unique<bool[]>(static_cast<std::size_t>(n));
    ChangedCut changed;
    for (int round = 0; round < 4; ++round) {
        for (std::size_t v = 0; v < tilt.size(); ++v) {
            tilt[v] = unary[2 * v + 1] - unary[2 * v];
            if (round < 3) tilt[v] += static_cast<double>(random() % 100) / 7 - 7;
            if (round < 3 && random() % 8 == 0) tilt[v] *= std::numeric_limits<double>::infinity();
            if (std::isnan(tilt[v])) tilt[v] = 0;
        }
        changed = changing->solve(tilt.data(), n, round % 2 ? 0.0 : 1e-10, round % 3 > 0,
                                  inside.get(), no_poll, 1);
    }
    require(close(changed.above_least, other.above_least),
            "changing cut: not as good as one from nothing");
    require(offer(cut_grid<2>) || offer(cut_grid<4>), "field cut: a grid has no blocks");
    require(cut.above_least == other.above_least && labels == others,
            "field cut: a grid is cut otherwise");
    if (directions == 4)
        check_volume_blocks<4>(random, grid, unary, weights, others);
    else
        check_volume_blocks<2>(random, grid, unary, weights, others);
}

// Copies share the data that does not change, so threads may solve them at once.
inline void check_flow_copies(std::mt19937& random, int n_threads) {
    const std::int32_t n = 400;
    std::vector<std::int32_t> ends;
    for (std::int32_t v = 0; v + 20 < n; ++v) ends.insert(ends.end(), {v, v + 1, v, v + 20});
    std::vector<double> weights(ends.size() / 2), source(n), sink(n);
    for (auto* const array : {&weights, &source, &sink})
        for (double& x : *array) x = static_cast<double>(random() % 100) / 7;
    const auto edges = static_cast<std::int64_t>(weights.size());
    auto graph = make_flow_graph<double>(n, EdgeList<std::int32_t>{ends.data(), edges});
    graph->set_capacities(nullptr, edges, weights.data(), nullptr);
    graph->set_terminals(nullptr, n, source.data(), sink.data());
    std::vector<std::unique_ptr<FlowProblem<double>>> copies(8);
    for (auto& copy : copies) copy = graph->clone();
    each_task(8, n_threads, no_poll, [&](std::int64_t k, int) { copies[k]->solve(no_poll); });
    graph->solve(no_poll);
    for (const auto& copy : copies)
        require(copy->value() == graph->value(), "flow: a copy differs");
}

}  // namespace setwise

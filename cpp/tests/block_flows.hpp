// Flows in blocks for the sanitizers: any number of threads, any block sizes, and Ctrl-C.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "flows/make_flow_graph.hpp"
#include "tests/cases.hpp"

namespace setwise {

inline std::atomic<int> polls_left{0};
inline void poll_until_none_left() {
    if (--polls_left < 0) throw std::runtime_error("flow: Ctrl-C");
}

// Check a grid of 4 neighbours, also with a few additional edges that no grid has.
template <class Capacity>
void check_block_flow(std::mt19937& random, std::int32_t width, std::int32_t height, bool grid) {
    const std::int32_t n = width * height;
    std::vector<std::int32_t> ends;
    for (std::int32_t v = 0; v < n; ++v) {
        if (v % width + 1 < width) ends.insert(ends.end(), {v, v + 1});
        if (v + width < n) ends.insert(ends.end(), {v, v + width});
    }
    if (!grid && n > 2) ends.insert(ends.end(), {0, n - 1, n / 2, n / 2 - 1});
    const auto edges = static_cast<std::int64_t>(ends.size() / 2);
    const auto draw = [&](std::int64_t count, unsigned below) {
        std::vector<Capacity> values(static_cast<std::size_t>(count));
        for (auto& x : values) x = static_cast<Capacity>(random() % below) / 7;
        return values;
    };
    const auto there = draw(edges, 60), back = draw(edges, 60), source = draw(n, 200);
    const auto sink = draw(n, 200);
    const auto make = [&] {
        auto graph = make_flow_graph<Capacity>(n, EdgeList<std::int32_t>{ends.data(), edges});
        graph->set_capacities(nullptr, edges, there.data(), back.data());
        graph->set_terminals(nullptr, n, source.data(), sink.data());
        return graph;
    };
    const auto whole = make();
    whole->solve(no_poll, 1, {1});
    // Let paths be of any length, or abandon the blocks early.
    for (const std::int64_t deepest : {1 << 20, 1, 0}) {
        const BlockSizes sizes{8, 1, 0, deepest};
        std::unique_ptr<FlowProblem<Capacity>> first;
        for (const int n_threads : {1, 2, 4}) {
            auto graph = make();
            if (n_threads > 1) {  // Ctrl-C leaves a flow from which a second call continues
                auto broken = graph->clone();
                polls_left = static_cast<int>(random() % 12);
                try {
                    broken->solve(poll_until_none_left, n_threads, sizes);
                } catch (const std::runtime_error&) {
                }
                broken->solve(no_poll, n_threads, sizes);
                require(close(static_cast<double>(broken->value()),
                              static_cast<double>(whole->value())),
                        "flow: an interrupted flow goes on to another value");
            }
            graph->solve(no_poll, n_threads, sizes);
            require(
                close(static_cast<double>(graph->value()), static_cast<double>(whole->value())) &&
                    close(static_cast<double>(graph->cut()), static_cast<double>(whole->value())),
                "flow: blocks find another value");
            const auto [gap, flowing] = graph->unproved();
            require(static_cast<double>(gap) <= 1e-13 * static_cast<double>(flowing),
                    "flow: a cut of blocks is not proved");
            if (!first) {
                first = std::move(graph);
                continue;
            }
            std::vector<Capacity> flows(static_cast<std::size_t>(edges)), others = flows;
            const std::unique_ptr<bool[]> sides(new bool[static_cast<std::size_t>(2 * n)]);
            first->read_sides(sides.get());
            graph->read_sides(sides.get() + n);
            require(std::equal(sides.get(), sides.get() + n, sides.get() + n),
                    "flow: threads change a side");
            const auto again = first->clone();
            again->read_flows(flows.data(), nullptr, no_poll);
            graph->read_flows(others.data(), nullptr, no_poll);
            require(flows == others && first->value() == graph->value(),
                    "flow: threads change a bit");
        }
    }
}

}  // namespace setwise

// Flow problems of edge lists and of grids, each in the most compact form that can hold it.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "flows/flow_graph.hpp"
#include "flows/flow_problem.hpp"
#include "flows/flow_topology.hpp"
#include "flows/grid_numbering.hpp"

namespace setwise {

// Return the graph of a grid whose neighbours have 2, 3, 4 or 13 distances: grids with four, six,
// eight and twenty-six neighbours. Return nothing for other grids, and for grids so narrow that
// arcs would have no heads. `fits` receives whether the sum of all capacities is small enough; if
// not, the graph must not be used.
template <class Capacity>
std::unique_ptr<FlowProblem<Capacity>> make_flow_grid(const GridNumbering& grid,
                                                      const GridWeights<Capacity>& there,
                                                      const GridWeights<Capacity>& back,
                                                      bool& fits) {
    std::unique_ptr<FlowProblem<Capacity>> problem;
    const auto offer = [&](auto topology) {
        if (!topology) return false;
        auto graph = std::make_unique<FlowGraph<typename decltype(topology)::value_type, Capacity>>(
            std::move(*topology));
        fits = graph->set_grid_capacities(there, back);
        problem = std::move(graph);
        return true;
    };
    if (!offer(OffsetTopology<2>::of_grid(grid)) && !offer(OffsetTopology<3>::of_grid(grid)) &&
        !offer(OffsetTopology<4>::of_grid(grid)))
        offer(OffsetTopology<13>::of_grid(grid));
    return problem;
}

// Return the graph of an edge list, in the most compact form that can hold it.
template <class Capacity, class Index>
std::unique_ptr<FlowProblem<Capacity>> make_flow_graph(std::int64_t n, EdgeList<Index> edges) {
    std::unique_ptr<FlowProblem<Capacity>> graph;
    const auto offer = [&](auto topology) {
        if (topology)
            graph = std::make_unique<FlowGraph<typename decltype(topology)::value_type, Capacity>>(
                std::move(*topology));
        return graph != nullptr;
    };
    if (!offer(OffsetTopology<2>::recognize(n, edges)) &&
        !offer(OffsetTopology<3>::recognize(n, edges)) &&
        !offer(OffsetTopology<4>::recognize(n, edges)) &&
        !offer(OffsetTopology<13>::recognize(n, edges)))
        graph = std::make_unique<FlowGraph<CsrTopology, Capacity>>(CsrTopology(n, edges));
    return graph;
}

}  // namespace setwise

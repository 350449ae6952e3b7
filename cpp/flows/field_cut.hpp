// The best labelling with two labels by one minimum cut, computed directly from the arrays of a
// field.
//
// E(x) = sum_i u[i, x_i] + sum_e w[e] [x_i != x_j]. Label 1 is the side of the sink: node i has the
// excess u[i, 1] - u[i, 0], and an edge has its weight both ways. Of all best labellings, the one
// with the fewest ones is found. The cut is computed in whole units (cut_units.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "flows/block_flow.hpp"
#include "flows/cut_units.hpp"
#include "flows/flow_topology.hpp"
#include "flows/grid_cut.hpp"
#include "flows/grid_numbering.hpp"
#include "flows/maxflow.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

struct FieldCut {
    // energy of the unaries and of the edges, summed in the order of the arrays
    double unary = 0, edges = 0;
    double above_least = 0;  // the energy minus the least unary of every node
    // an upper bound on the amount by which another labelling is better, due to rounding; small
    // amounts, of a few units in the last place, are set to 0
    double lost = 0;
    double rounding = 0;  // the same bound, in which small amounts are not set to 0
};

// `border(pay)` must call pay for the edges in their order, with the weight of an edge between the
// two labels and with zero for any other edge.
template <class Label, class Border>
FieldCut sum_up(const double* unary, const Label* labels, std::int64_t n, const CutUnits& units,
                Border border, int n_threads, Poll poll) {
    FieldCut answer;
    SumOfBlocks above_least, between;
    double lost = 0, lost_between = 0;
    // The sums are made in the order of the arrays, so each runs on one thread.
    each_task(2, n_threads, poll, [&](std::int64_t what, int) {
        double sum = 0;
        if (what == 1) {
            border([&](double weight) {
                sum += weight;
                between.add(weight);
                if (weight > 0) lost_between += units.lost(weight, units.weight(weight));
            });
            answer.edges = sum;
            return;
        }
        for (std::int64_t v = 0; v < n; ++v) {
            const std::int64_t x = labels[v];
            const double mine = unary[2 * v + x], cost = mine - unary[2 * v + 1 - x];
            sum += mine;
            if (cost > 0) {
                above_least.add(cost);
                lost += units.lost(cost, units.cost(0, cost));
            }
        }
        answer.unary = sum;
    });
    CompensatedSum<double, 2> whole = above_least.sum();
    whole.add(between.sum());
    answer.above_least = whole.value();
    answer.rounding = lost + lost_between;
    const double few = 64 * std::numeric_limits<double>::epsilon() * answer.above_least;
    answer.lost = answer.rounding > few ? answer.rounding : 0.0;
    return answer;
}

// unary (n, 2), where +inf forbids a label. Return false, and do nothing, if a node of the grid has
// another number of neighbours.
template <int pairs>
bool cut_grid(const GridNumbering& grid, const double* unary, const double* weights,
              std::int64_t* labels, FieldCut& answer, Poll poll, int n_threads = 1,
              BlockShape shape = {}) {
    if (grid.directions().size() != pairs) return false;
    const std::int64_t n = grid.pixels(), count = grid.count();
    // The number of entries per task; not tuned.
    constexpr std::int64_t stretch = std::int64_t(1) << 20;
    std::vector<double> largest_of(static_cast<std::size_t>(count / stretch + 1), 0.0);
    each_task(count / stretch + 1, n_threads, poll, [&](std::int64_t k, int) {
        double most = 0;
        for (std::int64_t e = k * stretch; e < std::min(count, (k + 1) * stretch); ++e)
            most = std::max(most, weights[e]);
        largest_of[static_cast<std::size_t>(k)] = most;
    });
    const double largest =
        largest_that_matters(*std::max_element(largest_of.begin(), largest_of.end()), unary, n);
    const GridEnergy energy{&grid, unary, weights, CutUnits(largest, 2 * pairs * largest)};
    std::vector<Known> known(static_cast<std::size_t>(n), Known(open_voxel));
    GridCut<pairs>(energy, shape).solve(known.data(), n_threads, poll);
    each_task(n / stretch + 1, n_threads, poll, [&](std::int64_t k, int) {
        std::copy(known.data() + k * stretch, known.data() + std::min(n, (k + 1) * stretch),
                  labels + k * stretch);
    });
    // At this point no other thread writes the labels.
    const auto* const sides = reinterpret_cast<const unsigned char*>(known.data());
    const auto border = [&](auto pay) {
        grid.for_runs_in_order([&](std::size_t k, const auto&, std::int64_t first, std::int64_t e,
                                   std::int64_t size) {
            const unsigned char *x = sides + first, *y = x + grid.directions()[k].offset;
            for (std::int64_t c = 0; c < size;) {
                std::uint64_t here, there;  // usually, all eight pairs of such a block are equal
                const std::int64_t end = std::min<std::int64_t>(c + sizeof here, size);
                if (end - c == sizeof here) {
                    std::memcpy(&here, x + c, sizeof here);
                    std::memcpy(&there, y + c, sizeof there);
                    if (here == there) c = end;
                }
                for (; c < end; ++c) pay(x[c] != y[c] ? weights[e + c] : 0.0);
            }
        });
    };
    answer = sum_up(unary, sides, n, energy.units, border, n_threads, poll);
    return true;
}

// Cut any list of edges, which must be those of the flow's topology. The flow before the call does
// not matter.
template <class Topology>
FieldCut cut_edges(MaxFlow<Topology, std::int64_t>& flow, EdgeList<std::int64_t> edges,
                   const double* unary, const double* weights, std::int64_t* labels, Poll poll,
                   int n_threads = 1) {
    const Topology& topology = flow.topology();
    const FlowNode n = topology.nodes();
    double largest = 0, most = 0;
    for (std::int64_t e = 0; e < edges.count; ++e) largest = std::max(largest, weights[e]);
    largest = largest_that_matters(largest, unary, n);
    std::vector<double> incident(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t e = 0; e < edges.count; ++e)
        for (const FlowNode v : {edges.tail(e), edges.head(e)}) {
            double& sum = incident[static_cast<std::size_t>(v)];
            sum += std::min(weights[e], largest);
            most = std::max(most, sum);
        }
    const CutUnits units(largest, 2 * most);  // the sums are rounded
    for (FlowNode v = 0; v < n; ++v) flow.excess(v) = units.cost(unary[2 * v], unary[2 * v + 1]);
    for (std::int64_t e = 0; e < edges.count; ++e) {
        const std::int64_t weight = units.weight(weights[e]);
        flow.join(edges.tail(e), edges.head(e), topology.forward(e), topology.reverse(e), weight,
                  weight);
    }
    solve_in_blocks(flow, poll, n_threads);
    flow.make_sink_side_least(poll);
    for (FlowNode v = 0; v < n; ++v) labels[v] = !flow.source_side(v);
    const auto border = [&](auto pay) {
        for (std::int64_t e = 0; e < edges.count; ++e)
            if (labels[edges.tail(e)] != labels[edges.head(e)]) pay(weights[e]);
    };
    return sum_up(unary, labels, n, units, border, n_threads, poll);
}

// Cut an edge list in the most compact form that can hold it.
inline FieldCut cut_edges(EdgeList<std::int64_t> edges, std::int64_t n, const double* unary,
                          const double* weights, std::int64_t* labels, Poll poll,
                          int n_threads = 1) {
    FieldCut answer;
    const auto cut = [&](auto topology) {
        using Topology = decltype(topology);
        MaxFlow<Topology, std::int64_t> flow(std::make_shared<const Topology>(std::move(topology)));
        answer = cut_edges(flow, edges, unary, weights, labels, poll, n_threads);
    };
    const auto offer = [&](auto topology) {
        if (topology) cut(std::move(*topology));
        return topology.has_value();
    };
    if (!offer(OffsetTopology<2>::recognize(n, edges)) &&
        !offer(OffsetTopology<3>::recognize(n, edges)) &&
        !offer(OffsetTopology<4>::recognize(n, edges)))
        cut(CsrTopology(n, edges));
    return answer;
}

}  // namespace setwise

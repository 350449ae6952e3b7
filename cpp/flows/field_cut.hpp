// The best labelling with two labels by one minimum cut, computed directly from the arrays of a
// field.
//
// E(x) = sum_i u[i, x_i] + sum_e w[e] [x_i != x_j]. Label 1 is the side of the sink: node i has the
// excess u[i, 1] - u[i, 0], an edge has its weight both ways, and the flow is the least energy
// minus the least unary of every node. Of all best labellings, the one with the fewest ones is
// found.
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
#include "flows/flow_topology.hpp"
#include "flows/grid_numbering.hpp"
#include "flows/least_side.hpp"
#include "flows/maxflow.hpp"
#include "flows/slabs.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

struct FieldCut {
    // energy of the unaries and of the edges, summed in the order of the arrays
    double unary = 0, edges = 0;
    double paid = 0;  // the energy minus the least unary of every node
    double sent = 0;  // the flow, a lower bound of `paid` for every labelling
    // rounding error of that bound, 0 if it is within a few units in the last place
    double lost = 0;
    double rounding = 0;  // the same rounding error, however small
};

// Writes the weights of edges. At once it sends the excess of one end to a deficit of the other:
// much of the flow goes no further, and here it needs no search and no branch.
template <class Flow>
class WeightWriter {
  public:
    explicit WeightWriter(Flow& flow) : flow_(flow) {}

    // Write arc a from tail to head, and arc b back.
    void write(FlowNode tail, FlowNode head, FlowArc a, FlowArc b, double weight) {
        const double x = flow_.excess(tail), y = flow_.excess(head);
        const double flow = std::max(0.0, std::min(std::min(x, -y), weight)) -
                            std::max(0.0, std::min(std::min(-x, y), weight));
        const double amount = std::abs(flow), less = weight - amount, more = weight + amount;
        const double after = x - flow, beside = y + flow;
        flow_.residual(a) = weight - flow;
        flow_.residual(b) = weight + flow;
        flow_.excess(tail) = after;
        flow_.excess(head) = beside;
        // The rounding of an excess does not matter where much of it is left.
        const double of_tail = std::abs((x - after) - flow),
                     of_head = std::abs((y - beside) + flow);
        sent_.add(amount);
        lost_ += std::abs((weight - less) - amount) + std::abs((more - weight) - amount) +
                 (std::abs(after) <= 16 * amount ? of_tail : 0.0) +
                 (std::abs(beside) <= 16 * amount ? of_head : 0.0);
    }
    CompensatedSum<double, 2> sent() const { return sent_.sum(); }
    double lost() const { return lost_; }

  private:
    Flow& flow_;
    SumOfBlocks sent_;
    double lost_ = 0;
};

// The flow sent while weights were written.
struct Written {
    CompensatedSum<double> sent;
    double lost = 0;

    template <class Flow>
    void add(const WeightWriter<Flow>& writer) {
        sent.add(writer.sent());
        lost += writer.lost();
    }
    void add(const Written& other) {
        sent.add(other.sent);
        lost += other.lost;
    }
};

// unary (n, 2), where +inf forbids a label. `write(k)` writes the weights of slab k's edges,
// `write_between(k)` those from slab k to the one before; each returns the flow sent meanwhile.
// `border(sides, pay)` calls pay(weight or zero) for the edges in their order, with the weights of
// all edges between the two sides. The flow before the call does not matter.
template <class Topology, class Write, class Between, class Border>
FieldCut cut_field(MaxFlow<Topology, double>& flow, const double* unary, const Slabs& slabs,
                   Write write, Between write_between, Border border, std::int64_t* labels,
                   Poll poll, int n_threads) {
    const FlowNode n = flow.topology().nodes();
    const std::int64_t count = slabs.count();
    flow.forget_lost();
    std::vector<Written> written(static_cast<std::size_t>(2 * count));
    each_task(count, n_threads, poll, [&](std::int64_t k, int) {
        for (FlowNode v = slabs.first(k); v < slabs.first(k + 1); ++v)
            flow.excess(v) = unary[2 * v + 1] - unary[2 * v];
        written[static_cast<std::size_t>(k)] = write(k);
    });
    each_task(count - 1, n_threads, poll, [&](std::int64_t k, int) {
        written[static_cast<std::size_t>(count + k)] = write_between(k + 1);
    });
    Written all;
    for (const Written& part : written) all.add(part);
    flow.lose(all.lost);
    all.sent.add(solve_in_blocks(flow, poll, n_threads));
    FieldCut answer;
    answer.sent = all.sent.value();
    answer.lost = unproved(flow, answer.sent);
    answer.rounding = flow.lost();

    std::vector<Side> sides(static_cast<std::size_t>(n));
    read_least_sink_side(flow, sides, slabs, n_threads, poll);
    each_task(count, n_threads, poll, [&](std::int64_t k, int) {
        for (FlowNode v = slabs.first(k); v < slabs.first(k + 1); ++v)
            labels[v] = sides[static_cast<std::size_t>(v)];
    });
    // The sums are made in the order of the arrays, so each runs on one thread.
    SumOfBlocks paid, between;
    each_task(2, count == 1 ? 1 : n_threads, poll, [&](std::int64_t what, int) {
        if (what == 1) {
            double sum = 0;
            border(sides.data(), [&](double weight) {
                sum += weight;
                between.add(weight);
            });
            answer.edges = sum;
            return;
        }
        double sum = 0;
        for (FlowNode v = 0; v < n; ++v) {
            const std::int64_t x = sides[static_cast<std::size_t>(v)];
            const double mine = unary[2 * v + x], other = unary[2 * v + 1 - x];
            sum += mine;
            paid.add(std::max(0.0, mine - other));
        }
        answer.unary = sum;
    });
    CompensatedSum<double, 2> whole = paid.sum();
    whole.add(between.sum());
    answer.paid = whole.value();
    return answer;
}

// Return false, and do nothing, if the grid does not have the form that a compact graph needs.
template <int pairs>
bool cut_grid(const GridNumbering& grid, std::int64_t n, const double* unary, const double* weights,
              std::int64_t* labels, FieldCut& answer, Poll poll, int n_threads = 1,
              std::int64_t least_slab = Slabs::least_nodes) {
    if (grid.distances().size() != pairs) return false;
    auto topology = OffsetTopology<pairs>::of(n, grid.count(), grid.distances().data());
    if (!topology) return false;
    MaxFlow<OffsetTopology<pairs>, double> flow(
        std::make_shared<const OffsetTopology<pairs>>(std::move(*topology)));
    const Slabs slabs(n, flow.topology().margin(), grid.row(), least_slab);
    // Write the runs of edges that begin in these rows and for which `chosen(first tail, first
    // head)` holds.
    const auto write = [&](std::int64_t first_row, std::int64_t last_row, auto chosen) {
        const auto g = flow.topology().rows();
        Written written;
        grid.for_runs_of(
            first_row, last_row,
            [&](std::size_t k, const auto&, std::int64_t first, std::int64_t e, std::int64_t size) {
                const std::int64_t slot = grid.directions()[k].slot;
                const auto by = static_cast<FlowNode>(grid.directions()[k].offset);
                const auto tail = static_cast<FlowNode>(first), count = static_cast<FlowNode>(size);
                if (!chosen(tail, tail + by)) return;
                const FlowArc a = g.begin(tail) + static_cast<FlowArc>(2 * slot + (by < 0));
                const FlowArc b = g.begin(tail + by) + static_cast<FlowArc>(2 * slot + (by > 0));
                // Edges that share a node must be written one after the other, so every second
                // stretch comes first.
                const FlowNode stretch = std::abs(by) < count ? 2 * std::abs(by) : 1;
                WeightWriter writer(flow);
                for (FlowNode begin = 0; begin < std::min(stretch, count); ++begin)
                    for (FlowNode c = begin; c < count; c += stretch)
                        writer.write(tail + c, tail + c + by, a + 2 * pairs * c, b + 2 * pairs * c,
                                     weights[e + c]);
                written.add(writer);
            });
        return written;
    };
    const auto within = [&](std::int64_t k) {
        const FlowNode low = slabs.first(k), high = slabs.first(k + 1);
        return write(slabs.first_row(k), slabs.first_row(k + 1),
                     [=](FlowNode, FlowNode head) { return low <= head && head < high; });
    };
    const auto between = [&](std::int64_t k) {
        const FlowNode border = slabs.first(k);
        const std::int64_t row = grid.row();
        return write(
            slabs.before(k) / row, (slabs.after(k) + row - 1) / row,
            [=](FlowNode tail, FlowNode head) { return (tail < border) != (head < border); });
    };
    const auto border = [&](const Side* sides, auto pay) {
        grid.for_runs_in_order([&](std::size_t k, const auto&, std::int64_t first, std::int64_t e,
                                   std::int64_t size) {
            const Side *x = sides + first, *y = x + grid.directions()[k].offset;
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
    answer = cut_field(flow, unary, slabs, within, between, border, labels, poll, n_threads);
    return true;
}

// Cut any list of edges, which must be those of the flow's topology.
template <class Topology>
FieldCut cut_edges(MaxFlow<Topology, double>& flow, EdgeList<std::int64_t> edges,
                   const double* unary, const double* weights, std::int64_t* labels, Poll poll,
                   int n_threads = 1) {
    const auto& topology = flow.topology();
    const Slabs whole(topology.nodes(), 0);
    const auto write = [&](std::int64_t) {
        WeightWriter writer(flow);
        for (std::int64_t e = 0; e < edges.count; ++e)
            writer.write(edges.tail(e), edges.head(e), topology.forward(e), topology.reverse(e),
                         weights[e]);
        Written written;
        written.add(writer);
        return written;
    };
    const auto between = [](std::int64_t) { return Written(); };
    const auto border = [&](const Side* sides, auto pay) {
        for (std::int64_t e = 0; e < edges.count; ++e)
            if (sides[edges.tail(e)] != sides[edges.head(e)]) pay(weights[e]);
    };
    return cut_field(flow, unary, whole, write, between, border, labels, poll, n_threads);
}

// Cut an edge list in the most compact form that can hold it.
inline FieldCut cut_edges(EdgeList<std::int64_t> edges, std::int64_t n, const double* unary,
                          const double* weights, std::int64_t* labels, Poll poll,
                          int n_threads = 1) {
    FieldCut answer;
    const auto cut = [&](auto topology) {
        using Topology = decltype(topology);
        MaxFlow<Topology, double> flow(std::make_shared<const Topology>(std::move(topology)));
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

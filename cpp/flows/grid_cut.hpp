// The best labelling of a grid with two labels, found in blocks.
//
// Each block is the core of a window, whose cut proves labels for any labels around it
// (window_cut.hpp). A window uses the labels that earlier windows have proved, and includes nearby
// voxels that they have left open. In the end only small groups of voxels are open. One cut of
// these, with all others fixed, decides them. The answer is the best labelling with the fewest
// ones, so it depends neither on the blocks nor on their order, nor on the number of threads.
//
// Windows prove little if labels depend on voxels far away. A few blocks show whether this is so,
// and then the whole grid is solved as one window.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "flows/block_flow.hpp"
#include "flows/flow_topology.hpp"
#include "flows/grid_numbering.hpp"
#include "flows/maxflow.hpp"
#include "flows/window_cut.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

struct BlockShape {
    // The number of voxels of a core, such that the state of its window fits into a cache
    // (benchmarks/block_cuts.py).
    std::int64_t voxels = std::int64_t(1) << 17;
    // Smaller grids are one block on one thread, because the faces of a few blocks cost more time
    // than the cache saves (benchmarks/block_cuts.py).
    std::int64_t least = 900'000;
    // Voxels that an earlier window left open are included up to this distance. A larger halo
    // decides more, but every window grows by the few open voxels around it: with 16 the windows of
    // 192^3 blobs had 2.3 times the voxels of the grid, with 2 they have 1.3 times.
    std::int64_t halo = 2;
    bool backwards = false;
};

template <int pairs, class Energy = GridEnergy>
class GridCut {
    using Capacity = typename Energy::Capacity;

  public:
    GridCut(const Energy& energy, BlockShape shape)
        : energy_(energy),
          grid_(*energy.grid),
          least_(shape.least),
          halo_(shape.halo),
          backwards_(shape.backwards) {
        const std::vector<std::int64_t>& sides = grid_.sides();
        const auto extent = [&](std::size_t axis, std::int64_t side) {
            return std::min(sides[axis], axis + 1 < sides.size() ? side : long_rows * side);
        };
        const auto fits = [&](std::int64_t side) {
            double voxels = 1;
            for (std::size_t i = 0; i < sides.size(); ++i)
                voxels *= static_cast<double>(extent(i, side));
            return voxels <= static_cast<double>(shape.voxels);
        };
        // Find the largest side for which a core has at most the given number of voxels.
        std::int64_t side = 1, beyond = *std::max_element(sides.begin(), sides.end()) + 1;
        while (beyond - side > 1) {
            const std::int64_t middle = side + (beyond - side) / 2;
            (fits(middle) ? side : beyond) = middle;
        }
        for (std::size_t i = 0; i < sides.size(); ++i) {
            counts_.push_back((sides[i] + extent(i, side) - 1) / extent(i, side));
            count_ *= counts_.back();
        }
    }

    // Write the label of every open voxel.
    void solve(Known* known, int n_threads, Poll poll) {
        if (count_ > 1 && (n_threads > 1 || grid_.pixels() >= least_)) {
            solve_blocks(known, n_threads, poll);
            std::vector<std::int64_t> open;
            const auto most = static_cast<std::size_t>(grid_.pixels() / few_open);
            for (std::int64_t v = 0; v < grid_.pixels() && open.size() <= most; ++v)
                if (known[v] >= open_voxel) open.push_back(v);
            if (open.size() <= most) {
                if (!open.empty()) solve_rest(open, known, n_threads, poll);
                return;
            }
        }
        Box all;
        for (const std::int64_t side : grid_.sides()) all.push_back({0, side});
        WindowCut<pairs, Energy>(energy_).solve(
            all, 0, known, poll, [&](auto& flow) { solve_in_blocks(flow, poll, n_threads); });
    }

  private:
    // Cores are longer along the last axis by this factor, because long rows are read faster. Not
    // tuned.
    static constexpr std::int64_t long_rows = 4;
    // If at most one voxel in few_open is open, the open voxels are solved as a graph with a list
    // of edges, whose nodes need twice as much memory. Not tuned.
    static constexpr std::int64_t few_open = 8;
    // After `samples` blocks, blocks are abandoned if more than one voxel in most_open is left
    // open. Not tuned.
    static constexpr std::int64_t samples = 4, most_open = 4;

    Box core(std::int64_t block) const {
        Box box(counts_.size());
        for (std::size_t i = counts_.size(); i-- > 0; block /= counts_[i]) {
            const std::int64_t k = block % counts_[i], side = grid_.sides()[i];
            box[i] = {side * k / counts_[i], side * (k + 1) / counts_[i]};
        }
        return box;
    }

    // Return the blocks in the order in which they are solved: first a sample, and then a range of
    // blocks for each thread, in which each block is a neighbour of the block before.
    std::vector<std::int64_t> order(std::int64_t ranges) const {
        std::vector<std::int64_t> blocks;
        std::vector<bool> taken(static_cast<std::size_t>(count_), false);
        const auto take = [&](std::int64_t block) {
            if (taken[static_cast<std::size_t>(block)]) return;
            taken[static_cast<std::size_t>(block)] = true;
            blocks.push_back(backwards_ ? count_ - 1 - block : block);
        };
        if (count_ > 2 * samples)
            for (std::int64_t k = 0; k < samples; ++k) take((2 * k + 1) * count_ / (2 * samples));
        for (std::int64_t k = 0; k <= count_ / ranges; ++k)
            for (std::int64_t r = 0; r < ranges; ++r)
                if (count_ * r / ranges + k < count_ * (r + 1) / ranges)
                    take(count_ * r / ranges + k);
        return blocks;
    }

    void solve_blocks(Known* known, int n_threads, Poll poll) {
        const std::int64_t workers = std::min<std::int64_t>(n_threads, count_);
        const std::vector<std::int64_t> blocks = order(workers);
        std::atomic<std::int64_t> next{0}, done{0}, solved{0}, open{0};
        each_long_task(workers, n_threads, poll, [&](std::int64_t, Poll how) {
            WindowCut<pairs, Energy> window(energy_);
            for (std::int64_t k; (k = next.fetch_add(1)) < count_;) {
                how();
                if (done >= samples && most_open * open > solved) return;
                const auto tally =
                    window.solve(core(blocks[static_cast<std::size_t>(k)]), halo_, known, how);
                solved += tally.solved;
                open += tally.open;
                ++done;
            }
        });
    }

    // Solve the given voxels, whose other neighbours must be known.
    void solve_rest(const std::vector<std::int64_t>& open, Known* known, int n_threads, Poll poll) {
        const auto count = static_cast<std::int64_t>(open.size());
        std::vector<Capacity> costs(open.size()), there, back;
        std::vector<FlowNode> ends;
        std::vector<std::int64_t> pixel(grid_.sides().size());
        for (std::size_t i = 0; i < open.size(); ++i) costs[i] = energy_.cost(open[i]);
        for (std::size_t k = 0; k < grid_.directions().size(); ++k) {
            const GridNumbering::Direction& d = grid_.directions()[k];
            std::size_t next = 0;  // open voxels before this one are not neighbours of later voxels
            for (std::size_t i = 0; i < open.size(); ++i) {
                grid_.locate(open[i], pixel);
                // Label 1 costs `one` beside label 0, and label 0 costs `zero` beside label 1.
                const auto fix = [&](Capacity one, Capacity zero, std::int64_t neighbour) {
                    costs[i] += known[neighbour] == known_one ? -zero : one;
                };
                if (grid_.edge(k, pixel) >= 0) {
                    const std::int64_t to = open[i] + d.offset;
                    const auto row = energy_.row(k, pixel);
                    if (known[to] >= open_voxel) {
                        while (open[next] < to) ++next;
                        ends.push_back(static_cast<FlowNode>(i));
                        ends.push_back(static_cast<FlowNode>(next));
                        there.push_back(row.there(0));
                        back.push_back(row.back(0));
                    } else {
                        fix(row.there(0), row.back(0), to);
                    }
                }
                for (std::size_t axis = 0; axis < pixel.size(); ++axis) pixel[axis] -= d.step[axis];
                if (!grid_.contains(pixel)) continue;
                const std::int64_t from = open[i] - d.offset;
                if (known[from] >= open_voxel) continue;
                const auto row = energy_.row(k, pixel);
                fix(row.back(0), row.there(0), from);
            }
        }
        const EdgeList<FlowNode> edges{ends.data(), static_cast<std::int64_t>(there.size())};
        const auto topology = std::make_shared<const CsrTopology>(count, edges);
        MaxFlow<CsrTopology, Capacity> flow(topology);
        for (std::size_t i = 0; i < open.size(); ++i)
            flow.excess(static_cast<FlowNode>(i)) = costs[i];
        for (std::int64_t e = 0; e < edges.count; ++e) {
            flow.residual(topology->forward(e)) = back[static_cast<std::size_t>(e)];
            flow.residual(topology->reverse(e)) = there[static_cast<std::size_t>(e)];
        }
        solve_in_blocks(flow, poll, n_threads);
        flow.make_sink_side_least(poll);
        for (std::size_t i = 0; i < open.size(); ++i)
            known[open[i]] = flow.source_side(static_cast<FlowNode>(i)) ? known_zero : known_one;
    }

    Energy energy_;
    const GridNumbering& grid_;
    std::int64_t least_, halo_, count_ = 1;  // number of blocks
    bool backwards_;
    std::vector<std::int64_t> counts_;       // of blocks, along each axis
};

}  // namespace setwise

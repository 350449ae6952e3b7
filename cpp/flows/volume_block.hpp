// A block of a grid that is larger than memory: the labels that are certain whatever the labels
// around the block are.
//
// The block is a core in a box with a margin of the voxels that share an edge with it. First it is
// cut in windows whose state fits into a cache; a window takes up what earlier ones have left open
// beside it (window_cut.hpp). Then all open voxels of the core are cut together, for an open margin
// of label 0 and of label 1. Both steps prove labels of the best labelling with the fewest ones, so
// neither the blocks nor their order matters to the labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "flows/flow_topology.hpp"
#include "flows/grid_numbering.hpp"
#include "flows/maxflow.hpp"
#include "flows/window_cut.hpp"
#include "numeric/poll.hpp"

namespace setwise {

struct VolumeBlockSizes {
    // The number of voxels of a window, such that its state fits into a cache
    // (benchmarks/block_cuts.py).
    std::int64_t voxels = std::int64_t(1) << 17;
    // Voxels that an earlier window left open are included up to this distance.
    std::int64_t halo = 16;
    // The most open voxels that are cut together, in about 100 bytes each with 6 neighbours.
    std::int64_t budget = std::int64_t(1) << 20;
};

template <int pairs, class Number>
class VolumeBlock {
    using Energy = UnitEnergy<Number>;

  public:
    VolumeBlock(const Energy& energy, VolumeBlockSizes sizes)
        : energy_(energy), grid_(*energy.grid), sizes_(sizes) {}

    // Write the labels of the core that are certain, and return how many voxels of it stay open.
    // `known` has 0, 1 or open_voxel for every voxel of the box, and so it has afterwards.
    std::int64_t solve(const Box& core, Known* known, Poll poll) {
        std::vector<std::int64_t> open = open_voxels(core, known);
        if (static_cast<std::int64_t>(open.size()) > sizes_.budget) {
            open = {};
            solve_windows(core, known, poll);
            open = open_voxels(core, known);
        }
        if (!open.empty() && static_cast<std::int64_t>(open.size()) <= sizes_.budget)
            solve_open(open, known, poll);
        std::int64_t left = 0;
        for (const std::int64_t v : open)
            if (known[v] >= open_voxel) {
                known[v] = open_voxel;
                ++left;
            }
        return left;
    }

  private:
    // Rows along the last axis are longer than the other sides of a window: they are read faster.
    static constexpr std::int64_t long_rows = 4;
    // After this many windows, give up if most of their voxels stay open: then voxels far from each
    // other decide the labels together, and more windows would prove as little.
    static constexpr std::int64_t samples = 4;

    std::vector<std::int64_t> open_voxels(const Box& core, const Known* known) const {
        std::vector<std::int64_t> open, at;
        for (const auto& range : core) at.push_back(range.first);
        const std::size_t last = core.size() - 1;
        for (bool more = true; more;) {
            std::int64_t number = 0;
            for (std::size_t i = 0; i <= last; ++i) number = number * grid_.sides()[i] + at[i];
            for (std::int64_t c = 0; c < core[last].second - core[last].first; ++c)
                if (known[number + c] >= open_voxel) open.push_back(number + c);
            more = false;
            for (std::size_t i = last; i-- > 0;) {
                if (++at[i] < core[i].second) {
                    more = true;
                    break;
                }
                at[i] = core[i].first;
            }
        }
        return open;
    }

    void solve_windows(const Box& core, Known* known, Poll poll) {
        std::vector<std::int64_t> counts(core.size());
        std::int64_t count = 0;
        for (std::int64_t side = 1;; side += side / 8 + 1) {  // the last size that fits
            std::int64_t voxels = 1, number = 1;
            std::vector<std::int64_t> parts(core.size());
            for (std::size_t i = 0; i < core.size(); ++i) {
                const std::int64_t length = core[i].second - core[i].first;
                const std::int64_t most = i + 1 < core.size() ? side : long_rows * side;
                parts[i] = (length + most - 1) / most;
                voxels *= (length + parts[i] - 1) / parts[i];
                number *= parts[i];
            }
            if (count > 0 && voxels > sizes_.voxels) break;
            counts = parts;
            count = number;
            if (number == 1) break;
        }
        const auto window = [&](std::int64_t block) {
            Box box(core.size());
            for (std::size_t i = core.size(); i-- > 0; block /= counts[i]) {
                const std::int64_t k = block % counts[i], low = core[i].first;
                const std::int64_t length = core[i].second - low;
                box[i] = {low + length * k / counts[i], low + length * (k + 1) / counts[i]};
            }
            return box;
        };
        WindowCut<pairs, Energy> cut(energy_);
        std::int64_t solved = 0, open = 0;
        const auto solve = [&](std::int64_t k) {
            poll();
            const auto tally = cut.solve(window(k), sizes_.halo, known, poll);
            solved += tally.solved;
            open += tally.open;
        };
        if (count > 2 * samples) {
            for (std::int64_t k = 0; k < samples; ++k) solve((2 * k + 1) * count / (2 * samples));
            if (4 * open > 3 * solved) return;
        }
        for (std::int64_t k = 0; k < count; ++k) solve(k);
    }

    // Solve voxels whose neighbours are known, or are among them, or lie in the margin.
    void solve_open(const std::vector<std::int64_t>& open, Known* known, Poll poll) {
        const auto count = static_cast<std::int64_t>(open.size());
        std::vector<Number> costs(open.size()), there, back, outside(open.size(), 0);
        std::vector<FlowNode> ends;
        std::vector<std::int64_t> pixel(grid_.sides().size());
        for (std::size_t i = 0; i < open.size(); ++i) {
            costs[i] = energy_.cost(open[i]);
            known[open[i]] = left_open;  // the margin has other open voxels
        }
        for (std::size_t k = 0; k < grid_.directions().size(); ++k) {
            const GridNumbering::Direction& d = grid_.directions()[k];
            std::size_t next = 0;  // no open voxel before it is a neighbour of a later one
            for (std::size_t i = 0; i < open.size(); ++i) {
                grid_.locate(open[i], pixel);
                // Label 1 costs `one` beside label 0, and label 0 costs `zero` beside label 1.
                const auto fix = [&](Number one, Number zero, std::int64_t neighbour) {
                    costs[i] += known[neighbour] == known_one ? -zero : one;
                    if (known[neighbour] == open_voxel) outside[i] += one + zero;
                };
                if (grid_.edge(k, pixel) >= 0) {
                    const std::int64_t to = open[i] + d.offset;
                    const auto row = energy_.row(k, pixel);
                    if (known[to] == left_open) {
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
                const auto row = energy_.row(k, pixel);
                if (known[from] != left_open) fix(row.back(0), row.there(0), from);
            }
        }
        const EdgeList<FlowNode> edges{ends.data(), static_cast<std::int64_t>(there.size())};
        const auto topology = std::make_shared<const CsrTopology>(count, edges);
        MaxFlow<CsrTopology, Number> flow(topology);
        for (std::size_t i = 0; i < open.size(); ++i)
            flow.excess(static_cast<FlowNode>(i)) = costs[i];
        for (std::int64_t e = 0; e < edges.count; ++e) {
            flow.residual(topology->forward(e)) = back[static_cast<std::size_t>(e)];
            flow.residual(topology->reverse(e)) = there[static_cast<std::size_t>(e)];
        }
        flow.solve(poll);
        flow.make_sink_side_least(poll);
        std::vector<FlowNode> changed;
        for (std::size_t i = 0; i < open.size(); ++i) {
            const auto v = static_cast<FlowNode>(i);
            if (!flow.source_side(v)) known[open[i]] = known_one;
            if (outside[i] == 0) continue;
            flow.excess(v) -= outside[i];
            changed.push_back(v);
        }
        if (!changed.empty()) flow.solve_again(changed, poll);
        for (std::size_t i = 0; i < open.size(); ++i)
            if (flow.source_side(static_cast<FlowNode>(i))) known[open[i]] = known_zero;
    }

    Energy energy_;
    const GridNumbering& grid_;
    VolumeBlockSizes sizes_;
};

}  // namespace setwise

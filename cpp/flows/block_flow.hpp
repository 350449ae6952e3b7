// A maximum flow of blocks of nodes that are first solved separately, on several threads, and then
// joined.
//
// The method follows Liu, Sun, "Parallel graph-cuts by adaptive bottom-up merging" (CVPR 2010),
// with the closed cuts of maxflow.hpp in place of their search trees. At first nothing passes
// between blocks, and each block has its own minimum cut. Then blocks are joined in pairs. Where
// the two cuts agree, as they do along most of a border, their union is closed and needs no work.
// An arc from a source side to a sink side is saturated. This closes the cut and leaves an excess
// at one end and a deficit at the other, and the search continues from those nodes alone. The work
// of a join depends on what the border changes, not on the size of the blocks.
//
// Blocks are ranges of nodes: strips of a picture, slabs of a volume. Their number depends on the
// graph and not on the number of threads, and each block is solved and joined by itself. Therefore
// the flow is the same to the last bit for any number of threads, and so is the cut.
//
// If paths in a block are much longer than its thickness, its solution says little about the whole
// graph. Then all blocks are abandoned, the flow sent so far is kept, and the whole graph is solved
// at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "flows/flow_problem.hpp"
#include "flows/maxflow.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

template <class Topology, class Capacity>
class BlockFlow {
  public:
    using Flow = MaxFlow<Topology, Capacity>;
    using Sum = typename Flow::Sum;

    BlockFlow(Flow& flow, BlockSizes sizes) : flow_(flow), n_(flow.topology().nodes()) {
        count_ = sizes.most_blocks;
        while (count_ > 1 && n_ / count_ < sizes.least_nodes) count_ /= 2;
        // A block without a root of its own has nothing to do before it is joined.
        if (count_ > 1 && flow.has_few_roots()) count_ = 1;
        if (count_ == 1) return;
        const std::int64_t border = std::max<std::int64_t>(border_size(sizes), 1);
        while (count_ > 1 && n_ / count_ < sizes.least_thickness * border) count_ /= 2;
        deepest_ = static_cast<std::int32_t>(
            std::min(sizes.deepest * (n_ / count_) / border, most_flow_arcs / 2));
    }

    std::int64_t blocks() const { return count_; }

    Sum solve(int n_threads, Poll poll) {
        if (count_ == 1) return flow_.solve(poll);
        flow_.forget_least_side();
        const auto count = static_cast<std::size_t>(count_);
        crossings_.resize(count);
        parts_.resize(2 * count);
        const Restored restored{*this};
        each_task(count_, n_threads, poll, [&](std::int64_t k, int) { cut_off(k); });
        each_long_task(count_, n_threads, poll, [&](std::int64_t k, Poll how) {
            solve_part(count_ + k, k, k + 1, [&](Flow& part) {
                part.give_up_beyond(deepest_);
                return part.solve(how);
            });
        });
        const bool deep = std::any_of(parts_.begin(), parts_.end(),
                                      [](const Part& part) { return part.gave_up; });
        if (deep) {
            restored.now();
            solve_part(1, 0, count_, [&](Flow& part) { return part.solve(poll); });
        } else {
            join_all(n_threads, poll);
        }
        Sum sum;
        for (const Part& part : parts_) sum.add(part.sent);
        return sum;
    }

  private:
    // Part k is the whole graph for k = 1. Its halves are 2 k and 2 k + 1. The parts from count_ on
    // are blocks.
    struct Part {
        Sum sent;
        Capacity lost = 0, lent = 0;
        bool gave_up = false;
    };
    // An arc between two blocks that are not yet joined, and its residual capacity.
    struct Crossing {
        FlowArc arc;
        FlowNode tail, head;
        Capacity residual;
    };

    // A guard that restores the capacities of the arcs at the end, also if a solution is abandoned,
    // and adds the rounding errors of the parts to that of the whole.
    struct Restored {
        BlockFlow& blocks;
        void now() const {
            for (auto& crossings : blocks.crossings_) {
                for (const Crossing& c : crossings) blocks.flow_.residual(c.arc) = c.residual;
                crossings.clear();
            }
        }
        ~Restored() {
            now();
            for (const Part& part : blocks.parts_) {
                blocks.flow_.lose(part.lost);
                blocks.flow_.lend(part.lent);
            }
        }
    };

    FlowNode first(std::int64_t block) const { return static_cast<FlowNode>(n_ * block / count_); }

    // Return the number of nodes of a block with arcs to later blocks: for any graph the mean, or
    // an upper bound.
    std::int64_t border_size(BlockSizes sizes) const {
        const Topology& topology = flow_.topology();
        if (topology.margin() > 0) return topology.margin();
        const auto g = topology.rows();
        std::int64_t found = 0;
        for (std::int64_t k = 0; k + 1 < count_; ++k) {
            const FlowNode end = first(k + 1);
            for (FlowNode u = first(k); u < end; ++u) {
                FlowArc a = g.begin(u);
                while (a < g.end(u) && g.head(u, a) < end) ++a;
                found += a < g.end(u);
            }
            if (2 * sizes.least_thickness * found > n_ * (count_ - 1)) return n_;
        }
        return found / (count_ - 1);
    }

    void cut_off(std::int64_t block) {
        const Topology& topology = flow_.topology();
        const auto g = topology.rows();
        const FlowNode low = first(block), high = first(block + 1), margin = topology.margin();
        auto& crossings = crossings_[static_cast<std::size_t>(block)];
        for (FlowNode u = low; u < high; ++u) {
            if (margin > 0 && u == low + margin) u = std::max(u, high - margin);
            for (FlowArc a = g.begin(u); a < g.end(u); ++a) {
                const FlowNode v = g.head(u, a);
                if ((low <= v && v < high) || v < 0 || v >= n_) continue;
                Capacity& residual = flow_.residual(a);
                crossings.push_back({a, u, v, residual});
                residual = 0;
            }
        }
    }

    template <class Solve>
    void solve_part(std::int64_t k, std::int64_t first_block, std::int64_t last_block,
                    Solve solve) {
        Part& here = parts_[static_cast<std::size_t>(k)];
        Flow part(flow_, first(first_block), first(last_block));
        part.lend(std::max(here.lent, flow_.lent()));
        const struct Noted {
            Part& here;
            const Flow& part;
            ~Noted() { here.lost += part.lost(); }
        } noted{here, part};
        here.sent.add(solve(part));
        here.gave_up = part.gave_up();
    }

    // The thread that joins the second half of a part continues with that part.
    void join_all(int n_threads, Poll poll) {
        std::vector<std::atomic<bool>> half_done(static_cast<std::size_t>(count_));
        for (auto& flag : half_done) flag = false;
        each_long_task(count_ / 2, n_threads, poll, [&](std::int64_t k, Poll how) {
            std::int64_t at = count_ / 2 + k, width = 2;
            for (;; at /= 2, width *= 2) {
                join(at, at * width - count_, width, how);
                if (at == 1 || !half_done[static_cast<std::size_t>(at / 2)].exchange(true)) return;
            }
        });
    }

    // Join two parts into one of `width` blocks.
    void join(std::int64_t at, std::int64_t block, std::int64_t width, Poll poll) {
        const std::vector<Crossing> joined = take_crossings(block, width);
        std::vector<FlowNode> changed;
        changed.reserve(2 * joined.size());
        for (const Crossing& c : joined) flow_.residual(c.arc) = c.residual;
        Part& here = parts_[static_cast<std::size_t>(at)];
        for (const std::int64_t half : {2 * at, 2 * at + 1})
            here.lent = std::max(here.lent, parts_[static_cast<std::size_t>(half)].lent);
        const auto g = flow_.topology().rows();
        for (const Crossing& c : joined) {
            Capacity& residual = flow_.residual(c.arc);
            if (residual == 0 || !flow_.source_side(c.tail) || flow_.source_side(c.head)) continue;
            Capacity& back = flow_.residual(g.sister(c.tail, c.arc));
            const Capacity amount = residual, more = back + amount;
            if constexpr (is_float) here.lost += std::abs(lost_in_sum(back, amount, more));
            residual = 0;
            back = more;
            for (const bool out : {true, false}) {
                const FlowNode v = out ? c.tail : c.head;
                add_excess(here, v, out ? -amount : amount);
                changed.push_back(v);
            }
        }
        solve_part(at, block, block + width,
                   [&](Flow& part) { return part.solve_again(changed, poll); });
    }

    // Remove and return the arcs between the nodes of these blocks, all of which are then joined.
    std::vector<Crossing> take_crossings(std::int64_t block, std::int64_t width) {
        const FlowNode low = first(block), high = first(block + width);
        std::vector<Crossing> taken;
        for (std::int64_t k = block; k < block + width; ++k) {
            auto& crossings = crossings_[static_cast<std::size_t>(k)];
            for (const Crossing& c : crossings)
                if (low <= c.head && c.head < high) taken.push_back(c);
        }
        for (std::int64_t k = block; k < block + width; ++k) {
            auto& crossings = crossings_[static_cast<std::size_t>(k)];
            crossings.erase(
                std::remove_if(crossings.begin(), crossings.end(),
                               [&](const Crossing& c) { return low <= c.head && c.head < high; }),
                crossings.end());
        }
        return taken;
    }

    // Add an excess to a node, which reduces the flow that counts as sent.
    void add_excess(Part& here, FlowNode v, Capacity amount) {
        Capacity& excess = flow_.excess(v);
        const Capacity before = excess;
        excess += amount;
        if (excess > 0) {
            here.sent.add(-amount);
            if (before < 0) here.sent.add(-before);
        } else if (before > 0) {
            here.sent.add(before);
        }
        if constexpr (is_float) {
            // The excess of a node could leave over any of its arcs, so a bound per arc is the
            // excess itself.
            const auto g = flow_.topology().rows();
            const Capacity arcs = static_cast<Capacity>(g.end(v) - g.begin(v));
            here.lent = std::max(here.lent, std::min(arcs * std::abs(amount), Flow::most_lent));
            if (std::abs(excess) <= 16 * here.lent)
                here.lost += std::abs(lost_in_sum(before, amount, excess));
        }
    }

    static constexpr bool is_float = std::is_floating_point_v<Capacity>;

    Flow& flow_;
    std::int64_t n_, count_ = 1;
    std::int32_t deepest_ = 0;
    std::vector<std::vector<Crossing>> crossings_;  // for each block, the arcs that leave it
    std::vector<Part> parts_;
};

// Solve like flow.solve(poll), with the same answer for any number of threads.
template <class Topology, class Capacity>
typename MaxFlow<Topology, Capacity>::Sum solve_in_blocks(MaxFlow<Topology, Capacity>& flow,
                                                          Poll poll, int n_threads,
                                                          BlockSizes sizes = {}) {
    return BlockFlow<Topology, Capacity>(flow, sizes).solve(n_threads, poll);
}

}  // namespace setwise

// The best labels of a window of a grid for the two extreme labellings around it.
//
// E(x) = sum_v cost_v x_v + sum_e there_e [x_u > x_v] + back_e [x_u < x_v]. The window is solved with every open voxel
// around it fixed to 0, and again with all of them fixed to 1. Let x be the best labelling of the
// whole with the fewest ones. The best labels of the window grow with those around it, so the first
// answer with the fewest ones is nowhere above x, and the second is nowhere below. Where the two
// agree they equal x, for any labels outside. Voxels that are known already are fixed, also those
// inside the window.
//
// The second cut starts from the first: an edge to an open voxel outside now favours label 1 where
// it favoured label 0 before, so the cost falls by the sum of its two weights.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "flows/cut_units.hpp"
#include "flows/flow_topology.hpp"
#include "flows/grid_numbering.hpp"
#include "flows/maxflow.hpp"
#include "numeric/poll.hpp"
#include "numeric/relaxed.hpp"

namespace setwise {

// A voxel has a known label or is open, which means that it was not yet in the core of a window, or
// that a window left it open.
enum : unsigned char { known_zero = 0, known_one = 1, open_voxel = 2, left_open = 3 };
using Known = Relaxed<unsigned char>;  // other threads may read it at any time
static_assert(sizeof(Known) == 1, "labels of a caller are bytes");

// The energy of a grid, in the arrays of a caller: unary (n, 2), where +inf forbids a label, and
// the weights of the edges in the order of their numbers.
struct GridEnergy {
    using Capacity = std::int64_t;
    struct Row {
        const double* weights;
        const CutUnits* units;
        std::int64_t there(FlowNode c) const { return units->weight(weights[c]); }
        std::int64_t back(FlowNode c) const { return there(c); }
    };

    const GridNumbering* grid;
    const double* unary;
    const double* weights;
    CutUnits units;

    // Return the cost of label 1 minus that of label 0.
    std::int64_t cost(std::int64_t v) const { return units.cost(unary[2 * v], unary[2 * v + 1]); }
    // Return the weights of the edges along the last axis, from the edge of a pixel on.
    Row row(std::size_t direction, const std::vector<std::int64_t>& pixel) const {
        return {weights + grid->edge(direction, pixel), &units};
    }
};

// The same in whole units, with a cost for each voxel and weights in an array of any layout. No
// excess or residual capacity may exceed the range of Number: they are less than four times the
// largest sum of the weights of a voxel's edges, if no cost exceeds half as much again.
template <class Number>
struct UnitEnergy {
    using Capacity = Number;
    struct Row {
        const Number *weights, *reverse;
        std::ptrdiff_t step, back_step;
        Number there(FlowNode c) const { return weights[c * step]; }
        Number back(FlowNode c) const { return reverse[c * back_step]; }
    };

    const GridNumbering* grid;
    const Number* costs;
    // For each direction and first voxel of an edge: the cost if the first voxel has label 1 and
    // the second label 0, and the cost of the opposite.
    GridWeights<Number> weights, reverse;

    Number cost(std::int64_t v) const { return costs[v]; }
    Row row(std::size_t direction, const std::vector<std::int64_t>& pixel) const {
        return {weights.at(direction, pixel), reverse.at(direction, pixel), weights.step(),
                reverse.step()};
    }
};

using Box = std::vector<std::pair<std::int64_t, std::int64_t>>;  // a range along each axis

template <int pairs, class Energy = GridEnergy>
class WindowCut {
    using Topology = OffsetTopology<pairs>;
    using Capacity = typename Energy::Capacity;
    using Flow = MaxFlow<Topology, Capacity>;

  public:
    static constexpr std::size_t directions = pairs;

    explicit WindowCut(const Energy& energy)
        : energy_(energy),
          grid_(*energy.grid),
          topology_(std::make_shared<Topology>(Topology::of_box(0, Offsets{}.data(), 0))),
          flow_(topology_) {}

    struct Tally {
        std::int64_t solved = 0, open = 0;  // number of voxels, and of those that stay open
    };

    // Solve the open voxels of the core, and those within a halo around it that earlier windows have
    // left open. Write the labels that are certain.
    template <class Solve>
    Tally solve(const Box& core, std::int64_t halo, Known* known, Poll poll, Solve solve_flow) {
        lay(core, halo, known);
        Tally tally;
        tally.solved = read_known(known);
        if (tally.solved == 0) return tally;
        write();
        solve_flow(flow_);
        flow_.make_sink_side_least(poll);
        write_known(known, false);
        if (!faces_.empty()) {
            changed_.clear();
            for (const auto& [v, change] : faces_) {
                flow_.excess(v) -= change;
                changed_.push_back(v);
            }
            flow_.solve_again(changed_, poll);
        }
        tally.open = write_known(known, true);
        return tally;
    }
    Tally solve(const Box& core, std::int64_t halo, Known* known, Poll poll) {
        return solve(core, halo, known, poll, [&](Flow& flow) { flow.solve_joined(poll); });
    }

  private:
    using Offsets = std::array<std::int64_t, pairs>;
    static constexpr unsigned char outside = 4;  // the state of a voxel beyond the window
    static constexpr std::uint64_t all_open = 0x0101010101010101u * open_voxel;

    // The window is the core, the voxels within a halo around it that earlier windows have left open,
    // and all voxels that share an edge with these.
    void lay(const Box& core, std::int64_t halo, const Known* known) {
        Box box = core;
        if (halo > 0) {
            for (std::size_t i = 0; i < box.size(); ++i)
                box[i] = {std::max<std::int64_t>(core[i].first - halo, 0),
                          std::min(core[i].second + halo, grid_.sides()[i])};
            box = open_part(box, core, known);
        }
        const std::size_t axes = grid_.sides().size();
        low_.resize(axes), size_.resize(axes), inner_.resize(axes), core_.resize(axes);
        for (std::size_t i = 0; i < axes; ++i) {
            std::int64_t margin = 0;
            for (const auto& d : grid_.directions()) margin = std::max(margin, std::abs(d.step[i]));
            low_[i] = std::max<std::int64_t>(box[i].first - margin, 0);
            size_[i] = std::min(box[i].second + margin, grid_.sides()[i]) - low_[i];
            inner_[i] = {box[i].first - low_[i], box[i].second - low_[i]};
            core_[i] = {core[i].first - low_[i], core[i].second - low_[i]};
        }
        Offsets offsets{};
        std::int64_t widest = 0;
        for (std::size_t k = 0; k < pairs; ++k) {
            std::int64_t stride = 1;
            for (std::size_t i = axes; i-- > 0; stride *= size_[i])
                offsets[k] += grid_.directions()[k].step[i] * stride;
            widest = std::max(widest, std::abs(offsets[k]));
        }
        nodes_ = 1;
        for (const std::int64_t side : size_) nodes_ *= side;
        *topology_ = Topology::of_box(nodes_, offsets.data(), widest);
        flow_.fit();
        offsets_ = offsets;
    }

    // Call visit(first node, its number in the grid, coordinates in the window) for each row.
    template <class Visit>
    void for_rows(Visit visit) {
        const std::size_t last = size_.size() - 1;
        std::vector<std::int64_t>& at = at_;
        at.assign(size_.size(), 0);
        for (FlowNode node = 0; node < nodes_; node += static_cast<FlowNode>(size_[last])) {
            std::int64_t number = 0;
            for (std::size_t i = 0; i <= last; ++i)
                number = number * grid_.sides()[i] + low_[i] + at[i];
            visit(node, number, at);
            for (std::size_t i = last; i-- > 0 && ++at[i] == size_[i];) at[i] = 0;
        }
    }
    // Return whether a row of the window passes through a box.
    static bool is_in(const Box& box, const std::vector<std::int64_t>& at) {
        for (std::size_t i = 0; i + 1 < at.size(); ++i)
            if (at[i] < box[i].first || at[i] >= box[i].second) return false;
        return true;
    }

    // Return the smallest box of all voxels that the window will solve.
    Box open_part(const Box& box, const Box& core, const Known* known) const {
        const std::size_t last = box.size() - 1;
        Box part(box.size(), {std::numeric_limits<std::int64_t>::max(), 0});
        std::vector<std::int64_t> at;
        for (const auto& range : box) at.push_back(range.first);
        for (bool more = true; more;) {
            std::int64_t number = 0;
            for (std::size_t i = 0; i <= last; ++i) number = number * grid_.sides()[i] + at[i];
            number -= at[last];
            std::int64_t begin = box[last].first, end = box[last].second;
            const bool of_core = is_in(core, at);
            const auto wanted = [&](std::int64_t c) {
                const unsigned char state = known[number + c];
                return state == left_open || (state == open_voxel && of_core &&
                                              core[last].first <= c && c < core[last].second);
            };
            while (begin < end && !wanted(begin)) ++begin;
            while (begin < end && !wanted(end - 1)) --end;
            if (begin < end) {
                for (std::size_t i = 0; i < last; ++i) {
                    part[i].first = std::min(part[i].first, at[i]);
                    part[i].second = std::max(part[i].second, at[i] + 1);
                }
                part[last].first = std::min(part[last].first, begin);
                part[last].second = std::max(part[last].second, end);
            }
            more = false;
            for (std::size_t i = last; i-- > 0;) {
                if (++at[i] < box[i].second) {
                    more = true;
                    break;
                }
                at[i] = box[i].first;
            }
        }
        return part[last].second == 0 ? core : part;
    }

    // Return the number of open voxels.
    std::int64_t read_known(const Known* known) {
        state_.resize(static_cast<std::size_t>(nodes_));
        const std::int64_t width = size_.back();
        std::int64_t found = 0;
        for_rows([&](FlowNode node, std::int64_t number, const auto& at) {
            unsigned char* const row = state_.data() + node;
            const Known* const from = known + number;
            const auto none = std::pair<std::int64_t, std::int64_t>();
            const auto [begin, end] = is_in(inner_, at) ? inner_.back() : none;
            const auto [first, last] = is_in(core_, at) ? core_.back() : none;
            for (std::int64_t c = 0; c < width; ++c) {
                const unsigned char state = from[c];
                const bool taken =
                    (first <= c && c < last) || (state == left_open && begin <= c && c < end);
                row[c] = state < open_voxel ? state : static_cast<unsigned char>(taken ? 2 : 4);
                found += row[c] == open_voxel;
            }
        });
        return found;
    }

    void write() {
        faces_.clear();
        flow_.clear_margin();
        const auto width = static_cast<FlowNode>(size_.back());
        for_rows([&](FlowNode node, std::int64_t number, const auto&) {
            const unsigned char* const state = state_.data() + node;
            for (FlowNode c = 0; c < width; ++c)
                flow_.excess(node + c) = state[c] == open_voxel ? energy_.cost(number + c) : 0;
        });
        for_rows([&](FlowNode node, std::int64_t, const auto& at) {
            for (std::size_t k = 0; k < pairs; ++k) write_row(k, node, at);
        });
    }

    // Return whether the row that lies `sign` steps of a direction further is in the window.
    bool has_row(const GridNumbering::Direction& d, std::int64_t sign,
                 const std::vector<std::int64_t>& at) const {
        for (std::size_t i = 0; i + 1 < at.size(); ++i) {
            const std::int64_t to = at[i] + sign * d.step[i];
            if (to < 0 || to >= size_[i]) return false;
        }
        return true;
    }

    // Write the edges of a direction that begin in a row, and the arcs of that row that belong to
    // no edge.
    void write_row(std::size_t k, FlowNode node, const std::vector<std::int64_t>& at) {
        const auto& d = grid_.directions()[k];
        const std::size_t last = size_.size() - 1;
        const std::int64_t step = d.step[last], before = std::max<std::int64_t>(-step, 0);
        const auto width = static_cast<FlowNode>(size_[last]);
        const auto size = static_cast<FlowNode>(std::max<std::int64_t>(width - std::abs(step), 0));
        const auto first = static_cast<FlowNode>(before),
                   back = static_cast<FlowNode>(std::max<std::int64_t>(step, 0));
        const bool has_next = has_row(d, 1, at);
        close(node, static_cast<FlowArc>(2 * k), width, first, has_next ? first + size : first);
        close(node, static_cast<FlowArc>(2 * k + 1), width, back,
              has_row(d, -1, at) ? back + size : back);
        if (!has_next || size == 0) return;
        pixel_ = low_;
        for (std::size_t i = 0; i < last; ++i) pixel_[i] += at[i];
        pixel_[last] += before;
        const auto by = static_cast<FlowNode>(offsets_[k]);
        const Run run{node + first, node + first + by,
                      topology_->rows().begin(node + first) + static_cast<FlowArc>(2 * k),
                      topology_->rows().begin(node + first + by) + static_cast<FlowArc>(2 * k + 1),
                      energy_.row(k, pixel_)};
        const auto [low, high] = both_open(run, size);
        for (FlowNode c = 0; c < low; ++c) write_edge(run, c);
        // Edges that share a node must not be written at once, so every second stretch comes first.
        const FlowNode stretch = std::abs(by) < size ? 2 * std::abs(by) : 1;
        for (FlowNode begin = low; begin < std::min(low + stretch, high); ++begin)
            for (FlowNode c = begin; c < high; c += stretch) join(run, c);
        for (FlowNode c = high; c < size; ++c) write_edge(run, c);
    }

    // Edges along the last axis.
    struct Run {
        FlowNode tail, head;
        FlowArc a, b;
        typename Energy::Row weights;
    };

    // Return the first range of edges whose ends are both open; an empty one if there is no such edge.
    std::pair<FlowNode, FlowNode> both_open(const Run& run, FlowNode size) const {
        const unsigned char *x = state_.data() + run.tail, *y = state_.data() + run.head;
        FlowNode low = 0;
        while (low < size && (x[low] != open_voxel || y[low] != open_voxel)) ++low;
        FlowNode high = low;
        for (; high + 8 <= size; high += 8) {
            std::uint64_t here, there;
            std::memcpy(&here, x + high, sizeof here);
            std::memcpy(&there, y + high, sizeof there);
            if (((here ^ all_open) | (there ^ all_open)) != 0) break;
        }
        while (high < size && x[high] == open_voxel && y[high] == open_voxel) ++high;
        return {low, high};
    }

    // Write the arcs of a row in one slot that lie outside a range as arcs of no edge.
    void close(FlowNode node, FlowArc slot, FlowNode width, FlowNode begin, FlowNode end) {
        const FlowArc a = topology_->rows().begin(node) + slot;
        for (FlowNode c = 0; c < begin; ++c) flow_.residual(a + 2 * pairs * c) = 0;
        for (FlowNode c = end; c < width; ++c) flow_.residual(a + 2 * pairs * c) = 0;
    }

    void write_edge(const Run& run, FlowNode c) {
        const unsigned char x = state_[static_cast<std::size_t>(run.tail + c)],
                            y = state_[static_cast<std::size_t>(run.head + c)];
        if (x == open_voxel && y == open_voxel) {
            join(run, c);
            return;
        }
        flow_.residual(run.a + 2 * pairs * c) = flow_.residual(run.b + 2 * pairs * c) = 0;
        if (x == open_voxel)
            fix(run.tail + c, y, run.weights.there(c), run.weights.back(c));
        else if (y == open_voxel)
            fix(run.head + c, x, run.weights.back(c), run.weights.there(c));
    }

    void join(const Run& run, FlowNode c) {
        flow_.join(run.tail + c, run.head + c, run.a + 2 * pairs * c, run.b + 2 * pairs * c,
                   run.weights.back(c), run.weights.there(c));
    }
    // Fix a neighbour; an open one is fixed to 0. Label 1 costs `one` beside label 0, and label 0
    // costs `zero` beside label 1.
    void fix(FlowNode v, unsigned char neighbour, Capacity one, Capacity zero) {
        flow_.excess(v) += neighbour == known_one ? -zero : one;
        if (neighbour == outside) faces_.push_back({v, one + zero});
    }

    // Write the ones of the first answer, or the zeros of the second. Return the number of voxels
    // that are still open.
    std::int64_t write_known(Known* known, bool second) {
        std::int64_t open = 0;
        for_rows([&](FlowNode node, std::int64_t number, const auto& at) {
            if (!is_in(inner_, at)) return;
            for (std::int64_t c = inner_.back().first; c < inner_.back().second; ++c) {
                const FlowNode v = node + static_cast<FlowNode>(c);
                if (state_[static_cast<std::size_t>(v)] != open_voxel) continue;
                if (flow_.source_side(v) == second)
                    known[number + c] = second ? known_zero : known_one;
                else if (second && known[number + c] >= open_voxel) {
                    if (known[number + c] == open_voxel) known[number + c] = left_open;
                    ++open;
                }
            }
        });
        return open;
    }

    Energy energy_;
    const GridNumbering& grid_;
    std::shared_ptr<Topology> topology_;
    Flow flow_;
    Offsets offsets_{};
    std::vector<std::int64_t> low_, size_, at_;  // corner and sides of the window, a place in it
    std::vector<std::int64_t> pixel_;            // a place in the grid
    Box inner_, core_;  // the ranges of the solved part and of the core, in the window
    std::int64_t nodes_ = 0;
    std::vector<unsigned char> state_;
    // For each edge to an open voxel outside, the node and how much its cost falls when that voxel
    // changes from label 0 to label 1.
    std::vector<std::pair<FlowNode, Capacity>> faces_;
    std::vector<FlowNode> changed_;
};

}  // namespace setwise

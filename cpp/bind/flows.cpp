// Minimum cuts: flow problems, and fields of two labels by one cut. Sizes and ranges are checked here.
#include <algorithm>
#include <array>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "flows/changing_cut.hpp"
#include "flows/field_cut.hpp"
#include "flows/make_flow_graph.hpp"
#include "flows/volume_block.hpp"
#include "numeric/threads.hpp"

namespace {

using namespace setwise::bind;

using OutPairs = nb::ndarray<Index, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// Return a lock of the graph, which two Python threads may share.
std::lock_guard<std::mutex> locked(const setwise::AnyFlowProblem& problem) {
    return std::lock_guard<std::mutex>(problem.mutex());
}

// Return a lock under which answers are read: no other thread can change the problem between the
// check and the end of the call.
template <class Capacity>
std::unique_lock<std::mutex> locked_answer(const setwise::FlowProblem<Capacity>& problem) {
    std::unique_lock<std::mutex> lock(problem.mutex());
    if (!problem.is_solved())
        throw std::runtime_error(
            "the graph has no answer yet: call solve() first, after any change");
    return lock;
}

template <class Capacity>
constexpr const char* too_large =
    std::is_integral_v<Capacity>
        ? "the sum of all capacities must be below 2**63, got more: scale them down or use floats"
        : "the sum of all capacities must be below 2**1022, got more: scale them down";

// Return the index of the first entry that lies outside [0, below) or occurred before, or -1.
Index first_not_distinct(In<Index> which, Index below) {
    std::vector<bool> seen(static_cast<std::size_t>(std::max<Index>(below, 0)), false);
    for (std::size_t k = 0; k < which.size(); ++k) {
        const Index i = which.data()[k];
        if (i < 0 || i >= below || seen[static_cast<std::size_t>(i)]) return static_cast<Index>(k);
        seen[static_cast<std::size_t>(i)] = true;
    }
    return -1;
}

void require_distinct(const In<Index>& which, Index below) {
    require(first_not_distinct(which, below) < 0,
            "which must hold distinct nodes or edges of the graph");
}

template <class Capacity>
Capacity* data_of(const Out<Capacity>& array, Index length) {
    require(static_cast<Index>(array.size()) == length || array.size() == 0,
            "an array must have one entry for each node or edge");
    return array.size() ? array.data() : nullptr;
}

template <class Capacity>
const Capacity* data_of(const In<Capacity>& array, Index length) {
    require(static_cast<Index>(array.size()) == length,
            "an array must have one entry for each node or edge");
    return array.data();
}

template <class Capacity>
void bind_problem(nb::module_& m, const char* name) {
    using Problem = setwise::FlowProblem<Capacity>;
    using Values = In<Capacity>;
    using Result = Out<Capacity>;
    const auto answer = [](auto read) {
        return [read](const Problem& g) {
            const auto lock = locked_answer(g);
            return (g.*read)();
        };
    };
    nb::class_<Problem, setwise::AnyFlowProblem>(m, name)
        .def_prop_ro("compact", [](const Problem& g) { return g.compact(); })
        .def(
            "solve",
            [](Problem& g, int threads, bool small_blocks) {
                require(threads >= 1, "threads must be at least 1");
                const auto lock = locked(g);
                g.solve(poll_signals, threads,
                        small_blocks ? setwise::BlockSizes{16, 1, 0, 1 << 20}
                                     : setwise::BlockSizes{});
                return g.value();
            },
            // The argument small_blocks is for tests.
            "threads"_a = 1, "small_blocks"_a = false, Unlocked())
        .def(
            "copy",
            [](const Problem& g) {
                const auto lock = locked(g);
                return g.clone().release();
            },
            nb::rv_policy::take_ownership, Unlocked())
        .def(
            "set_capacities",
            [](Problem& g, In<Index> which, Values there, Values back) {
                const auto count = static_cast<Index>(which.size());
                require_distinct(which, g.edges());
                const auto lock = locked(g);
                require(g.set_capacities(which.data(), count, data_of(there, count),
                                         back.size() ? data_of(back, count) : nullptr),
                        too_large<Capacity>);
            },
            "which"_a.noconvert(), "there"_a.noconvert(), "back"_a.noconvert(), Unlocked())
        .def(
            "set_all_capacities",
            [](Problem& g, Values there, Values back) {
                const Index count = g.edges();
                const auto lock = locked(g);
                require(g.set_capacities(nullptr, count, data_of(there, count),
                                         back.size() ? data_of(back, count) : nullptr),
                        too_large<Capacity>);
            },
            "there"_a.noconvert(), "back"_a.noconvert(), Unlocked())
        .def(
            "set_terminals",
            [](Problem& g, In<Index> which, Values source, Values sink) {
                const auto count = static_cast<Index>(which.size());
                require_distinct(which, g.nodes());
                const auto lock = locked(g);
                require(g.set_terminals(which.data(), count, data_of(source, count),
                                        data_of(sink, count)),
                        too_large<Capacity>);
            },
            "which"_a.noconvert(), "source"_a.noconvert(), "sink"_a.noconvert(), Unlocked())
        .def(
            "set_all_terminals",
            [](Problem& g, Values source, Values sink) {
                const Index count = g.nodes();
                const auto lock = locked(g);
                require(
                    g.set_terminals(nullptr, count, data_of(source, count), data_of(sink, count)),
                    too_large<Capacity>);
            },
            "source"_a.noconvert(), "sink"_a.noconvert(), Unlocked())
        .def(
            "through",
            [](const Problem& g, Index v, bool out) {
                require(0 <= v && v < g.nodes(), "v must be a node of the graph");
                const auto lock = locked(g);
                return g.through(static_cast<setwise::FlowNode>(v), out);
            },
            "v"_a, "out"_a, Unlocked())
        .def("value", answer(&Problem::value), Unlocked())
        .def("unproved", answer(&Problem::unproved), Unlocked())
        .def("cut", answer(&Problem::cut), Unlocked())
        .def(
            "read_sides",
            [](const Problem& g, Out<bool> mask) {
                require(static_cast<Index>(mask.size()) == g.nodes(), "mask must have n entries");
                const auto lock = locked_answer(g);
                g.read_sides(mask.data());
            },
            "mask"_a.noconvert(), Unlocked())
        .def(
            "read_least_sink_side",
            [](Problem& g, Out<bool> mask) {
                require(static_cast<Index>(mask.size()) == g.nodes(), "mask must have n entries");
                const auto lock = locked_answer(g);
                g.read_least_sink_side(mask.data(), poll_signals);
            },
            "mask"_a.noconvert(), Unlocked())
        .def(
            "read_flows",
            [](Problem& g, Result flows, Result residuals) {
                const auto lock = locked_answer(g);
                g.read_flows(data_of(flows, g.edges()), data_of(residuals, 2 * g.edges()),
                             poll_signals);
            },
            "flows"_a.noconvert(), "residuals"_a.noconvert(), Unlocked())
        .def(
            "read_problem",
            [](const Problem& g, Result there, Result back, Result source, Result sink) {
                require(static_cast<Index>(there.size()) == g.edges() &&
                            static_cast<Index>(back.size()) == g.edges() &&
                            static_cast<Index>(source.size()) == g.nodes() &&
                            static_cast<Index>(sink.size()) == g.nodes(),
                        "there and back must have E entries, source and sink n");
                const auto lock = locked(g);
                g.read_problem(there.data(), back.data(), source.data(), sink.data());
            },
            "there"_a.noconvert(), "back"_a.noconvert(), "source"_a.noconvert(),
            "sink"_a.noconvert(), Unlocked())
        .def(
            "read_edges",
            [](const Problem& g, OutPairs ends) {
                require(static_cast<Index>(ends.shape(0)) == g.edges(), "ends must have E rows");
                g.read_edges(ends.data());
            },
            "ends"_a.noconvert(), Unlocked());
}

// Return the index of the first entry that is not a capacity, or -1.
template <class Capacity>
Index first_not_capacity(In<Capacity> values, bool infinite) {
    const auto count = static_cast<Index>(values.size());
    const Capacity* const x = values.data();
    for (Index k = 0; k < count; ++k) {
        if (!(x[k] >= 0)) return k;
        if constexpr (std::is_floating_point_v<Capacity>)
            if (!infinite && std::isinf(x[k])) return k;
    }
    return -1;
}

// Make a graph from edges, which must have passed first_not_edge; `kind` is an array of the type of
// the capacities.
template <class Capacity, class Vertex>
setwise::FlowProblem<Capacity>* make_graph(Index n, Pairs<Vertex> edges, In<Capacity>) {
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    return setwise::make_flow_graph<Capacity>(
               n, setwise::EdgeList<Vertex>{edges.data(), static_cast<Index>(edges.shape(0))})
        .release();
}

template <class Capacity>
using AnyLayout = nb::ndarray<const Capacity, nb::device::cpu>;

template <class Capacity>
setwise::GridWeights<Capacity> weights_of(const AnyLayout<Capacity>& array) {
    setwise::GridWeights<Capacity> weights{array.data(), {}};
    for (std::size_t i = 0; i < array.ndim(); ++i) weights.strides.push_back(array.stride(i));
    return weights;
}

// Make a graph of a grid. Weights have an entry for each step and pixel and must be valid
// capacities, and the pixels and edges must be few enough to be numbered. Return null if the graph
// should be made from a list of edges instead.
template <class Capacity>
setwise::FlowProblem<Capacity>* make_grid(In<Index> sides, In2<Index> steps,
                                          AnyLayout<Capacity> there, AnyLayout<Capacity> back) {
    for (const auto& array : {there, back}) {
        bool fits = array.ndim() == sides.size() + 1 && array.shape(0) == steps.shape(0);
        for (std::size_t i = 0; fits && i < sides.size(); ++i)
            fits = static_cast<Index>(array.shape(i + 1)) == sides.data()[i];
        require(fits && steps.shape(1) == sides.size(),
                "weights must have an entry for each step and pixel");
    }
    const setwise::GridNumbering grid(sides.data(), static_cast<Index>(sides.size()), steps.data(),
                                      static_cast<Index>(steps.shape(0)));
    bool fits = true;
    auto graph = setwise::make_flow_grid<Capacity>(grid, weights_of<Capacity>(there),
                                                   weights_of<Capacity>(back), fits);
    require(fits, too_large<Capacity>);
    return graph.release();
}

template <class Capacity>
void bind_capacity(nb::module_& m, const char* name) {
    bind_problem<Capacity>(m, name);
    m.def("make_flow_graph", &make_graph<Capacity, std::int32_t>, "n"_a, "edges"_a.noconvert(),
          "kind"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("make_flow_graph", &make_graph<Capacity, std::int64_t>, "n"_a, "edges"_a.noconvert(),
          "kind"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("make_flow_grid", &make_grid<Capacity>, "sides"_a.noconvert(), "steps"_a.noconvert(),
          "there"_a.noconvert(), "back"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("first_not_capacity", &first_not_capacity<Capacity>, "values"_a.noconvert(), "infinite"_a,
          Unlocked());
}

// Solve distinct graphs. Only the calling thread can see Ctrl-C, and it checks while others work.
void solve_all(const std::vector<setwise::AnyFlowProblem*>& graphs, int threads) {
    setwise::each_long_task(static_cast<Index>(graphs.size()), threads, poll_signals,
                            [&](Index k, setwise::Poll poll) {
                                auto& graph = *graphs[static_cast<std::size_t>(k)];
                                const auto lock = locked(graph);
                                graph.solve(poll);
                            });
}

// `answer` receives the energy of the unaries, that of the edges, their sum minus the least unaries,
// the amount by which another labelling may be better (0 if that is only rounding), and the same
// amount including rounding.
void write_answer(const setwise::FieldCut& cut, const Out<double>& answer) {
    require(answer.size() == 5, "answer must have 5 entries");
    const std::array<double, 5> numbers{cut.unary, cut.edges, cut.above_least, cut.lost,
                                        cut.rounding};
    std::copy(numbers.begin(), numbers.end(), answer.data());
}

Index require_two_labels(const In2<double>& unary, const Out<Index>& labels) {
    require(unary.shape(1) == 2 && labels.size() == unary.shape(0),
            "unary must have shape (n, 2), and labels n entries");
    return static_cast<Index>(unary.shape(0));
}

// Return the grid for these unaries of nodes and weights of edges, whose sizes are checked.
setwise::GridNumbering grid_of(const In2<double>& unary, const In<Index>& sides,
                               const In2<Index>& steps, const In<double>& weights) {
    const auto n = static_cast<Index>(unary.shape(0));
    Index pixels = 1;
    for (std::size_t i = 0; i < sides.size(); ++i) {
        require(sides.data()[i] >= 1 && pixels <= n / sides.data()[i], "sides must span the nodes");
        pixels *= sides.data()[i];
    }
    require(sides.size() >= 1 && pixels == n && steps.shape(1) == sides.size(),
            "sides must span the nodes, and steps have a column for each");
    setwise::GridNumbering grid(sides.data(), static_cast<Index>(sides.size()), steps.data(),
                                static_cast<Index>(steps.shape(0)));
    require(grid.count() == static_cast<Index>(weights.size()), "weights must have E entries");
    return grid;
}

template <class T>
struct Type {
    using type = T;
};

// Cut a grid whose nodes have 2, 4, 6, 8 or 26 neighbours. For other grids do nothing and return
// false. The answer does not depend on the size of the blocks; 0 means the default size.
bool cut_grid(In2<double> unary, In<Index> sides, In2<Index> steps, In<double> weights,
              Out<Index> labels, Out<double> answer, int threads, Index block, Index halo,
              bool backwards) {
    require_two_labels(unary, labels);
    const setwise::GridNumbering grid = grid_of(unary, sides, steps, weights);
    require(block >= 0 && halo >= 0 && threads >= 1,
            "block, halo and threads must not be negative");
    setwise::BlockShape shape;
    if (block > 0) shape = {block, 0, halo, backwards};
    setwise::FieldCut cut;
    const auto offer = [&](auto solve) {
        return solve(grid, unary.data(), weights.data(), labels.data(), cut, poll_signals, threads,
                     shape);
    };
    if (!offer(setwise::cut_grid<1>) && !offer(setwise::cut_grid<2>) &&
        !offer(setwise::cut_grid<3>) && !offer(setwise::cut_grid<4>) &&
        !offer(setwise::cut_grid<13>))
        return false;
    write_answer(cut, answer);
    return true;
}

setwise::Box box_in(const setwise::GridNumbering& grid, const In2<Index>& box) {
    require(box.shape(0) == grid.sides().size() && box.shape(1) == 2,
            "box must have a row for each axis");
    setwise::Box core;
    for (std::size_t i = 0; i < grid.sides().size(); ++i) {
        const Index low = box(i, 0), high = box(i, 1);
        require(0 <= low && low < high && high <= grid.sides()[i], "box must lie in the grid");
        core.push_back({low, high});
    }
    return core;
}

// Solve a window of a grid for all possible labels around it, and write the labels that are
// certain. `known` has a byte for each voxel: its label, or 2 if it is open, or 3 if it is open and
// was in an earlier window. `box` has the range of the window's core along each axis. Voxels within
// a halo around it that are marked by 3 are solved too. `largest` is the largest weight of the
// whole grid, of which this one may be a part. Return the number of voxels that stay open. If nodes
// do not have 2, 4, 6, 8 or 26 neighbours, do nothing and return -1.
Index cut_window(In2<double> unary, In<Index> sides, In2<Index> steps, In<double> weights,
                 Out<std::uint8_t> known, In2<Index> box, Index halo, double largest) {
    require(known.size() == unary.shape(0) && unary.shape(1) == 2,
            "unary must have shape (n, 2), and known n entries");
    const setwise::GridNumbering grid = grid_of(unary, sides, steps, weights);
    const setwise::Box core = box_in(grid, box);
    require(halo >= 0 && largest >= 0, "halo and largest must not be negative");
    Index open = -1;
    const auto offer = [&](auto window) {
        using Window = typename decltype(window)::type;
        if (grid.directions().size() != Window::directions) return false;
        const setwise::GridEnergy energy{
            &grid, unary.data(), weights.data(),
            setwise::CutUnits(largest, 2 * Window::directions * largest)};
        auto* const voxels = reinterpret_cast<setwise::Known*>(known.data());
        open = Window(energy).solve(core, halo, voxels, poll_signals).open;
        return true;
    };
    static_cast<void>(
        offer(Type<setwise::WindowCut<1>>()) || offer(Type<setwise::WindowCut<2>>()) ||
        offer(Type<setwise::WindowCut<3>>()) || offer(Type<setwise::WindowCut<4>>()) ||
        offer(Type<setwise::WindowCut<13>>()));
    return open;
}

// Return the energy of a grid in whole units. `weights` has an entry for each direction and voxel, of
// any layout, and so has `reverse`, which is `weights` if it is none.
template <class Number>
setwise::UnitEnergy<Number> energy_in_units(const setwise::GridNumbering& grid, In<Number> costs,
                                            const AnyLayout<Number>& weights,
                                            const std::optional<AnyLayout<Number>>& reverse,
                                            const Out<std::uint8_t>& known) {
    require(grid.pixels() == static_cast<Index>(costs.size()) && costs.size() == known.size(),
            "costs and known must have an entry for each voxel");
    const AnyLayout<Number>& back = reverse ? *reverse : weights;
    for (const auto* array : {&weights, &back}) {
        bool fits =
            array->ndim() == grid.sides().size() + 1 && array->shape(0) == grid.directions().size();
        for (std::size_t i = 0; fits && i < grid.sides().size(); ++i)
            fits = static_cast<Index>(array->shape(i + 1)) == grid.sides()[i];
        require(fits, "weights must have an entry for each step and voxel");
    }
    return {&grid, costs.data(), weights_of<Number>(weights), weights_of<Number>(back)};
}

setwise::GridNumbering grid_of_steps(const In<Index>& sides, const In2<Index>& steps) {
    for (std::size_t i = 0; i < sides.size(); ++i)
        require(sides.data()[i] >= 1, "sides must be positive");
    require(sides.size() >= 1 && steps.shape(1) == sides.size(),
            "steps must have a column for each axis");
    return {sides.data(), static_cast<Index>(sides.size()), steps.data(),
            static_cast<Index>(steps.shape(0))};
}

// Call solve(number of directions as a constant) if it is one that kernels exist for: voxels have 2,
// 4, 6, 8 or 26 neighbours. Otherwise return false.
template <class Solve>
bool for_directions(const setwise::GridNumbering& grid, Solve solve) {
    const auto offer = [&](auto directions) {
        if (static_cast<int>(grid.directions().size()) != directions) return false;
        solve(directions);
        return true;
    };
    return offer(std::integral_constant<int, 1>()) || offer(std::integral_constant<int, 2>()) ||
           offer(std::integral_constant<int, 3>()) || offer(std::integral_constant<int, 4>()) ||
           offer(std::integral_constant<int, 13>());
}

// Solve the core of a block for all labels around it, in whole units, and write the labels that are
// certain. `costs` and `known` have an entry for each voxel of a box that holds the core and its
// neighbours; `known` has 0, 1, or 2 for open voxels. Return how many voxels of the core stay open,
// or -1, and do nothing, if there is no kernel for so many directions.
template <class Number>
Index cut_block(In<Number> costs, In<Index> sides, In2<Index> steps, AnyLayout<Number> weights,
                Out<std::uint8_t> known, In2<Index> box, Index voxels, Index halo, Index budget,
                std::optional<AnyLayout<Number>> reverse) {
    require(voxels >= 1 && halo >= 0 && budget >= 0,
            "voxels, halo and budget must not be negative");
    const setwise::GridNumbering grid = grid_of_steps(sides, steps);
    const auto energy = energy_in_units<Number>(grid, costs, weights, reverse, known);
    const setwise::Box core = box_in(grid, box);
    Index open = -1;
    for_directions(grid, [&](auto directions) {
        auto* const states = reinterpret_cast<setwise::Known*>(known.data());
        open = setwise::VolumeBlock<directions, Number>(energy, {voxels, halo, budget})
                   .solve(core, states, poll_signals);
    });
    return open;
}

// Solve all open voxels of a grid, in whole units; `known` has 0, 1, or 2 for these. Return false,
// and do nothing, if there is no kernel for so many directions.
template <class Number>
bool cut_open(In<Number> costs, In<Index> sides, In2<Index> steps, AnyLayout<Number> weights,
              Out<std::uint8_t> known, int threads, std::optional<AnyLayout<Number>> reverse,
              Index block) {
    require(threads >= 1 && block >= 0, "threads must be positive, and block not negative");
    const setwise::GridNumbering grid = grid_of_steps(sides, steps);
    const auto energy = energy_in_units<Number>(grid, costs, weights, reverse, known);
    setwise::BlockShape shape;
    if (block > 0) shape = {block, 0, shape.halo, false};
    return for_directions(grid, [&](auto directions) {
        setwise::GridCut<directions, setwise::UnitEnergy<Number>>(energy, shape)
            .solve(reinterpret_cast<setwise::Known*>(known.data()), threads, poll_signals);
    });
}

template <class Number>
void bind_blocks(nb::module_& m) {
    const setwise::VolumeBlockSizes usual;
    m.def("cut_block", &cut_block<Number>, "costs"_a.noconvert(), "sides"_a.noconvert(),
          "steps"_a.noconvert(), "weights"_a.noconvert(), "known"_a.noconvert(),
          "box"_a.noconvert(), "voxels"_a = usual.voxels, "halo"_a = usual.halo,
          "budget"_a = usual.budget, "reverse"_a = nb::none(), Unlocked());
    m.def("cut_open", &cut_open<Number>, "costs"_a.noconvert(), "sides"_a.noconvert(),
          "steps"_a.noconvert(), "weights"_a.noconvert(), "known"_a.noconvert(), "threads"_a,
          "reverse"_a = nb::none(), "block"_a = 0, Unlocked());
}

void cut_edges(In2<double> unary, Pairs<Index> edges, In<double> weights, Out<Index> labels,
               Out<double> answer, int threads) {
    const Index n = require_two_labels(unary, labels), count = static_cast<Index>(edges.shape(0));
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    require(count == static_cast<Index>(weights.size()), "weights must have E entries");
    write_answer(setwise::cut_edges({edges.data(), count}, n, unary.data(), weights.data(),
                                    labels.data(), poll_signals, threads),
                 answer);
}

setwise::ChangingCut* make_changing_cut(In<double> costs, Pairs<Index> edges, In<double> there,
                                        In<double> back) {
    const Index n = static_cast<Index>(costs.size()), count = static_cast<Index>(edges.shape(0));
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    require(count == static_cast<Index>(there.size()) && there.size() == back.size(),
            "there and back must have E entries");
    return setwise::make_changing_cut(n, {edges.data(), count}, costs.data(), there.data(),
                                      back.data())
        .release();
}

// answer: the value without the tilt, the value with it minus all negative costs, and the rounding
// error.
void solve_changed(setwise::ChangingCut& cut, In<double> tilt, double share, bool apart,
                   Out<bool> inside, Out<double> answer, int threads) {
    require(tilt.size() == inside.size() && static_cast<Index>(tilt.size()) <= cut.nodes(),
            "tilt and inside must have an entry for each of the first nodes");
    require(answer.size() == 3 && threads >= 1, "answer must have 3 entries");
    const setwise::ChangedCut found = cut.solve(tilt.data(), static_cast<Index>(tilt.size()), share,
                                                apart, inside.data(), poll_signals, threads);
    const std::array<double, 3> numbers{found.value, found.above_least, found.lost};
    std::copy(numbers.begin(), numbers.end(), answer.data());
}

}  // namespace

void bind_flows(nb::module_& m) {
    nb::class_<setwise::AnyFlowProblem>(m, "AnyFlowProblem");
    bind_capacity<std::int64_t>(m, "IntFlowProblem");
    bind_capacity<double>(m, "FloatFlowProblem");
    m.def("first_not_distinct", &first_not_distinct, "which"_a.noconvert(), "below"_a, Unlocked());
    m.def("first_not_edge", &first_not_edge<std::int32_t>, "edges"_a.noconvert(), "n"_a,
          Unlocked());
    m.def("first_not_edge", &first_not_edge<std::int64_t>, "edges"_a.noconvert(), "n"_a,
          Unlocked());
    m.def(
        "solve_flow_graphs",
        [](const std::vector<setwise::AnyFlowProblem*>& graphs, int threads) {
            require(threads >= 1, "threads must be at least 1");
            for (const auto* graph : graphs) require(graph != nullptr, "a graph must not be None");
            nb::gil_scoped_release unlocked;
            solve_all(graphs, threads);
        },
        "graphs"_a, "threads"_a);
    nb::class_<setwise::ChangingCut>(m, "ChangingCut")
        .def("solve", &solve_changed, "tilt"_a.noconvert(), "share"_a, "apart"_a,
             "inside"_a.noconvert(), "answer"_a.noconvert(), "threads"_a, Unlocked());
    m.def("make_changing_cut", &make_changing_cut, "costs"_a.noconvert(), "edges"_a.noconvert(),
          "there"_a.noconvert(), "back"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("cut_grid", &cut_grid, "unary"_a.noconvert(), "sides"_a.noconvert(),
          "steps"_a.noconvert(), "weights"_a.noconvert(), "labels"_a.noconvert(),
          "answer"_a.noconvert(), "threads"_a, "block"_a = 0, "halo"_a = 0, "backwards"_a = false,
          Unlocked());
    m.def("cut_window", &cut_window, "unary"_a.noconvert(), "sides"_a.noconvert(),
          "steps"_a.noconvert(), "weights"_a.noconvert(), "known"_a.noconvert(),
          "box"_a.noconvert(), "halo"_a, "largest"_a, Unlocked());
    bind_blocks<std::int32_t>(m);
    bind_blocks<std::int64_t>(m);
    m.def("cut_edges", &cut_edges, "unary"_a.noconvert(), "edges"_a.noconvert(),
          "weights"_a.noconvert(), "labels"_a.noconvert(), "answer"_a.noconvert(), "threads"_a,
          Unlocked());
}

// The Python face of the flow kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "bind/bind.hpp"
#include "bind/edge_arguments.hpp"
#include "flows/make_flow_graph.hpp"
#include "numeric/threads.hpp"

namespace {

using namespace setwise::bind;

using OutPairs = nb::ndarray<Index, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// Two threads of Python may hold one graph.
std::lock_guard<std::mutex> locked(const setwise::AnyFlowProblem& problem) {
    return std::lock_guard<std::mutex>(problem.mutex());
}

// What answers are read under: no other thread can change the problem between the check and the end.
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

// The place of the first entry that lies outside [0, below) or was there before, or -1.
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
            // Blocks of few nodes are for tests.
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

// The place of the first entry that is no capacity, or -1.
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

// The edges must have passed first_not_edge; `kind` is an array of the type of the capacities.
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

// Weights have an entry for each step and pixel, and are capacities; the pixels and edges can be
// numbered. Null where the grid is better made of its edges.
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

// Solves distinct graphs; only the calling thread can see Ctrl-C, and it watches while others work.
void solve_all(const std::vector<setwise::AnyFlowProblem*>& graphs, int threads) {
    setwise::each_long_task(static_cast<Index>(graphs.size()), threads, poll_signals,
                            [&](Index k, setwise::Poll poll) {
                                auto& graph = *graphs[static_cast<std::size_t>(k)];
                                const auto lock = locked(graph);
                                graph.solve(poll);
                            });
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
}

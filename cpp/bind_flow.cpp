// The Python face of the flow kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "bind.hpp"
#include "flow_graph.hpp"

namespace {

using namespace setwise_bind;

template <class T>
using Pairs = nb::ndarray<const T, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// Two threads of Python may hold one graph.
template <class Graph>
std::lock_guard<std::mutex> locked(const Graph& graph) {
    return std::lock_guard<std::mutex>(graph.mutex());
}

template <class Capacity>
void require_length(const In<Capacity>& values, Index length) {
    require(static_cast<Index>(values.size()) == length, "an array must have one entry for each");
}

constexpr const char* too_large =
    "the sum of all capacities must be below 2**63, got more: scale them down or use floats";

template <class Topology, class Capacity>
void bind_graph(nb::module_& m, const char* name) {
    using Graph = setwise::FlowGraph<Topology, Capacity>;
    using Values = In<Capacity>;
    using Result = Out<Capacity>;
    nb::class_<Graph, setwise::AnyFlowGraph>(m, name)
        .def_prop_ro("n", [](const Graph& g) { return g.nodes(); })
        .def_prop_ro("is_current", [](const Graph& g) { return g.is_current(); })
        .def("copy",
             [](const Graph& g) {
                 const auto lock = locked(g);
                 return new Graph(g);
             },
             nb::rv_policy::take_ownership, Unlocked())
        .def("set_capacities",
             [](Graph& g, In<Index> which, Values there, Values back) {
                 const auto count = static_cast<Index>(which.size());
                 require_length(there, count);
                 require_length(back, count);
                 const auto lock = locked(g);
                 std::vector<bool> seen(static_cast<std::size_t>(g.edges()), false);
                 for (Index k = 0; k < count; ++k) {
                     const Index e = which.data()[k];
                     require(0 <= e && e < g.edges(), "which must hold edges of the graph");
                     require(!seen[static_cast<std::size_t>(e)], "which must hold distinct edges");
                     seen[static_cast<std::size_t>(e)] = true;
                 }
                 require(g.fits({{there.data(), count}, {back.data(), count}},
                                g.total_of_edges(which.data(), count)),
                         too_large);
                 for (Index k = 0; k < count; ++k)
                     g.set_capacity(which.data()[k], there.data()[k], back.data()[k]);
             },
             "which"_a.noconvert(), "there"_a.noconvert(), "back"_a.noconvert(), Unlocked())
        .def("set_all_capacities",
             [](Graph& g, Values there, Values back) {
                 const Index count = g.edges();
                 require_length(there, count);
                 if (back.size() != 0) require_length(back, count);
                 const auto lock = locked(g);
                 const auto backs = static_cast<Index>(back.size());
                 require(g.fits({{there.data(), count}, {back.data(), backs}},
                                g.total_of_edges(nullptr, count)),
                         too_large);
                 for (Index e = 0; e < count; ++e)
                     g.set_capacity(e, there.data()[e], backs ? back.data()[e] : Capacity(0));
             },
             "there"_a.noconvert(), "back"_a.noconvert(), Unlocked())
        .def("set_terminals",
             [](Graph& g, In<Index> which, Values source, Values sink) {
                 const auto count = static_cast<Index>(which.size());
                 require_length(source, count);
                 require_length(sink, count);
                 const auto lock = locked(g);
                 std::vector<bool> seen(static_cast<std::size_t>(g.nodes()), false);
                 for (Index k = 0; k < count; ++k) {
                     const Index v = which.data()[k];
                     require(0 <= v && v < g.nodes(), "which must hold nodes of the graph");
                     require(!seen[static_cast<std::size_t>(v)], "which must hold distinct nodes");
                     seen[static_cast<std::size_t>(v)] = true;
                 }
                 require(g.fits({{source.data(), count}, {sink.data(), count}},
                                g.total_of_terminals(which.data(), count)),
                         too_large);
                 for (Index k = 0; k < count; ++k)
                     g.set_terminals(static_cast<setwise::FlowNode>(which.data()[k]),
                                     source.data()[k], sink.data()[k]);
             },
             "which"_a.noconvert(), "source"_a.noconvert(), "sink"_a.noconvert(), Unlocked())
        .def("set_all_terminals",
             [](Graph& g, Values source, Values sink) {
                 const Index count = g.nodes();
                 require_length(source, count);
                 require_length(sink, count);
                 const auto lock = locked(g);
                 require(g.fits({{source.data(), count}, {sink.data(), count}},
                                g.total_of_terminals(nullptr, count)),
                         too_large);
                 for (Index v = 0; v < count; ++v)
                     g.set_terminals(static_cast<setwise::FlowNode>(v), source.data()[v],
                                     sink.data()[v]);
             },
             "source"_a.noconvert(), "sink"_a.noconvert(), Unlocked())
        .def("through",
             [](const Graph& g, Index v, bool out) {
                 require(0 <= v && v < g.nodes(), "v must be a node of the graph");
                 const auto lock = locked(g);
                 return g.through(static_cast<setwise::FlowNode>(v), out);
             },
             "v"_a, "out"_a, Unlocked())
        .def("value",
             [](const Graph& g) {
                 const auto lock = locked(g);
                 return g.value();
             },
             Unlocked())
        .def("cut",
             [](const Graph& g) {
                 const auto lock = locked(g);
                 return g.cut();
             },
             Unlocked())
        .def("mask",
             [](const Graph& g, Out<bool> mask) {
                 require(static_cast<Index>(mask.size()) == g.nodes(), "mask must have n entries");
                 const auto lock = locked(g);
                 for (setwise::FlowNode v = 0; v < g.nodes(); ++v) mask.data()[v] = g.source_side(v);
             },
             "mask"_a.noconvert(), Unlocked())
        .def("flows",
             [](Graph& g, Result flows, Result residuals) {
                 const auto count = static_cast<std::size_t>(g.edges());
                 require((flows.size() == count || flows.size() == 0) &&
                             (residuals.size() == 2 * count || residuals.size() == 0),
                         "flows must have E entries, residuals 2 E");
                 const auto lock = locked(g);
                 g.make_flow(poll_signals);
                 if (flows.size())
                     for (Index e = 0; e < g.edges(); ++e) flows.data()[e] = g.flow(e);
                 if (residuals.size())
                     for (Index e = 0; e < g.edges(); ++e) {
                         residuals.data()[2 * e] = g.residual(e);
                         residuals.data()[2 * e + 1] = g.residual_back(e);
                     }
             },
             "flows"_a.noconvert(), "residuals"_a.noconvert(), Unlocked())
        .def("problem",
             [](const Graph& g, Result there, Result back, Result source, Result sink) {
                 require(static_cast<Index>(there.size()) == g.edges() &&
                             static_cast<Index>(back.size()) == g.edges() &&
                             static_cast<Index>(source.size()) == g.nodes() &&
                             static_cast<Index>(sink.size()) == g.nodes(),
                         "there and back must have E entries, source and sink n");
                 const auto lock = locked(g);
                 for (Index e = 0; e < g.edges(); ++e) {
                     there.data()[e] = g.capacity(e);
                     back.data()[e] = g.reverse(e);
                 }
                 for (setwise::FlowNode v = 0; v < g.nodes(); ++v) {
                     source.data()[v] = g.source(v);
                     sink.data()[v] = g.sink(v);
                 }
             },
             "there"_a.noconvert(), "back"_a.noconvert(), "source"_a.noconvert(),
             "sink"_a.noconvert(), Unlocked())
        .def("edges",
             [](const Graph& g, nb::ndarray<Index, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu> ends) {
                 require(static_cast<Index>(ends.shape(0)) == g.edges(), "ends must have E rows");
                 for (Index e = 0; e < g.edges(); ++e) {
                     const auto [tail, head] = g.topology().ends(e);
                     ends.data()[2 * e] = tail;
                     ends.data()[2 * e + 1] = head;
                 }
             },
             "ends"_a.noconvert(), Unlocked());
}

// The place of the first pair that is no edge of a graph of n nodes, or -1.
template <class Vertex>
Index first_not_edge(Pairs<Vertex> edges, Index n) {
    const Vertex* const ends = edges.data();
    for (Index e = 0; e < static_cast<Index>(edges.shape(0)); ++e) {
        const Vertex u = ends[2 * e], v = ends[2 * e + 1];
        if (u < 0 || v < 0 || u >= n || v >= n || u == v) return e;
    }
    return -1;
}

template <class Capacity, class Vertex>
setwise::AnyFlowGraph* make_graph(Index n, Pairs<Vertex> edges, In<Capacity>) {
    const auto count = static_cast<Index>(edges.shape(0));
    const Vertex* const ends = edges.data();
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    using Topology = setwise::CsrTopology;
    return new setwise::FlowGraph<Topology, Capacity>(
        std::make_shared<const Topology>(n, count, ends, ends + 1, 2));
}

template <class Capacity>
void bind_capacity(nb::module_& m) {
    m.def("make_flow_graph", &make_graph<Capacity, std::int32_t>, "n"_a, "edges"_a.noconvert(),
          "kind"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("make_flow_graph", &make_graph<Capacity, std::int64_t>, "n"_a, "edges"_a.noconvert(),
          "kind"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    // The place of the first entry that is no capacity, or -1.
    m.def(
        "first_not_capacity",
        [](In<Capacity> values, bool infinite) {
            const auto count = static_cast<Index>(values.size());
            const Capacity* const x = values.data();
            for (Index k = 0; k < count; ++k) {
                if (!(x[k] >= 0)) return k;
                if constexpr (std::is_floating_point_v<Capacity>)
                    if (!infinite && std::isinf(x[k])) return k;
            }
            return Index(-1);
        },
        "values"_a.noconvert(), "infinite"_a, Unlocked());
}

// ------------------------------------------------------------------------------------ a batch

thread_local const std::atomic<bool>* abandoned = nullptr;
struct Abandoned {};
void poll_flag() {
    if (abandoned->load(std::memory_order_relaxed)) throw Abandoned{};
}

// Solves distinct graphs; only this thread can see Ctrl-C, so it watches while the others work.
void solve_all(const std::vector<setwise::AnyFlowGraph*>& graphs, int threads) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> next{0}, working{0};
    std::exception_ptr error;
    std::mutex guard;
    const auto work = [&] {
        abandoned = &stop;
        for (std::size_t k; !stop && (k = next++) < graphs.size();) {
            try {
                const std::lock_guard<std::mutex> lock(graphs[k]->mutex());
                graphs[k]->solve(poll_flag);
            } catch (const Abandoned&) {
            } catch (...) {
                const std::lock_guard<std::mutex> lock(guard);
                if (!error) error = std::current_exception();
                stop = true;
            }
        }
        --working;
    };
    std::vector<std::thread> pool;
    try {
        for (int t = 0; t < threads; ++t) {
            ++working;
            try {
                pool.emplace_back(work);
            } catch (...) {
                --working;
                throw;
            }
        }
        auto pause = std::chrono::microseconds(50);
        while (working > 0) {
            std::this_thread::sleep_for(pause);
            pause = std::min(2 * pause, std::chrono::microseconds(20000));
            poll_signals();
        }
    } catch (...) {
        stop = true;
        for (auto& thread : pool) thread.join();
        throw;
    }
    for (auto& thread : pool) thread.join();
    if (error) std::rethrow_exception(error);
}

}  // namespace

void bind_flow(nb::module_& m) {
    nb::class_<setwise::AnyFlowGraph>(m, "AnyFlowGraph")
        .def("solve",
             [](setwise::AnyFlowGraph& g) {
                 const auto lock = locked(g);
                 g.solve(poll_signals);
             },
             Unlocked());
    bind_graph<setwise::CsrTopology, std::int64_t>(m, "FlowGraphInt");
    bind_graph<setwise::CsrTopology, double>(m, "FlowGraphFloat");
    bind_capacity<std::int64_t>(m);
    bind_capacity<double>(m);
    m.def("first_not_edge", &first_not_edge<std::int32_t>, "edges"_a.noconvert(), "n"_a, Unlocked());
    m.def("first_not_edge", &first_not_edge<std::int64_t>, "edges"_a.noconvert(), "n"_a, Unlocked());
    m.def(
        "solve_flow_graphs",
        [](const std::vector<setwise::AnyFlowGraph*>& graphs, int threads) {
            require(threads >= 1, "threads must be at least 1");
            for (const auto* graph : graphs) require(graph != nullptr, "a graph must not be None");
            nb::gil_scoped_release unlocked;
            solve_all(graphs, threads);
        },
        "graphs"_a, "threads"_a);
}

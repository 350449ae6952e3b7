// Types and checks of arguments that several files of this folder use: arrays over the variables
// and labels of a field, edges, pairs, and tables over a few variables.
#pragma once

#include <vector>

#include "bind/bind.hpp"

namespace setwise::bind {

// The most entries of an array, such that products of two sizes fit into 64 bits.
constexpr Index most = Index(1) << 31;

template <class T>
std::vector<T> copy(const In<T>& array) {
    return {array.data(), array.data() + array.size()};
}

inline void require_unary(const In2<double>& unary) {
    require(unary.shape(1) >= 1 && static_cast<Index>(unary.shape(0)) < most &&
                static_cast<Index>(unary.shape(1)) < most,
            "unary must have shape (N, L), L at least 1");
}

template <class State, class Array>
void require_field(const State& state, const Array& array) {
    require(static_cast<Index>(array.shape(0)) == state.n() &&
                static_cast<Index>(array.shape(1)) == state.n_labels(),
            "the array must have shape (N, L)");
}

inline void require_temperature(double temperature) {
    require(temperature > 0, "temperature must be positive");
}

inline int threads(Index n_threads) {
    require(n_threads >= 1 && n_threads <= 1024, "n_threads must lie between 1 and 1024");
    return static_cast<int>(n_threads);
}

// Edges as rows of two nodes.
template <class T>
using Pairs = nb::ndarray<const T, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// Return the index of the first pair that is not an edge of a graph of n nodes, or -1.
template <class Vertex>
Index first_not_edge(Pairs<Vertex> edges, Index n) {
    const Vertex* const ends = edges.data();
    for (Index e = 0; e < static_cast<Index>(edges.shape(0)); ++e) {
        const Vertex u = ends[2 * e], v = ends[2 * e + 1];
        if (u < 0 || v < 0 || u >= n || v >= n || u == v) return e;
    }
    return -1;
}

template <class T>
using In3 = nb::ndarray<const T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

using Out3 = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class State>
void require_edges(const State& state, const In2<Index>& edges, std::size_t count) {
    require(edges.shape(1) == 2 && edges.shape(0) == count, "edges must have shape (E, 2)");
    for (std::size_t e = 0; e < edges.shape(0); ++e) {
        const Index i = edges.data()[2 * e], j = edges.data()[2 * e + 1];
        require(i >= 0 && j >= 0 && i < state.n() && j < state.n() && i != j,
                "edges must join different variables");
    }
}

inline void require_edges_below(const In2<Index>& edges, Index n) {
    require(n >= 0 && n < most, "n must be below 2**31");
    require(edges.shape(1) == 2, "edges must have shape (E, 2)");
    for (std::size_t k = 0; k < edges.size(); ++k)
        require(edges.data()[k] >= 0 && edges.data()[k] < n, "edges must join variables below n");
}

template <class State>
void require_tables(const State& state, const In3<double>& tables) {
    const auto n_labels = static_cast<std::size_t>(state.n_labels());
    require(tables.shape(1) == n_labels && tables.shape(2) == n_labels,
            "tables must have shape (T, L, L)");
}

// Bind the methods that add pairs, which are the same for several classes.
template <class State>
nb::class_<State> bind_pairs(nb::module_& m, const char* name) {
    return nb::class_<State>(m, name)
        .def(
            "add_potts",
            [](State& state, In2<Index> edges, In<double> weights) {
                require_edges(state, edges, weights.size());
                state.pairs().add_potts(edges.data(), weights.data(),
                                        static_cast<Index>(weights.size()));
            },
            "edges"_a.noconvert(), "weights"_a.noconvert(), Unlocked())
        .def(
            "add_tables",
            [](State& state, In2<Index> edges, In3<double> tables, In<Index> which,
               In<double> weights) {
                require_tables(state, tables);
                require_edges(state, edges, weights.size());
                require(which.size() == weights.size(), "which must have an entry for each edge");
                const auto n_tables = static_cast<Index>(tables.shape(0));
                for (std::size_t e = 0; e < which.size(); ++e)
                    require(which.data()[e] >= 0 && which.data()[e] < n_tables,
                            "which must hold numbers of tables");
                state.pairs().add_tables(edges.data(), which.data(), weights.data(),
                                         static_cast<Index>(weights.size()), tables.data(),
                                         n_tables);
            },
            "edges"_a.noconvert(), "tables"_a.noconvert(), "which"_a.noconvert(),
            "weights"_a.noconvert(), Unlocked());
}

template <class State>
void require_cliques(const State& state, const In2<Index>& scopes) {
    require(scopes.shape(1) > 0, "scopes must hold variables");
    for (std::size_t f = 0; f < scopes.shape(0); ++f) {
        const Index* const scope = scopes.data() + f * scopes.shape(1);
        for (std::size_t k = 0; k < scopes.shape(1); ++k) {
            require(scope[k] >= 0 && scope[k] < state.n(), "scopes must hold variables");
            for (std::size_t other = 0; other < k; ++other)
                require(scope[other] != scope[k], "scopes must hold distinct variables");
        }
    }
}

inline void require_cells(const In<Index>& sides, const In2<Index>& scopes,
                          const In2<double>& tables) {
    require(sides.size() == scopes.shape(1), "sides must have an entry a variable");
    std::size_t cells = 1;
    for (std::size_t k = 0; k < sides.size(); ++k) {
        require(cells <= tables.shape(1) && sides.data()[k] > 0 && sides.data()[k] < most,
                "tables must have an entry a labelling");
        cells *= static_cast<std::size_t>(sides.data()[k]);
    }
    require(tables.shape(0) == scopes.shape(0) && cells == tables.shape(1),
            "tables must have an entry a labelling");
}

template <class State>
void require_sides(const State& state, const In<Index>& sides) {
    for (std::size_t k = 0; k < sides.size(); ++k)
        require(sides.data()[k] <= state.n_labels(), "sides must be at most L");
}

}  // namespace setwise::bind

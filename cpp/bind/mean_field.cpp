// Mean field and its trees, for setwise.inference. Sizes and index ranges are checked here.
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "mean_field/forest_field.hpp"
#include "mean_field/induced_forest.hpp"
#include "mean_field/mean_field.hpp"

namespace {

using namespace setwise::bind;
using setwise::ForestField;
using setwise::MeanField;

void require_labels(const MeanField& state, const In<Index>& own) {
    for (std::size_t k = 0; k < own.size(); ++k)
        require(own.data()[k] >= 0 && own.data()[k] < state.n_labels(), "own must hold labels");
}

template <class State>
void add_counts(State& state, In<Index> variables, In<Index> starts, In<Index> own,
                In<double> table) {
    const auto positions = static_cast<Index>(variables.size());
    const auto blocks = static_cast<Index>(starts.size()) - 1;
    require(blocks >= 0 && starts.data()[0] == 0 && starts.data()[blocks] == positions,
            "starts must rise from 0 to the number of variables");
    for (Index b = 0; b < blocks; ++b)
        require(starts.data()[b] < starts.data()[b + 1],
                "starts must rise from 0 to the number of variables");
    std::vector<bool> seen(static_cast<std::size_t>(state.n()));
    for (Index k = 0; k < positions; ++k) {
        const Index i = variables.data()[k];
        require(i >= 0 && i < state.n() && !seen[i], "variables must be distinct and below N");
        seen[i] = true;
    }
    require(own.size() == 0 || own.size() == variables.size(),
            "own must be empty or have an entry for each variable");
    require_labels(state, own);
    require(static_cast<Index>(table.size()) == positions + blocks,
            "table must have an entry for each count of each block");
    setwise::CountBlocks counts;
    counts.variables.assign(variables.data(), variables.data() + variables.size());
    counts.starts.assign(starts.data(), starts.data() + starts.size());
    counts.own.assign(own.data(), own.data() + own.size());
    counts.table.assign(table.data(), table.data() + table.size());
    state.add_counts(std::move(counts));
}

// Bind what mean field and its trees have in common: the terms, and Q.
template <class State>
nb::class_<State> bind_terms(nb::module_& m, const char* name) {
    return bind_pairs<State>(m, name)
        .def(
            "copy", [](const State& state) { return State(state); }, Unlocked())
        .def("add_counts", &add_counts<State>, "variables"_a.noconvert(), "starts"_a.noconvert(),
             "own"_a.noconvert(), "table"_a.noconvert(), Unlocked())
        .def(
            "add_cost",
            [](State& state, double cost, In<Byte> labels) {
                require(static_cast<Index>(labels.size()) == state.n_labels(),
                        "labels must have an entry for each label");
                state.add_cost(cost, labels.data());
            },
            "cost"_a, "labels"_a.noconvert(), Unlocked())
        .def(
            "close", [](State& state) { state.pairs().close(); }, Unlocked())
        .def(
            "replace_own",
            [](State& state, Index which, In<Index> own) {
                require(which >= 0 && which < state.counts(),
                        "which must be one of the counts added");
                require(own.size() == state.counts(which).own.size(),
                        "own must have an entry for each variable, where there were some");
                require_labels(state, own);
                state.replace_own(which, own.data());
            },
            "which"_a, "own"_a.noconvert(), Unlocked())
        .def(
            "replace_tables",
            [](State& state, In3<double> tables) {
                require_tables(state, tables);
                require(static_cast<Index>(tables.shape(0)) <= state.pairs().tables(),
                        "tables must not be more than were added");
                state.pairs().replace_tables(tables.data(), static_cast<Index>(tables.shape(0)));
            },
            "tables"_a.noconvert(), Unlocked())
        .def(
            "set_probabilities",
            [](State& state, In2<double> q) {
                require_field(state, q);
                std::copy(q.data(), q.data() + q.size(), state.q().begin());
            },
            "q"_a.noconvert(), Unlocked())
        .def(
            "probabilities",
            [](State& state, Out2<double> q) {
                require_field(state, q);
                std::copy(state.q().begin(), state.q().end(), q.data());
            },
            "q"_a.noconvert(), Unlocked());
}

}  // namespace

void bind_mean_field(nb::module_& m) {
    bind_terms<MeanField>(m, "MeanField")
        .def(
            "__init__",
            [](MeanField* state, In2<double> unary, Index small) {
                require_unary(unary);
                require(small >= 0 && small < most, "small must not be negative");
                new (state) MeanField(unary.data(), static_cast<Index>(unary.shape(0)),
                                      static_cast<Index>(unary.shape(1)), small);
            },
            "unary"_a.noconvert(), "small"_a)
        .def(
            "add_cliques",
            [](MeanField& state, In2<Index> cliques, In<Index> sides, In2<double> tables,
               double price) {
                require_cliques(state, cliques);
                require_cells(sides, cliques, tables);
                require_sides(state, sides);
                state.cliques().add(cliques.data(), static_cast<Index>(cliques.shape(0)),
                                    {sides.data(), sides.data() + sides.size()}, tables.data(),
                                    price);
            },
            "cliques"_a.noconvert(), "sides"_a.noconvert(), "tables"_a.noconvert(), "price"_a,
            Unlocked())
        .def(
            "sweep",
            [](MeanField& state, double temperature) {
                require_temperature(temperature);
                return state.sweep(temperature, poll_signals);
            },
            "temperature"_a, Unlocked())
        .def(
            "value",
            [](const MeanField& state, Index exact, Index n_threads) {
                const auto value = state.value(exact, threads(n_threads), poll_signals);
                return std::pair<double, double>(value.entropy, value.energy);
            },
            "exact"_a, "n_threads"_a, Unlocked());
    bind_terms<ForestField>(m, "ForestField")
        .def(
            "__init__",
            [](ForestField* state, In2<double> unary) {
                require_unary(unary);
                new (state) ForestField(unary.data(), static_cast<Index>(unary.shape(0)),
                                        static_cast<Index>(unary.shape(1)));
            },
            "unary"_a.noconvert())
        .def(
            "set_forest",
            [](ForestField& state, In<Byte> kept, double temperature) {
                require_temperature(temperature);
                require(static_cast<Index>(kept.size()) == state.pairs().edges(),
                        "kept must have an entry for each edge");
                state.set_forest(kept.data(), temperature);
            },
            "kept"_a.noconvert(), "temperature"_a, Unlocked())
        .def(
            "sweep",
            [](ForestField& state, double temperature, Index n_threads) {
                require_temperature(temperature);
                return state.sweep(temperature, threads(n_threads), poll_signals);
            },
            "temperature"_a, "n_threads"_a, Unlocked())
        .def(
            "value",
            [](ForestField& state, double temperature, Index n_threads) {
                require_temperature(temperature);
                return state.value(temperature, threads(n_threads), poll_signals);
            },
            "temperature"_a, "n_threads"_a, Unlocked());
    m.def(
        "induced_forest",
        [](In2<Index> edges, Index n, In<Index> order, Out<Byte> kept) {
            require_edges_below(edges, n);
            require(kept.size() == edges.shape(0), "kept must have an entry for each edge");
            for (std::size_t k = 0; k < order.size(); ++k)
                require(order.data()[k] >= 0 &&
                            order.data()[k] < static_cast<Index>(edges.shape(0)),
                        "order must hold edges");
            setwise::induced_forest(n, edges.data(), static_cast<Index>(edges.shape(0)),
                                    order.data(), static_cast<Index>(order.size()), kept.data());
        },
        "edges"_a.noconvert(), "n"_a, "order"_a.noconvert(), "kept"_a.noconvert(), Unlocked());
    m.def(
        "spanning_forest",
        [](In2<Index> edges, Index n, In<double> strengths, Out<Byte> kept) {
            require_edges_below(edges, n);
            require(kept.size() == edges.shape(0) && strengths.size() == edges.shape(0),
                    "kept and strengths must have an entry for each edge");
            setwise::spanning_forest(n, edges.data(), strengths.data(),
                                     static_cast<Index>(edges.shape(0)), kept.data());
        },
        "edges"_a.noconvert(), "n"_a, "strengths"_a.noconvert(), "kept"_a.noconvert(), Unlocked());
}

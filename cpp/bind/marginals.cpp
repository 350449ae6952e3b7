// Mean field, belief propagation, tree bounds and elimination, for setwise.inference. Sizes and index ranges are checked here.
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "bind/bind.hpp"
#include "bind/field_arguments.hpp"
#include "marginals/fewest_edges_first.hpp"
#include "marginals/forest_field.hpp"
#include "marginals/induced_forest.hpp"
#include "marginals/junction_tree.hpp"
#include "marginals/mean_field.hpp"
#include "marginals/sum_product.hpp"
#include "marginals/tree_bound.hpp"

namespace {

using namespace setwise::bind;
using setwise::ForestField;
using setwise::JunctionTree;
using setwise::MeanField;
using setwise::SumProduct;
using setwise::TreeBound;

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

void require_edges_below(const In2<Index>& edges, Index n) {
    require(n >= 0 && n < most, "n must be below 2**31");
    require(edges.shape(1) == 2, "edges must have shape (E, 2)");
    for (std::size_t k = 0; k < edges.size(); ++k)
        require(edges.data()[k] >= 0 && edges.data()[k] < n, "edges must join variables below n");
}

template <class State>
void require_tables(const State& state, const In3<double>& tables) {
    const auto n_labels = static_cast<std::size_t>(state.n_labels());
    require(tables.shape(1) == n_labels && tables.shape(2) == n_labels,
            "tables must have shape (E, L, L)");
}

// All take pairs in the same way.
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
            [](State& state, In2<Index> edges, In3<double> tables) {
                require_tables(state, tables);
                require_edges(state, edges, tables.shape(0));
                state.pairs().add_tables(edges.data(), tables.data(),
                                         static_cast<Index>(tables.shape(0)));
            },
            "edges"_a.noconvert(), "tables"_a.noconvert(), Unlocked());
}

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

// What mean field and its trees have in common: the terms, and Q.
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

template <class Real>
void close_tree_bound(TreeBound<Real>& state, In<Index> order, In<Index> starts) {
    require(static_cast<Index>(order.size()) == state.n(), "order must have an entry a variable");
    std::vector<bool> seen(static_cast<std::size_t>(state.n()));
    for (std::size_t k = 0; k < order.size(); ++k) {
        const Index i = order.data()[k];
        require(i >= 0 && i < state.n() && !seen[i], "order must hold each variable once");
        seen[i] = true;
    }
    const auto blocks = static_cast<Index>(starts.size()) - 1;
    require(blocks >= 0 && starts.data()[0] == 0 && starts.data()[blocks] == state.n(),
            "starts must rise from 0 to N");
    for (Index b = 0; b < blocks; ++b)
        require(starts.data()[b] < starts.data()[b + 1], "starts must rise from 0 to N");
    state.close(order.data(), starts.data(), blocks);
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

void require_cells(const In<Index>& sides, const In2<Index>& scopes, const In2<double>& tables) {
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

// Messages (2 E, L), both of an edge after each other, the edges in an order (E,).
template <class Real, class Array>
void require_messages(TreeBound<Real>& state, const In<Index>& order, const Array& messages) {
    require(static_cast<Index>(messages.shape(0)) == 2 * state.edges() &&
                static_cast<Index>(messages.shape(1)) == state.n_labels(),
            "messages must have shape (2 E, L)");
    require(static_cast<Index>(order.size()) == state.edges(), "order must hold every edge");
    for (std::size_t k = 0; k < order.size(); ++k)
        require(order.data()[k] >= 0 && order.data()[k] < state.edges(), "order must hold edges");
}

// A bound by trees whose messages are of type Real.
template <class Real>
void bind_tree_bound(nb::module_& m, const char* name) {
    using State = TreeBound<Real>;
    bind_pairs<State>(m, name)
        .def(
            "__init__",
            [](State* state, In2<double> unary) {
                require_unary(unary);
                new (state) State(unary.data(), static_cast<Index>(unary.shape(0)),
                                  static_cast<Index>(unary.shape(1)));
            },
            "unary"_a.noconvert())
        .def("close", &close_tree_bound<Real>, "order"_a.noconvert(), "starts"_a.noconvert(),
             Unlocked())
        .def(
            "set_shares",
            [](State& state, In<double> rho) {
                require(static_cast<Index>(rho.size()) == state.edges(),
                        "rho must have an entry for each edge");
                for (std::size_t e = 0; e < rho.size(); ++e)
                    require(rho.data()[e] > 0 && rho.data()[e] <= 1, "rho must lie in (0, 1]");
                state.set_shares(rho.data());
            },
            "rho"_a.noconvert(), Unlocked())
        .def(
            "set_unary",
            [](State& state, In2<double> unary) {
                require_field(state, unary);
                state.set_unary(unary.data());
            },
            "unary"_a.noconvert(), Unlocked())
        .def(
            "forward",
            [](State& state, Index n_threads) {
                return state.forward(threads(n_threads), poll_signals);
            },
            "n_threads"_a, Unlocked())
        .def(
            "backward",
            [](State& state, double step, std::optional<Out2<double>> logs, Index n_threads) {
                if (logs) require_field(state, *logs);
                require(step > 0 && step <= 1, "step must lie in (0, 1]");
                state.backward(step, logs ? logs->data() : nullptr, threads(n_threads),
                               poll_signals);
            },
            "step"_a, "logs"_a.noconvert().none(), "n_threads"_a, Unlocked())
        .def(
            "beliefs",
            [](const State& state, Out2<double> logs, Index n_threads) {
                require_field(state, logs);
                state.beliefs(logs.data(), threads(n_threads), poll_signals);
            },
            "logs"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "set_beliefs",
            [](State& state, In2<double> logs, Index n_threads) {
                require_field(state, logs);
                state.set_beliefs(logs.data(), threads(n_threads), poll_signals);
            },
            "logs"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "dual",
            [](const State& state, In2<double> logs, Out<double> informations, Index n_threads) {
                require_field(state, logs);
                require(static_cast<Index>(informations.size()) == state.edges(),
                        "informations must have an entry for each edge");
                return state.dual(logs.data(), informations.data(), threads(n_threads),
                                  poll_signals);
            },
            "logs"_a.noconvert(), "informations"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "set_weights",
            [](State& state, In<double> weights) {
                require(static_cast<Index>(weights.size()) == state.n(),
                        "weights must have an entry a variable");
                for (std::size_t i = 0; i < weights.size(); ++i)
                    require(weights.data()[i] > 0 && weights.data()[i] <= 1,
                            "weights must lie in (0, 1]");
                state.set_weights(weights.data());
            },
            "weights"_a.noconvert(), Unlocked())
        .def(
            "cover_bound",
            [](const State& state, In<Index> order, In<double> shares) {
                require(static_cast<Index>(order.size()) == state.n() &&
                            static_cast<Index>(shares.size()) == state.edges(),
                        "order must have an entry a variable, shares one an edge");
                for (std::size_t k = 0; k < order.size(); ++k)
                    require(order.data()[k] >= 0 && order.data()[k] < state.n(),
                            "order must hold variables");
                return state.cover_bound(order.data(), shares.data(), poll_signals);
            },
            "order"_a.noconvert(), "shares"_a.noconvert(), Unlocked())
        .def(
            "pair_marginals",
            [](const State& state, In2<double> logs, In<Index> edges, Out3 marginals) {
                require_field(state, logs);
                const auto labels = static_cast<std::size_t>(state.n_labels());
                require(marginals.shape(0) == edges.size() && marginals.shape(1) == labels &&
                            marginals.shape(2) == labels,
                        "marginals must have shape (E, L, L)");
                for (std::size_t k = 0; k < edges.size(); ++k) {
                    const Index e = edges.data()[k];
                    require(e >= 0 && e < state.edges(), "edges must be below E");
                    state.pair_marginal(e, logs.data(), marginals.data() + k * labels * labels);
                    poll_now_and_then(static_cast<Index>(k));
                }
            },
            "logs"_a.noconvert(), "edges"_a.noconvert(), "marginals"_a.noconvert(), Unlocked())
        .def(
            "messages",
            [](State& state, In<Index> order, Out2<Real> messages) {
                require_messages(state, order, messages);
                const Index size = 2 * state.n_labels();
                for (Index k = 0; k < state.edges(); ++k) {
                    const Real* const from = state.messages_of(order.data()[k]);
                    std::copy(from, from + size, messages.data() + k * size);
                }
            },
            "order"_a.noconvert(), "messages"_a.noconvert(), Unlocked())
        .def(
            "set_messages",
            [](State& state, In<Index> order, In2<Real> messages) {
                require_messages(state, order, messages);
                const Index size = 2 * state.n_labels();
                for (Index k = 0; k < state.edges(); ++k) {
                    const Real* const from = messages.data() + k * size;
                    std::copy(from, from + size, state.messages_of(order.data()[k]));
                }
            },
            "order"_a.noconvert(), "messages"_a.noconvert(), Unlocked());
}

}  // namespace

void bind_marginals(nb::module_& m) {
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
    bind_pairs<SumProduct>(m, "SumProduct")
        .def(
            "add_cliques",
            [](SumProduct& state, In2<Index> cliques, In<Index> sides, In2<double> tables) {
                require_cliques(state, cliques);
                require_cells(sides, cliques, tables);
                require_sides(state, sides);
                state.cliques().add(cliques.data(), static_cast<Index>(cliques.shape(0)),
                                    {sides.data(), sides.data() + sides.size()}, tables.data());
            },
            "cliques"_a.noconvert(), "sides"_a.noconvert(), "tables"_a.noconvert(), Unlocked())
        .def(
            "__init__",
            [](SumProduct* state, In2<double> unary) {
                require_unary(unary);
                new (state) SumProduct(unary.data(), static_cast<Index>(unary.shape(0)),
                                       static_cast<Index>(unary.shape(1)));
            },
            "unary"_a.noconvert())
        .def("close", &SumProduct::close, Unlocked())
        .def(
            "sweep",
            [](SumProduct& state, double temperature, double damping) {
                require_temperature(temperature);
                require(damping >= 0 && damping < 1, "damping must lie in [0, 1)");
                return state.sweep(temperature, damping, poll_signals);
            },
            "temperature"_a, "damping"_a, Unlocked())
        .def(
            "probabilities",
            [](SumProduct& state, double temperature, Out2<double> p) {
                require_temperature(temperature);
                require_field(state, p);
                state.probabilities(temperature, p.data());
            },
            "temperature"_a, "p"_a.noconvert(), Unlocked());
    m.def(
        "fewest_edges_first",
        [](In2<Index> edges, Index n, Out<Index> order) {
            require_edges_below(edges, n);
            require(static_cast<Index>(order.size()) == n, "order must have an entry a variable");
            setwise::fewest_edges_first(n, edges.data(), static_cast<Index>(edges.shape(0)),
                                        order.data());
        },
        "edges"_a.noconvert(), "n"_a, "order"_a.noconvert(), Unlocked());
    bind_tree_bound<double>(m, "TreeBound");
    bind_tree_bound<float>(m, "TreeBound32");
    nb::class_<JunctionTree>(m, "JunctionTree")
        .def(
            "__init__",
            [](JunctionTree* state, In2<double> logs) {
                require_unary(logs);
                new (state) JunctionTree(logs.data(), static_cast<Index>(logs.shape(0)),
                                         static_cast<Index>(logs.shape(1)));
            },
            "logs"_a.noconvert())
        .def(
            "add_scopes",
            [](JunctionTree& state, In2<Index> scopes) {
                require(!state.planned(), "factors must be added before the plan");
                require_cliques(state, scopes);
                const auto size = static_cast<Index>(scopes.shape(1));
                for (std::size_t f = 0; f < scopes.shape(0); ++f)
                    state.add_scope(scopes.data() + static_cast<Index>(f) * size, size);
            },
            "scopes"_a.noconvert(), Unlocked())
        .def(
            "add_factors",
            [](JunctionTree& state, In2<Index> scopes, In<Index> sides, In2<double> tables) {
                require(!state.planned(), "factors must be added before the plan");
                require_cliques(state, scopes);
                require_cells(sides, scopes, tables);
                const auto size = static_cast<Index>(scopes.shape(1)),
                           cells = static_cast<Index>(tables.shape(1));
                for (std::size_t k = 0; k < scopes.size(); ++k)
                    require(state.highest(scopes.data()[k]) < sides.data()[k % scopes.shape(1)],
                            "sides must hold all labels that are allowed");
                for (std::size_t f = 0; f < scopes.shape(0); ++f)
                    state.add_factor(scopes.data() + static_cast<Index>(f) * size, size,
                                     sides.data(), tables.data() + static_cast<Index>(f) * cells);
            },
            "scopes"_a.noconvert(), "sides"_a.noconvert(), "tables"_a.noconvert(), Unlocked())
        .def(
            "plan",
            [](JunctionTree& state, double cells) { return state.plan(cells, poll_signals); },
            "most"_a, Unlocked())
        .def(
            "log_partition",
            [](JunctionTree& state) {
                require(state.planned() && state.complete(),
                        "log_partition must come after tables and the plan");
                return state.log_partition(poll_signals);
            },
            Unlocked())
        .def(
            "best",
            [](JunctionTree& state, Out<Index> labels) {
                require(state.planned() && state.complete(),
                        "best must come after tables and the plan");
                require(static_cast<Index>(labels.size()) == state.n(),
                        "labels must have an entry a variable");
                return state.best(labels.data(), poll_signals);
            },
            "labels"_a.noconvert(), Unlocked())
        .def(
            "marginals",
            [](JunctionTree& state, Out2<double> p, Out<double> expected) {
                require_field(state, p);
                require(state.summed(), "marginals must come after log_partition");
                require(static_cast<Index>(expected.size()) == state.factors(),
                        "expected must have an entry a factor");
                state.marginals(p.data(), expected.data(), poll_signals);
            },
            "p"_a.noconvert(), "expected"_a.noconvert(), Unlocked());
}

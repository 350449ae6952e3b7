// Bounds by trees, for setwise.inference. Sizes and index ranges are checked here.
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "marginals/fewest_edges_first.hpp"
#include "marginals/tree_bound.hpp"

namespace {

using namespace setwise::bind;
using setwise::TreeBound;

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

// Require messages (2 E, L), both of an edge after each other, the edges in an order (E,).
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
void bind_tree_bound_of(nb::module_& m, const char* name) {
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

void bind_tree_bound(nb::module_& m) {
    m.def(
        "fewest_edges_first",
        [](In2<Index> edges, Index n, Out<Index> order) {
            require_edges_below(edges, n);
            require(static_cast<Index>(order.size()) == n, "order must have an entry a variable");
            setwise::fewest_edges_first(n, edges.data(), static_cast<Index>(edges.shape(0)),
                                        order.data());
        },
        "edges"_a.noconvert(), "n"_a, "order"_a.noconvert(), Unlocked());
    bind_tree_bound_of<double>(m, "TreeBound");
    bind_tree_bound_of<float>(m, "TreeBound32");
}

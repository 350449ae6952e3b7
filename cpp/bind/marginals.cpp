// Belief propagation, elimination and sums over counts, for setwise.inference. Sizes and index ranges
// are checked here.
#include <optional>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "marginals/count_sums.hpp"
#include "marginals/junction_tree.hpp"
#include "marginals/sum_product.hpp"
#include "numeric/threads.hpp"

namespace {

using namespace setwise::bind;

using setwise::JunctionTree;
using setwise::SumProduct;

void count_sums(In<Index> starts, In<double> logits, In<double> heights, Out<double> logs,
                Out<double> q, Out<double> with_count, Out<double> counts, Index n_threads) {
    const auto n = static_cast<Index>(logits.size());
    require(starts.size() >= 1 && starts.data()[0] == 0, "starts must begin with 0");
    const auto factors = static_cast<Index>(starts.size()) - 1;
    for (Index f = 0; f < factors; ++f)
        require(starts.data()[f] <= starts.data()[f + 1], "starts must not fall");
    require(
        starts.data()[factors] == n && static_cast<Index>(heights.size()) == n + factors &&
            counts.size() == heights.size() && static_cast<Index>(logs.size()) == factors &&
            static_cast<Index>(q.size()) == n && static_cast<Index>(with_count.size()) == n,
        "heights and counts must have one entry more than members for each factor, all else one");
    const int workers = threads(n_threads);
    std::vector<setwise::CountSums> sums(static_cast<std::size_t>(workers));
    setwise::each_long_task(workers, workers, poll_signals, [&](Index worker, setwise::Poll poll) {
        for (Index f = worker; f < factors; f += workers) {
            const Index begin = starts.data()[f], end = starts.data()[f + 1];
            logs.data()[f] = sums[static_cast<std::size_t>(worker)](
                logits.data() + begin, end - begin, heights.data() + begin + f, q.data() + begin,
                with_count.data() + begin, counts.data() + begin + f, poll);
        }
    });
}

}  // namespace

void bind_marginals(nb::module_& m) {
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
            [](JunctionTree& state, double memory, double most) {
                const JunctionTree::Plan found = state.plan(memory, most, poll_signals);
                return std::make_tuple(found.largest, found.total, found.width, found.memory);
            },
            "memory"_a, "most"_a, Unlocked())
        .def(
            "log_partition",
            [](JunctionTree& state, Index n_threads) {
                require(state.planned() && state.complete(),
                        "log_partition must come after tables and the plan");
                return state.log_partition(threads(n_threads), poll_signals);
            },
            "n_threads"_a, Unlocked())
        .def(
            "best",
            [](JunctionTree& state, Out<Index> labels, Index n_threads) {
                require(state.planned() && state.complete(),
                        "best must come after tables and the plan");
                require(static_cast<Index>(labels.size()) == state.n(),
                        "labels must have an entry a variable");
                return state.best(labels.data(), threads(n_threads), poll_signals);
            },
            "labels"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "marginals",
            [](JunctionTree& state, Out2<double> p, std::optional<Out<double>> expected,
               Index n_threads) {
                require_field(state, p);
                require(state.summed(), "marginals must come after log_partition");
                require(!expected || static_cast<Index>(expected->size()) == state.factors(),
                        "expected must have an entry a factor");
                state.marginals(p.data(), expected ? expected->data() : nullptr, threads(n_threads),
                                poll_signals);
            },
            "p"_a.noconvert(), "expected"_a.noconvert().none(), "n_threads"_a, Unlocked());
    m.def("count_sums", &count_sums, "starts"_a.noconvert(), "logits"_a.noconvert(),
          "heights"_a.noconvert(), "logs"_a.noconvert(), "q"_a.noconvert(),
          "with_count"_a.noconvert(), "counts"_a.noconvert(), "n_threads"_a, Unlocked());
}

// The Lovász relaxation of a field, for setwise.inference: paths, projections and the state of the
// block minimisation. Sizes, index ranges and the disjointness of blocks are checked here.
#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include <nanobind/stl/pair.h>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "relaxation/frank_wolfe.hpp"
#include "relaxation/labeling_mixture.hpp"
#include "relaxation/paths.hpp"
#include "relaxation/projection.hpp"
#include "relaxation/relaxation.hpp"

namespace {

using namespace setwise::bind;

using Indices = In<Index>;
using Doubles = In<double>;

Index length(const Indices& array) { return static_cast<Index>(array.size()); }

void require_below(const Indices& array, Index limit, const char* what) {
    for (Index k = 0; k < length(array); ++k)
        require(array.data()[k] >= 0 && array.data()[k] < limit, what);
}

void require_starts(const Indices& starts, Index size, const char* what) {
    require(length(starts) >= 1 && starts.data()[0] == 0, what);
    for (Index k = 1; k < length(starts); ++k)
        require(starts.data()[k - 1] < starts.data()[k], what);
    require(starts.data()[length(starts) - 1] == size, what);
}

Index path_classes(In2<Index> edges, Index n, Out<Index> classes) {
    require_edges_below(edges, n);
    require(classes.size() == edges.shape(0), "classes must have an entry for each edge");
    for (std::size_t e = 0; e < edges.shape(0); ++e)
        require(edges.data()[2 * e] != edges.data()[2 * e + 1], "edges must not be loops");
    return setwise::path_classes(n, edges.data(), static_cast<Index>(edges.shape(0)),
                                 classes.data(), poll_signals);
}

// The outputs must have the largest possible lengths: one entry per vertex and E + 1 starts. Return
// the number of paths.
Index walk_paths(In2<Index> edges, Doubles weights, Index n, Out<Index> vertices, Out<Index> starts,
                 Out<double> steps) {
    require_edges_below(edges, n);
    require(weights.size() == edges.shape(0), "weights must have an entry for each edge");
    std::vector<Index> walked, begins;
    std::vector<double> along;
    require(setwise::walk_paths(n, edges.data(), weights.data(), static_cast<Index>(edges.shape(0)),
                                walked, begins, along),
            "edges must form paths that share no vertex");
    require(vertices.size() >= walked.size() && steps.size() >= along.size() &&
                starts.size() >= begins.size(),
            "vertices, starts and steps must be long enough");
    std::copy(walked.begin(), walked.end(), vertices.data());
    std::copy(begins.begin(), begins.end(), starts.data());
    std::copy(along.begin(), along.end(), steps.data());
    return static_cast<Index>(begins.size()) - 1;
}

void project_chain(Doubles z, Doubles weights, Out<double> s) {
    require(s.size() == z.size() && weights.size() + 1 == std::max<std::size_t>(z.size(), 1),
            "weights must be one shorter than z, s as long as z");
    setwise::ProjectionWork<double> work;
    setwise::project_chain(z.data(), weights.data(), static_cast<Index>(z.size()), s.data(), work);
}

void project_count(Doubles z, Doubles gains, Out<double> s) {
    require(s.size() == z.size() && gains.size() == z.size(), "gains and s must be as long as z");
    require(z.size() < static_cast<std::size_t>(most), "z must have fewer than 2**31 entries");
    setwise::ProjectionWork<double> work;
    setwise::project_count(z.data(), gains.data(), static_cast<Index>(z.size()), s.data(), work);
}

void project_simplex(Doubles z, double cost, Out<double> s) {
    require(s.size() == z.size(), "s must be as long as z");
    setwise::ProjectionWork<double> work;
    setwise::project_simplex(z.data(), cost, static_cast<Index>(z.size()), s.data(), work);
}

// kind 0: chains, 1: counts, 2: simplices, 3: convex counts. `own` is empty, or holds the label of each position, and
// then there is one slot.
template <class State>
void add_group(State& state, int kind, Indices variables, Indices starts, Doubles parameters,
               Indices slot_starts, Indices slot_labels, Indices own) {
    require(kind >= 0 && kind <= 3, "kind must be 0, 1, 2 or 3");
    const Index positions = length(variables);
    require(positions < most, "variables must have fewer than 2**31 entries");
    require_below(variables, state.n(), "variables must be below N");
    std::vector<bool> seen(static_cast<std::size_t>(state.n()));
    for (Index k = 0; k < positions; ++k) {
        require(!seen[variables.data()[k]], "variables of a group must be distinct");
        seen[variables.data()[k]] = true;
    }
    require_starts(starts, positions, "starts must rise from 0 to the number of variables");
    require_below(own, state.n_labels(), "own must hold labels");
    require_below(slot_labels, state.n_labels(), "slot_labels must hold labels");
    require(length(own) == 0 || (length(own) == positions && length(slot_labels) == 0),
            "own must be empty or have an entry for each variable");
    require_starts(slot_starts, length(slot_labels),
                   "slot_starts must rise to the number of labels");
    const Index slots = length(own) > 0 ? 1 : length(slot_starts) - 1;
    for (Index slot = 0; slot + 1 < length(slot_starts); ++slot)
        for (Index k = slot_starts.data()[slot] + 1; k < slot_starts.data()[slot + 1]; ++k)
            require(slot_labels.data()[k - 1] < slot_labels.data()[k],
                    "labels of a slot must increase");
    if (length(slot_labels) == slots) {  // one label per slot: each label occurs at most once
        std::vector<bool> taken(static_cast<std::size_t>(state.n_labels()));
        for (Index k = 0; k < slots; ++k) {
            require(!taken[slot_labels.data()[k]], "slots of one label must be distinct");
            taken[slot_labels.data()[k]] = true;
        }
    }
    require(static_cast<Index>(parameters.size()) == (kind == 2 ? slots : positions),
            "parameters must have an entry for each variable, or for each slot of simplices");
    setwise::Group<typename State::Value> group{};
    group.kind = static_cast<setwise::BlockKind>(kind);
    group.variables = copy(variables);
    group.starts = copy(starts);
    group.parameters.assign(parameters.data(), parameters.data() + parameters.size());
    group.slot_starts = copy(slot_starts);
    group.slot_labels = copy(slot_labels);
    group.own = copy(own);
    state.add(std::move(group));
}

// The state of a minimisation with blocks in single or double precision; scores are double.
template <class State>
nb::class_<State> bind_state(nb::module_& m, const char* name) {
    using Scalar = typename State::Value;
    return nb::class_<State>(m, name)
        .def(
            "__init__",
            [](State* state, In2<double> unary) {
                require_unary(unary);
                new (state) State(unary.data(), static_cast<Index>(unary.shape(0)),
                                  static_cast<Index>(unary.shape(1)));
            },
            "unary"_a.noconvert())
        .def("add_group", &add_group<State>, "kind"_a, "variables"_a.noconvert(),
             "starts"_a.noconvert(), "parameters"_a.noconvert(), "slot_starts"_a.noconvert(),
             "slot_labels"_a.noconvert(), "own"_a.noconvert(), Unlocked())
        .def(
            "set_unary",
            [](State& state, In2<double> unary, Index n_threads) {
                require_field(state, unary);
                state.set_unary(unary.data());
                state.start(threads(n_threads));
            },
            "unary"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "shift_unary",
            [](State& state, In2<double> unary, Index n_threads) {
                require_field(state, unary);
                state.shift_unary(unary.data(), threads(n_threads));
            },
            "unary"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "sweep",
            [](State& state, double temperature, double momentum, Index n_threads) {
                require_temperature(temperature);
                state.sweep(temperature, momentum, threads(n_threads), poll_signals);
            },
            "temperature"_a, "momentum"_a, "n_threads"_a, Unlocked())
        .def(
            "revert", [](State& state, Index n_threads) { state.revert(threads(n_threads)); },
            "n_threads"_a, Unlocked())
        .def("finish", [](State& state) { state.finish(); })
        .def(
            "evaluate",
            [](const State& state, double temperature, Index n_threads) {
                require_temperature(temperature);
                const auto value = state.evaluate(temperature, threads(n_threads), poll_signals);
                return std::pair<double, double>(value.objective, value.bound);
            },
            "temperature"_a, "n_threads"_a, Unlocked())
        .def(
            "probabilities",
            [](const State& state, double temperature, Out2<Scalar> p, Index n_threads) {
                require_temperature(temperature);
                require_field(state, p);
                state.probabilities(temperature, p.data(), threads(n_threads), poll_signals);
            },
            "temperature"_a, "p"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "gap",
            [](const State& state, In2<Scalar> p, Index n_threads) {
                require_field(state, p);
                double sum = 0;
                for (const double part : state.gaps(p.data(), threads(n_threads), poll_signals))
                    sum += part;
                return sum;
            },
            "p"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "gaps",
            [](const State& state, In2<Scalar> p, Out<double> gaps, Index n_threads) {
                require_field(state, p);
                require(gaps.size() == state.groups().size(),
                        "gaps must have an entry for each group");
                const auto parts = state.gaps(p.data(), threads(n_threads), poll_signals);
                std::copy(parts.begin(), parts.end(), gaps.data());
            },
            "p"_a.noconvert(), "gaps"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "set_light",
            [](State& state, In<Byte> light, Index n_threads) {
                require(light.size() == state.groups().size(),
                        "light must have an entry for each group");
                state.set_light(std::vector<bool>(light.data(), light.data() + light.size()),
                                threads(n_threads));
            },
            "light"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "scores",
            [](const State& state, Out2<double> s) {
                require_field(state, s);
                std::copy(state.total().begin(), state.total().end(), s.data());
            },
            "s"_a.noconvert(), Unlocked())
        .def("size", &State::state_size)
        .def(
            "blocks",
            [](const State& state, Out<Scalar> blocks) {
                require(static_cast<Index>(blocks.size()) == state.state_size(),
                        "blocks must have as many entries as the state");
                state.copy_state(blocks.data());
            },
            "blocks"_a.noconvert(), Unlocked())
        .def(
            "set_blocks",
            [](State& state, In<Scalar> blocks, Index n_threads) {
                require(static_cast<Index>(blocks.size()) == state.state_size(),
                        "blocks must have as many entries as the state");
                state.set_state(blocks.data(), threads(n_threads));
            },
            "blocks"_a.noconvert(), "n_threads"_a, Unlocked());
}

// slopes: (kinds, n). `which` is the kind of each function.
// `weights` holds the start and receives the answer.
void best_mixture(Doubles energies, In2<double> counts, In2<double> slopes, Indices which,
                  double tolerance, Out<double> weights) {
    const Index labelings = static_cast<Index>(energies.size());
    require(counts.shape(0) == energies.size() && weights.size() == energies.size() &&
                counts.shape(1) == which.size(),
            "counts must have a row for each energy and weight, and a column for each function");
    require_below(which, static_cast<Index>(slopes.shape(0)), "which must name rows of slopes");
    setwise::LabelingMixture mixture(
        energies.data(), counts.data(), labelings,
        {slopes.data(), which.data(), length(which), static_cast<Index>(slopes.shape(1))});
    mixture.improve(weights.data(), tolerance);
}

}  // namespace

void bind_relaxation(nb::module_& m) {
    m.def("path_classes", &path_classes, "edges"_a.noconvert(), "n"_a, "classes"_a.noconvert(),
          Unlocked());
    m.def("walk_paths", &walk_paths, "edges"_a.noconvert(), "weights"_a.noconvert(), "n"_a,
          "vertices"_a.noconvert(), "starts"_a.noconvert(), "steps"_a.noconvert(), Unlocked());
    m.def("project_chain", &project_chain, "z"_a.noconvert(), "weights"_a.noconvert(),
          "s"_a.noconvert(), Unlocked());
    m.def("project_count", &project_count, "z"_a.noconvert(), "gains"_a.noconvert(),
          "s"_a.noconvert(), Unlocked());
    m.def("project_simplex", &project_simplex, "z"_a.noconvert(), "cost"_a, "s"_a.noconvert(),
          Unlocked());
    bind_state<setwise::Relaxation<double>>(m, "RelaxationState");
    bind_state<setwise::Relaxation<float>>(m, "RelaxationState32");
    bind_state<setwise::FrankWolfe>(m, "FrankWolfeState")
        .def(
            "vertex",
            [](const setwise::FrankWolfe& state, In2<double> p, Out2<double> x, Index n_threads) {
                require_field(state, p);
                require_field(state, x);
                state.vertex(p.data(), x.data(), threads(n_threads), poll_signals);
            },
            "p"_a.noconvert(), "x"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "slope",
            [](const setwise::FrankWolfe& state, In2<double> direction, double step,
               double temperature, Index n_threads) {
                require_field(state, direction);
                require_temperature(temperature);
                return state.slope(direction.data(), step, temperature, threads(n_threads),
                                   poll_signals);
            },
            "direction"_a.noconvert(), "step"_a, "temperature"_a, "n_threads"_a, Unlocked())
        .def(
            "shift",
            [](setwise::FrankWolfe& state, In2<double> direction, double step, Index n_threads) {
                require_field(state, direction);
                state.shift(direction.data(), step, threads(n_threads));
            },
            "direction"_a.noconvert(), "step"_a, "n_threads"_a, Unlocked())
        .def(
            "set_scores",
            [](setwise::FrankWolfe& state, In2<double> s) {
                require_field(state, s);
                state.set_scores(s.data());
            },
            "s"_a.noconvert(), Unlocked());
    m.def("best_mixture", &best_mixture, "energies"_a.noconvert(), "counts"_a.noconvert(),
          "slopes"_a.noconvert(), "which"_a.noconvert(), "tolerance"_a, "weights"_a.noconvert(),
          Unlocked());
}

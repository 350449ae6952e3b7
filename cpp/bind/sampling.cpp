// Blocked Gibbs sampling of fields, for setwise.inference. Sizes and index ranges are checked here.
#include <memory>
#include <utility>
#include <vector>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "sampling/forest_sampler.hpp"

namespace {

using namespace setwise::bind;
using setwise::ForestSampler;

// Return the sizes of regions (N,), -1 for none.
std::vector<Index> region_sizes(const ForestSampler& state, const In<Index>& regions,
                                std::size_t count) {
    require(static_cast<Index>(regions.size()) == state.n(), "regions must have shape (N,)");
    std::vector<Index> sizes(count, 0);
    for (std::size_t i = 0; i < regions.size(); ++i) {
        const Index r = regions.data()[i];
        require(r >= -1 && r < static_cast<Index>(count), "regions must be below R");
        if (r >= 0) ++sizes[static_cast<std::size_t>(r)];
    }
    return sizes;
}

void add_counts(ForestSampler& state, In<Index> regions, In<Index> starts, In<double> table,
                In<Index> own) {
    require(starts.size() > 0 && starts.data()[0] == 0, "starts must begin with 0");
    const auto sizes = region_sizes(state, regions, starts.size() - 1);
    for (std::size_t r = 0; r < sizes.size(); ++r)
        require(starts.data()[r + 1] == starts.data()[r] + sizes[r] + 1,
                "starts must leave each region one value more than it has variables");
    require(static_cast<Index>(table.size()) == starts.data()[sizes.size()],
            "table must have as many entries as starts says");
    require(own.size() == 0 || own.size() == regions.size(), "own must be empty or (N,)");
    for (std::size_t i = 0; i < own.size(); ++i)
        require(own.data()[i] >= 0 && own.data()[i] < state.n_labels(), "own must hold labels");
    state.add_term(std::make_unique<setwise::SampledCounts>(state.n_labels(), copy(regions),
                                                            copy(starts), copy(table), copy(own)));
}

void add_transitions(ForestSampler& state, In2<Index> edges, In2<double> costs,
                     In<double> heights) {
    require_edges(state, edges, edges.shape(0));
    const auto labels = static_cast<std::size_t>(state.n_labels());
    require(costs.shape(0) == labels && costs.shape(1) == labels, "costs must have shape (L, L)");
    require(heights.size() == edges.shape(0) + 1, "heights must have shape (E + 1,)");
    state.add_term(std::make_unique<setwise::SampledTransitions>(
        state.n(), state.n_labels(), edges.data(), static_cast<Index>(edges.shape(0)),
        std::vector<double>(costs.data(), costs.data() + costs.size()), copy(heights)));
}

// Scopes are stored one after the other, (S,), scope k from starts[k]; so are their tables, from
// cells[k].
void add_factors(ForestSampler& state, In<Index> scopes, In<Index> starts, In<double> tables) {
    require(starts.size() > 0 && starts.data()[0] == 0 &&
                starts.data()[starts.size() - 1] == static_cast<Index>(scopes.size()),
            "starts must rise from 0 to the size of scopes");
    for (std::size_t k = 0; k < scopes.size(); ++k)
        require(scopes.data()[k] >= 0 && scopes.data()[k] < state.n(),
                "scopes must hold variables");
    auto term = std::make_unique<setwise::SampledTables>(state.n(), state.n_labels());
    std::size_t at = 0;
    for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
        const Index size = starts.data()[k + 1] - starts.data()[k];
        require(size > 0 && size < 64, "starts must rise, by less than 64");
        std::size_t cells = 1;
        for (Index v = 0; v < size; ++v) {
            cells *= static_cast<std::size_t>(state.n_labels());
            require(cells <= tables.size(), "tables must have an entry a labelling");
        }
        require(at + cells <= tables.size(), "tables must have an entry a labelling");
        term->add(scopes.data() + starts.data()[k], size, tables.data() + at,
                  static_cast<Index>(cells));
        at += cells;
    }
    require(at == tables.size(), "tables must have an entry a labelling");
    state.add_term(std::move(term));
}

}  // namespace

void bind_sampling(nb::module_& m) {
    bind_pairs<ForestSampler>(m, "ForestSampler")
        .def(
            "__init__",
            [](ForestSampler* state, In2<double> logs) {
                require_unary(logs);
                new (state) ForestSampler(logs.data(), static_cast<Index>(logs.shape(0)),
                                          static_cast<Index>(logs.shape(1)));
            },
            "logs"_a.noconvert())
        .def("add_counts", &add_counts, "regions"_a.noconvert(), "starts"_a.noconvert(),
             "table"_a.noconvert(), "own"_a.noconvert(), Unlocked())
        .def(
            "add_robust",
            [](ForestSampler& state, In<Index> regions, In<double> weights, In<double> truncation) {
                require(weights.size() == truncation.size(),
                        "weights and truncation must have shape (R,)");
                region_sizes(state, regions, weights.size());
                state.add_term(std::make_unique<setwise::SampledRobust>(
                    state.n_labels(), copy(regions), copy(weights), copy(truncation)));
            },
            "regions"_a.noconvert(), "weights"_a.noconvert(), "truncation"_a.noconvert(),
            Unlocked())
        .def(
            "add_cost",
            [](ForestSampler& state, double cost, In<Byte> labels) {
                require(static_cast<Index>(labels.size()) == state.n_labels(),
                        "labels must have shape (L,)");
                for (std::size_t j = 0; j < labels.size(); ++j)
                    require(labels.data()[j] < 2, "labels must be 0 or 1");
                state.add_term(std::make_unique<setwise::SampledCost>(cost, copy(labels)));
            },
            "cost"_a, "labels"_a.noconvert(), Unlocked())
        .def("add_transitions", &add_transitions, "edges"_a.noconvert(), "costs"_a.noconvert(),
             "heights"_a.noconvert(), Unlocked())
        .def("add_factors", &add_factors, "scopes"_a.noconvert(), "starts"_a.noconvert(),
             "tables"_a.noconvert(), Unlocked())
        .def("close", &ForestSampler::close, Unlocked())
        .def(
            "add_forest",
            [](ForestSampler& state, In<Byte> kept) {
                require(static_cast<Index>(kept.size()) == state.pairs().edges(),
                        "kept must have an entry for each edge");
                for (std::size_t e = 0; e < kept.size(); ++e)
                    require(kept.data()[e] < 2, "kept must be 0 or 1");
                state.add_forest(kept.data());
            },
            "kept"_a.noconvert(), Unlocked())
        .def(
            "sweep",
            [](const ForestSampler& state, Out2<Index> labels, std::uint64_t seed, Index first,
               Index count, double cut, Out2<double> tallies, Index n_threads) {
                require(static_cast<Index>(labels.shape(1)) == state.n(),
                        "labels must have shape (C, N)");
                require(tallies.shape(0) == labels.shape(0) && tallies.shape(1) == 2,
                        "tallies must have shape (C, 2)");
                require(state.forests() > 0, "a forest must be added first");
                require(first >= 0 && count >= 0, "first and count must not be negative");
                for (std::size_t k = 0; k < labels.size(); ++k)
                    require(labels.data()[k] >= 0 && labels.data()[k] < state.n_labels(),
                            "labels must be below L");
                std::vector<ForestSampler::Tally> found(labels.shape(0));
                state.sweep(labels.data(), static_cast<Index>(labels.shape(0)), seed, first, count,
                            cut, found.data(), threads(n_threads), poll_signals);
                for (std::size_t c = 0; c < found.size(); ++c) {
                    tallies.data()[2 * c] += found[c].proposed;
                    tallies.data()[2 * c + 1] += found[c].accepted;
                }
            },
            "labels"_a.noconvert(), "seed"_a, "first"_a, "count"_a, "cut"_a,
            "tallies"_a.noconvert(), "n_threads"_a, Unlocked());
}

// Energies of labellings, for setwise.fields. Sizes and index ranges are checked here.
#include <nanobind/stl/pair.h>

#include "bind/bind.hpp"
#include "fields/checked_copies.hpp"
#include "fields/connected_parts.hpp"
#include "fields/energies.hpp"
#include "fields/favourites.hpp"
#include "fields/number_sizes.hpp"
#include "fields/two_label_tables.hpp"

namespace {

using namespace setwise::bind;
using namespace nb::literals;

using Labels = In2<Index>;
using Doubles = In<double>;
using Energies = Out<double>;

setwise::Labelings labelings(const Labels& labels, Index n_labels) {
    // This limit keeps n_labels * n_labels within 64 bits.
    require(n_labels >= 1 && n_labels <= 1000000000, "n_labels must be at least 1");
    require(setwise::all_below(labels.data(), static_cast<Index>(labels.size()), n_labels),
            "labels must lie between 0 and n_labels - 1");
    return {labels.data(), static_cast<Index>(labels.shape(0)), static_cast<Index>(labels.shape(1)),
            n_labels};
}

setwise::Labelings labelings(const Labels& labels, Index n_labels, const Energies& energies) {
    require(energies.size() == labels.shape(0), "energies must have an entry for each labelling");
    return labelings(labels, n_labels);
}

setwise::FieldEdges edge_list(const In2<Index>& edges, const setwise::Labelings& x) {
    require(edges.shape(1) == 2, "edges must have shape (E, 2)");
    require(setwise::all_below(edges.data(), static_cast<Index>(edges.size()), x.n),
            "edges must join variables");
    return {edges.data(), static_cast<Index>(edges.shape(0))};
}

setwise::Regions region_list(const In<Index>& members, const In<Index>& offsets,
                             const setwise::Labelings& x) {
    require(offsets.size() >= 1 && offsets.data()[0] == 0, "offsets must start with 0");
    const auto size = static_cast<Index>(offsets.size()) - 1;
    for (Index r = 0; r < size; ++r)
        require(offsets.data()[r] <= offsets.data()[r + 1], "offsets must not decrease");
    require(offsets.data()[size] == static_cast<Index>(members.size()),
            "offsets must end with the number of members");
    require(setwise::all_below(members.data(), static_cast<Index>(members.size()), x.n),
            "members must be variables");
    return {members.data(), offsets.data(), size};
}

Index largest_part(In<bool> inside, In2<Index> edges) {
    const auto n = static_cast<Index>(inside.size());
    require(n <= 2147483647, "inside must have at most 2147483647 entries");
    require(edges.shape(1) == 2, "edges must have shape (E, 2)");
    require(setwise::all_below(edges.data(), static_cast<Index>(edges.size()), n),
            "edges must join variables");
    return setwise::largest_part(inside.data(), n, edges.data(),
                                 static_cast<Index>(edges.shape(0)));
}

void unary_energies(Labels labels, In2<double> unary, Energies energies) {
    require(unary.shape(0) == labels.shape(1), "unary must have a row for each variable");
    const auto x = labelings(labels, static_cast<Index>(unary.shape(1)), energies);
    setwise::unary_energies(x, unary.data(), energies.data(), poll_signals);
}

void potts_energies(Labels labels, Index n_labels, In2<Index> edges, Doubles weights,
                    Energies energies) {
    const auto x = labelings(labels, n_labels, energies);
    require(weights.size() == edges.shape(0), "weights must have an entry for each edge");
    setwise::potts_energies(x, edge_list(edges, x), weights.data(), energies.data(), poll_signals);
}

void table_energies(Labels labels, Index n_labels, In2<Index> edges, Doubles tables,
                    Doubles weights, Energies energies) {
    const auto x = labelings(labels, n_labels, energies);
    const Index area = n_labels * n_labels, size = static_cast<Index>(tables.size());
    require(size == area || size == area * static_cast<Index>(edges.shape(0)),
            "tables must have n_labels * n_labels entries for each edge, or once for all");
    require(weights.size() == edges.shape(0), "weights must have an entry for each edge");
    setwise::table_energies(x, edge_list(edges, x), tables.data(), size == area, weights.data(),
                            energies.data(), poll_signals);
}

void count_energies(Labels labels, Index n_labels, In<Index> members, In<Index> offsets,
                    Doubles table, Energies energies) {
    const auto x = labelings(labels, n_labels, energies);
    const auto regions = region_list(members, offsets, x);
    require(table.size() == members.size() + static_cast<std::size_t>(regions.size),
            "table must have an entry for each count of each region");
    setwise::count_energies(x, regions, table.data(), energies.data(), poll_signals);
}

void robust_energies(Labels labels, Index n_labels, In<Index> members, In<Index> offsets,
                     Doubles weights, Doubles truncation, Energies energies) {
    const auto x = labelings(labels, n_labels, energies);
    const auto regions = region_list(members, offsets, x);
    const auto size = static_cast<std::size_t>(regions.size);
    require(weights.size() == size && truncation.size() == size,
            "weights and truncation must have an entry for each region");
    setwise::robust_energies(x, regions, weights.data(), truncation.data(), energies.data(),
                             poll_signals);
}

void used_labels(Labels labels, Out2<std::uint8_t> used) {
    require(used.shape(0) == labels.shape(0), "used must have a row for each labelling");
    const auto x = labelings(labels, static_cast<Index>(used.shape(1)));
    setwise::used_labels(x, used.data(), poll_signals);
}

void transition_energies(Labels labels, In2<Index> edges, In2<double> costs, Doubles heights,
                         Energies energies) {
    require(costs.shape(0) == costs.shape(1), "costs must be square");
    require(heights.size() == edges.shape(0) + 1, "heights must have an entry for each count");
    const auto x = labelings(labels, static_cast<Index>(costs.shape(0)), energies);
    setwise::transition_energies(x, edge_list(edges, x), costs.data(), heights.data(),
                                 energies.data(), poll_signals);
}

void cardinality_energies(Labels labels, Index n_labels, In<Index> center, Doubles table,
                          Energies energies) {
    const auto x = labelings(labels, n_labels, energies);
    require(center.size() == labels.shape(1) && table.size() == labels.shape(1) + 1,
            "center must have an entry for each variable, table one more");
    setwise::cardinality_energies(x, center.data(), table.data(), energies.data(), poll_signals);
}

// ------------------------------------------------------------------------ tables of two labels

setwise::EdgeTables two_label_tables(const In2<Index>& edges, const Doubles& tables,
                                     const Doubles& weights, Index n) {
    const auto count = static_cast<Index>(edges.shape(0));
    require(edges.shape(1) == 2, "edges must have shape (E, 2)");
    require(setwise::all_below(edges.data(), 2 * count, n), "edges must join variables");
    const bool shared = tables.size() == 4;
    require(shared || static_cast<Index>(tables.size()) == 4 * count,
            "tables must have four entries for each edge, or once for all");
    require(static_cast<Index>(weights.size()) == count, "factors must have one for each edge");
    return {edges.data(), count, tables.data(), shared, weights.data()};
}

// Return the largest range of a table's entries, and the sum of the ranges of all tables.
std::pair<double, double> split_tables(In2<Index> edges, Doubles tables, Doubles factors,
                                       double slack, Out2<double> unary, Out<double> weights) {
    require(unary.shape(1) == 2 && weights.size() == edges.shape(0),
            "unary must have shape (N, 2), and weights an entry for each edge");
    double total = 0;
    const double largest = setwise::split_tables(
        two_label_tables(edges, tables, factors, static_cast<Index>(unary.shape(0))), slack,
        unary.data(), weights.data(), total);
    return {largest, total};
}

// Return the energy of the labels above the least unary of every variable.
double unary_above_least(In<Index> labels, In2<double> unary) {
    require(unary.shape(1) == 2 && labels.size() == unary.shape(0),
            "unary must have shape (N, 2), and labels N entries");
    const auto n = static_cast<Index>(labels.size());
    require(setwise::all_below(labels.data(), n, 2), "labels must be 0 or 1");
    return setwise::unary_above_least(unary.data(), n, labels.data());
}

double tables_above_least(In<Index> labels, In2<Index> edges, Doubles tables, Doubles factors) {
    const auto n = static_cast<Index>(labels.size());
    require(setwise::all_below(labels.data(), n, 2), "labels must be 0 or 1");
    return setwise::tables_above_least(two_label_tables(edges, tables, factors, n), labels.data());
}

double weights_between(In<Index> labels, In2<Index> edges, Doubles weights) {
    const auto n = static_cast<Index>(labels.size()), count = static_cast<Index>(edges.shape(0));
    require(edges.shape(1) == 2 && static_cast<Index>(weights.size()) == count,
            "edges must have shape (E, 2), and weights an entry for each");
    require(setwise::all_below(edges.data(), 2 * count, n), "edges must join variables");
    return setwise::weights_between(edges.data(), count, weights.data(), labels.data());
}

// ------------------------------------------------------------- copies of arguments, checked on the way

// Return the index of the first edge with a negative end or two equal ends, or -1 if all edges were
// copied.
Index copy_edges(In2<Index> edges, Out2<Index> copy) {
    require(edges.shape(1) == 2 && copy.shape(0) == edges.shape(0) && copy.shape(1) == 2,
            "edges and copy must have shape (E, 2)");
    return setwise::copy_edges(edges.data(), static_cast<Index>(edges.shape(0)), copy.data());
}

bool copy_weights(Doubles weights, Out<double> copy) {
    require(copy.size() == weights.size(), "copy must have an entry for each weight");
    return setwise::copy_weights(weights.data(), static_cast<Index>(weights.size()), copy.data());
}

bool copy_finite(Doubles values, double largest, Out<double> copy) {
    require(copy.size() == values.size(), "copy must have an entry for each value");
    return setwise::copy_finite(values.data(), static_cast<Index>(values.size()), largest,
                                copy.data());
}

bool copy_unary(In2<double> unary, double largest, Out2<double> copy) {
    require(copy.shape(0) == unary.shape(0) && copy.shape(1) == unary.shape(1),
            "copy must have the shape of unary");
    return setwise::copy_unary(unary.data(), static_cast<Index>(unary.shape(0)),
                               static_cast<Index>(unary.shape(1)), largest, copy.data());
}

// ------------------------------------------------------------------------------ sizes of numbers

std::pair<double, double> number_grid(In2<double> values, bool above) {
    const auto grid = setwise::number_grid(values.data(), static_cast<Index>(values.shape(0)),
                                           static_cast<Index>(values.shape(1)), above);
    return {grid.step, grid.total};
}

std::pair<double, double> sum_of_least(In2<double> values) {
    require(values.shape(1) >= 1, "values must have a column at least");
    double parts[2];
    setwise::sum_of_least(values.data(), static_cast<Index>(values.shape(0)),
                          static_cast<Index>(values.shape(1)), parts);
    return {parts[0], parts[1]};
}

double favourites(In2<double> unary, Out<double> least, Out<Index> labels) {
    require(unary.shape(1) >= 1, "unary must have a label at least");
    require(least.size() == unary.shape(0) && labels.size() == unary.shape(0),
            "least and labels must have an entry for each row of unary");
    return setwise::favourites(unary.data(), static_cast<Index>(unary.shape(0)),
                               static_cast<Index>(unary.shape(1)), least.data(), labels.data());
}

}  // namespace

void bind_fields(nb::module_& m) {
    m.def("split_tables", &split_tables, "edges"_a.noconvert(), "tables"_a.noconvert(),
          "factors"_a.noconvert(), "slack"_a, "unary"_a.noconvert(), "weights"_a.noconvert(),
          Unlocked());
    m.def("unary_above_least", &unary_above_least, "labels"_a.noconvert(), "unary"_a.noconvert(),
          Unlocked());
    m.def("tables_above_least", &tables_above_least, "labels"_a.noconvert(), "edges"_a.noconvert(),
          "tables"_a.noconvert(), "factors"_a.noconvert(), Unlocked());
    m.def("weights_between", &weights_between, "labels"_a.noconvert(), "edges"_a.noconvert(),
          "weights"_a.noconvert(), Unlocked());
    m.def("copy_finite", &copy_finite, "values"_a.noconvert(), "largest"_a, "copy"_a.noconvert(),
          Unlocked());
    m.def("copy_edges", &copy_edges, "edges"_a.noconvert(), "copy"_a.noconvert(), Unlocked());
    m.def("copy_weights", &copy_weights, "weights"_a.noconvert(), "copy"_a.noconvert(), Unlocked());
    m.def("copy_unary", &copy_unary, "unary"_a.noconvert(), "largest"_a, "copy"_a.noconvert(),
          Unlocked());
    m.def("number_grid", &number_grid, "values"_a.noconvert(), "above"_a, Unlocked());
    m.def("sum_of_least", &sum_of_least, "values"_a.noconvert(), Unlocked());
    m.def("favourites", &favourites, "unary"_a.noconvert(), "least"_a.noconvert(),
          "labels"_a.noconvert(), Unlocked());
#define SETWISE_LABELS "labels"_a.noconvert(), "n_labels"_a
#define SETWISE_ENERGIES "energies"_a.noconvert(), Unlocked()
    m.def("largest_part", &largest_part, "inside"_a.noconvert(), "edges"_a.noconvert(), Unlocked());
    m.def("unary_energies", &unary_energies, "labels"_a.noconvert(), "unary"_a.noconvert(),
          SETWISE_ENERGIES);
    m.def("potts_energies", &potts_energies, SETWISE_LABELS, "edges"_a.noconvert(),
          "weights"_a.noconvert(), SETWISE_ENERGIES);
    m.def("table_energies", &table_energies, SETWISE_LABELS, "edges"_a.noconvert(),
          "tables"_a.noconvert(), "weights"_a.noconvert(), SETWISE_ENERGIES);
    m.def("count_energies", &count_energies, SETWISE_LABELS, "members"_a.noconvert(),
          "offsets"_a.noconvert(), "table"_a.noconvert(), SETWISE_ENERGIES);
    m.def("robust_energies", &robust_energies, SETWISE_LABELS, "members"_a.noconvert(),
          "offsets"_a.noconvert(), "weights"_a.noconvert(), "truncation"_a.noconvert(),
          SETWISE_ENERGIES);
    m.def("used_labels", &used_labels, "labels"_a.noconvert(), "used"_a.noconvert(), Unlocked());
    m.def("transition_energies", &transition_energies, "labels"_a.noconvert(),
          "edges"_a.noconvert(), "costs"_a.noconvert(), "heights"_a.noconvert(), SETWISE_ENERGIES);
    m.def("cardinality_energies", &cardinality_energies, SETWISE_LABELS, "center"_a.noconvert(),
          "table"_a.noconvert(), SETWISE_ENERGIES);
#undef SETWISE_LABELS
#undef SETWISE_ENERGIES
}

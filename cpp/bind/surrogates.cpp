// Surrogates of batches of rows and their labels, and gains of set functions along chains of sets.
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind/bind.hpp"
#include "functions/chains.hpp"
#include "functions/families.hpp"
#include "functions/supermodular_grid.hpp"
#include "surrogates/labels.hpp"
#include "surrogates/lovasz.hpp"
#include "surrogates/modular.hpp"
#include "surrogates/prefix.hpp"
#include "surrogates/rescaling.hpp"

namespace {

using namespace setwise::bind;

// A batch of rows: row i is [offsets[i], offsets[i + 1]) of the flat arrays.
template <class Scalar>
struct Batch {
    In<Byte> positive;
    In<Scalar> scores;
    In<Index> offsets;

    Index rows() const { return static_cast<Index>(offsets.size()) - 1; }
    Index begin(Index i) const { return offsets.data()[i]; }

    setwise::Row<Scalar> row(Index i) const {
        const Index start = begin(i);
        return {positive.data() + start, scores.data() + start, begin(i + 1) - start};
    }

    void check(const Out<double>& values, const Out<Scalar>& gradient) const {
        check(values.size(), gradient.size());
    }
    // It takes sizes instead of arrays, because nanobind arrays cannot be made without the
    // interpreter's lock.
    void check(std::size_t values, std::size_t gradient) const {
        require(offsets.size() >= 1 && begin(0) == 0, "offsets must start with 0");
        for (Index i = 0; i < rows(); ++i) {
            const Index length = begin(i + 1) - begin(i);
            require(length >= 0, "offsets must not decrease");
            require(length < setwise::most_elements, "a set must have fewer than 2**31 elements");
        }
        const auto total = static_cast<std::size_t>(begin(rows()));
        require(positive.size() == total && scores.size() == total && gradient == total,
                "offsets must end with the number of scores");
        require(values == static_cast<std::size_t>(rows()), "values must have a row each");
    }
};

constexpr const char* each_row_an_entry = "an argument must have one entry for each row";

// Call kernel(i, row, gradient of the row, workspace) -> value for each row. `lengths` are those of
// the arguments with one entry per row.
template <class Scalar, class Kernel>
void each_row(const Batch<Scalar>& batch, Out<double>& values, Out<Scalar>& gradient,
              std::initializer_list<std::size_t> lengths, Kernel kernel) {
    batch.check(values, gradient);
    for (const std::size_t length : lengths)
        require(static_cast<Index>(length) == batch.rows(), each_row_an_entry);
    setwise::Workspace work;
    for (Index i = 0; i < batch.rows(); ++i) {
        values.data()[i] = kernel(i, batch.row(i), gradient.data() + batch.begin(i), work);
        poll_now_and_then(i);
    }
}

// A table for each row: row i uses the one that begins at starts[i].
struct Tables {
    In<double> tables;
    In<Index> starts;

    const double* at(Index i, Index size) const {
        const Index start = starts.data()[i];
        require(start >= 0 && size >= 0 && start <= static_cast<Index>(tables.size()) - size,
                "starts must lie inside tables");
        return tables.data() + start;
    }
    template <class Scalar>
    setwise::CardinalityTable of_size(Index i, const setwise::Row<Scalar>& row) const {
        return {at(i, row.p + 1)};
    }
    template <class Scalar>
    setwise::CountsTable of_counts(Index i, const setwise::Row<Scalar>& row) const {
        const Index m = row.positives(), r = row.p - m;
        return {at(i, (m + 1) * (r + 1)), r + 1};
    }
};

template <class Scalar>
setwise::Ratio ratio_of(setwise::Ratio family, const setwise::Row<Scalar>& row) {
    const Index m = row.positives();
    family.reset(m, row.p - m);
    return family;
}

template <class Scalar>
void lovasz_ratio(In<Byte> positive, In<Scalar> scores, In<Index> offsets, double a, double c,
                  double d, int part, int hinge_case, Out<double> values, Out<Scalar> gradient) {
    each_row(Batch<Scalar>{positive, scores, offsets}, values, gradient, {},
             [&](Index, const auto& row, Scalar* out, auto& work) {
                 const auto family = ratio_of({a, c, d, part}, row);
                 const bool componentwise =
                     hinge_case == 0 ? family.is_increasing() : hinge_case == 1;
                 return setwise::lovasz_hinge(row, componentwise, family, out, work, poll_signals);
             });
}

// The Lovász hinge for tables of the number of errors, or of the two counts of errors.
template <class Scalar, bool of_counts>
void lovasz_table(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<double> tables,
                  In<Index> starts, In<Byte> componentwise, Out<double> values,
                  Out<Scalar> gradient) {
    const Tables table{tables, starts};
    each_row(Batch<Scalar>{positive, scores, offsets}, values, gradient,
             {starts.size(), componentwise.size()},
             [&](Index i, const auto& row, Scalar* out, auto& work) {
                 const auto hinge = [&](const auto& family) {
                     return setwise::lovasz_hinge(row, componentwise.data()[i] != 0, family, out,
                                                  work, poll_signals);
                 };
                 if constexpr (of_counts)
                     return hinge(table.of_counts(i, row));
                 else
                     return hinge(table.of_size(i, row));
             });
}

// Write the positions in the row of the elements that count, by increasing margin. Row i of the
// answer is [chains[i], chains[i + 1]).
template <class Scalar>
void order_rows(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<Byte> componentwise,
                Out<Index> order, Out<Index> chains) {
    const Batch<Scalar> batch{positive, scores, offsets};
    require(chains.size() == offsets.size() && componentwise.size() + 1 == offsets.size(),
            each_row_an_entry);
    batch.check(static_cast<std::size_t>(batch.rows()), order.size());
    setwise::Workspace work;
    Index* next = order.data();
    chains.data()[0] = 0;
    for (Index i = 0; i < batch.rows(); ++i) {
        setwise::order_row(batch.row(i),
                           componentwise.data()[i] ? 1.0 : std::numeric_limits<double>::infinity(),
                           work, poll_signals);
        for (const auto item : work.items) *next++ = setwise::index_of(item);
        chains.data()[i + 1] = next - order.data();
        poll_now_and_then(i);
    }
}

template <class Scalar>
void hinge_of_gains(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<Index> order,
                    In<Index> chains, In<double> gains, In<Byte> componentwise, Out<double> values,
                    Out<Scalar> gradient) {
    const Batch<Scalar> batch{positive, scores, offsets};
    batch.check(values, gradient);
    require(chains.size() == offsets.size() && order.size() == gains.size(), each_row_an_entry);
    each_row(batch, values, gradient, {componentwise.size()},
             [&](Index i, const auto& row, Scalar* out, auto& work) {
                 const Index begin = chains.data()[i], end = chains.data()[i + 1];
                 require(0 <= begin && begin <= end && end <= static_cast<Index>(order.size()),
                         "chains must not decrease and must lie inside order");
                 setwise::Packed* const items =
                     work.items.reserve(static_cast<std::size_t>(end - begin));
                 work.items.resize(static_cast<std::size_t>(end - begin));
                 for (Index k = begin; k < end; ++k) {
                     const Index j = order.data()[k];
                     require(0 <= j && j < row.p, "order must hold positions inside the row");
                     items[k - begin] = row.pack(static_cast<std::uint32_t>(j));
                 }
                 std::fill(out, out + row.p, Scalar(0));
                 return setwise::hinge_of_chain(row, componentwise.data()[i] != 0,
                                                setwise::GivenGains{gains.data() + begin}.chain(),
                                                work.items, out);
             });
}

template <class Scalar>
void rescale_ratio(In<Byte> positive, In<Scalar> scores, In<Index> offsets, double a, double c,
                   double d, int part, bool slack, In<double> weights, Out<double> values,
                   Out<Scalar> gradient) {
    each_row(Batch<Scalar>{positive, scores, offsets}, values, gradient, {weights.size()},
             [&](Index i, const auto& row, Scalar* out, auto& work) {
                 return setwise::rescale_counts(row, ratio_of({a, c, d, part}, row), true,
                                                {slack, weights.data()[i]}, out, work,
                                                poll_signals);
             });
}

template <class Scalar>
void rescale_cardinality(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<double> tables,
                         In<Index> starts, bool slack, In<double> weights, Out<double> values,
                         Out<Scalar> gradient) {
    const Tables table{tables, starts};
    each_row(Batch<Scalar>{positive, scores, offsets}, values, gradient,
             {starts.size(), weights.size()},
             [&](Index i, const auto& row, Scalar* out, auto& work) {
                 return setwise::rescale_cardinality(row, table.of_size(i, row).values,
                                                     {slack, weights.data()[i]}, out, work,
                                                     poll_signals);
             });
}

template <class Scalar>
void rescale_counts(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<double> tables,
                    In<Index> starts, bool slack, In<double> weights, Out<double> values,
                    Out<Scalar> gradient) {
    const Tables table{tables, starts};
    each_row(
        Batch<Scalar>{positive, scores, offsets}, values, gradient, {starts.size(), weights.size()},
        [&](Index i, const auto& row, Scalar* out, auto& work) {
            return setwise::rescale_counts(row, table.of_counts(i, row), false,
                                           {slack, weights.data()[i]}, out, work, poll_signals);
        });
}

// The Lovász hinge (slope < 0) or the margin rescaling of a modular loss with one weight per
// element.
template <class Scalar>
void hinge_modular(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<double> weights,
                   In<double> slopes, Out<double> values, Out<Scalar> gradient) {
    const Batch<Scalar> batch{positive, scores, offsets};
    batch.check(values, gradient);
    require(weights.size() == scores.size(), "weights must have one entry for each score");
    each_row(batch, values, gradient, {slopes.size()},
             [&](Index i, const auto& row, Scalar* out, auto&) {
                 return setwise::hinge_modular(row, weights.data() + batch.begin(i),
                                               slopes.data()[i], out);
             });
}

template <class Scalar>
void rescale_prefix(In<Byte> positive, In<Scalar> scores, In<Index> offsets, In<double> terms,
                    In<double> caps, In<double> weights, Out<double> values, Out<Scalar> gradient) {
    each_row(Batch<Scalar>{positive, scores, offsets}, values, gradient, {weights.size()},
             [&](Index i, const auto& row, Scalar* out, auto&) {
                 require(row.p <= static_cast<Index>(terms.size()) && terms.size() == caps.size(),
                         "terms and caps must be as long as the longest row");
                 require(row.p <= 65536,
                         "a set must have at most 65536 elements for its dynamic programme");
                 return setwise::rescale_prefix(row, terms.data(), caps.data(), weights.data()[i],
                                                out, poll_signals);
             });
}

template <class Label>
void bind_labels(nb::module_& m) {
    m.def(
        "encode_labels",
        [](In<Label> labels, Out<Byte> positive) {
            require(labels.size() == positive.size(), "positive must be as long as labels");
            return setwise::encode_labels(labels.data(), static_cast<Index>(labels.size()),
                                          positive.data());
        },
        "labels"_a.noconvert(), "positive"_a.noconvert(), Unlocked());
}

template <class Scalar>
void bind_rows(nb::module_& m) {
    m.def(
        "all_finite",
        [](In<Scalar> x) { return setwise::all_finite(x.data(), static_cast<Index>(x.size())); },
        "x"_a.noconvert(), Unlocked());
#define SETWISE_ROWS "positive"_a.noconvert(), "scores"_a.noconvert(), "offsets"_a.noconvert()
#define SETWISE_OUT "values"_a.noconvert(), "gradient"_a.noconvert(), Unlocked()
#define SETWISE_TABLES "tables"_a.noconvert(), "starts"_a.noconvert()
    m.def("lovasz_ratio", &lovasz_ratio<Scalar>, SETWISE_ROWS, "a"_a, "c"_a, "d"_a, "part"_a,
          "hinge_case"_a, SETWISE_OUT);
    m.def("lovasz_cardinality", &lovasz_table<Scalar, false>, SETWISE_ROWS, SETWISE_TABLES,
          "componentwise"_a.noconvert(), SETWISE_OUT);
    m.def("lovasz_counts", &lovasz_table<Scalar, true>, SETWISE_ROWS, SETWISE_TABLES,
          "componentwise"_a.noconvert(), SETWISE_OUT);
    m.def("order_rows", &order_rows<Scalar>, SETWISE_ROWS, "componentwise"_a.noconvert(),
          "order"_a.noconvert(), "chains"_a.noconvert(), Unlocked());
    m.def("hinge_of_gains", &hinge_of_gains<Scalar>, SETWISE_ROWS, "order"_a.noconvert(),
          "chains"_a.noconvert(), "gains"_a.noconvert(), "componentwise"_a.noconvert(),
          SETWISE_OUT);
    m.def("rescale_ratio", &rescale_ratio<Scalar>, SETWISE_ROWS, "a"_a, "c"_a, "d"_a, "part"_a,
          "slack"_a, "weights"_a.noconvert(), SETWISE_OUT);
    m.def("rescale_cardinality", &rescale_cardinality<Scalar>, SETWISE_ROWS, SETWISE_TABLES,
          "slack"_a, "weights"_a.noconvert(), SETWISE_OUT);
    m.def("rescale_counts", &rescale_counts<Scalar>, SETWISE_ROWS, SETWISE_TABLES, "slack"_a,
          "weights"_a.noconvert(), SETWISE_OUT);
    m.def("hinge_modular", &hinge_modular<Scalar>, SETWISE_ROWS, "weights"_a.noconvert(),
          "slopes"_a.noconvert(), SETWISE_OUT);
    m.def("rescale_prefix", &rescale_prefix<Scalar>, SETWISE_ROWS, "terms"_a.noconvert(),
          "caps"_a.noconvert(), "weights"_a.noconvert(), SETWISE_OUT);
#undef SETWISE_ROWS
#undef SETWISE_OUT
#undef SETWISE_TABLES
}

// Check that [chains[i], chains[i + 1]) lies in an array of `size` entries.
void check_chains(const In<Index>& chains, std::size_t size) {
    require(chains.size() >= 1 && chains.data()[0] == 0, "chains must start with 0");
    for (std::size_t i = 0; i + 1 < chains.size(); ++i)
        require(chains.data()[i] <= chains.data()[i + 1], "chains must not decrease");
    require(chains.data()[chains.size() - 1] == static_cast<Index>(size),
            "chains must end with the number of steps");
}

void chain_sums(In<double> steps, In<Index> chains, Out<double> sums) {
    check_chains(chains, steps.size());
    require(sums.size() == steps.size(), "sums must be as long as steps");
    for (std::size_t i = 0; i + 1 < chains.size(); ++i) {
        double sum = 0;
        for (Index k = chains.data()[i]; k < chains.data()[i + 1]; ++k)
            sums.data()[k] = sum += steps.data()[k];
    }
}

void prefix_gains(In<double> weights, In<double> caps, In<Index> order, In<Index> chains,
                  Out<double> gains) {
    check_chains(chains, order.size());
    require(weights.size() == caps.size() && gains.size() == order.size(),
            "caps must be as long as weights, gains as long as order");
    std::vector<double> remaining;
    for (std::size_t i = 0; i + 1 < chains.size(); ++i) {
        const Index begin = chains.data()[i], end = chains.data()[i + 1];
        require(setwise::prefix_gains(weights.data(), caps.data(),
                                      static_cast<Index>(weights.size()), order.data() + begin,
                                      end - begin, gains.data() + begin, remaining),
                "order must hold elements of the ground set");
        poll_now_and_then(static_cast<Index>(i));
    }
}

setwise::SparseRows sparse_rows(const In<Index>& indptr, const In<Index>& columns) {
    require(indptr.size() >= 1, "indptr must have n + 1 entries");
    return {indptr.data(), static_cast<Index>(indptr.size()) - 1, columns.data(),
            static_cast<Index>(columns.size())};
}

void cut_gains(In<Index> indptr, In<Index> neighbors, In<double> leaving, In<double> entering,
               In<Index> order, Out<double> gains) {
    require(leaving.size() == neighbors.size() && entering.size() == neighbors.size() &&
                gains.size() == order.size(),
            "weights must be as long as neighbors, gains as long as order");
    require(setwise::cut_gains(sparse_rows(indptr, neighbors), leaving.data(), entering.data(),
                               order.data(), static_cast<Index>(order.size()), gains.data(),
                               poll_signals),
            "order and neighbors must hold elements of the ground set");
}

void coverage_gains(In<Index> indptr, In<Index> items, In<double> weights, In<Index> order,
                    Out<double> gains) {
    require(gains.size() == order.size(), "gains must be as long as order");
    require(setwise::coverage_gains(sparse_rows(indptr, items), weights.data(),
                                    static_cast<Index>(weights.size()), order.data(),
                                    static_cast<Index>(order.size()), gains.data(), poll_signals),
            "order must hold elements and items must have weights");
}

void supermodular_grid(In2<double> values, Out2<double> g) {
    require(values.shape(0) == g.shape(0) && values.shape(1) == g.shape(1),
            "g must have the shape of values");
    setwise::supermodular_grid(values.data(), static_cast<Index>(values.shape(0)),
                               static_cast<Index>(values.shape(1)), g.data(), poll_signals);
}

}  // namespace

void bind_surrogates(nb::module_& m) {
    bind_labels<bool>(m);
    bind_labels<std::int8_t>(m);
    bind_labels<std::uint8_t>(m);
    bind_labels<std::int32_t>(m);
    bind_labels<std::int64_t>(m);
    bind_labels<float>(m);
    bind_labels<double>(m);
    bind_rows<float>(m);
    bind_rows<double>(m);
    m.def("chain_sums", &chain_sums, "steps"_a.noconvert(), "chains"_a.noconvert(),
          "sums"_a.noconvert(), Unlocked());
    m.def("prefix_gains", &prefix_gains, "weights"_a.noconvert(), "caps"_a.noconvert(),
          "order"_a.noconvert(), "chains"_a.noconvert(), "gains"_a.noconvert(), Unlocked());
    m.def("cut_gains", &cut_gains, "indptr"_a.noconvert(), "neighbors"_a.noconvert(),
          "leaving"_a.noconvert(), "entering"_a.noconvert(), "order"_a.noconvert(),
          "gains"_a.noconvert(), Unlocked());
    m.def("coverage_gains", &coverage_gains, "indptr"_a.noconvert(), "items"_a.noconvert(),
          "weights"_a.noconvert(), "order"_a.noconvert(), "gains"_a.noconvert(), Unlocked());
    m.def("supermodular_grid", &supermodular_grid, "values"_a.noconvert(), "g"_a.noconvert(),
          Unlocked());
}

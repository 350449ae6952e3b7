// The Python face of the dual block steps, for setwise.learning.
#include "bind/bind.hpp"
#include "dual_blocks/features.hpp"
#include "dual_blocks/hinge_passes.hpp"
#include "dual_blocks/set_passes.hpp"

namespace {

using namespace setwise::bind;

// The features of the examples, whose arrays live as long as they do.
struct DenseRows {
    In2<double> X;
    bool intercept;
    Index n() const { return static_cast<Index>(X.shape(0)); }
    Index size() const { return view().size(); }
    setwise::DenseFeatures view() const {
        return {X.data(), n(), static_cast<Index>(X.shape(1)), intercept};
    }
};

struct SparseRows {
    In<Index> starts, columns;
    In<double> data;
    Index d;
    bool intercept;

    SparseRows(In<Index> starts_, In<Index> columns_, In<double> data_, Index d_, bool intercept_)
        : starts(starts_), columns(columns_), data(data_), d(d_), intercept(intercept_) {
        require(starts.size() >= 1 && starts.data()[0] == 0, "starts must begin with 0");
        for (std::size_t i = 1; i < starts.size(); ++i)
            require(starts.data()[i - 1] <= starts.data()[i], "starts must not decrease");
        require(columns.size() == data.size() &&
                    static_cast<Index>(data.size()) == starts.data()[starts.size() - 1],
                "starts must end with the number of entries");
        for (std::size_t k = 0; k < columns.size(); ++k)
            require(columns.data()[k] >= 0 && columns.data()[k] < d, "columns must lie below d");
    }
    Index n() const { return static_cast<Index>(starts.size()) - 1; }
    Index size() const { return view().size(); }
    setwise::SparseFeatures view() const {
        return {starts.data(), columns.data(), data.data(), n(), d, intercept};
    }
};

struct GramRows {
    In2<double> products;
    explicit GramRows(In2<double> products_) : products(products_) {
        require(products.shape(0) == products.shape(1), "products must be a square");
    }
    Index n() const { return static_cast<Index>(products.shape(0)); }
    Index size() const { return n(); }
    setwise::GramFeatures view() const { return {products.data(), n()}; }
};

template <class Rows>
Index hinge_passes(const Rows& rows, In<Byte> positive, In<double> most, double tol, Index passes,
                   Index first, Out<double> b, Out<double> state) {
    const Index n = rows.n();
    require(n < (Index(1) << 31), "rows must be fewer than 2**31");
    require(static_cast<Index>(positive.size()) == n && static_cast<Index>(most.size()) == n &&
                static_cast<Index>(b.size()) == n,
            "positive, most and b must have an entry for each row");
    require(static_cast<Index>(state.size()) == rows.size(), "state must be that of one label");
    return setwise::hinge_passes(rows.view(), {positive.data(), most.data(), n}, tol, passes, first,
                                 b.data(), state.data(), poll_signals);
}

// The sets, whose arrays live as long as they do; kind, tables and starts are those of SetFamilies.
struct SetBlocks {
    In<Byte> positive;
    In<Index> offsets;
    In<double> scales;
    int kind;
    In<double> tables;
    In<Index> starts;

    SetBlocks(In<Byte> positive_, In<Index> offsets_, In<double> scales_, int kind_,
              In<double> tables_, In<Index> starts_)
        : positive(positive_),
          offsets(offsets_),
          scales(scales_),
          kind(kind_),
          tables(tables_),
          starts(starts_) {
        require(offsets.size() >= 1 && offsets.data()[0] == 0, "offsets must start with 0");
        require(n() < (Index(1) << 31), "sets must be fewer than 2**31");
        require(static_cast<Index>(scales.size()) == n(), "scales must have an entry for each set");
        require(kind >= 0 && kind <= 3, "kind must be 0, 1, 2 or 3");
        require(kind == 0 || static_cast<Index>(starts.size()) == n(),
                "starts must have an entry for each set");
        for (Index i = 0; i < n(); ++i) {
            const Index p = offsets.data()[i + 1] - offsets.data()[i];
            require(p >= 0, "offsets must not decrease");
            require(offsets.data()[i + 1] <= static_cast<Index>(positive.size()),
                    "offsets must end with the number of elements");
            Index m = 0;
            for (Index j = 0; j < p; ++j) m += positive.data()[offsets.data()[i] + j] != 0;
            const Index size = kind == 3 ? p : kind == 1 ? p + 1 : (m + 1) * (p - m + 1);
            require(kind == 0 || (starts.data()[i] >= 0 &&
                                  starts.data()[i] <= static_cast<Index>(tables.size()) - size),
                    "starts must lie inside tables");
        }
        require(offsets.data()[n()] == static_cast<Index>(positive.size()),
                "offsets must end with the number of elements");
    }
    Index n() const { return static_cast<Index>(offsets.size()) - 1; }
    Index size(Index i) const { return offsets.data()[i + 1] - offsets.data()[i]; }
    setwise::SetProblem view() const {
        return {{kind, tables.data(), starts.data()},
                positive.data(),
                offsets.data(),
                scales.data(),
                n()};
    }
};

// labels: the elements of a set are labels of one example; else examples, of one label.
template <class Rows>
Index set_passes(const Rows& rows, const SetBlocks& sets, bool labels, double target, Index passes,
                 Index first, double gain, Out<double> b, Out<double> weights, Out<double> gaps,
                 Out<double> curvature, Out<std::int32_t> rest) {
    const Index n = sets.n(), p = labels && n > 0 ? sets.size(0) : 1;
    if (labels) {
        require(rows.n() == n, "sets must be as many as rows");
        for (Index i = 0; i < n; ++i) require(sets.size(i) == p, "sets must have one size");
    } else {
        require(rows.n() == static_cast<Index>(sets.positive.size()),
                "elements must be as many as rows");
    }
    require(b.size() == sets.positive.size(), "b must have an entry for each element");
    require(static_cast<Index>(weights.size()) == rows.size() * p,
            "weights must have a row a label");
    require(static_cast<Index>(gaps.size()) == n && static_cast<Index>(curvature.size()) == n &&
                static_cast<Index>(rest.size()) == 2 * n,
            "gaps, curvature and rest must have entries for each set");
    for (Index i = 0; i < n; ++i) require(curvature.data()[i] > 0, "curvature must be positive");
    const setwise::SetState state{b.data(),         weights.data(), gaps.data(),
                                  curvature.data(), gain,           rest.data()};
    const auto features = rows.view();
    const auto problem = sets.view();
    using Features = decltype(features);
    if (labels)
        return setwise::set_passes(setwise::LabelSteps<Features>{features, problem}, target, passes,
                                   first, state, poll_signals);
    return setwise::set_passes(setwise::SampleSteps<Features>{features, problem}, target, passes,
                               first, state, poll_signals);
}

double largest_excess(const SetBlocks& sets, In<double> b) {
    require(b.size() == sets.positive.size(), "b must have an entry for each element");
    return setwise::largest_excess(sets.view(), b.data(), poll_signals);
}

// The projection of each z onto its polymatroid.
void project_sets(const SetBlocks& sets, In<double> z, Out<double> b) {
    require(z.size() == sets.positive.size() && b.size() == z.size(),
            "z and b must have an entry for each element");
    const auto problem = sets.view();
    setwise::PolymatroidWork work;
    for (Index i = 0; i < problem.n; ++i)
        problem.set(i).project(z.data() + problem.begin(i), b.data() + problem.begin(i), work);
}

template <class Rows>
void bind_passes(nb::module_& m) {
    m.def("hinge_passes", &hinge_passes<Rows>, "rows"_a, "positive"_a.noconvert(),
          "most"_a.noconvert(), "tol"_a, "passes"_a, "first"_a, "b"_a.noconvert(),
          "state"_a.noconvert(), Unlocked());
    m.def("set_passes", &set_passes<Rows>, "rows"_a, "sets"_a, "labels"_a, "target"_a, "passes"_a,
          "first"_a, "gain"_a, "b"_a.noconvert(), "weights"_a.noconvert(), "gaps"_a.noconvert(),
          "curvature"_a.noconvert(), "rest"_a.noconvert(), Unlocked());
}

}  // namespace

void bind_dual_blocks(nb::module_& m) {
    nb::class_<DenseRows>(m, "DenseRows")
        .def(
            "__init__",
            [](DenseRows* self, In2<double> X, bool intercept) {
                new (self) DenseRows{X, intercept};
            },
            "X"_a.noconvert(), "intercept"_a);
    nb::class_<SparseRows>(m, "SparseRows")
        .def(nb::init<In<Index>, In<Index>, In<double>, Index, bool>(), "starts"_a.noconvert(),
             "columns"_a.noconvert(), "data"_a.noconvert(), "d"_a, "intercept"_a);
    nb::class_<GramRows>(m, "GramRows").def(nb::init<In2<double>>(), "products"_a.noconvert());
    nb::class_<SetBlocks>(m, "SetBlocks")
        .def(nb::init<In<Byte>, In<Index>, In<double>, int, In<double>, In<Index>>(),
             "positive"_a.noconvert(), "offsets"_a.noconvert(), "scales"_a.noconvert(), "kind"_a,
             "tables"_a.noconvert(), "starts"_a.noconvert());
    bind_passes<DenseRows>(m);
    bind_passes<SparseRows>(m);
    bind_passes<GramRows>(m);
    m.def("largest_excess", &largest_excess, "sets"_a, "b"_a.noconvert(), Unlocked());
    m.def("project_sets", &project_sets, "sets"_a, "z"_a.noconvert(), "b"_a.noconvert(),
          Unlocked());
}

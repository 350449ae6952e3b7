// Dual block steps and the master problem of cutting planes, for setwise.learning.
#include "bind/bind.hpp"
#include "cutting_planes/plane_program.hpp"
#include "dual_blocks/features.hpp"
#include "dual_blocks/hinge_passes.hpp"
#include "dual_blocks/kept_planes.hpp"
#include "dual_blocks/set_passes.hpp"
#include "dual_blocks/splitting.hpp"

namespace {

using namespace setwise::bind;

// The features of the examples, whose arrays must outlive this object.
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

// The sets, whose arrays must outlive this object. Kind, tables and starts are as in SetFamilies.
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

// `labels`: the elements of a set are the labels of one example; otherwise they are examples, with
// one label.
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

// Project each z onto its polymatroid.
void project_sets(const SetBlocks& sets, In<double> z, Out<double> b) {
    require(z.size() == sets.positive.size() && b.size() == z.size(),
            "z and b must have an entry for each element");
    const auto problem = sets.view();
    setwise::PolymatroidWork work;
    for (Index i = 0; i < problem.n; ++i)
        problem.set(i).project(z.data() + problem.begin(i), b.data() + problem.begin(i), work);
}

Index split_passes(const SetBlocks& sets, In2<double> factor, double rho, double relaxed,
                   Index least, double size, Out2<double> z, Out2<double> b, Out2<double> a,
                   Out<double> sizes) {
    const Index n = sets.n(), p = static_cast<Index>(z.shape(1));
    for (const auto& array : {z, b, a})
        require(static_cast<Index>(array.shape(0)) == n && static_cast<Index>(array.shape(1)) == p,
                "z, b and a must have a row for each set");
    for (Index i = 0; i < n; ++i) require(sets.size(i) == p, "sets must have one size");
    require(static_cast<Index>(factor.shape(0)) == n && static_cast<Index>(factor.shape(1)) == n,
            "factor must have a row and a column for each set");
    require(rho > 0, "rho must be positive");
    return setwise::split_passes(
        sets.view(), p, static_cast<Index>(sizes.size()), least, size,
        {factor.data(), rho, relaxed, z.data(), b.data(), a.data(), sizes.data()}, poll_signals);
}

// Check the planes. The sets are the labels of the rows; the state is that of all their labels.
template <class Rows>
void check_planes(const Rows& rows, const setwise::KeptPlanes& planes, std::size_t state) {
    const Index n = planes.n(), p = n > 0 ? planes.size(0) : 1;
    require(rows.n() == n, "sets must be as many as rows");
    for (Index i = 0; i < n; ++i) require(planes.size(i) == p, "sets must have one size");
    require(static_cast<Index>(state) == rows.size() * p, "weights must have a row a label");
}

template <class Rows>
void plane_scores(const Rows& rows, const setwise::KeptPlanes& planes, In<double> weights,
                  Out<double> scores) {
    check_planes(rows, planes, weights.size());
    require(static_cast<Index>(scores.size()) == planes.elements(),
            "scores must have an entry for each element");
    setwise::plane_scores(rows.view(), planes, weights.data(), scores.data(), poll_signals);
}

template <class Rows>
void plane_pass(const Rows& rows, setwise::KeptPlanes& planes, Index number, double gain,
                Out<double> weights, In<double> curvature) {
    check_planes(rows, planes, weights.size());
    require(static_cast<Index>(curvature.size()) == planes.n(),
            "curvature must have an entry for each set");
    setwise::plane_pass(rows.view(), planes, number, {weights.data(), curvature.data(), gain},
                        poll_signals);
}

double add_planes(setwise::KeptPlanes& planes, In<double> scores, In<double> values,
                  In<double> slopes) {
    require(static_cast<Index>(scores.size()) == planes.elements() &&
                slopes.size() == scores.size() && static_cast<Index>(values.size()) == planes.n(),
            "scores and slopes must have an entry for each element, values one for each set");
    return setwise::add_planes(planes, scores.data(), values.data(), slopes.data());
}

void make_planes(setwise::KeptPlanes* self, In<Index> offsets, In<double> scales, Index most) {
    require(offsets.size() == scales.size() + 1 && offsets.data()[0] == 0,
            "offsets must start with 0 and have one entry more than scales");
    for (std::size_t i = 1; i < offsets.size(); ++i)
        require(offsets.data()[i - 1] <= offsets.data()[i], "offsets must not decrease");
    require(scales.size() < (std::size_t(1) << 31), "sets must be fewer than 2**31");
    require(most >= 3, "most must be at least 3");
    new (self)
        setwise::KeptPlanes(offsets.data(), scales.data(), static_cast<Index>(scales.size()), most);
}

// Write the number of planes that each set has in use, and these planes.
void count_used_planes(const setwise::KeptPlanes& planes, Out<Index> counts) {
    require(static_cast<Index>(counts.size()) == planes.n(), "counts must have an entry a set");
    planes.count_used(counts.data());
}
void copy_used_planes(const setwise::KeptPlanes& planes, Out<double> shares, Out<double> heights,
                      Out<double> slopes) {
    std::vector<Index> counts(static_cast<std::size_t>(planes.n()));
    planes.count_used(counts.data());
    Index used = 0, elements = 0;
    for (Index i = 0; i < planes.n(); ++i) {
        used += counts[i];
        elements += counts[i] * planes.size(i);
    }
    require(static_cast<Index>(shares.size()) == used &&
                static_cast<Index>(heights.size()) == used &&
                static_cast<Index>(slopes.size()) == elements,
            "shares, heights and slopes must be those of the planes in use");
    planes.copy_used(shares.data(), heights.data(), slopes.data());
}

void begin_with_planes(setwise::KeptPlanes& planes, In<Index> counts, In<double> shares,
                       In<double> heights, In<double> slopes) {
    require(static_cast<Index>(counts.size()) == planes.n(), "counts must have an entry a set");
    Index planes_before = 0, slopes_before = 0;
    for (Index i = 0; i < planes.n(); ++i) {
        const Index count = counts.data()[i];
        require(count >= 0 && planes_before + count <= static_cast<Index>(shares.size()) &&
                    shares.size() == heights.size() &&
                    slopes_before + count * planes.size(i) <= static_cast<Index>(slopes.size()),
                "shares, heights and slopes must be those of the planes that are counted");
        planes.begin_with(i, count, shares.data() + planes_before, heights.data() + planes_before,
                          slopes.data() + slopes_before);
        planes_before += count;
        slopes_before += count * planes.size(i);
    }
}

void copy_shares(const setwise::KeptPlanes& planes, Out<double> shares) {
    require(static_cast<Index>(shares.size()) == planes.n() * planes.most(),
            "shares must have an entry for each plane");
    planes.copy_shares(shares.data());
}
void put_shares(setwise::KeptPlanes& planes, In<double> shares) {
    require(static_cast<Index>(shares.size()) == planes.n() * planes.most(),
            "shares must have an entry for each plane");
    planes.put_shares(shares.data());
}

double dual_of_planes(setwise::KeptPlanes& planes, Out<double> v) {
    require(static_cast<Index>(v.size()) == planes.elements(),
            "v must have an entry for each element");
    return planes.dual(v.data());
}

template <class Rows>
void bind_passes(nb::module_& m) {
    m.def("hinge_passes", &hinge_passes<Rows>, "rows"_a, "positive"_a.noconvert(),
          "most"_a.noconvert(), "tol"_a, "passes"_a, "first"_a, "b"_a.noconvert(),
          "state"_a.noconvert(), Unlocked());
    m.def("set_passes", &set_passes<Rows>, "rows"_a, "sets"_a, "labels"_a, "target"_a, "passes"_a,
          "first"_a, "gain"_a, "b"_a.noconvert(), "weights"_a.noconvert(), "gaps"_a.noconvert(),
          "curvature"_a.noconvert(), "rest"_a.noconvert(), Unlocked());
    m.def("plane_scores", &plane_scores<Rows>, "rows"_a, "planes"_a, "weights"_a.noconvert(),
          "scores"_a.noconvert(), Unlocked());
    m.def("plane_pass", &plane_pass<Rows>, "rows"_a, "planes"_a, "number"_a, "gain"_a,
          "weights"_a.noconvert(), "curvature"_a.noconvert(), Unlocked());
}

using setwise::PlaneProgram;

bool solve(PlaneProgram& program, In2<double> vectors, Index cone, In<double> g, Out<double> x,
           Out<double> sum) {
    const auto count = static_cast<Index>(vectors.shape(0));
    const auto rank = static_cast<Index>(vectors.shape(1));
    require(0 <= cone && cone < count, "cone must lie below the number of vectors");
    require(program.count() <= count, "vectors must begin with those of the last call");
    require(static_cast<Index>(g.size()) == count, "g must have one entry a vector");
    require(static_cast<Index>(x.size()) == count, "x must have one entry a vector");
    require(static_cast<Index>(sum.size()) == rank, "sum must have the length of a vector");
    return program.solve(vectors.data(), count, cone, rank, g.data(), x.data(), sum.data());
}

void keep(PlaneProgram& program, In<Index> kept) {
    for (std::size_t i = 0; i < kept.size(); ++i)
        require((i == 0 ? -1 : kept.data()[i - 1]) < kept.data()[i], "kept must rise from 0 on");
    program.keep(kept.data(), static_cast<Index>(kept.size()));
}

}  // namespace

void bind_learners(nb::module_& m) {
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
    nb::class_<setwise::KeptPlanes>(m, "KeptPlanes")
        .def("__init__", &make_planes, "offsets"_a.noconvert(), "scales"_a.noconvert(), "most"_a)
        .def("begin_with", &begin_with_planes, "counts"_a.noconvert(), "shares"_a.noconvert(),
             "heights"_a.noconvert(), "slopes"_a.noconvert())
        .def("count_used", &count_used_planes, "counts"_a.noconvert())
        .def("copy_used", &copy_used_planes, "shares"_a.noconvert(), "heights"_a.noconvert(),
             "slopes"_a.noconvert())
        .def("copy_shares", &copy_shares, "shares"_a.noconvert())
        .def("put_shares", &put_shares, "shares"_a.noconvert())
        .def("raise_price", &setwise::KeptPlanes::raise, "price"_a, "part"_a)
        .def("add", &add_planes, "scores"_a.noconvert(), "values"_a.noconvert(),
             "slopes"_a.noconvert(), Unlocked())
        .def("dual", &dual_of_planes, "v"_a.noconvert(), Unlocked());
    bind_passes<DenseRows>(m);
    bind_passes<SparseRows>(m);
    bind_passes<GramRows>(m);
    m.def("largest_excess", &largest_excess, "sets"_a, "b"_a.noconvert(), Unlocked());
    m.def("split_passes", &split_passes, "sets"_a, "factor"_a.noconvert(), "rho"_a, "relaxed"_a,
          "least"_a, "size"_a, "z"_a.noconvert(), "b"_a.noconvert(), "a"_a.noconvert(),
          "sizes"_a.noconvert(), Unlocked());
    m.def("project_sets", &project_sets, "sets"_a, "z"_a.noconvert(), "b"_a.noconvert(),
          Unlocked());
    nb::class_<PlaneProgram>(m, "PlaneProgram")
        .def(nb::init<>())
        .def("solve", &solve, "vectors"_a.noconvert(), "cone"_a, "g"_a.noconvert(),
             "x"_a.noconvert(), "sum"_a.noconvert(), Unlocked())
        .def("keep", &keep, "kept"_a.noconvert())
        .def("forget", &PlaneProgram::forget);
}

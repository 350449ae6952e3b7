// Sets of equal size in buckets, and the classes of multi-class predictions.
#include "surrogates/buckets.hpp"
#include "bind/bind.hpp"
#include "surrogates/classes.hpp"
#include "surrogates/labels.hpp"

namespace {

using namespace setwise::bind;

// Rows of one size: labels and scores of row i are at [i p, (i + 1) p).
template <class Score>
struct EvenRows {
    In<Byte> labels;
    In<Score> scores;
    Out<double> values;
    Out<float> gradient;
    Index rows = 0, p = 0;

    void check() {
        rows = static_cast<Index>(values.size());
        const auto total = static_cast<Index>(scores.size());
        require(static_cast<Index>(labels.size()) == total &&
                    static_cast<Index>(gradient.size()) == total,
                "labels, scores and gradient must have one length");
        require(rows == 0 ? total == 0 : total % rows == 0, "rows must have one length");
        p = rows == 0 ? 0 : total / rows;
        require(p < setwise::most_elements, "a set must have fewer than 2**31 elements");
    }
    Index count(Index i, Byte label) const {
        const Byte* const begin = labels.data() + i * p;
        return std::count(begin, begin + p, label);
    }
};

void check_buckets(Index buckets) {
    require(buckets >= 2 && buckets <= 1 << 16, "buckets must lie in 2..65536");
}

void check_errors(const In<double>& errors) {
    require(errors.size() == 1 << 16, "errors must have an entry for each of the 65536 scores");
}

template <class Score>
setwise::RatioBlocks blocks_of(const EvenRows<Score>& rows, Index i, double a, double c, double d) {
    setwise::Ratio family{a, c, d, setwise::Ratio::whole};
    family.reset(rows.count(i, 1), rows.count(i, 0));
    return {family};
}

template <class Score>
setwise::TableBlocks table_of(const EvenRows<Score>& rows, Index i, const In<double>& tables,
                              const In<Index>& starts) {
    require(static_cast<Index>(starts.size()) == rows.rows, "starts must have one entry a row");
    const Index size = rows.p - rows.count(i, setwise::void_label) + 1;
    const Index start = starts.data()[i];
    require(start >= 0 && start <= static_cast<Index>(tables.size()) - size,
            "starts must lie inside tables");
    return {tables.data() + start};
}

// values[i] = hinge(i, the scores of the row, its labels, the place of its gradient, work space).
template <class Score, class Hinge>
void each_row(EvenRows<Score>& rows, Hinge hinge) {
    setwise::Buckets work;
    for (Index i = 0; i < rows.rows; ++i) {
        const Index at = i * rows.p;
        rows.values.data()[i] = hinge(i, rows.scores.data() + at, rows.labels.data() + at,
                                      rows.gradient.data() + at, work);
        poll_signals();
    }
}

template <class Blocks>
void run(EvenRows<float>& rows, Index buckets, Blocks blocks) {
    rows.check();
    check_buckets(buckets);
    each_row(rows, [&](Index i, auto scores, auto labels, auto gradient, auto& work) {
        return setwise::bucket_hinge(scores, labels, rows.p, blocks(i),
                                     static_cast<std::size_t>(buckets), gradient, work);
    });
}

template <class Blocks>
void run_16(EvenRows<std::uint16_t>& rows, const In<double>& errors, Blocks blocks) {
    rows.check();
    check_errors(errors);
    each_row(rows, [&](Index i, auto scores, auto labels, auto gradient, auto& work) {
        return setwise::bucket_hinge_16(scores, labels, rows.p, blocks(i), errors.data(), gradient,
                                        work);
    });
}

void bucket_ratio(In<Byte> labels, In<float> scores, double a, double c, double d, Index buckets,
                  Out<double> values, Out<float> gradient) {
    EvenRows<float> rows{labels, scores, values, gradient};
    run(rows, buckets, [&](Index i) { return blocks_of(rows, i, a, c, d); });
}

void bucket_ratio_16(In<Byte> labels, In<std::uint16_t> scores, double a, double c, double d,
                     In<double> errors, Out<double> values, Out<float> gradient) {
    EvenRows<std::uint16_t> rows{labels, scores, values, gradient};
    run_16(rows, errors, [&](Index i) { return blocks_of(rows, i, a, c, d); });
}

void bucket_table(In<Byte> labels, In<float> scores, In<double> tables, In<Index> starts,
                  Index buckets, Out<double> values, Out<float> gradient) {
    EvenRows<float> rows{labels, scores, values, gradient};
    run(rows, buckets, [&](Index i) { return table_of(rows, i, tables, starts); });
}

void bucket_table_16(In<Byte> labels, In<std::uint16_t> scores, In<double> tables, In<Index> starts,
                     In<double> errors, Out<double> values, Out<float> gradient) {
    EvenRows<std::uint16_t> rows{labels, scores, values, gradient};
    run_16(rows, errors, [&](Index i) { return table_of(rows, i, tables, starts); });
}

// values (sets, kept classes), gradient (images, kept classes, pixels).
void lovasz_classes(In<float> p, In<std::int32_t> target, Index images, Index n_classes,
                    In<std::int32_t> classes, bool per_image, double a, double c, double d,
                    Index buckets, Out<double> values, Out<float> gradient) {
    const auto kept = static_cast<Index>(classes.size());
    require(images >= 1 && n_classes >= 1 && static_cast<Index>(target.size()) % images == 0,
            "target must have one length for every image");
    const Index pixels = static_cast<Index>(target.size()) / images;
    require(static_cast<Index>(p.size()) == images * n_classes * pixels &&
                static_cast<Index>(gradient.size()) == images * kept * pixels,
            "p and gradient must have an entry for each image, class and pixel");
    const Index sets = per_image ? images : 1, together = images / sets;
    require(static_cast<Index>(values.size()) == sets * kept,
            "values must have one a set and class");
    require(together * kept * pixels < setwise::most_elements,
            "the classes of a set must have fewer than 2**31 pixels");
    for (Index k = 0; k < kept; ++k)
        require(classes.data()[k] >= 0 && classes.data()[k] < n_classes,
                "classes must lie in 0..n_classes - 1");
    if (buckets != 0) check_buckets(buckets);
    setwise::Workspace work;
    setwise::Buckets counted;
    for (Index s = 0; s < sets; ++s) {
        const setwise::Classes set{p.data() + s * n_classes * pixels, target.data() + s * pixels,
                                   together, n_classes, pixels};
        for (Index k = 0; k < kept; ++k) {
            const setwise::Ratio family{a, c, d, setwise::Ratio::whole};
            float* const out = gradient.data() + (s * kept + k) * pixels;
            const std::int32_t one = classes.data()[k];
            values.data()[s * kept + k] =
                buckets == 0
                    ? setwise::sorted_class(set, one, kept, family, out, work, poll_signals)
                    : setwise::bucketed_class(set, one, kept, family,
                                              static_cast<std::size_t>(buckets), out, counted);
            poll_signals();
        }
    }
}

template <class Label>
void bind_targets(nb::module_& m) {
    m.def(
        "encode_targets",
        [](In<Label> target, double ignore, Out<Byte> codes) {
            require(target.size() == codes.size(), "codes must be as long as target");
            return setwise::encode_targets(target.data(), static_cast<Index>(target.size()), ignore,
                                           codes.data());
        },
        "target"_a.noconvert(), "ignore"_a, "codes"_a.noconvert(), Unlocked());
}

}  // namespace

void bind_buckets(nb::module_& m) {
    bind_targets<std::uint8_t>(m);
    bind_targets<std::int8_t>(m);
    bind_targets<std::int16_t>(m);
    bind_targets<std::int32_t>(m);
    bind_targets<std::int64_t>(m);
    bind_targets<float>(m);
    bind_targets<double>(m);
#define SETWISE_ROWS "labels"_a.noconvert(), "scores"_a.noconvert()
#define SETWISE_OUT "values"_a.noconvert(), "gradient"_a.noconvert(), Unlocked()
    m.def("bucket_ratio", &bucket_ratio, SETWISE_ROWS, "a"_a, "c"_a, "d"_a, "buckets"_a,
          SETWISE_OUT);
    m.def("bucket_ratio_16", &bucket_ratio_16, SETWISE_ROWS, "a"_a, "c"_a, "d"_a,
          "errors"_a.noconvert(), SETWISE_OUT);
    m.def("bucket_table", &bucket_table, SETWISE_ROWS, "tables"_a.noconvert(),
          "starts"_a.noconvert(), "buckets"_a, SETWISE_OUT);
    m.def("bucket_table_16", &bucket_table_16, SETWISE_ROWS, "tables"_a.noconvert(),
          "starts"_a.noconvert(), "errors"_a.noconvert(), SETWISE_OUT);
    m.def("lovasz_classes", &lovasz_classes, "p"_a.noconvert(), "target"_a.noconvert(), "images"_a,
          "n_classes"_a, "classes"_a.noconvert(), "per_image"_a, "a"_a, "c"_a, "d"_a, "buckets"_a,
          SETWISE_OUT);
#undef SETWISE_ROWS
#undef SETWISE_OUT
}

// The Python bindings of the tracking kernels.
#include "bind/bind.hpp"
#include "tracking/box_image.hpp"
#include "tracking/box_learner.hpp"

namespace {

using namespace setwise::bind;
using setwise::BoxImage;

// Compute features of boxes (n, 4). Those of the given `kinds` (0 for pixels, 1 for gradients) are
// concatenated.
void describe(const BoxImage& image, In2<double> boxes, In<Index> kinds, Out2<Byte> out) {
    Index width = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
        require(kinds.data()[k] == 0 || kinds.data()[k] == 1, "kinds must be 0 or 1");
        width += kinds.data()[k] == 0 ? BoxImage::pixels : BoxImage::hog;
    }
    const auto n = static_cast<Index>(boxes.shape(0));
    require(boxes.shape(1) == 4, "boxes must have shape (n, 4)");
    require(static_cast<Index>(out.shape(0)) == n && static_cast<Index>(out.shape(1)) == width,
            "out must have a row for each box and a column for each feature");
    for (Index i = 0; i < n; ++i) {
        const double* const b = boxes.data() + 4 * i;
        const setwise::Box box{b[0], b[1], b[2], b[3]};
        Byte* place = out.data() + i * width;
        for (std::size_t k = 0; k < kinds.size(); ++k) {
            if (kinds.data()[k] == 0) {
                image.describe_pixels(box, place);
                place += BoxImage::pixels;
            } else {
                image.describe_gradients(box, place);
                place += BoxImage::hog;
            }
        }
        poll_now_and_then(i);
    }
}

// Compute the score of each row of bytes: the sum over some features of an entry of the feature's
// table.
void score_bytes(In2<Byte> codes, In<Index> features, In2<double> tables, Out<double> scores) {
    const auto n = static_cast<Index>(codes.shape(0)), d = static_cast<Index>(codes.shape(1));
    require(tables.shape(0) == features.size() && tables.shape(1) == 256,
            "tables must have shape (features, 256)");
    require(static_cast<Index>(scores.size()) == n, "scores must have an entry a row");
    for (std::size_t k = 0; k < features.size(); ++k)
        require(0 <= features.data()[k] && features.data()[k] < d,
                "features must be columns of codes");
    for (Index i = 0; i < n; ++i) {
        double score = 0;
        const Byte* const row = codes.data() + i * d;
        for (std::size_t k = 0; k < features.size(); ++k)
            score += tables.data()[256 * k + row[features.data()[k]]];
        scores.data()[i] = score;
        poll_now_and_then(i);
    }
}

// Run sweeps of coordinate descent. Return the mean over frames of the greatest violation.
double descend_boxes(In2<std::int8_t> responses, In<double> losses, In<Index> starts, double C,
                     double tau, int sweeps, Out<double> w, Out<double> multipliers) {
    const auto frames = static_cast<Index>(starts.size()) - 1;
    require(frames >= 1 && starts.data()[0] == 0, "starts must begin with 0");
    for (Index i = 0; i < frames; ++i)
        require(starts.data()[i] < starts.data()[i + 1], "every frame must have a box");
    const Index rows = starts.data()[frames];
    require(static_cast<Index>(losses.size()) == rows &&
                static_cast<Index>(multipliers.size()) == rows &&
                static_cast<Index>(responses.shape(1)) == rows,
            "losses, multipliers and responses must have an entry a box");
    require(responses.shape(0) == w.size(), "w must have an entry a stump");
    require(C > 0 && tau > 0 && sweeps >= 0, "C and tau must be positive, sweeps not negative");
    setwise::BoxDescent descent(responses.data(), static_cast<Index>(w.size()), losses.data(),
                                starts.data(), frames, C, tau);
    descent.descend(w.data(), sweeps, poll_signals);
    double hard = 0;
    descent.multipliers(multipliers.data(), hard);
    return hard;
}

void byte_stumps(In2<Byte> codes, In<double> weights, Out<double> gains, Out<Index> thresholds) {
    const auto d = static_cast<Index>(codes.shape(0)), rows = static_cast<Index>(codes.shape(1));
    require(static_cast<Index>(weights.size()) == rows, "weights must have an entry a row");
    require(static_cast<Index>(gains.size()) == d && static_cast<Index>(thresholds.size()) == d,
            "gains and thresholds must have an entry a feature");
    std::vector<setwise::ByteStump> found(static_cast<std::size_t>(d));
    setwise::best_byte_stumps(codes.data(), d, rows, weights.data(), found.data(), poll_signals);
    for (Index f = 0; f < d; ++f) {
        gains.data()[f] = found[static_cast<std::size_t>(f)].gain;
        thresholds.data()[f] = found[static_cast<std::size_t>(f)].threshold;
    }
}

}  // namespace

void bind_tracking(nb::module_& m) {
    nb::class_<BoxImage>(m, "BoxImage")
        .def(
            "__init__",
            [](BoxImage* self, In2<double> grey) {
                require(grey.shape(0) > 0 && grey.shape(1) > 0, "grey must have a pixel");
                new (self) BoxImage(grey.data(), static_cast<Index>(grey.shape(0)),
                                    static_cast<Index>(grey.shape(1)));
            },
            "grey"_a.noconvert())
        .def("describe", &describe, "boxes"_a.noconvert(), "kinds"_a.noconvert(),
             "out"_a.noconvert(), Unlocked());
    m.def("score_bytes", &score_bytes, "codes"_a.noconvert(), "features"_a.noconvert(),
          "tables"_a.noconvert(), "scores"_a.noconvert(), Unlocked());
    m.def("descend_boxes", &descend_boxes, "responses"_a.noconvert(), "losses"_a.noconvert(),
          "starts"_a.noconvert(), "C"_a, "tau"_a, "sweeps"_a, "w"_a.noconvert(),
          "multipliers"_a.noconvert(), Unlocked());
    m.def("byte_stumps", &byte_stumps, "codes"_a.noconvert(), "weights"_a.noconvert(),
          "gains"_a.noconvert(), "thresholds"_a.noconvert(), Unlocked());
}

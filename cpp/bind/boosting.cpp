// The Python bindings of the boosting kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>

#include <mutex>
#include <tuple>
#include <vector>

#include "bind/bind.hpp"
#include "boosting/average_precision.hpp"
#include "boosting/rank_risk.hpp"
#include "boosting/soft_class_risk.hpp"
#include "boosting/steps.hpp"
#include "boosting/stumps.hpp"

namespace {

using namespace setwise::bind;
using setwise::SortedFeature;
using setwise::StepSearch;
using setwise::StumpSearch;

template <class T>
std::vector<T> copy_of(const In<T>& array) {
    return std::vector<T>(array.data(), array.data() + array.size());
}

std::vector<std::uint32_t> marked_rows(const In<std::uint32_t>& entries, Index rows) {
    for (std::size_t k = 0; k < entries.size(); ++k)
        require(static_cast<Index>(entries.data()[k] & ~setwise::mark) < rows,
                "rows must lie below the number of rows");
    return copy_of(entries);
}

setwise::Trend trend_of(int trend) {
    require(-1 <= trend && trend <= 1, "trend must be -1, 0 or 1");
    return static_cast<setwise::Trend>(trend);
}

template <class Code>
void check_codes(const StumpSearch& search, const In<Code>& codes, std::size_t below,
                 const char* message) {
    require(static_cast<Index>(codes.size()) == search.rows(), "codes must have one entry a row");
    for (std::size_t i = 0; i < codes.size(); ++i) require(codes.data()[i] < below, message);
}

template <class Code>
void add_codes(StumpSearch& search, In<Code> codes, In<std::int32_t> examples, int trend) {
    check_codes(search, codes, examples.size() + 1,
                "codes must not lie above the number of examples");
    for (std::size_t b = 0; b < examples.size(); ++b)
        require(0 <= examples.data()[b] && examples.data()[b] < search.rows(),
                "examples must be rows");
    search.add(setwise::BinnedFeature<Code>(copy_of(codes), copy_of(examples), trend_of(trend)));
}

template <class Code>
void add_categories(StumpSearch& search, In<Code> codes, Index categories) {
    require(categories >= 0, "categories must not be negative");
    check_codes(search, codes, static_cast<std::size_t>(categories),
                "codes must lie below the number of categories");
    search.add(
        setwise::CategoricalFeature<Code>(copy_of(codes), static_cast<std::size_t>(categories)));
}

void check_question(const StumpSearch& search, const In<double>& weights, Index feature) {
    require(static_cast<Index>(weights.size()) == search.rows(),
            "weights must have one entry a row");
    require(0 <= feature && feature < search.features(), "feature must be one of them");
}

void add_steps(StepSearch& search, In<std::int32_t> codes, Index values, In<float> low,
               In<float> high) {
    require(static_cast<Index>(codes.size()) == search.rows(), "codes must have one entry a row");
    require(0 <= values && values <= search.rows(), "values must be at most the rows");
    for (std::size_t i = 0; i < codes.size(); ++i)
        require(0 <= codes.data()[i] && codes.data()[i] <= values,
                "codes must lie between 0 and the number of values");
    require(low.size() == high.size() && static_cast<Index>(low.size()) <= 2 * values,
            "low and high must have one entry a cut, at most two a value");
    search.add(copy_of(codes), values, copy_of(low), copy_of(high));
}

void step_gains(const StepSearch& search, In2<double> weights, double slack, Out<double> gains,
                Out<Index> cuts, int n_threads) {
    require(static_cast<Index>(weights.shape(1)) == search.rows(),
            "weights must have a column for each row");
    require(static_cast<Index>(gains.size()) == search.features() &&
                static_cast<Index>(cuts.size()) == search.features(),
            "gains and cuts must have one entry a feature");
    require(n_threads >= 1, "n_threads must be at least 1");
    std::vector<StepSearch::Best> best(gains.size());
    search.gains(weights.data(), static_cast<Index>(weights.shape(0)), slack, best.data(),
                 n_threads, poll_signals);
    for (std::size_t f = 0; f < best.size(); ++f)
        gains.data()[f] = best[f].gain, cuts.data()[f] = best[f].cut;
}

// An object with a lock, because two Python threads may share it and its buffers are for one call
// at a time.
struct LockedRankPairs {
    setwise::RankPairs pairs;
    std::mutex mutex;
};
struct LockedAveragePrecision {
    setwise::AveragePrecisionRisk risk;
    std::mutex mutex;
};

void require_stretches(const In<Index>& offsets, Index n, const char* sentence) {
    require(offsets.size() > 0 && offsets.data()[0] == 0 && offsets.data()[offsets.size() - 1] == n,
            sentence);
    for (std::size_t g = 1; g < offsets.size(); ++g)
        require(offsets.data()[g - 1] <= offsets.data()[g], "offsets must not decrease");
}

void make_rank_pairs(LockedRankPairs* self, In<std::int32_t> levels, In<double> weights,
                     In<Index> offsets) {
    const auto n = static_cast<Index>(levels.size());
    require(n < setwise::most_elements, "levels must have less than 2**31 entries");
    require(static_cast<Index>(weights.size()) == n, "weights must have one entry a level");
    require_stretches(offsets, n, "offsets must lead from 0 to the number of levels");
    for (Index i = 0; i < n; ++i)
        require(0 <= levels.data()[i] && levels.data()[i] < n,
                "levels must lie between 0 and their number");
    new (self) LockedRankPairs{
        setwise::RankPairs(copy_of(levels), copy_of(weights), copy_of(offsets)), {}};
}

// An object with a lock, for the same reason.
struct LockedSoftRisk {
    setwise::SoftClassRisk risk;
    std::mutex mutex;
};

void make_soft_risk(LockedSoftRisk* self, In<std::int32_t> labels, In2<double> cost,
                    In<double> weights, In2<double> code) {
    const auto n = static_cast<Index>(labels.size());
    const auto k = static_cast<Index>(code.shape(0));
    require(n < setwise::most_elements, "labels must have less than 2**31 entries");
    require(k > 0 && code.shape(1) > 0, "code must not be empty");
    require(static_cast<Index>(weights.size()) == n, "weights must have one entry a label");
    require(static_cast<Index>(cost.shape(0)) == k && static_cast<Index>(cost.shape(1)) == k,
            "cost must have a row and a column for each class");
    for (Index i = 0; i < n; ++i)
        require(0 <= labels.data()[i] && labels.data()[i] < k, "labels must be classes");
    new (self) LockedSoftRisk{
        setwise::SoftClassRisk(
            copy_of(labels), std::vector<double>(cost.data(), cost.data() + k * k),
            copy_of(weights), std::vector<double>(code.data(), code.data() + k * code.shape(1)),
            static_cast<Index>(code.shape(1))),
        {}};
}

std::tuple<double, double, double, double> soft_probabilities(LockedSoftRisk& self, double tau,
                                                              Out2<double> out) {
    require(tau > 0, "tau must be positive");
    require(static_cast<Index>(out.shape(0)) == self.risk.classes() &&
                static_cast<Index>(out.shape(1)) == self.risk.examples(),
            "out must have shape (classes, examples)");
    const std::lock_guard<std::mutex> lock(self.mutex);
    const auto sums = self.risk.probabilities(tau, out.data(), poll_signals);
    return {sums.soft, sums.hard, sums.height, sums.entropy};
}

void soft_descend(LockedSoftRisk& self, In2<float> responses, In2<double> sums,
                  In<std::int32_t> segment, In<std::int32_t> order, double C, double tau,
                  bool grouped, Out2<double> w, Out<double> radius) {
    const auto n = static_cast<Index>(w.shape(0));
    const Index s = self.risk.segments();
    require(tau > 0, "tau must be positive");
    require(static_cast<Index>(responses.shape(0)) >= n &&
                static_cast<Index>(responses.shape(1)) == self.risk.examples(),
            "responses must have a row for each learner and a column for each example");
    require(static_cast<Index>(sums.shape(0)) == n &&
                static_cast<Index>(sums.shape(1)) == self.risk.classes(),
            "sums must have a row for each learner and a column for each class");
    require(static_cast<Index>(w.shape(1)) == s, "w must have a column for each segment");
    require(static_cast<Index>(segment.size()) == n && static_cast<Index>(radius.size()) == n,
            "segment and radius must have one entry a learner");
    for (Index j = 0; j < n; ++j)
        require(-1 <= segment.data()[j] && segment.data()[j] < (grouped ? 0 : s),
                "segment must be -1 or a segment, -1 if weights are grouped");
    for (std::size_t t = 0; t < order.size(); ++t)
        require(0 <= order.data()[t] && order.data()[t] < n, "order must be of learners");
    const std::lock_guard<std::mutex> lock(self.mutex);
    self.risk.descend(responses.data(), sums.data(), segment.data(), order.data(),
                      static_cast<Index>(order.size()), C, tau, grouped, w.data(), radius.data(),
                      poll_signals);
}

}  // namespace

void bind_boosting(nb::module_& m) {
    nb::class_<LockedSoftRisk>(m, "SoftClassRisk")
        .def("__init__", &make_soft_risk, "labels"_a.noconvert(), "cost"_a.noconvert(),
             "weights"_a.noconvert(), "code"_a.noconvert())
        .def(
            "start",
            [](LockedSoftRisk& self, In2<double> scores) {
                require(static_cast<Index>(scores.shape(0)) == self.risk.segments() &&
                            static_cast<Index>(scores.shape(1)) == self.risk.examples(),
                        "scores must have shape (segments, examples)");
                const std::lock_guard<std::mutex> lock(self.mutex);
                self.risk.start(scores.data());
            },
            "scores"_a.noconvert(), Unlocked())
        .def_prop_ro("classes", [](const LockedSoftRisk& self) { return self.risk.classes(); })
        .def("probabilities", &soft_probabilities, "tau"_a, "out"_a.noconvert(), Unlocked())
        .def(
            "sums",
            [](const LockedSoftRisk& self, In<float> response, Out<double> out) {
                require(static_cast<Index>(response.size()) == self.risk.examples(),
                        "response must have one entry an example");
                require(static_cast<Index>(out.size()) == self.risk.classes(),
                        "out must have one entry a class");
                self.risk.sums(response.data(), out.data());
            },
            "response"_a.noconvert(), "out"_a.noconvert(), Unlocked())
        .def("descend", &soft_descend, "responses"_a.noconvert(), "sums"_a.noconvert(),
             "segment"_a.noconvert(), "order"_a.noconvert(), "C"_a, "tau"_a, "grouped"_a,
             "w"_a.noconvert(), "radius"_a.noconvert(), Unlocked());
    nb::class_<StepSearch>(m, "StepSearch")
        .def(
            "__init__",
            [](StepSearch* search, Index rows) {
                require(0 <= rows && rows < setwise::most_elements, "rows must lie below 2**31");
                new (search) StepSearch(rows);
            },
            "rows"_a)
        .def("add", &add_steps, "codes"_a.noconvert(), "values"_a, "low"_a.noconvert(),
             "high"_a.noconvert())
        .def("gains", &step_gains, "weights"_a.noconvert(), "slack"_a, "gains"_a.noconvert(),
             "cuts"_a.noconvert(), "n_threads"_a, Unlocked());
    nb::class_<StumpSearch>(m, "StumpSearch")
        .def(
            "__init__",
            [](StumpSearch* search, Index rows) {
                require(0 <= rows && rows < setwise::most_elements, "rows must lie below 2**31");
                new (search) StumpSearch(rows);
            },
            "rows"_a)
        .def(
            "add_rows",
            [](StumpSearch& search, In<std::uint32_t> up, In<std::uint32_t> down,
               In<std::uint32_t> missing, int trend) {
                search.add(SortedFeature(marked_rows(up, search.rows()),
                                         marked_rows(down, search.rows()),
                                         marked_rows(missing, search.rows()), trend_of(trend)));
            },
            "up"_a.noconvert(), "down"_a.noconvert(), "missing"_a.noconvert(), "trend"_a)
        .def("add_codes", &add_codes<std::uint8_t>, "codes"_a.noconvert(), "examples"_a.noconvert(),
             "trend"_a)
        .def("add_codes", &add_codes<std::uint16_t>, "codes"_a.noconvert(),
             "examples"_a.noconvert(), "trend"_a)
        .def("add_categories", &add_categories<std::uint8_t>, "codes"_a.noconvert(), "categories"_a)
        .def("add_categories", &add_categories<std::uint16_t>, "codes"_a.noconvert(),
             "categories"_a)
        .def(
            "gains",
            [](const StumpSearch& search, In2<double> weights, Out2<double> gains, int n_threads) {
                const auto segments = static_cast<Index>(weights.shape(0));
                require(static_cast<Index>(weights.shape(1)) == search.rows(),
                        "weights must have a column for each row");
                require(static_cast<Index>(gains.shape(0)) == search.features() &&
                            static_cast<Index>(gains.shape(1)) == segments,
                        "gains must have shape (features, segments)");
                require(n_threads >= 1, "n_threads must be at least 1");
                search.gains(weights.data(), segments, gains.data(), n_threads, poll_signals);
            },
            "weights"_a.noconvert(), "gains"_a.noconvert(), "n_threads"_a, Unlocked())
        .def(
            "locate",
            [](const StumpSearch& search, In<double> weights, Index feature, double slack) {
                check_question(search, weights, feature);
                require(search.categories(feature) == 0, "feature must hold numbers");
                const setwise::Split split = search.locate(weights.data(), feature, slack);
                return std::make_tuple(split.gain, split.low, split.high, split.missing);
            },
            "weights"_a.noconvert(), "feature"_a, "slack"_a, Unlocked())
        .def(
            "sums",
            [](const StumpSearch& search, In<double> weights, Index feature, Out<double> sums) {
                check_question(search, weights, feature);
                require(static_cast<Index>(sums.size()) == search.categories(feature),
                        "sums must have one entry a category");
                search.sums(weights.data(), feature, sums.data());
            },
            "weights"_a.noconvert(), "feature"_a, "sums"_a.noconvert(), Unlocked());
    nb::class_<LockedRankPairs>(m, "RankPairs")
        .def("__init__", &make_rank_pairs, "levels"_a.noconvert(), "weights"_a.noconvert(),
             "offsets"_a.noconvert())
        .def(
            "slopes",
            [](LockedRankPairs& self, In<double> scores, double margin, Out<double> slopes) {
                require(scores.size() == self.pairs.rows() && slopes.size() == self.pairs.rows(),
                        "scores and slopes must have one entry a level");
                const std::lock_guard<std::mutex> lock(self.mutex);
                return self.pairs.slopes(scores.data(), margin, slopes.data(), poll_signals);
            },
            "scores"_a.noconvert(), "margin"_a, "slopes"_a.noconvert(), Unlocked());
    nb::class_<LockedAveragePrecision>(m, "AveragePrecisionRisk")
        .def(
            "__init__",
            [](LockedAveragePrecision* self, In<std::uint8_t> relevant, In<Index> offsets) {
                const auto n = static_cast<Index>(relevant.size());
                require_stretches(offsets, n, "offsets must lead from 0 to the number of rows");
                new (self) LockedAveragePrecision{
                    setwise::AveragePrecisionRisk(copy_of(relevant), copy_of(offsets)), {}};
            },
            "relevant"_a.noconvert(), "offsets"_a.noconvert())
        .def(
            "plane",
            [](LockedAveragePrecision& self, In<double> scores, Out<double> losses,
               Out<double> slopes) {
                require(scores.size() == self.risk.rows() && slopes.size() == self.risk.rows(),
                        "scores and slopes must have one entry a row");
                require(losses.size() == self.risk.queries(), "losses must have one entry a query");
                const std::lock_guard<std::mutex> lock(self.mutex);
                self.risk.plane(scores.data(), losses.data(), slopes.data(), poll_signals);
            },
            "scores"_a.noconvert(), "losses"_a.noconvert(), "slopes"_a.noconvert(), Unlocked());
}

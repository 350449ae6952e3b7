// Sets of least expected loss, for setwise.decisions.
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "decisions/budget.hpp"
#include "decisions/expected_ratio.hpp"
#include "decisions/label_bound.hpp"
#include "decisions/label_map.hpp"
#include "numeric/poisson_binomial.hpp"
#include "numeric/threads.hpp"
#include "surrogates/order.hpp"

namespace {

using namespace setwise::bind;

// The work space of a thread, kept from row to row.
struct RowWorkspace {
    setwise::ExpectedRatio ratio;
    setwise::Workspace work;
    std::vector<Byte>
        unsigned_;  // no element is a mistake yet, so the margins are minus the probabilities
    std::vector<double> p, w;
};

// Row i of p is [offsets[i], offsets[i + 1]). Compute the best set of each row among the first k in
// order of probability, its expected score, and a bound on the expected score of every set. `none`
// has the score of the empty set of each row, or is empty if the elements are independent.
void decide_ratio(In<double> p, In<double> weights, In<Index> offsets, In<double> none,
                  bool jaccard, double b, int n_threads, Out<Byte> mask, Out<double> scores,
                  Out<double> most) {
    const Index rows = static_cast<Index>(offsets.size()) - 1;
    require(rows >= 0 && offsets.data()[0] == 0, "offsets must start with 0");
    for (Index i = 0; i < rows; ++i) {
        const Index length = offsets.data()[i + 1] - offsets.data()[i];
        require(length >= 0, "offsets must not decrease");
        require(length < setwise::most_elements, "a set must have fewer than 2**31 elements");
    }
    require(static_cast<Index>(p.size()) == offsets.data()[rows] && mask.size() == p.size(),
            "offsets must end with the number of probabilities");
    require(weights.size() == 0 || weights.size() == p.size(),
            "weights must be empty or as many as the probabilities");
    require(none.size() == 0 || none.size() == static_cast<std::size_t>(rows),
            "none must be empty or have a row each");
    require(scores.size() == static_cast<std::size_t>(rows) && most.size() == scores.size(),
            "scores and most must have a row each");
    require(b > 0 && n_threads >= 1, "b and n_threads must be positive");
    const bool weighted = weights.size() > 0;
    std::vector<RowWorkspace> workspaces;
    for (int worker = 0; worker < n_threads && worker <= rows; ++worker)
        workspaces.push_back({{jaccard, b}, {}, {}, {}, {}});
    setwise::each_task(rows, n_threads, poll_signals, [&](Index i, int worker) {
        RowWorkspace& work = workspaces[static_cast<std::size_t>(worker)];
        const Index begin = offsets.data()[i], n = offsets.data()[i + 1] - begin;
        if (static_cast<Index>(work.unsigned_.size()) < n) {
            work.unsigned_.resize(static_cast<std::size_t>(n));
            work.p.resize(static_cast<std::size_t>(n));
            work.w.resize(weighted ? static_cast<std::size_t>(n) : 0);
        }
        const auto poll = worker == 0 ? poll_signals : +[] {};
        const setwise::Row<double> row{work.unsigned_.data(), p.data() + begin, n};
        setwise::order_row(row, 1.0, work.work, poll);
        const auto& items = work.work.items;
        for (Index k = 0; k < n; ++k) {
            const auto at = begin + setwise::index_of(items[static_cast<std::size_t>(k)]);
            work.p[static_cast<std::size_t>(k)] = p.data()[at];
            if (weighted) work.w[static_cast<std::size_t>(k)] = weights.data()[at];
        }
        const auto best = work.ratio.best(work.p.data(), weighted ? work.w.data() : nullptr, n,
                                          none.size() ? none.data() + i : nullptr, poll);
        std::fill(mask.data() + begin, mask.data() + begin + n, Byte(0));
        for (Index k = 0; k < best.k; ++k)
            mask.data()[begin + setwise::index_of(items[static_cast<std::size_t>(k)])] = 1;
        scores.data()[i] = best.score;
        most.data()[i] = best.most;
    });
}

// Return the expectation of table[number of events] over independent events.
double expected_of_count(In<double> chances, In<double> table) {
    require(table.size() == chances.size() + 1, "table must have a value for each count");
    std::vector<double> work;
    return setwise::expected_of_count(chances.data(), static_cast<Index>(chances.size()),
                                      table.data(), work);
}

// Return the least and the largest probability, and the sum over the classes of a pixel that is
// farthest from 1, over the valid pixels. They are NaN if any probability is NaN.
template <class T>
std::array<double, 3> probability_range(In3<T> p, In<Byte> valid, Index n_threads) {
    const auto images = static_cast<Index>(p.shape(0)), classes = static_cast<Index>(p.shape(1)),
               pixels = static_cast<Index>(p.shape(2)), size = Index(4096);
    require(valid.size() == 0 || static_cast<Index>(valid.size()) == images * pixels,
            "valid must be empty or have an entry for each pixel");
    const Index per_image = (pixels + size - 1) / size;
    std::vector<std::array<double, 3>> parts(static_cast<std::size_t>(images * per_image),
                                             {1, 0, 1});
    const auto farther = [](double x, double y) { return !(std::abs(x - 1) <= std::abs(y - 1)); };
    setwise::each_task(images * per_image, threads(n_threads), poll_signals, [&](Index task, int) {
        const Index image = task / per_image, first = task % per_image * size;
        const Index n = std::min(size, pixels - first);
        std::vector<T> sum(static_cast<std::size_t>(n)), low(sum.size(), T(1)), high(sum.size());
        for (Index c = 0; c < classes; ++c) {
            const T* const of = p.data() + (image * classes + c) * pixels + first;
            for (std::size_t i = 0; i < sum.size(); ++i) {
                sum[i] += of[i];
                low[i] = of[i] >= low[i] ? low[i] : of[i];
                high[i] = of[i] <= high[i] ? high[i] : of[i];
            }
        }
        auto& range = parts[static_cast<std::size_t>(task)];
        for (std::size_t i = 0; i < sum.size(); ++i) {
            if (valid.size() && !valid.data()[image * pixels + first + static_cast<Index>(i)])
                continue;
            if (std::isnan(sum[i])) {
                range.fill(static_cast<double>(sum[i]));
                return;
            }
            if (!(low[i] >= range[0])) range[0] = low[i];
            if (!(high[i] <= range[1])) range[1] = high[i];
            if (farther(sum[i], range[2])) range[2] = sum[i];
        }
    });
    std::array<double, 3> all{1, 0, 1};
    for (const auto& range : parts) {
        if (std::isnan(range[0])) return range;
        if (!(range[0] >= all[0])) all[0] = range[0];
        if (!(range[1] <= all[1])) all[1] = range[1];
        if (farther(range[2], all[2])) all[2] = range[2];
    }
    return all;
}

// p: (images, classes, pixels); valid: images * pixels, or empty. A set is an image, or all of them.
// `scale`, `weight` and `none` have a row for each set and an entry for each class (label_map.hpp);
// none is NaN where elements are independent. Compute a label for every pixel, -1 where it is void,
// the expected score of each class of each set, and an upper bound on their sum over all label
// maps.
template <class T>
void label_maps(In3<T> p, In<Byte> valid, bool per_image, bool jaccard, double b, In2<double> scale,
                In2<double> weight, In2<double> none, Index n_threads, Out<Index> labels,
                Out2<double> terms, Out<double> bounds) {
    const auto images = static_cast<Index>(p.shape(0)), classes = static_cast<Index>(p.shape(1)),
               pixels = static_cast<Index>(p.shape(2));
    const Index sets = per_image ? images : 1;
    require(classes >= 1 && classes < setwise::label_map::none, "p must have 1 to 65534 classes");
    require(valid.size() == 0 || static_cast<Index>(valid.size()) == images * pixels,
            "valid must be empty or have an entry for each pixel");
    require(static_cast<Index>(labels.size()) == images * pixels,
            "labels must be as many as pixels");
    for (const auto& rows : {scale, weight, none})
        require(static_cast<Index>(rows.shape(0)) == sets &&
                    static_cast<Index>(rows.shape(1)) == classes,
                "scale, weight and none must have shape (sets, classes)");
    require(static_cast<Index>(terms.shape(0)) == sets &&
                static_cast<Index>(terms.shape(1)) == classes,
            "terms must have shape (sets, classes)");
    require(static_cast<Index>(bounds.size()) == sets, "bounds must have an entry for each set");
    require(b > 0, "b must be positive");
    const int n = threads(n_threads);
    // Threads divide the sets if there are many, and otherwise the pixels. Answers do not depend on
    // this.
    const bool many = sets >= n;
    const Index of_set = per_image ? 1 : images;
    setwise::each_long_task(sets, many ? n : 1, poll_signals, [&](Index set, setwise::Poll poll) {
        const auto row = [&](const In2<double>& rows) {
            const double* const of = rows.data() + set * classes;
            return std::vector<double>(of, of + classes);
        };
        const Index first = per_image ? set : 0;
        setwise::LabelMap<T> map(p.data() + first * classes * pixels,
                                 valid.size() ? valid.data() + first * pixels : nullptr, of_set,
                                 classes, pixels, {jaccard, b, row(scale), row(weight), row(none)},
                                 many ? 1 : n, poll);
        std::vector<double> found;
        map.search(found);
        double total = 0;
        for (Index c = 0; c < classes; ++c) total += found[static_cast<std::size_t>(c)];
        std::copy(found.begin(), found.end(), terms.data() + set * classes);
        for (Index i = 0; i < of_set * pixels; ++i) {
            const auto label = map.labels()[static_cast<std::size_t>(i)];
            labels.data()[first * pixels + i] = label == setwise::label_map::none ? -1 : label;
        }
        bounds.data()[set] = setwise::LabelBound<T>(map, many ? 1 : n, poll).bound(total);
    });
}

// Row i has the entries [ends[i], ends[i + 1]) of p and label. Compute which entries are chosen, k
// of each row, and the weighted score of each label. Return a bound on the sum of the scores over
// all choices, and the number of passes.
std::pair<double, Index> choose_labels(In<double> p, In<Index> label, In<Index> ends,
                                       const std::string& score, double b, In<double> weight,
                                       Index k, bool at_most, Index n_threads, Out<Byte> chosen,
                                       Out<double> terms) {
    const auto rows = static_cast<Index>(ends.size()) - 1,
               labels = static_cast<Index>(weight.size());
    require(rows >= 0 && ends.data()[0] == 0, "ends must start with 0");
    for (Index i = 0; i < rows; ++i)
        require(ends.data()[i + 1] >= ends.data()[i], "ends must not decrease");
    require(static_cast<Index>(p.size()) == ends.data()[rows] && label.size() == p.size() &&
                chosen.size() == p.size(),
            "p, label and chosen must have an entry for each probability");
    for (std::size_t e = 0; e < label.size(); ++e)
        require(label.data()[e] >= 0 && label.data()[e] < labels, "label must be below labels");
    require(labels >= 1 && terms.size() == weight.size(), "terms must have an entry per label");
    require(b > 0 && k >= 0, "b must be positive and k must not be negative");
    const auto kind = score == "jaccard"    ? setwise::MacroScore::jaccard
                      : score == "coverage" ? setwise::MacroScore::coverage
                                            : setwise::MacroScore::f_beta;
    setwise::Budget budget({p.data(), label.data(), ends.data(), rows, labels}, kind, b,
                           weight.data(), k, at_most, threads(n_threads), poll_signals);
    const double most = budget.solve(chosen.data());
    budget.terms(terms.data());
    return {most, budget.passes()};
}

template <class T>
void bind_label_maps(nb::module_& m) {
    m.def("probability_range", probability_range<T>, "p"_a.noconvert(), "valid"_a.noconvert(),
          "n_threads"_a, Unlocked());
    m.def("label_maps", label_maps<T>, "p"_a.noconvert(), "valid"_a.noconvert(), "per_image"_a,
          "jaccard"_a, "b"_a, "scale"_a.noconvert(), "weight"_a.noconvert(), "none"_a.noconvert(),
          "n_threads"_a, "labels"_a.noconvert(), "terms"_a.noconvert(), "bounds"_a.noconvert(),
          Unlocked());
}

}  // namespace

void bind_decisions(nb::module_& m) {
    bind_label_maps<float>(m);
    bind_label_maps<double>(m);
    m.def("choose_labels", choose_labels, "p"_a.noconvert(), "label"_a.noconvert(),
          "ends"_a.noconvert(), "score"_a, "b"_a, "weight"_a.noconvert(), "k"_a, "at_most"_a,
          "n_threads"_a, "chosen"_a.noconvert(), "terms"_a.noconvert(), Unlocked());
    m.def("expected_of_count", expected_of_count, "chances"_a.noconvert(), "table"_a.noconvert(),
          Unlocked());
    m.def("decide_ratio", decide_ratio, "p"_a.noconvert(), "weights"_a.noconvert(),
          "offsets"_a.noconvert(), "none"_a.noconvert(), "jaccard"_a, "b"_a, "n_threads"_a,
          "mask"_a.noconvert(), "scores"_a.noconvert(), "most"_a.noconvert(), Unlocked());
}

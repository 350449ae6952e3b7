// Sets of least expected loss, for setwise.decisions.
#include <algorithm>
#include <vector>

#include "bind/bind.hpp"
#include "decisions/expected_ratio.hpp"
#include "numeric/poisson_binomial.hpp"
#include "numeric/threads.hpp"
#include "surrogates/order.hpp"

namespace {

using namespace setwise::bind;

// The work space of a thread, kept from row to row.
struct Desk {
    setwise::ExpectedRatio ratio;
    setwise::Workspace work;
    std::vector<Byte>
        unsigned_;  // no element is a mistake yet, so margins are minus the probabilities
    std::vector<double> p, w;
};

// Row i of p is [offsets[i], offsets[i + 1]). Computes the best set of each row among the first k
// in order of probability, its expected score, and a bound on the expected score of every set.
// `none` has the score of the empty set of each row, or is empty; then the elements are taken as
// independent.
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
    std::vector<Desk> desks;
    for (int worker = 0; worker < n_threads && worker <= rows; ++worker)
        desks.push_back({{jaccard, b}, {}, {}, {}, {}});
    setwise::each_task(rows, n_threads, poll_signals, [&](Index i, int worker) {
        Desk& desk = desks[static_cast<std::size_t>(worker)];
        const Index begin = offsets.data()[i], n = offsets.data()[i + 1] - begin;
        if (static_cast<Index>(desk.unsigned_.size()) < n) {
            desk.unsigned_.resize(static_cast<std::size_t>(n));
            desk.p.resize(static_cast<std::size_t>(n));
            desk.w.resize(weighted ? static_cast<std::size_t>(n) : 0);
        }
        const auto poll = worker == 0 ? poll_signals : +[] {};
        const setwise::Row<double> row{desk.unsigned_.data(), p.data() + begin, n};
        setwise::order_row(row, 1.0, desk.work, poll);
        const auto& items = desk.work.items;
        for (Index k = 0; k < n; ++k) {
            const auto at = begin + setwise::index_of(items[static_cast<std::size_t>(k)]);
            desk.p[static_cast<std::size_t>(k)] = p.data()[at];
            if (weighted) desk.w[static_cast<std::size_t>(k)] = weights.data()[at];
        }
        const auto best = desk.ratio.best(desk.p.data(), weighted ? desk.w.data() : nullptr, n,
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

}  // namespace

void bind_decisions(nb::module_& m) {
    m.def("expected_of_count", expected_of_count, "chances"_a.noconvert(), "table"_a.noconvert(),
          Unlocked());
    m.def("decide_ratio", decide_ratio, "p"_a.noconvert(), "weights"_a.noconvert(),
          "offsets"_a.noconvert(), "none"_a.noconvert(), "jaccard"_a, "b"_a, "n_threads"_a,
          "mask"_a.noconvert(), "scores"_a.noconvert(), "most"_a.noconvert(), Unlocked());
}

// Runs every kernel under the sanitizers: on the sets of tests/corpus, one file per set with lines
// "label score", and on many more random sets. Values of small sets are compared with all 2^p sets
// of mistakes, so that the program also fails on a wrong answer.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fields/energies.hpp"
#include "functions/chains.hpp"
#include "functions/families.hpp"
#include "functions/supermodular_grid.hpp"
#include "moves/expansion_move.hpp"
#include "moves/swap_move.hpp"
#include "relaxation/projection.hpp"
#include "surrogates/labels.hpp"
#include "surrogates/lovasz.hpp"
#include "surrogates/modular.hpp"
#include "surrogates/prefix.hpp"
#include "surrogates/rescaling.hpp"
#include "tests/block_flows.hpp"
#include "tests/boosting.hpp"
#include "tests/buckets.hpp"
#include "tests/cases.hpp"
#include "tests/decisions.hpp"
#include "tests/dual_blocks.hpp"
#include "tests/field_batches.hpp"
#include "tests/flows.hpp"
#include "tests/marginals.hpp"
#include "tests/messages.hpp"
#include "tests/planes.hpp"
#include "tests/relaxation.hpp"

namespace {

using namespace setwise;

// Return the maximum over all sets of mistakes, given loss(n, q) as a function of the counts.
template <class Scalar, class Loss>
double enumerate(const Row<Scalar>& row, Loss loss, Rescaling rule) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::uint32_t set = 0; set < (1u << row.p); ++set) {
        std::int64_t n = 0, q = 0;
        double sum = 0;
        for (std::uint32_t i = 0; i < row.p; ++i) {
            if (!((set >> i) & 1)) continue;
            ++(row.positive[i] ? n : q);
            sum += static_cast<double>(row.margin(i));
        }
        best = std::max(best, rule.objective(loss(n, q), sum));
    }
    return best;
}

template <class Scalar>
void check_counts(const Row<Scalar>& row, std::vector<Scalar>& gradient, Workspace& work) {
    const std::int64_t m = row.positives(), r = row.p - m;
    const double squares[][3] = {{1, 1, 0}, {1, 2, 1}, {4, 5, 1}};
    for (const auto& [a, c, d] : squares) {
        for (int part : {Ratio::whole, Ratio::submodular, Ratio::supermodular}) {
            Ratio family{a, c, d, part};
            family.reset(m, r);
            std::vector<double> table;
            for (std::int64_t n = 0; n <= m; ++n)
                for (std::int64_t q = 0; q <= r; ++q) table.push_back(family.value(n, q));
            const CountsTable counts{table.data(), r + 1};
            for (bool componentwise : {true, false}) {
                const double fast =
                    lovasz_hinge(row, componentwise, family, gradient.data(), work, no_poll);
                const double plain =
                    lovasz_hinge(row, componentwise, counts, gradient.data(), work, no_poll);
                require(close(fast, plain), "Lovász hinge: ratio and table differ");
            }
            for (bool slack : {true, false}) {
                const Rescaling rule{slack, 2.0};
                auto at = [&](bool search) {
                    return rescale_counts(row, counts, search, rule, gradient.data(), work,
                                          no_poll);
                };
                const double scanned = at(false);
                const double fast =
                    rescale_counts(row, family, true, rule, gradient.data(), work, no_poll);
                // The submodular part may decrease in q; then the search does not apply.
                if (part != Ratio::submodular)
                    require(close(fast, scanned) && close(at(true), scanned),
                            "rescaling: search and scan differ");
                if (row.p <= 10)
                    require(close(scanned, enumerate(
                                               row,
                                               [&](std::int64_t n, std::int64_t q) {
                                                   return family.value(n, q);
                                               },
                                               rule)),
                            "rescaling: scan and enumeration differ");
            }
            std::vector<double> g(table.size(), 0.0);
            supermodular_grid(table.data(), m + 1, r + 1, g.data(), no_poll);
        }
    }
}

template <class Scalar>
void check_sizes(const Row<Scalar>& row, std::vector<Scalar>& gradient, Workspace& work) {
    std::vector<double> values, weights, caps;
    for (std::int64_t k = 0; k <= row.p; ++k) values.push_back(std::sqrt(static_cast<double>(k)));
    for (std::int64_t i = 1; i <= row.p; ++i) {
        weights.push_back(1.0 / static_cast<double>(i));
        caps.push_back(static_cast<double>(i) / 2);
    }
    lovasz_hinge(row, true, CardinalityTable{values.data()}, gradient.data(), work, no_poll);
    for (bool slack : {true, false}) {
        const Rescaling rule{slack, 2.0};
        const double scanned =
            rescale_cardinality(row, values.data(), rule, gradient.data(), work, no_poll);
        if (row.p <= 10)
            require(close(scanned, enumerate(
                                       row,
                                       [&](std::int64_t n, std::int64_t q) {
                                           return values[static_cast<std::size_t>(n + q)];
                                       },
                                       rule)),
                    "rescaling of |I|: scan and enumeration differ");
    }
    hinge_modular(row, weights.data(), -1.0, gradient.data());
    rescale_prefix(row, weights.data(), caps.data(), 2.0, gradient.data(), no_poll);
    std::vector<std::int64_t> order;
    for (const Packed item : work.items) order.push_back(index_of(item));
    std::vector<double> gains(order.size()), remaining;
    require(prefix_gains(weights.data(), caps.data(), row.p, order.data(),
                         static_cast<std::int64_t>(order.size()), gains.data(), remaining),
            "prefix gains refused a permutation");
    const std::int64_t outside = row.p;
    double gain;
    require(!prefix_gains(weights.data(), caps.data(), row.p, &outside, 1, &gain, remaining),
            "prefix gains took an element outside");
}

// Check a ring of p vertices as a cut, and overlapping pairs as a coverage.
void check_chains(std::int64_t p) {
    std::vector<std::int64_t> indptr{0}, columns, order;
    for (std::int64_t i = 0; i < p; ++i) {
        columns.push_back((i + 1) % p);
        columns.push_back((i + p - 1) % p);
        indptr.push_back(2 * (i + 1));
        order.push_back(p - 1 - i);
    }
    const std::vector<double> weights(columns.size() + 1, 1.0);
    std::vector<double> gains(order.size() + 1);
    const SparseRows rows{indptr.data(), p, columns.data(),
                          static_cast<std::int64_t>(columns.size())};
    require(
        cut_gains(rows, weights.data(), weights.data(), order.data(), p, gains.data(), no_poll) &&
            coverage_gains(rows, weights.data(), p, order.data(), p, gains.data(), no_poll),
        "chains refused a permutation");
    order.assign(1, p);
    require(
        !cut_gains(rows, weights.data(), weights.data(), order.data(), 1, gains.data(), no_poll),
        "cut gains took an element outside");
}

// Check two labellings with three labels: a chain of edges, regions of three variables.
void check_energies(const Case& c) {
    const auto n = static_cast<std::int64_t>(c.scores.size());
    std::vector<std::int64_t> labels, ends, members, offsets{0}, center(c.scores.size(), 0);
    for (std::int64_t row = 0; row < 2; ++row)
        for (std::size_t i = 0; i < c.scores.size(); ++i)
            labels.push_back((c.positive[i] ? 1 : 0) +
                             (c.scores[i] > static_cast<double>(row) ? 1 : 0));
    for (std::int64_t i = 0; i < n; ++i) {
        if (i > 0) ends.insert(ends.end(), {i - 1, i});
        members.push_back(i);
        if (i % 3 == 2 || i == n - 1) offsets.push_back(i + 1);
    }
    require(all_below(labels.data(), 2 * n, 3) && !all_below(offsets.data(), 1, 0),
            "the ranges of labels were read wrong");
    const Labelings x{labels.data(), 2, n, 3};
    const FieldEdges edges{ends.data(), static_cast<std::int64_t>(ends.size()) / 2};
    const Regions regions{members.data(), offsets.data(),
                          static_cast<std::int64_t>(offsets.size()) - 1};
    double first[2], second[2];
    auto same = [&](const char* what) {
        require(close(first[0], second[0]) && close(first[1], second[1]), what);
    };

    // An edge whose labels differ costs 1: as Potts, as a table, and as a transition without
    // discount.
    const std::vector<double> ones(c.scores.size() + 1, 1.0);
    const std::vector<double> unequal{0, 1, 1, 1, 0, 1, 1, 1, 0};
    std::vector<double> counts;
    for (std::int64_t k = 0; k <= edges.size; ++k) counts.push_back(static_cast<double>(k));
    potts_energies(x, edges, ones.data(), first, no_poll);
    table_energies(x, edges, unequal.data(), true, ones.data(), second, no_poll);
    same("energies of Potts and of its table differ");
    transition_energies(x, edges, unequal.data(), counts.data(), second, no_poll);
    same("energies of Potts and of transitions differ");

    // A region of several labels costs 1: as a robust cost and as a sum over labels.
    std::vector<double> table;
    for (std::int64_t r = 0; r < regions.size; ++r) {
        const auto size = static_cast<double>(offsets[static_cast<std::size_t>(r) + 1] -
                                              offsets[static_cast<std::size_t>(r)]);
        for (double k = 0; k <= size; ++k)
            table.push_back(2 * k <= size ? k / size : (k < size ? 1.0 : 0.0) - (size - k) / size);
    }
    robust_energies(x, regions, ones.data(), ones.data(), first, no_poll);
    count_energies(x, regions, table.data(), second, no_poll);
    same("energies of robust regions and of counts differ");

    // The number of labels that are not 0: as unaries and as a cardinality.
    std::vector<double> unary, sizes;
    std::vector<std::uint8_t> used(6, 0);
    for (std::int64_t i = 0; i <= n; ++i) {
        sizes.push_back(static_cast<double>(i));
        unary.insert(unary.end(), {0.0, 1.0, 1.0});
    }
    unary_energies(x, unary.data(), first, no_poll);
    cardinality_energies(x, center.data(), sizes.data(), second, no_poll);
    same("energies of unaries and of their number differ");
    used_labels(x, used.data(), no_poll);
    require((first[0] > 0) == (used[1] || used[2]), "used labels were read wrong");
}

// Check that each projection lies on the hyperplane of its base polytope, and that the edges of a
// chain stay within their weights.
template <class Scalar>
void check_projections(const Case& c) {
    const std::vector<Scalar> z(c.scores.begin(), c.scores.end());
    const auto n = static_cast<std::int64_t>(z.size());
    std::vector<Scalar> s(z.size()), weights(z.size()), gains(z);
    double scale = 1;
    for (std::size_t i = 0; i < z.size(); ++i) {
        weights[i] = c.positive[i] ? Scalar(0.75) : std::abs(z[i]);
        scale += std::abs(static_cast<double>(z[i]));
    }
    std::sort(gains.rbegin(), gains.rend());
    const double slack = scale * (sizeof(Scalar) == 4 ? 1e-3 : 1e-9);
    const auto sums_to = [&](double expected) {
        double sum = 0;
        for (const Scalar value : s) sum += static_cast<double>(value);
        require(n == 0 || std::abs(sum - expected) <= slack, "a projection is off its hyperplane");
    };
    ProjectionWork<Scalar> work;
    project_chain(z.data(), weights.data(), n, s.data(), work);
    double flow = 0;
    for (std::int64_t i = 0; i + 1 < n; ++i)
        require(std::abs(flow += static_cast<double>(s[i])) <=
                    static_cast<double>(weights[i]) + slack,
                "a chain's edge carries more than its weight");
    sums_to(0);
    project_count(z.data(), gains.data(), n, s.data(), work);
    sums_to(std::accumulate(gains.begin(), gains.end(), 0.0));
    project_simplex(z.data(), Scalar(2.5), n, s.data(), work);
    sums_to(2.5);
}

// Compare exp, log and the order of values with the standard library.
void check_vectors(const Case& c) {
    DecreasingOrder order;
    const auto n = static_cast<std::int64_t>(c.scores.size());
    sort_decreasing(c.scores.data(), n, order);
    for (std::int64_t k = 1; k < n; ++k) {
        const auto a = order.index[k - 1], b = order.index[k];
        require(c.scores[a] > c.scores[b] || (c.scores[a] == c.scores[b] && a < b), "not sorted");
    }
    for (const double score : c.scores) {
        const double x = std::clamp<double>(score, -700, 700), e = std::exp(x);
        require(std::abs(exponential(x) - e) <= 1e-15 * e, "exp differs");
        require(std::abs(logarithm(e) - std::log(e)) <= 1e-15 * std::abs(std::log(e)),
                "log differs");
    }
}

// Check a field of p variables in a ring with three labels, with a layer of regions or with label
// costs: the energy falls by what the moves report, and expansions end when none helps.
void check_moves(const Case& c, bool costs) {
    const auto n = static_cast<std::int64_t>(c.scores.size());
    constexpr std::int64_t labels = 3;
    std::vector<double> unary(static_cast<std::size_t>(n * labels)), weights, table;
    std::vector<std::int64_t> edges, regions(c.scores.size()), starts{0}, first(c.scores.size(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
        const auto k = static_cast<std::size_t>(i);
        unary[k] = c.scores[k];
        unary[k + c.scores.size()] = c.positive[k] ? -1.0 : 1.0;
        if (n > 1) edges.insert(edges.end(), {i, (i + 1) % n});
        if (n > 1) weights.push_back(std::abs(c.scores[k]));
        regions[k] = i % 4 == 3 ? -1 : i % 2;
    }
    for (std::int64_t r = 0; r < 2; ++r) {
        const auto size = std::count(regions.begin(), regions.end(), r);
        for (std::int64_t k = 0; k <= size; ++k) table.push_back(std::sqrt(static_cast<double>(k)));
        starts.push_back(static_cast<std::int64_t>(table.size()));
    }
    const auto add_terms = [&](MoveField& field) {
        field.pairs.add_potts(edges.data(), weights.data(),
                              static_cast<std::int64_t>(weights.size()));
        Layer layer{};
        layer.groups = {0, 1, 2};
        layer.n_groups = 3;
        if (costs) {
            layer.charge = Charge::cost;
            layer.costs = {1.0, 5.0, 0.5};
            layer.sizes = {n};
        } else {
            layer.charge = Charge::concave;
            layer.regions = regions.data();
            layer.starts = starts.data();
            layer.table = table.data();
            layer.sizes = {starts[1] - 1, starts[2] - starts[1] - 1};
        }
        field.add_layer(layer);
        field.start(first.data());
    };
    const auto size = static_cast<Variable>(n);
    MoveField field(size, labels, unary.data());
    add_terms(field);
    ExpansionMove expansion(field);
    SwapMove swap(field);
    int failures = 0;
    for (LabelIndex a = 0; failures < labels; a = (a + 1) % labels)
        failures = expansion.expand(a, no_poll) < 0 ? 0 : failures + 1;
    require(swap.swap(0, 2, no_poll) <= 0 && swap.swap(1, 2, no_poll) <= 0, "a swap");
    const auto now = field.now();
    for (LabelIndex a = 0; a < labels; ++a)
        if (field.now() == now && expansion.expand(a, no_poll) < 0)
            require(field.now() > now, "an expansion");
}

template <class Scalar>
void check(const Case& c) {
    const std::vector<Scalar> scores(c.scores.begin(), c.scores.end());
    std::vector<Scalar> gradient(scores.size());
    const Row<Scalar> row{c.positive.data(), scores.data(),
                          static_cast<std::int64_t>(scores.size())};
    require(all_finite(scores.data(), row.p), "a score of the corpus is not finite");
    Workspace work;
    check_counts(row, gradient, work);
    check_sizes(row, gradient, work);
    check_projections<Scalar>(c);
    check_relaxation<Scalar>(c);
    check_vectors(c);
}

void check_case(const Case& c) {
    check_moves(c, true);
    check_moves(c, false);
    check<float>(c);
    check<double>(c);
    check_chains(static_cast<std::int64_t>(c.scores.size()));
    check_energies(c);
    std::vector<std::int8_t> labels(c.positive.begin(), c.positive.end());
    std::vector<std::uint8_t> positive(labels.size());
    encode_labels(labels.data(), static_cast<std::int64_t>(labels.size()), positive.data());
    require(positive == c.positive, "labels were read wrong");
}

}  // namespace

int main(int argc, char** argv) {
    int count = 0;
    if (argc > 1)
        for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
            check_case(read_case(entry.path()));
            ++count;
        }
    std::mt19937 random(0);
    const std::size_t sizes[] = {0, 1, 2, 5, 9, 10, 33, 70, 1100};
    for (int k = 0; k < 300; ++k, ++count) check_case(draw_case(random, sizes[random() % 9]));
    for (int k = 0; k < 100; ++k) {
        check_buckets(random);
        check_classes(random);
        check_decisions(random);
    }
    for (int k = 0; k < 300; ++k) check_messages(random);
    for (int k = 0; k < 100; ++k) check_field_batch(random, 1);
    for (int k = 0; k < 100; ++k) check_dual_blocks(random);
    for (int k = 0; k < 1000; ++k) {
        check_planes(random);
        check_stumps(random, 1 + static_cast<int>(random() % 9),
                     1 + static_cast<int>(random() % 19));
        check_steps(random, 1 + static_cast<int>(random() % 9),
                    1 + static_cast<int>(random() % 19));
        check_grouped_descent(random);
        check_rank_pairs(random);
    }
    for (int k = 0; k < 300; ++k) {
        check_mean_field(random, k % 2 == 0 ? 0 : 10, static_cast<std::int64_t>(random() % 6));
        check_samples(random, static_cast<std::int64_t>(random() % 6));
        check_sum_product(random);
        check_trees(random, static_cast<std::int64_t>(random() % 6), 1);
        check_grid<double>(random, 2 + static_cast<std::int64_t>(random() % 5), 1 + k % 4, 1);
        check_frank_wolfe(random, 1 + static_cast<std::int64_t>(random() % 6));
    }
    for (int k = 0; k < 200; ++k) {
        check_flow<std::int64_t>(random);
        check_flow<double>(random);
        check_seeded_flow(random);
        check_field_cut(random);
        const auto [width, height] = std::pair(1 + random() % 7, 1 + random() % 20);
        check_block_flow<std::int64_t>(random, static_cast<std::int32_t>(width),
                                       static_cast<std::int32_t>(height), random() % 2 == 0);
        check_block_flow<double>(random, static_cast<std::int32_t>(width),
                                 static_cast<std::int32_t>(height), random() % 2 == 0);
    }
    std::printf("sanitize: %d sets, 300 factor graphs and 1200 flows passed\n", count);
}

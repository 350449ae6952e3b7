// Dual blocks for the sanitizers: passes over random problems with each kind of features. The
// weights must be those of the final dual variables, and the dual must rise and stay below the
// risk.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "dual_blocks/features.hpp"
#include "dual_blocks/hinge_passes.hpp"
#include "dual_blocks/kept_planes.hpp"
#include "dual_blocks/set_passes.hpp"
#include "surrogates/rescaling.hpp"
#include "tests/cases.hpp"

namespace setwise {

// Samples with features in all three forms, and one or several labels for each.
struct BlockCase {
    std::int64_t n, d, p;
    bool intercept;
    std::vector<double> X, data, K;
    std::vector<std::int64_t> starts, columns;
    std::vector<std::uint8_t> positive;

    DenseFeatures dense() const { return {X.data(), n, d, intercept}; }
    SparseFeatures sparse() const {
        return {starts.data(), columns.data(), data.data(), n, d, intercept};
    }
    GramFeatures gram() const { return {K.data(), n}; }
    double product(std::int64_t i, std::int64_t j) const {
        return dot(X.data() + i * d, X.data() + j * d, d) + intercept;
    }
    // Return the scores of v: sum_k v_kj <x_k, x_i>, (n, p).
    std::vector<double> scores(const std::vector<double>& v) const {
        std::vector<double> out(static_cast<std::size_t>(n * p));
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t k = 0; k < n; ++k)
                for (std::int64_t j = 0; j < p; ++j) out[i * p + j] += v[k * p + j] * product(i, k);
        return out;
    }
    double squares(const std::vector<double>& v) const {
        const auto all = scores(v);
        double sum = 0;
        for (std::size_t k = 0; k < v.size(); ++k) sum += v[k] * all[k];
        return sum;
    }
};

inline BlockCase draw_block_case(std::mt19937& random, std::int64_t p) {
    std::normal_distribution<double> normal;
    BlockCase c{1 + static_cast<std::int64_t>(random() % 9),
                1 + static_cast<std::int64_t>(random() % 12),
                p,
                random() % 2 == 0,
                {},
                {},
                {},
                {0},
                {},
                {}};
    for (std::int64_t i = 0; i < c.n; ++i) {
        for (std::int64_t k = 0; k < c.d; ++k) {
            const double x = random() % 3 == 0 ? 0.0 : normal(random);
            c.X.push_back(x);
            if (x == 0) continue;
            c.data.push_back(x);
            c.columns.push_back(k);
        }
        c.starts.push_back(static_cast<std::int64_t>(c.data.size()));
        for (std::int64_t j = 0; j < p; ++j) c.positive.push_back(random() % 2);
    }
    for (std::int64_t i = 0; i < c.n; ++i)
        for (std::int64_t j = 0; j < c.n; ++j) c.K.push_back(c.product(i, j));
    return c;
}

inline std::vector<double> signed_dual(const BlockCase& c, const std::vector<double>& b) {
    std::vector<double> v(b);
    for (std::size_t k = 0; k < v.size(); ++k)
        if (!c.positive[k]) v[k] = -v[k];
    return v;
}

template <class Features>
void require_scores(const Features& features, const BlockCase& c, const std::vector<double>& state,
                    const std::vector<double>& v) {
    const auto expected = c.scores(v);
    std::vector<double> found(static_cast<std::size_t>(c.p));
    for (std::int64_t i = 0; i < c.n; ++i) {
        features.scores(i, state.data(), c.p, found.data());
        for (std::int64_t j = 0; j < c.p; ++j)
            require(close(found[j], expected[i * c.p + j]),
                    "the weights are not those of the dual");
    }
}

template <class Features>
void check_hinge_passes(const Features& features, const BlockCase& c) {
    std::vector<double> most(static_cast<std::size_t>(c.n), 2.0), b(most.size(), 0.0);
    std::vector<double> state(static_cast<std::size_t>(features.size()));
    const HingeProblem problem{c.positive.data(), most.data(), c.n};
    hinge_passes(features, problem, 1e-6, 30, 0, b.data(), state.data(), no_poll);
    for (const double x : b) require(x >= 0 && x <= 2.0, "a share is outside its box");
    require_scores(features, c, state, signed_dual(c, b));
}

// With one label, the samples are divided into two groups; otherwise the labels of a sample are a
// set.
template <class Features>
void check_set_passes(const Features& features, const BlockCase& c, int kind, bool labels) {
    std::vector<std::int64_t> offsets{0};
    if (labels)
        for (std::int64_t i = 1; i <= c.n; ++i) offsets.push_back(i * c.p);
    else
        offsets.insert(offsets.end(), {c.n / 2, c.n});
    const auto sets = static_cast<std::int64_t>(offsets.size()) - 1;
    std::vector<double> tables, scales(static_cast<std::size_t>(sets), 1.5);
    std::vector<std::int64_t> starts;
    for (std::int64_t i = 0; i < sets; ++i) {
        const std::int64_t p = offsets[i + 1] - offsets[i];
        const auto* const positive = c.positive.data() + offsets[i];
        const std::int64_t m = std::count_if(positive, positive + p, [](auto x) { return x != 0; });
        starts.push_back(static_cast<std::int64_t>(tables.size()));
        if (kind == SetFamilies::sizes)
            for (std::int64_t k = 0; k <= p; ++k) tables.push_back(std::sqrt(double(k)));
        if (kind == SetFamilies::counts)
            for (std::int64_t a = 0; a <= m; ++a)
                for (std::int64_t q = 0; q <= p - m; ++q)
                    tables.push_back(std::sqrt(double(a + 2 * q)));
        if (kind == SetFamilies::modular)
            for (std::int64_t k = 0; k < p; ++k) tables.push_back(1.0 + double(k % 3));
    }
    const SetProblem problem{{kind, tables.data(), starts.data()},
                             c.positive.data(),
                             offsets.data(),
                             scales.data(),
                             sets};
    std::vector<double> b(c.positive.size()), gaps(scales.size()), curvature(scales.size(), 0.0);
    std::vector<double> state(static_cast<std::size_t>(features.size() * (labels ? c.p : 1)));
    std::vector<std::int32_t> rest(2 * scales.size());
    for (std::int64_t i = 0; i < sets; ++i) {
        curvature[i] = 1e-3;
        for (std::int64_t k = labels ? i : offsets[i]; k < (labels ? i + 1 : offsets[i + 1]); ++k)
            curvature[i] = std::max(curvature[i], c.product(k, k));
    }
    const SetState kept{b.data(), state.data(), gaps.data(), curvature.data(), 1.0, rest.data()};
    double before = 0;
    for (std::int64_t pass = 0; pass < 6; ++pass) {
        if (labels)
            set_passes(LabelSteps<Features>{features, problem}, 0.0, 1, pass, kept, no_poll);
        else
            set_passes(SampleSteps<Features>{features, problem}, 0.0, 1, pass, kept, no_poll);
        require(largest_excess(problem, b.data(), no_poll) <= 1 + 1e-9, "b is too large");
        const auto v = signed_dual(c, b);
        require_scores(features, c, state, v);
        double dual = -0.5 * c.squares(v);
        for (const double x : b) dual += x;
        require(dual >= before - 1e-9 * (1 + std::abs(before)), "the dual fell");
        before = dual;
    }
}

// Check planes of margin rescaling, of which few are kept; the price rises once.
template <class Features>
void check_kept_planes(const Features& features, const BlockCase& c) {
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t i = 1; i <= c.n; ++i) offsets.push_back(i * c.p);
    std::vector<double> scales(static_cast<std::size_t>(c.n), 0.5), values(scales.size());
    std::vector<double> v(c.positive.size()), scores(v.size()), slopes(v.size()), curvature;
    for (std::int64_t i = 0; i < c.n; ++i) curvature.push_back(std::max(c.product(i, i), 1e-9));
    KeptPlanes planes(offsets.data(), scales.data(), c.n, 3);
    std::vector<double> state(static_cast<std::size_t>(features.size() * c.p));
    Workspace work;
    double before = 0, price = 0.5;
    for (std::int64_t pass = 0; pass < 12; ++pass) {
        if (pass == 6) {
            planes.raise(4.0, 0.25);
            price = 2.0;
        }
        plane_scores(features, planes, state.data(), scores.data(), no_poll);
        double risk = 0;
        for (std::int64_t i = 0; i < c.n; ++i) {
            const Row<double> row{c.positive.data() + i * c.p, scores.data() + i * c.p, c.p};
            Ratio ratio{1.0, 1.0, 0.0, Ratio::whole};
            const std::int64_t m = row.positives();
            ratio.reset(m, c.p - m);
            values[i] = rescale_counts(row, ratio, true, {false, 2.0}, slopes.data() + i * c.p,
                                       work, no_poll);
            risk += values[i];
        }
        const double gap = add_planes(planes, scores.data(), values.data(), slopes.data());
        const double total = planes.dual(v.data()), squares = c.squares(v);
        require(close(total - 0.5 * squares + gap, 0.5 * squares + price * risk),
                "the gap is not that of primal and dual");
        require(total - 0.5 * squares >= before - 1e-9 * (1 + before), "the dual fell");
        before = total - 0.5 * squares;
        plane_pass(features, planes, pass, {state.data(), curvature.data(), 1.0}, no_poll);
        planes.dual(v.data());
        require_scores(features, c, state, v);
    }
    std::vector<std::int64_t> counts(scales.size());
    planes.count_used(counts.data());
    std::int64_t used = 0;
    for (const auto count : counts) used += count;
    std::vector<double> shares(static_cast<std::size_t>(used)), heights(shares),
        kept(static_cast<std::size_t>(used * c.p));
    planes.copy_used(shares.data(), heights.data(), kept.data());
    for (auto& scale : scales) scale = 2.0;
    KeptPlanes again(offsets.data(), scales.data(), c.n, 4);
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < c.n; ++i) {
        again.begin_with(i, counts[i], shares.data() + at, heights.data() + at,
                         kept.data() + at * c.p);
        at += counts[i];
    }
    require(close(again.dual(v.data()), planes.dual(v.data())), "a start is not what it was");
}

inline void check_dual_blocks(std::mt19937& random) {
    const BlockCase one = draw_block_case(random, 1);
    const BlockCase some = draw_block_case(random, 1 + static_cast<std::int64_t>(random() % 5));
    const auto check = [](const auto& of_one, const auto& of_some, const BlockCase& a,
                          const BlockCase& b) {
        check_hinge_passes(of_one, a);
        for (const int kind : {SetFamilies::jaccard, SetFamilies::sizes, SetFamilies::counts,
                               SetFamilies::modular}) {
            check_set_passes(of_one, a, kind, false);
            check_set_passes(of_some, b, kind, true);
        }
        check_kept_planes(of_some, b);
    };
    check(one.dense(), some.dense(), one, some);
    check(one.sparse(), some.sparse(), one, some);
    check(one.gram(), some.gram(), one, some);
}

}  // namespace setwise

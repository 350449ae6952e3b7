// The relaxation for the sanitizers: rings with blocks of every kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "relaxation/paths.hpp"
#include "relaxation/relaxation.hpp"
#include "tests/cases.hpp"

namespace setwise {

// Check that plain passes over blocks of every kind never raise the objective, for any number of
// threads. Cases of a few thousand elements are more than one task.
template <class Scalar>
void check_relaxation(const Case& c) {
    const auto n = static_cast<std::int64_t>(c.scores.size());
    if (n < 3) return;
    std::vector<std::int64_t> ring, classes(static_cast<std::size_t>(n)), own, all(classes.size());
    for (std::int64_t i = 0; i < n; ++i) {
        ring.insert(ring.end(), {i, (i + 1) % n});
        own.push_back(c.positive[i]);
        all[i] = i;
    }
    require(path_classes(n, ring.data(), n, classes.data(), no_poll) == 2, "a ring is two paths");
    std::vector<std::int64_t> vertices, starts;
    std::vector<double> weights;
    const std::vector<double> ones(all.size(), 1.0);
    require(walk_paths(n, ring.data(), ones.data(), n - 1, vertices, starts, weights) &&
                starts == std::vector<std::int64_t>{0, n},
            "a path was walked wrong");
    std::vector<double> unary;
    for (std::int64_t i = 0; i < n; ++i)
        unary.insert(unary.end(), {0.0, std::clamp(c.scores[i], -50.0, 50.0), 0.5});
    Relaxation<Scalar> one(unary.data(), n, 3), two(unary.data(), n, 3);
    const std::vector<Scalar> half(all.size(), Scalar(0.5));
    std::vector<Scalar> concave(all.size()), convex(all.size());
    for (std::int64_t k = 0; k < n; ++k) {
        concave[k] = Scalar(1) - Scalar(k) / Scalar(n);
        convex[k] = Scalar(k) / Scalar(n);
    }
    const std::vector<std::int64_t> parts{0, n / 2, n};
    for (Relaxation<Scalar>* const relaxation : {&one, &two}) {
        const auto add = [&](BlockKind kind, const std::vector<std::int64_t>& blocks,
                             const std::vector<Scalar>& parameters,
                             const std::vector<std::int64_t>& slot_starts,
                             const std::vector<std::int64_t>& slot_labels,
                             const std::vector<std::int64_t>& own_labels) {
            Group<Scalar> group{};
            group.kind = kind;
            group.variables = all;
            group.starts = blocks;
            group.parameters = parameters;
            group.slot_starts = slot_starts;
            group.slot_labels = slot_labels;
            group.own = own_labels;
            relaxation->add(group);
        };
        add(BlockKind::chain, {0, n}, half, {0, 1, 2, 3}, {0, 1, 2}, {});
        add(BlockKind::count, parts, concave, {0, 1, 2, 3}, {0, 1, 2}, {});
        add(BlockKind::simplex, {0, n}, {Scalar(1.5), Scalar(2)}, {0, 1, 2}, {0, 2}, {});
        add(BlockKind::simplex, {0, n}, {Scalar(1)}, {0, 2}, {0, 2}, {});
        add(BlockKind::count, {0, n}, concave, {0}, {}, own);
        add(BlockKind::convex, {0, n}, convex, {0}, {}, own);
        relaxation->start(1);
    }
    double before = one.evaluate(0.5, 1, no_poll).objective;
    const double slack =
        (std::abs(before) + static_cast<double>(n)) * (sizeof(Scalar) == 4 ? 1e-4 : 1e-9);
    std::vector<Scalar> p(unary.size());
    for (int pass = 0; pass < 6; ++pass) {
        if (pass == 2)
            for (auto* const relaxation : {&one, &two})
                relaxation->set_light({false, true, false, true, false, false}, 1);
        one.sweep(0.5, 0, 1, no_poll);
        two.sweep(0.5, 0, 2, no_poll);
        const double after = one.evaluate(0.5, 1, no_poll).objective;
        require(after <= before + slack, "a plain pass raised the objective");
        require(after == two.evaluate(0.5, 2, no_poll).objective, "threads changed the answer");
        one.probabilities(0.5, p.data(), 1, no_poll);
        for (const double gap : one.gaps(p.data(), 1, no_poll))
            require(gap >= -slack, "a gap is negative");
        before = after;
    }
    two.sweep(0.5, 0.9, 2, no_poll);
    two.revert(2);
    require(std::abs(two.evaluate(0.5, 2, no_poll).objective - before) <= slack,
            "a pass was not undone");
}

}  // namespace setwise

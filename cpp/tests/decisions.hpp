// Decisions for the sanitizers: the best prefix of small sets against sums over all true sets, and
// large sets with certain elements, weights and a given score of the empty set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <stdexcept>
#include <vector>

#include "decisions/expected_ratio.hpp"

namespace setwise {

// Return the expected score of the first k by its definition, k > 0.
inline double score_by_truths(const std::vector<double>& p, const std::vector<double>& w,
                              std::size_t k, bool jaccard, double b) {
    double total = 0;
    for (std::uint32_t truth = 0; truth < (1u << p.size()); ++truth) {
        double chance = 1, hits = 0, there = 0, predicted = 0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            const bool in = truth >> i & 1;
            chance *= in ? p[i] : 1 - p[i];
            there += in ? w[i] : 0.0;
            predicted += i < k ? w[i] : 0.0;
            hits += in && i < k ? w[i] : 0.0;
        }
        if (hits > 0)
            total += chance * (jaccard ? hits / (there + predicted - hits)
                                       : (1 + b) * hits / (predicted + b * there));
    }
    return total;
}

inline void check_decisions(std::mt19937& random) {
    std::uniform_real_distribution<double> uniform;
    const auto nothing = +[] {};
    const bool jaccard = random() % 2 == 0, weighted = random() % 2 == 0,
               is_given = random() % 2 == 0;
    const double b = jaccard ? 1.0 : 0.25 + 2 * uniform(random);
    ExpectedRatio ratio(jaccard, b);
    // One object serves sets of all sizes, as in a thread.
    for (const std::size_t n : {std::size_t{0}, std::size_t{1 + random() % 8}, std::size_t{4000}}) {
        std::vector<double> p(n), w(n, 1.0);
        const double power = n > 100 ? 6.0 : 1.0;
        for (double& x : p)
            x = random() % 8 == 0 ? double(random() % 2) : std::pow(uniform(random), power);
        std::sort(p.begin(), p.end(), std::greater<>());
        if (weighted)
            for (double& x : w) x = 0.1 + 5 * uniform(random);
        const double none = uniform(random) * 1e-2;
        const auto best =
            ratio.best(p.data(), weighted ? w.data() : nullptr, static_cast<std::int64_t>(n),
                       is_given ? &none : nullptr, nothing);
        if (best.k < 0 || best.k > static_cast<std::int64_t>(n) || !(best.score >= 0) ||
            best.score > best.most * (1 + 1e-8))
            throw std::runtime_error("a decision is out of range");
        if (n > 100) continue;
        double empty = 1;
        for (const double x : p) empty *= 1 - x;
        double most = is_given ? none : empty;
        for (std::size_t k = 1; k <= n; ++k)
            most = std::max(most, score_by_truths(p, w, k, jaccard, b));
        if (std::abs(best.score - most) > 1e-10)
            throw std::runtime_error("a decision is not the best prefix");
    }
}

}  // namespace setwise

// The kernels of boosting for the sanitizers: small random problems, all stumps and pairs enumerated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "boosting/rank_risk.hpp"
#include "boosting/soft_class_risk.hpp"
#include "boosting/steps.hpp"
#include "boosting/stumps.hpp"

namespace setwise {

inline void require_boosting(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

// Check one feature with few values, some of them omitted as zeros, sorted and coded.
inline void check_stumps(std::mt19937& random, int m, int segments) {
    std::vector<int> values(m);
    for (int& x : values) x = static_cast<int>(random() % 5) - 2;
    std::vector<double> weights(static_cast<std::size_t>(m) * segments);
    for (double& u : weights) u = static_cast<int>(random() % 9) - 4;
    std::vector<std::uint32_t> order;
    for (int i = 0; i < m; ++i) order.push_back(static_cast<std::uint32_t>(i));
    std::stable_sort(order.begin(), order.end(),
                     [&](auto i, auto j) { return values[i] < values[j]; });

    const bool zeros = std::count(values.begin(), values.end(), 0) > 0;
    std::vector<std::uint32_t> up, down, all;
    std::vector<std::uint8_t> codes(m);
    std::vector<std::int32_t> examples;
    for (std::size_t k = 0; k < order.size(); ++k) {
        const std::uint32_t i = order[k];
        if (k == 0 || values[i] != values[order[k - 1]]) examples.push_back(static_cast<int>(i));
        codes[i] = static_cast<std::uint8_t>(examples.size() - 1);
        const bool last = k + 1 == order.size(), ends = last || values[i] != values[order[k + 1]];
        const bool begins = k == 0 || values[i] != values[order[k - 1]];
        all.push_back(i | (ends && !last ? mark : 0));
        if (!zeros || values[i] < 0)
            up.push_back(i | (ends && (zeros || !last) ? mark : 0));
        else if (values[i] > 0)
            down.insert(down.begin(), i | (begins ? mark : 0));
    }
    StumpSearch search(m);
    search.add(SortedFeature(up, down, {}, Trend::any));
    search.add(SortedFeature(all, {}, {}, Trend::any));
    search.add(BinnedFeature<std::uint8_t>(codes, examples, Trend::any));
    search.add(BinnedFeature<std::uint16_t>({codes.begin(), codes.end()}, examples, Trend::any));
    std::vector<double> gains(static_cast<std::size_t>(search.features()) * segments);
    search.gains(weights.data(), segments, gains.data(), 2, [] {});
    for (int s = 0; s < segments; ++s) {
        const double* const own = &weights[static_cast<std::size_t>(s) * m];
        double best = 0;
        for (int threshold = -3; threshold < 2; ++threshold) {
            double gain = 0;
            for (int i = 0; i < m; ++i) gain += values[i] > threshold ? own[i] : -own[i];
            best = std::max(best, std::abs(gain));
        }
        for (std::int64_t f = 0; f < search.features(); ++f) {
            require_boosting(gains[f * segments + s] == best, "the best stump");
            require_boosting(std::abs(search.locate(own, f, 0.0).gain) == best, "its threshold");
        }
    }
}

// Check one feature, with some of its values missing: the norms of all cuts.
inline void check_steps(std::mt19937& random, int m, int segments) {
    const int values = 1 + static_cast<int>(random() % m);
    std::vector<std::int32_t> codes(m);
    for (auto& code : codes) code = static_cast<std::int32_t>(random() % (values + 1));
    std::vector<double> weights(static_cast<std::size_t>(m) * segments);
    for (double& u : weights) u = static_cast<int>(random() % 9) - 4;
    const int cuts = 2 * values - 1;
    std::vector<float> low(cuts), high(cuts);
    for (int c = 0; c < cuts; ++c) low[c] = -1.0f - random() % 4, high[c] = 1.0f + random() % 4;
    StepSearch search(m);
    search.add(codes, values, low, high);
    search.add(codes, values, {}, {});
    StepSearch::Best best[2];
    search.gains(weights.data(), segments, 0.0, best, 2, [] {});
    double most = 0;
    for (int c = 0; c < cuts; ++c) {
        double square = 0;
        for (int s = 0; s < segments; ++s) {
            double edge = 0;
            for (int i = 0; i < m; ++i) {
                const bool below =
                    c < values ? codes[i] <= c : codes[i] <= c - values || codes[i] == values;
                edge += (below ? low[c] : high[c]) * weights[static_cast<std::size_t>(s) * m + i];
            }
            square += edge * edge;
        }
        most = std::max(most, std::sqrt(square));
    }
    require_boosting(best[0].gain == most && best[1].cut == -1, "the best step");
}

// Check that descent with weights that count by their norm lowers the objective.
inline void check_grouped_descent(std::mt19937& random) {
    const int m = 4 + static_cast<int>(random() % 20), k = 3 + static_cast<int>(random() % 16);
    std::vector<std::int32_t> labels(m);
    for (auto& label : labels) label = static_cast<std::int32_t>(random() % k);
    std::vector<double> cost(k * k, 0.0), weights(m, 1.0 / m), code(k * k, 0.0), out(k * m);
    for (int y = 0; y < k; ++y) code[y * k + y] = 1.0;
    SoftClassRisk risk(labels, cost, weights, code, k);
    risk.start(std::vector<double>(k * m, 0.0).data());
    std::vector<float> response(m);
    for (float& h : response) h = random() % 2 ? 1.5f : -0.5f;
    std::vector<double> sums(k), w(k, 0.0);
    risk.sums(response.data(), sums.data());
    const std::int32_t segment = -1, order[3] = {0, 0, 0};
    double radius = 1.0;
    const double C = 20.0, before = C * risk.probabilities(1.0, out.data(), [] {}).soft;
    risk.descend(response.data(), sums.data(), &segment, order, 3, C, 1.0, true, w.data(), &radius,
                 [] {});
    double square = 0;
    for (const double x : w) square += x * x;
    const double after = std::sqrt(square) + C * risk.probabilities(1.0, out.data(), [] {}).soft;
    require_boosting(after <= before + 1e-4, "descent of grouped weights");
}

// Check two groups: the weight of the active pairs, and the slope of each row.
inline void check_rank_pairs(std::mt19937& random) {
    const auto n = static_cast<std::int64_t>(random() % 80), first = n / 3;
    const auto n_levels = std::min<std::int64_t>(n, 1 + static_cast<std::int64_t>(random() % 5));
    std::vector<std::int32_t> levels;
    std::vector<double> weights, scores;
    for (std::int64_t i = 0; i < n; ++i) {
        levels.push_back(
            static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(n_levels)));
        weights.push_back(static_cast<double>(random() % 3));
        scores.push_back(static_cast<double>(random() % 17) / 4);
    }
    RankPairs pairs(levels, weights, {0, first, first, n});
    std::vector<double> slopes(static_cast<std::size_t>(n)), known(slopes.size());
    const double active = pairs.slopes(scores.data(), 1.0, slopes.data(), [] {});
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j)
            if ((i < first) == (j < first) && levels[i] > levels[j] &&
                scores[i] - 1.0 < scores[j]) {
                const double weight = weights[i] * weights[j];
                sum += weight;
                known[i] -= weight;
                known[j] += weight;
            }
    require_boosting(active == sum, "the weight of the active pairs");
    require_boosting(slopes == known, "the slopes of a ranking");
}

}  // namespace setwise

// The master problem of cutting planes for the sanitizers: programs that grow, are thinned out and
// continue. Each answer is tested against the conditions of a minimum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "cutting_planes/plane_program.hpp"

namespace setwise {

// Require x >= 0, that the planes' weights sum to 1, and that no vector has a lower slope <v_i,
// sum> - g_i than those in use: planes in use all have the least one, directions in use have 0.
inline void require_minimum(const std::vector<double>& vectors, std::int64_t cone,
                            std::int64_t rank, const std::vector<double>& g,
                            const std::vector<double>& x) {
    const auto count = static_cast<std::int64_t>(g.size());
    std::vector<double> sum(rank, 0.0);
    double total = 0.0;
    for (std::int64_t i = 0; i < count; ++i) {
        if (!(x[i] >= 0)) throw std::runtime_error("a weight is negative");
        if (i >= cone) total += x[i];
        for (std::int64_t k = 0; k < rank; ++k) sum[k] += x[i] * vectors[i * rank + k];
    }
    if (std::abs(total - 1.0) > 1e-9)
        throw std::runtime_error("the planes' weights do not sum to 1");
    std::vector<double> slope(count);
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < count; ++i) {
        slope[i] = -g[i];
        for (std::int64_t k = 0; k < rank; ++k) slope[i] += sum[k] * vectors[i * rank + k];
        if (i >= cone) least = std::min(least, slope[i]);
    }
    for (std::int64_t i = 0; i < count; ++i) {
        const double above = i < cone ? slope[i] : slope[i] - least;
        if (above < -1e-6 || (x[i] > 1e-9 && above > 1e-6))
            throw std::runtime_error("the weights are no minimum");
    }
}

inline void check_planes(std::mt19937& random) {
    std::normal_distribution<double> normal;
    const std::int64_t cone = static_cast<std::int64_t>(random() % 3);
    const std::int64_t rank = 1 + static_cast<std::int64_t>(random() % 5);
    PlaneProgram program;
    std::vector<double> vectors, g;
    for (std::int64_t i = 0; i < cone; ++i) {
        for (std::int64_t k = 0; k < rank; ++k) vectors.push_back(k == i % rank ? -1.0 : 0.0);
        g.push_back(0.0);
    }
    for (int round = 0; round < 8; ++round) {
        for (int added = 0; added < 3; ++added) {
            // sometimes a plane for the second time
            const bool again = random() % 4 == 0 && static_cast<std::int64_t>(g.size()) > cone;
            const std::size_t from = vectors.size() - static_cast<std::size_t>(rank);
            for (std::int64_t k = 0; k < rank; ++k)
                vectors.push_back(again ? vectors[from + k] : normal(random));
            g.push_back(again ? g.back() : normal(random));
        }
        const auto count = static_cast<std::int64_t>(g.size());
        std::vector<double> x(count), sum(rank);
        if (!program.solve(vectors.data(), count, cone, rank, g.data(), x.data(), sum.data()))
            throw std::runtime_error("a program of planes took too many steps");
        require_minimum(vectors, cone, rank, g, x);
        if (round % 3 != 2) continue;
        std::vector<std::int64_t> kept;
        std::vector<double> fewer, heights;
        for (std::int64_t i = 0; i < count; ++i) {
            if (i >= cone && x[i] == 0.0 && random() % 2) continue;
            kept.push_back(i);
            fewer.insert(fewer.end(), vectors.begin() + i * rank, vectors.begin() + (i + 1) * rank);
            heights.push_back(g[i]);
        }
        program.keep(kept.data(), static_cast<std::int64_t>(kept.size()));
        vectors.swap(fewer);
        g.swap(heights);
    }
}

}  // namespace setwise

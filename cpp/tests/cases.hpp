// The inputs on which the programs of the sanitizers run the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace setwise {

inline void no_poll() {}

struct Case {
    std::vector<std::uint8_t> positive;
    std::vector<double> scores;
};

inline void require(bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error(what);
}

inline bool close(double x, double y) {
    return std::abs(x - y) <= 1e-9 * (1 + std::abs(x) + std::abs(y));
}

inline Case read_case(const std::filesystem::path& path) {
    Case c;
    std::ifstream file(path);
    int label;
    double score;
    while (file >> label >> score) {
        c.positive.push_back(label > 0);
        c.scores.push_back(score);
    }
    return c;
}

// Draw a case of p elements.
inline Case draw_case(std::mt19937& random, std::size_t p) {
    Case c;
    std::normal_distribution<double> normal(0.0, random() % 3 == 0 ? 100.0 : 1.0);
    const bool rounded = random() % 3 == 0;  // rounded scores have ties
    for (std::size_t i = 0; i < p; ++i) {
        const double score = normal(random);
        c.positive.push_back(random() % 3 == 0);
        c.scores.push_back(rounded ? std::round(score) : score);
    }
    return c;
}

}  // namespace setwise

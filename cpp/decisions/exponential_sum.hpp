// 1 / x as a sum of exponentials.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace setwise {

// 1 / x = int_0^inf exp(-x u) du with u = e^v, by the trapezoid rule in v:
//
//        1 / x ~ sum_j weights[j] exp(-x nodes[j])     for low <= x <= high,
//
// within `relative_error` of 1 / x. The rule with a step of 0.3 has an error of at most 2 exp(-pi^2
// / 0.3), 1e-14. Truncation on the right has an error of exp(-42). On the left, where exp(-x u) is 1, the
// nodes are summed as a geometric series, with an error of (1e-6)^2 / 2.
struct ExponentialSum {
    static constexpr double step = 0.3, relative_error = 1e-12;

    std::vector<double> nodes, weights;

    void reset(double low, double high) {
        const double first = 1e-6 / high, last = 42.0 / low;
        const auto count = static_cast<std::size_t>(std::ceil(std::log(last / first) / step)) + 1;
        nodes.resize(count);
        weights.resize(count);
        for (std::size_t j = 0; j < count; ++j) {
            nodes[j] = first * std::exp(step * static_cast<double>(j));
            weights[j] = step * nodes[j];
        }
        weights[0] /= -std::expm1(-step);
    }
    std::size_t size() const { return nodes.size(); }
};

}  // namespace setwise

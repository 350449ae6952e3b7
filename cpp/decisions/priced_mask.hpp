// The best mask under prices of its elements, where the score of a mask is its overlap times a factor
// of its size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace setwise {

// For n elements with probabilities p and prices l, and decreasing factors above[0], above[1], ...
// of masks with 1, 2, ... elements:
//
//        max(none, max_k max_{|A| = k} sum_A (above[k - 1] p_i - l_i)).
class PricedMask {
  public:
    // Return an upper bound on the maximum that is larger by at most `allowed`. `mask` receives a
    // set of about the returned value.
    double best(const double* p, const double* above, const double* prices, std::size_t n,
                double none, double allowed) {
        p_ = p, above_ = above, prices_ = prices, n_ = n;
        mask.clear();
        gains_.resize(n);
        least_ = none;
        // The queue begins with ranges of sizes that double, and the best range is halved.
        std::priority_queue<Range> ranges;
        for (std::size_t low = 1; low <= n; low = 2 * low)
            ranges.push(evaluate(low, std::min(2 * low - 1, n)));
        Range top{0, 0, 0};
        while (!ranges.empty()) {
            top = ranges.top();
            if (top.value <= least_ + allowed || top.low == top.high) break;
            ranges.pop();
            const std::size_t middle = top.low + (top.high - top.low) / 2;
            ranges.push(evaluate(top.low, middle));
            ranges.push(evaluate(middle + 1, top.high));
        }
        if (top.high == 0 || top.value <= none) return none;
        const double w = above[top.low - 1];
        for (std::size_t i = 0; i < n; ++i)
            if (w * p[i] - prices[i] > 0) mask.push_back(static_cast<std::uint32_t>(i));
        if (mask.size() > top.high) {
            const auto gain = [&](std::uint32_t i) { return w * p[i] - prices[i]; };
            std::nth_element(mask.begin(), mask.begin() + static_cast<std::ptrdiff_t>(top.high),
                             mask.end(), [&](std::uint32_t x, std::uint32_t y) {
                                 return gain(x) > gain(y) || (gain(x) == gain(y) && x < y);
                             });
            mask.resize(top.high);
        }
        return top.value;
    }

    std::vector<std::uint32_t> mask;

  private:
    // The sum over the best mask of at most `high` elements of above[low - 1] p_i - l_i, which is at
    // least the score of every mask of low to high elements less its prices.
    struct Range {
        std::size_t low, high;
        double value;
        bool operator<(const Range& other) const { return value < other.value; }
    };

    // Also raise least_ to the score of a mask less its prices.
    Range evaluate(std::size_t low, std::size_t high) {
        const double w = above_[low - 1];
        std::size_t positive = 0;
        double value = 0, overlap = 0;
        for (std::size_t i = 0; i < n_; ++i) {
            const double gain = w * p_[i] - prices_[i];
            const bool in = gain > 0;
            gains_[positive] = gain;
            positive += in;
            value += in ? gain : 0.0;
            overlap += in ? p_[i] : 0.0;
        }
        if (positive > high) {
            std::nth_element(gains_.begin(), gains_.begin() + static_cast<std::ptrdiff_t>(high),
                             gains_.begin() + static_cast<std::ptrdiff_t>(positive),
                             std::greater<double>());
            value = 0;
            double threshold = gains_[0];
            for (std::size_t i = 0; i < high; ++i) {
                value += gains_[i];
                threshold = std::min(threshold, gains_[i]);
            }
            overlap = 0;
            for (std::size_t i = 0; i < n_; ++i)
                overlap += w * p_[i] - prices_[i] >= threshold ? p_[i] : 0.0;
            positive = high;
        }
        if (positive > 0) least_ = std::max(least_, value - (w - above_[positive - 1]) * overlap);
        return {low, high, value};
    }

    const double* p_ = nullptr;
    const double* above_ = nullptr;
    const double* prices_ = nullptr;
    std::size_t n_ = 0;
    double least_ = 0;
    std::vector<double> gains_;
};

}  // namespace setwise

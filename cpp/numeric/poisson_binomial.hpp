// The distribution of a count of independent events with probabilities q_1, ..., q_n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace setwise {

// Add an event of probability q: d[0..n] becomes d[0..n + 1], the distribution over n + 1 events.
inline void add_event(double* d, std::int64_t n, double q) {
    d[n + 1] = d[n] * q;
    for (std::int64_t k = n; k > 0; --k) d[k] = d[k] * (1 - q) + d[k - 1] * q;
    d[0] *= 1 - q;
}

// The inverse: f[0..n - 1] without one event of probability q of the n in d[0..n]. It is solved
// from the end at which the recursion damps rounding errors.
inline void remove_event(const double* d, std::int64_t n, double q, double* f) {
    if (q <= 0.5) {
        double before = 0;
        for (std::int64_t k = 0; k < n; ++k)
            f[k] = before = std::max((d[k] - q * before) / (1 - q), 0.0);
    } else {
        double after = 0;
        for (std::int64_t k = n - 1; k >= 0; --k)
            f[k] = after = std::max((d[k + 1] - (1 - q) * after) / q, 0.0);
    }
}

// Return a value of at least E h(K), equal to it up to rounding and 1e-18 max |h|: counts with a
// probability below 1e-24 are left out, and their probability is multiplied by the largest h
// instead. O(n sqrt n) instead of O(n^2). `work` has space for n + 2 numbers.
inline double expected_of_count(const double* q, std::int64_t n, const double* h,
                                std::vector<double>& work) {
    constexpr double negligible = 1e-24;
    if (static_cast<std::int64_t>(work.size()) < n + 2)
        work.resize(static_cast<std::size_t>(n + 2));
    double* const d = work.data();
    std::int64_t low = 0, high = 0;  // d[low..high] are the probabilities in the window
    d[0] = 1;
    double lost = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        add_event(d + low, high - low, q[i]);
        ++high;
        while (low < high && d[low] < negligible) lost += d[low++];
        while (high > low && d[high] < negligible) lost += d[high--];
    }
    double sum = 0;
    for (std::int64_t k = low; k <= high; ++k) sum += d[k] * h[k];
    return sum + lost * *std::max_element(h, h + n + 1);
}

}  // namespace setwise

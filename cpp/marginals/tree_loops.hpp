// The loops of messages over the labels of a variable, without branches and calls, so that they run
// in vector instructions. Bodies are inlined into one function per step, each compiled for the
// instructions of the present machine. Two labels have separate code, because a loop would cost
// more than its body.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numeric/exponentials.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

constexpr double tiny_mass = 1e-300;

namespace loops {

SETWISE_INLINED double sum_of(const double* x, std::int64_t n) {
    double a = 0, b = 0, c = 0, d = 0;  // four independent sums, in a fixed order
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        a += x[k];
        b += x[k + 1];
        c += x[k + 2];
        d += x[k + 3];
    }
    for (; k < n; ++k) a += x[k];
    return (a + b) + (c + d);
}

template <class Real>
SETWISE_INLINED void add_scaled(double scale, const Real* __restrict x, std::int64_t n,
                                double* __restrict sum) {
    for (std::int64_t k = 0; k < n; ++k) sum[k] += scale * static_cast<double>(x[k]);
}

template <class Real>
SETWISE_INLINED double masses(const double* __restrict b, const Real* __restrict back,
                              std::int64_t n, double* __restrict mass) {
    double top = -std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < n; ++k) {
        mass[k] = b[k] - static_cast<double>(back[k]);
        top = mass[k] > top ? mass[k] : top;
    }
    for (std::int64_t k = 0; k < n; ++k) mass[k] = exponential_above(700.0, mass[k] - top);
    return top;
}

SETWISE_INLINED void potts_logs(const double* __restrict mass, double sum, double change,
                                double level, std::int64_t n, double* __restrict out) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double value = change * (sum - mass[k]) + mass[k];
        out[k] = logarithm(value > tiny_mass ? value : tiny_mass) - level;
    }
}

// Write the message of a Potts edge: out = log(change (sum - mass) + mass) with mass = exp(b -
// back), with its largest entry 0. Return what was subtracted.
template <class Real>
SETWISE_INLINED double potts_message(const double* b, const Real* back, double change,
                                     std::int64_t n, double* mass, double* out) {
    if (n == 2) {
        const double x = b[0] - static_cast<double>(back[0]);
        const double y = b[1] - static_cast<double>(back[1]);
        const bool second = y > x;
        const double top = second ? y : x;
        const double other = exponential_above(700.0, (second ? x : y) - top);
        const double level = logarithm(change * other + 1);
        const double low = change + other;
        out[second] = 0;
        out[!second] = logarithm(low > tiny_mass ? low : tiny_mass) - level;
        return top + level;
    }
    const double top = masses(b, back, n, mass);
    const double sum = sum_of(mass, n);
    const double level = std::log(change * (sum - 1) + 1);
    potts_logs(mass, sum, change, level, n, out);
    return top + level;
}

}  // namespace loops

// sum += scale * x
SETWISE_VECTORIZED inline void add_scaled(double scale, const double* x, std::int64_t n,
                                          double* sum) {
    loops::add_scaled(scale, x, n, sum);
}
SETWISE_VECTORIZED inline void add_scaled(double scale, const float* x, std::int64_t n,
                                          double* sum) {
    loops::add_scaled(scale, x, n, sum);
}

// Write mass = exp(b - back - top), 0 where that is below e^-700, and return top, their largest
// exponent.
SETWISE_VECTORIZED inline double masses(const double* b, const double* back, std::int64_t n,
                                        double* mass) {
    return loops::masses(b, back, n, mass);
}
SETWISE_VECTORIZED inline double masses(const double* b, const float* back, std::int64_t n,
                                        double* mass) {
    return loops::masses(b, back, n, mass);
}

SETWISE_VECTORIZED inline double potts_message(const double* b, const double* back, double change,
                                               std::int64_t n, double* mass, double* out) {
    return loops::potts_message(b, back, change, n, mass, out);
}
SETWISE_VECTORIZED inline double potts_message(const double* b, const float* back, double change,
                                               std::int64_t n, double* mass, double* out) {
    return loops::potts_message(b, back, change, n, mass, out);
}

// out = log(change (sum - mass) + mass) - level
SETWISE_VECTORIZED inline void potts_logs(const double* mass, double sum, double change,
                                          double level, std::int64_t n, double* out) {
    loops::potts_logs(mass, sum, change, level, n, out);
}

// Replace x by log(x), for x >= 1e-300.
SETWISE_VECTORIZED inline void logs_of(double* __restrict x, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) x[k] = logarithm(x[k] > tiny_mass ? x[k] : tiny_mass);
}

// scale = 1 / x, rows = p * scale
SETWISE_VECTORIZED inline void rescale(const double* __restrict p, const double* __restrict x,
                                       std::int64_t n, double* __restrict scale,
                                       double* __restrict rows) {
    for (std::int64_t k = 0; k < n; ++k) {
        scale[k] = 1 / (x[k] > tiny_mass ? x[k] : tiny_mass);
        rows[k] = p[k] * scale[k];
    }
}

// sums = level + slope * values
SETWISE_VECTORIZED inline void line(double level, double slope, const double* __restrict values,
                                    std::int64_t n, double* __restrict sums) {
    for (std::int64_t k = 0; k < n; ++k) sums[k] = level + slope * values[k];
}

// x = a log(b), 0 where a is 0.
SETWISE_VECTORIZED inline void weigh_logs(const double* __restrict a, const double* __restrict b,
                                          std::int64_t n, double* __restrict x) {
    for (std::int64_t k = 0; k < n; ++k)
        x[k] = a[k] * logarithm(b[k] > tiny_mass ? b[k] : tiny_mass);
}

// x = exp(logs), 0 below e^-700.
SETWISE_VECTORIZED inline void exponentials_of(const double* __restrict logs, std::int64_t n,
                                               double* __restrict x) {
    for (std::int64_t k = 0; k < n; ++k) x[k] = exponential_above(700.0, logs[k]);
}

inline double sum_of(const double* x, std::int64_t n) { return loops::sum_of(x, n); }

}  // namespace setwise

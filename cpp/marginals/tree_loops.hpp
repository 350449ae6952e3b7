// The loops of messages over the labels of a variable: no branches and no calls, so that they run in
// vector instructions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "numeric/exponentials.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

constexpr double tiny_mass = 1e-300;

// sum += scale * x
SETWISE_VECTORIZED inline void add_scaled(double scale, const double* __restrict x, std::int64_t n,
                                          double* __restrict sum) {
    for (std::int64_t k = 0; k < n; ++k) sum[k] += scale * x[k];
}

// mass = exp(b - back - top), 0 where that is below e^-700, and top, their largest exponent.
SETWISE_VECTORIZED inline double masses(const double* __restrict b, const double* __restrict back,
                                        std::int64_t n, double* __restrict mass) {
    double top = -std::numeric_limits<double>::infinity();
    for (std::int64_t k = 0; k < n; ++k) {
        mass[k] = b[k] - back[k];
        top = mass[k] > top ? mass[k] : top;
    }
    for (std::int64_t k = 0; k < n; ++k) mass[k] = exponential_above(700.0, mass[k] - top);
    return top;
}

// out = log(change (sum - mass) + mass) - level
SETWISE_VECTORIZED inline void potts_logs(const double* __restrict mass, double sum, double change,
                                          double level, std::int64_t n, double* __restrict out) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double value = change * (sum - mass[k]) + mass[k];
        out[k] = logarithm(value > tiny_mass ? value : tiny_mass) - level;
    }
}

// x becomes log(x), of x >= 1e-300.
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

// x = a log(b), 0 where a is.
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

// x = q exp(shift - logs), 0 below e^-700 and where q is.
SETWISE_VECTORIZED inline void weigh_exponentials(const double* __restrict q, double shift,
                                                  const double* __restrict logs, std::int64_t n,
                                                  double* __restrict x) {
    for (std::int64_t k = 0; k < n; ++k) {
        const double power = shift - logs[k];
        x[k] = q[k] * exponential_above(700.0, power < 700.0 ? power : 700.0);
    }
}

inline double sum_of(const double* x, std::int64_t n) {
    double a = 0, b = 0, c = 0, d = 0;  // four at once, in an order of their own
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

}  // namespace setwise

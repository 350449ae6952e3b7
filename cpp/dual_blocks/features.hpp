// Weights W (p, D) of a linear model while examples are added to them one by one: W += delta x_i',
// and the scores W x_i. There are three ways to store them; D counts the constant feature of an
// intercept.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numeric/vectorized.hpp"
#include "relaxation/label_loops.hpp"

namespace setwise {

namespace loops {

// Return the dot product as eight sums side by side, in one order on every machine.
SETWISE_INLINED double dot_product(const double* __restrict x, const double* __restrict w,
                                   std::int64_t n) {
    double sums[8] = {};
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; ++k) sums[k] += x[i + k] * w[i + k];
    double rest = 0;
    for (; i < n; ++i) rest += x[i] * w[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest;
}

// Write the dot products of four rows w, `size` apart, which share the reads of x.
SETWISE_INLINED void four_dot_products(const double* __restrict x, const double* __restrict w,
                                       std::int64_t size, std::int64_t n, double* __restrict out) {
    Four low[4] = {}, high[4] = {};
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        Four x_low, x_high, of_row;
        load(x + i, x_low);
        load(x + i + 4, x_high);
        for (int r = 0; r < 4; ++r) {
            load(w + r * size + i, of_row);
            low[r] = low[r] + x_low * of_row;
            load(w + r * size + i + 4, of_row);
            high[r] = high[r] + x_high * of_row;
        }
    }
    for (int r = 0; r < 4; ++r) {
        const Four sums = low[r] + high[r];
        double rest = 0;
        for (std::int64_t k = i; k < n; ++k) rest += x[k] * w[r * size + k];
        out[r] = (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
    }
}

SETWISE_INLINED void add_multiple(double factor, const double* __restrict x, double* __restrict w,
                                  std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) w[i] += factor * x[i];
}

}  // namespace loops

SETWISE_VECTORIZED inline double dot(const double* x, const double* w, std::int64_t n) {
    return loops::dot_product(x, w, n);
}
SETWISE_VECTORIZED inline void add_multiple(double factor, const double* x, double* w,
                                            std::int64_t n) {
    loops::add_multiple(factor, x, w, n);
}

// Compute the scores of p rows of weights, or add one example to all of them, in one call for all
// labels.
SETWISE_VECTORIZED inline void dense_scores(const double* x, std::int64_t d, bool intercept,
                                            const double* W, std::int64_t p, double* out) {
    const std::int64_t size = d + intercept;
    std::int64_t j = 0;
    for (; j + 4 <= p; j += 4) loops::four_dot_products(x, W + j * size, size, d, out + j);
    for (; j < p; ++j) out[j] = loops::dot_product(x, W + j * size, d);
    if (!intercept) return;
    for (j = 0; j < p; ++j) out[j] += W[j * size + d];
}
SETWISE_VECTORIZED inline void dense_add(const double* x, std::int64_t d, bool intercept,
                                         const double* delta, std::int64_t p, double* W) {
    const std::int64_t size = d + intercept;
    for (std::int64_t j = 0; j < p; ++j) {
        if (delta[j] == 0) continue;
        double* const w = W + j * size;
        loops::add_multiple(delta[j], x, w, d);
        if (intercept) w[d] += delta[j];
    }
}

// Rows of a matrix (n, d). The state is W itself, (p, D).
struct DenseFeatures {
    const double* X;
    std::int64_t n, d;
    bool intercept;

    std::int64_t size() const { return d + intercept; }
    double square(std::int64_t i) const { return dot(X + i * d, X + i * d, d) + intercept; }
    // Return |w|^2 of one label, w = sum_i v_i x_i.
    double squared(const double* state, const double*) const { return dot(state, state, size()); }

    void scores(std::int64_t i, const double* state, std::int64_t p, double* out) const {
        dense_scores(X + i * d, d, intercept, state, p, out);
    }
    void add(std::int64_t i, const double* delta, double* state, std::int64_t p) const {
        dense_add(X + i * d, d, intercept, delta, p, state);
    }
};

// Rows of a CSR matrix. The state is the transpose of W, (D, p): the weights of a feature side by
// side.
struct SparseFeatures {
    const std::int64_t* starts;
    const std::int64_t* columns;
    const double* data;
    std::int64_t n, d;
    bool intercept;

    std::int64_t size() const { return d + intercept; }
    double squared(const double* state, const double*) const { return dot(state, state, size()); }
    double square(std::int64_t i) const {
        double sum = intercept;
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k) sum += data[k] * data[k];
        return sum;
    }
    void scores(std::int64_t i, const double* state, std::int64_t p, double* out) const {
        for (std::int64_t j = 0; j < p; ++j) out[j] = intercept ? state[d * p + j] : 0.0;
        if (p == 1) {
            for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k)
                out[0] += data[k] * state[columns[k]];
            return;
        }
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k)
            add_multiple(data[k], state + columns[k] * p, out, p);
    }
    void add(std::int64_t i, const double* delta, double* state, std::int64_t p) const {
        if (intercept) add_multiple(1.0, delta, state + d * p, p);
        if (p == 1) {
            for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k)
                state[columns[k]] += delta[0] * data[k];
            return;
        }
        for (std::int64_t k = starts[i]; k < starts[i + 1]; ++k)
            add_multiple(data[k], delta, state + columns[k] * p, p);
    }
};

// Few examples with many features: all inner products (n, n). The state is the scores themselves,
// (p, n), so that none has to be computed when it is needed.
struct GramFeatures {
    const double* K;
    std::int64_t n;

    std::int64_t size() const { return n; }
    double square(std::int64_t i) const { return K[i * n + i]; }
    double squared(const double* state, const double* v) const { return dot(state, v, n); }
    void scores(std::int64_t i, const double* state, std::int64_t p, double* out) const {
        for (std::int64_t j = 0; j < p; ++j) out[j] = state[j * n + i];
    }
    void add(std::int64_t i, const double* delta, double* state, std::int64_t p) const {
        for (std::int64_t j = 0; j < p; ++j)
            if (delta[j] != 0) add_multiple(delta[j], K + i * n, state + j * n, n);
    }
};

}  // namespace setwise

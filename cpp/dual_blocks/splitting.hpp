// The dual of many Lovász hinges for all sets at once: projections alternate with a linear system,
//        b = projection of z,   (K + 1/rho) a = y * (1 + (2 b - z) / rho),   z += relaxed (y * a - b).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dual_blocks/polymatroid.hpp"
#include "dual_blocks/set_passes.hpp"
#include "numeric/poll.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// The number of rows of a system that are solved together and share the reads of the other rows,
// and the largest number of groups of four columns that share these rows. Not tuned.
constexpr int solved_rows = 4, most_fours = 3;

namespace loops {

template <int R, int F>
using Rows = Four[R][F];

template <int R, int F>
SETWISE_INLINED void load_rows(const double* x, Rows<R, F>& rows) {
    for (int r = 0; r < R; ++r)
        for (int f = 0; f < F; ++f) load(x + (r * F + f) * 4, rows[r][f]);
}
template <int R, int F>
SETWISE_INLINED void store_rows(const Rows<R, F>& rows, double* x) {
    for (int r = 0; r < R; ++r)
        for (int f = 0; f < F; ++f) store(rows[r][f], x + (r * F + f) * 4);
}
template <int F>
SETWISE_INLINED void subtract(double factor, const Four (&from)[F], Four (&to)[F]) {
    Four all;
    spread(factor, all);
    for (int f = 0; f < F; ++f) to[f] = to[f] - all * from[f];
}
template <int F>
SETWISE_INLINED void multiply(double factor, Four (&row)[F]) {
    Four all;
    spread(factor, all);
    for (int f = 0; f < F; ++f) row[f] = row[f] * all;
}

// Solve rows i to i + R of U' x = x, and subtract their part from the rows after them.
template <int R, int F>
SETWISE_INLINED void solve_down(const double* __restrict U, std::int64_t n, std::int64_t i,
                                double* __restrict x) {
    Rows<R, F> rows;
    load_rows<R, F>(x + i * F * 4, rows);
    for (int r = 0; r < R; ++r) {
        for (int k = 0; k < r; ++k) subtract<F>(U[(i + k) * n + i + r], rows[k], rows[r]);
        multiply<F>(1.0 / U[(i + r) * n + i + r], rows[r]);
    }
    store_rows<R, F>(rows, x + i * F * 4);
    for (std::int64_t k = i + R; k < n; ++k) {
        Rows<1, F> other;
        load_rows<1, F>(x + k * F * 4, other);
        for (int r = 0; r < R; ++r) subtract<F>(U[(i + r) * n + k], rows[r], other[0]);
        store_rows<1, F>(other, x + k * F * 4);
    }
}

// Solve rows i to i + R of U x = x; those after them are solved.
template <int R, int F>
SETWISE_INLINED void solve_up(const double* __restrict U, std::int64_t n, std::int64_t i,
                              double* __restrict x) {
    Rows<R, F> rows;
    load_rows<R, F>(x + i * F * 4, rows);
    for (std::int64_t k = i + R; k < n; ++k) {
        Rows<1, F> other;
        load_rows<1, F>(x + k * F * 4, other);
        for (int r = 0; r < R; ++r) subtract<F>(U[(i + r) * n + k], other[0], rows[r]);
    }
    for (int r = R - 1; r >= 0; --r) {
        for (int k = r + 1; k < R; ++k) subtract<F>(U[(i + r) * n + i + k], rows[k], rows[r]);
        multiply<F>(1.0 / U[(i + r) * n + i + r], rows[r]);
    }
    store_rows<R, F>(rows, x + i * F * 4);
}

template <int F>
SETWISE_INLINED void solve(const double* U, std::int64_t n, double* x) {
    std::int64_t i = 0;
    for (; i + solved_rows <= n; i += solved_rows) solve_down<solved_rows, F>(U, n, i, x);
    for (; i < n; ++i) solve_down<1, F>(U, n, i, x);
    for (; i % solved_rows != 0; --i) solve_up<1, F>(U, n, i - 1, x);
    for (; i > 0; i -= solved_rows) solve_up<solved_rows, F>(U, n, i - solved_rows, x);
}

}  // namespace loops

// x <- (U' U)^-1 x for x (n, 4 fours) and the upper triangle U of a matrix (n, n).
SETWISE_VECTORIZED inline void solve_factored(const double* U, std::int64_t n, int fours,
                                              double* x) {
    if (fours == 1)
        loops::solve<1>(U, n, x);
    else if (fours == 2)
        loops::solve<2>(U, n, x);
    else
        loops::solve<3>(U, n, x);
}

struct SplitState {
    const double* factor;  // U of K + 1/rho = U' U
    double rho, relaxed;
    double *z, *b, *a;     // (n, p), one entry per element
    double* sizes;         // |y * a - b| for each pass
};

// Make passes until one after the first `least` has a step of at most `size`. Return their number.
// The sets are the labels of rows, p for each.
inline std::int64_t split_passes(const SetProblem& problem, std::int64_t p, std::int64_t passes,
                                 std::int64_t least, double size, const SplitState& state,
                                 Poll poll) {
    const std::int64_t n = problem.n;
    PolymatroidWork work;
    std::vector<double> columns(static_cast<std::size_t>(4 * most_fours * n));
    for (std::int64_t done = 1; done <= passes; ++done) {
        for (std::int64_t i = 0; i < n; ++i) {
            problem.set(i).project(state.z + i * p, state.b + i * p, work);
            if ((i & 63) == 63) poll();
        }
        double squares = 0;
        for (std::int64_t first = 0; first < p; first += 4 * most_fours) {
            const std::int64_t width = std::min<std::int64_t>(4 * most_fours, p - first);
            const int fours = static_cast<int>((width + 3) / 4);
            double* x = columns.data();
            for (std::int64_t i = 0; i < n; ++i, x += 4 * fours) {
                const std::int64_t at = i * p + first;
                for (std::int64_t c = 0; c < width; ++c) {
                    const double right =
                        1.0 + (2.0 * state.b[at + c] - state.z[at + c]) / state.rho;
                    x[c] = problem.positive[at + c] ? right : -right;
                }
                std::fill(x + width, x + 4 * fours, 0.0);
            }
            solve_factored(state.factor, n, fours, columns.data());
            x = columns.data();
            for (std::int64_t i = 0; i < n; ++i, x += 4 * fours) {
                const std::int64_t at = i * p + first;
                for (std::int64_t c = 0; c < width; ++c) {
                    const double step = (problem.positive[at + c] ? x[c] : -x[c]) - state.b[at + c];
                    state.a[at + c] = x[c];
                    state.z[at + c] += state.relaxed * step;
                    squares += step * step;
                }
            }
            poll();
        }
        state.sizes[done - 1] = std::sqrt(squares);
        if (done >= least && state.sizes[done - 1] <= size) return done;
    }
    return passes;
}

}  // namespace setwise

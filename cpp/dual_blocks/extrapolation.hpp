// Anderson's extrapolation: the limit of a sequence of points b_0, b_1, ... with b_{k+1} = F(b_k),
// for a map that is affine near the end. It is the mixture sum_k c_k b_{k+1} with |sum_k c_k
// (b_{k+1} - b_k)| least, sum c = 1.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dual_blocks/features.hpp"

namespace setwise {

class Extrapolation {
  public:
    // The steps of an extrapolation, which needs one more point. Not tuned.
    static constexpr int steps = 4;

    // n numbers to extrapolate, and m more that are affine in them.
    Extrapolation(std::int64_t n, std::int64_t m) : n_(n), m_(m) {
        for (int k = 0; k <= steps; ++k) {
            b_[k].resize(static_cast<std::size_t>(n));
            state_[k].resize(static_cast<std::size_t>(m));
        }
    }

    void begin(const double* b, const double* state) {
        count_ = 0;
        add(b, state);
    }
    // Add a point. Return whether there are enough now.
    bool add(const double* b, const double* state) {
        std::copy(b, b + n_, b_[count_].begin());
        std::copy(state, state + m_, state_[count_].begin());
        return ++count_ > steps;
    }

    // Write the mixture of the points, if there are enough and it exists.
    bool limit(double* b, double* state) const {
        Shares shares;
        if (!shares_of(shares)) return false;
        for (std::int64_t i = 0; i < n_; ++i) {
            // The mixture is computed as a step from the last point, so that numbers that did not
            // change stay the same to the last bit.
            double moved = 0;
            for (int k = 0; k < steps; ++k) moved += shares[k] * (b_[k + 1][i] - b_[steps][i]);
            b[i] = b_[steps][i] + moved;
        }
        for (std::int64_t i = 0; i < m_; ++i) {
            double mixed = 0;
            for (int k = 0; k < steps; ++k) mixed += shares[k] * state_[k + 1][i];
            state[i] = mixed;
        }
        return true;
    }

  private:
    using Shares = std::array<double, steps>;

    // Solve (R R' + rounding) c = 1 for the steps R, with Cholesky factors. The added constant is
    // relative to the trace of R R' and keeps the matrix positive definite; not tuned.
    bool shares_of(Shares& c) const {
        constexpr double rounding = 1e-10;
        double A[steps][steps] = {};
        double trace = 0;
        for (std::int64_t i = 0; i < n_; ++i) {
            double step[steps];
            for (int k = 0; k < steps; ++k) step[k] = b_[k + 1][i] - b_[k][i];
            for (int k = 0; k < steps; ++k)
                for (int l = 0; l <= k; ++l) A[k][l] += step[k] * step[l];
        }
        for (int k = 0; k < steps; ++k) trace += A[k][k];
        for (int k = 0; k < steps; ++k) {
            A[k][k] += rounding * trace;
            for (int l = 0; l <= k; ++l) {
                for (int j = 0; j < l; ++j) A[k][l] -= A[k][j] * A[l][j];
                if (l < k) A[k][l] /= A[l][l];
            }
            if (!(A[k][k] > 0)) return false;
            A[k][k] = std::sqrt(A[k][k]);
        }
        double total = 0;
        for (int k = 0; k < steps; ++k) {
            c[k] = 1;
            for (int j = 0; j < k; ++j) c[k] -= A[k][j] * c[j];
            c[k] /= A[k][k];
        }
        for (int k = steps - 1; k >= 0; --k) {
            for (int j = k + 1; j < steps; ++j) c[k] -= A[j][k] * c[j];
            c[k] /= A[k][k];
            total += c[k];
        }
        if (!(total > 0) || !std::isfinite(total)) return false;
        for (double& share : c) share /= total;
        return true;
    }

    std::int64_t n_, m_;
    std::array<std::vector<double>, steps + 1> b_, state_;
    int count_ = 0;
};

}  // namespace setwise

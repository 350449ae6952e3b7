// The set functions that the kernels know. Each follows a chain of mistakes (`step`), or returns
// the value at counts of false negatives n and false positives q (`value`).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace setwise {

// l(n, q) = (a n + q) / (c m - d n + q): Jaccard (1, 1, 0), F-beta (b, 1 + b, 1) with b = beta^2.
// No positive (m = 0): min(1, q). Steps are in closed form: the difference of two values near 1
// would lose half of its digits at a million elements.
struct Ratio {
    enum Part : int { whole = 0, submodular = 1, supermodular = 2 };

    double a, c, d;
    int part;
    double x = 0;  // c m
    std::int64_t m = 0, r = 0;

    void reset(std::int64_t positives, std::int64_t negatives) {
        m = positives;
        r = negatives;
        x = c * static_cast<double>(m);
    }

    // G(n) = l(n, 0) - n l(1, 0), the supermodular part, a function of the false negatives alone.
    double convex(double n) const {
        return n < 2 ? 0.0 : a * d * n * (n - 1) / ((x - d * n) * (x - d));
    }
    double convex_step(double n) const {
        return n < 1 ? 0.0
                     : a * d * n * (2 * x - d * (n + 1)) /
                           ((x - d * n) * (x - d * (n + 1)) * (x - d));
    }
    double ratio(double n, double q) const {
        if (m == 0) return q > 0 ? 1.0 : 0.0;
        return (a * n + q) / (x - d * n + q);
    }
    double step_negative(double n, double q) const {  // one more false negative
        const double below = x - d * n + q;
        return (a * below + d * (a * n + q)) / (below * (below - d));
    }
    double step_positive(double n, double q) const {  // one more false positive
        if (m == 0) return q > 0 ? 0.0 : 1.0;
        const double below = x - d * n + q;
        return (x - (d + a) * n) / (below * (below + 1));
    }

    double value(std::int64_t n_, std::int64_t q_) const {
        const auto n = static_cast<double>(n_), q = static_cast<double>(q_);
        if (part == supermodular) return convex(n);
        return part == whole ? ratio(n, q) : ratio(n, q) - convex(n);
    }

    // No step of the ratio is larger. For beta >= 1 a step to a false negative is largest at (m -
    // 1, 0) and one to a false positive at (0, 0).
    double largest_step() const {
        if (part != whole) return std::numeric_limits<double>::infinity();
        if (m == 0 || a < 1) return 1.0;
        return std::max(step_negative(static_cast<double>(m - 1), 0.0), step_positive(0.0, 0.0));
    }

    // The submodular part is increasing only if its false-negative step is non-negative at q = r,
    // where it is least for each n. The ratio itself always increases.
    bool is_increasing() const {
        if (part != submodular || m == 0) return true;
        for (std::int64_t n = 1; n < m; ++n) {
            const auto count = static_cast<double>(n);
            if (step_negative(count, static_cast<double>(r)) < convex_step(count)) return false;
        }
        return true;
    }

    struct Chain {
        const Ratio& f;
        double n = 0, q = 0;
        // Both steps are computed and one is selected, because a branch would often be
        // mispredicted.
        double step(bool positive) {
            double gain;
            if (f.part == supermodular) {
                gain = positive ? f.convex_step(n) : 0.0;
            } else if (f.m == 0) {
                gain = q > 0 ? 0.0 : 1.0;
            } else {
                const double below = f.x - f.d * n + q;
                const double tops[2] = {f.x - (f.d + f.a) * n, f.a * below + f.d * (f.a * n + q)};
                const double nexts[2] = {below + 1, below - f.d};
                gain = tops[positive] / (below * nexts[positive]);
                if (f.part == submodular && positive) gain -= f.convex_step(n);
            }
            n += positive;
            q += !positive;
            return gain;
        }
    };
    Chain chain() const { return Chain{*this}; }
};

// l(I) = values[|I|]; values holds p + 1 numbers.
struct CardinalityTable {
    const double* values;
    struct Chain {
        const double* values;
        double step(bool) {
            const double gain = values[1] - values[0];
            ++values;
            return gain;
        }
    };
    Chain chain() const { return Chain{values}; }
};

// l(I) = values[n, q], an array of (m + 1) x (r + 1) numbers.
struct CountsTable {
    const double* values;
    std::int64_t width;  // r + 1
    double value(std::int64_t n, std::int64_t q) const { return values[n * width + q]; }
    double largest_step() const { return std::numeric_limits<double>::infinity(); }
    struct Chain {
        const double* here;
        std::int64_t width;
        double step(bool positive) {
            const double* next = here + (positive ? width : 1);
            const double gain = *next - *here;
            here = next;
            return gain;
        }
    };
    Chain chain() const { return Chain{values, width}; }
};

// Gains that were computed elsewhere, aligned with the sorted elements.
struct GivenGains {
    const double* gains;
    struct Chain {
        const double* gains;
        double step(bool) { return *gains++; }
    };
    Chain chain() const { return Chain{gains}; }
};

}  // namespace setwise

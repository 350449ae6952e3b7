// The multi-class risk of boosting with softened maxima, and descent in the weights of one weak
// learner after the other.
//
// Example i, of class t and weight v_i, has the heights z_y = Delta(t, y) + f_y(x_i). The soft risk
// is
//        sum_i v_i (tau log sum_y exp(z_y / tau) - z_t).
// It exceeds the hard risk, sum_i v_i (max_y z_y - z_t), by at most tau times the mean entropy of
// the probabilities p_y ~ exp(z_y / tau), which are its slopes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "numeric/exponentials.hpp"
#include "numeric/poll.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// Return exp(x) for x <= 0 in single precision, but not less than about 1e-38.
inline float short_exponential(float x) {
    constexpr float shift = 0x1.8p23f;  // adding it rounds to an integer
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * 0x1.715476p0f + shift;
    const float k = shifted - shift;
    const float r = (x - k * 0x1.62e4p-1f) - k * 0x1.7f7d1cp-20f;
    float p = 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = 1.0f + (r + (r * r) * p);
    std::uint32_t bits, exponent;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 23;
    std::memcpy(&p, &bits, sizeof p);
    return p;
}

class SoftClassRisk {
  public:
    using Index = std::int64_t;

    // The sums of one pass over the examples: the soft risk, the hard risk, the height of the
    // probabilities, sum_i v_i sum_y p_iy Delta, and their mean entropy.
    struct Totals {
        double soft = 0, hard = 0, height = 0, entropy = 0;
    };

    // labels (m,), cost (k, k) by true class, weights (m,), code (k, s): f_y = sum_s code[y, s] f_s.
    SoftClassRisk(std::vector<std::int32_t> labels, std::vector<double> cost,
                  std::vector<double> weights, std::vector<double> code, Index segments)
        : labels_(std::move(labels)),
          cost_(std::move(cost)),
          weights_(std::move(weights)),
          code_(std::move(code)),
          m_(static_cast<Index>(labels_.size())),
          s_(segments),
          k_(static_cast<Index>(code_.size()) / segments),
          heights_(m_ * k_),
          p_(k_ * stretch),
          move_(k_),
          slopes_(k_),
          curve_(k_ * k_) {}

    Index examples() const { return m_; }
    Index classes() const { return k_; }
    Index segments() const { return s_; }

    // Set the scores of all examples, (s, m).
    void start(const double* scores) {
        for (Index y = 0; y < k_; ++y) {
            double* const row = &heights_[y * m_];
            for (Index i = 0; i < m_; ++i) row[i] = cost_[labels_[i] * k_ + y];
            for (Index s = 0; s < s_; ++s) {
                const double share = code_[y * s_ + s];
                if (share != 0)
                    for (Index i = 0; i < m_; ++i) row[i] += share * scores[s * m_ + i];
            }
        }
    }

    // Write the weights v_i p_iy of the classes, (k, m), and return the sums.
    Totals probabilities(double tau, double* out, Poll poll) const {
        Totals totals;
        for (Index begin = 0; begin < m_; begin += stretch) {
            if (begin % (64 * stretch) == 0) poll();
            const Index n = std::min(stretch, m_ - begin);
            double top[stretch], sum[stretch], tilt[stretch], logs[stretch];
            for (Index i = 0; i < n; ++i) top[i] = -HUGE_VAL, sum[i] = 0, tilt[i] = 0;
            for (Index y = 0; y < k_; ++y) highest(&heights_[y * m_ + begin], top, n);
            for (Index y = 0; y < k_; ++y)
                exponentials(&heights_[y * m_ + begin], top, 1.0 / tau, out + y * m_ + begin, sum,
                             tilt, n);
            logarithms(sum, logs, n);
            for (Index i = 0; i < n; ++i) {
                const std::int32_t t = labels_[begin + i];
                const double v = weights_[begin + i];
                const double excess = top[i] - heights_[t * m_ + begin + i];
                totals.soft += v * (excess + tau * logs[i]);
                totals.hard += v * excess;
                totals.entropy += v * (logs[i] - tilt[i] / sum[i]);
                sum[i] = v / sum[i];
            }
            for (Index y = 0; y < k_; ++y) {
                double* const p = out + y * m_ + begin;
                double height = 0;
                for (Index i = 0; i < n; ++i) {
                    p[i] *= sum[i];
                    height += p[i] * cost_[labels_[begin + i] * k_ + y];
                }
                totals.height += height;
            }
        }
        return totals;
    }

    // Write sum_i v_i h_i over the examples of each class, (k,).
    void sums(const float* response, double* out) const {
        std::fill_n(out, k_, 0.0);
        for (Index i = 0; i < m_; ++i)
            out[labels_[i]] += weights_[i] * static_cast<double>(response[i]);
    }

    // Step in all weights of each learner of `order` at once, on |w|_1 + C times the soft risk. A
    // step minimises the second-order model in a box of size `radius`. If the objective increased,
    // the box shrinks and the step is undone. responses (n, m), with their sums (n, k); w (n, s).
    // segment (n,): the segment that a learner scores, with a weight that is not negative, or -1
    // for all segments, with weights of any sign. With `grouped` the weights of a learner count by
    // their Euclidean norm instead of |w|_1, and the box is a ball.
    void descend(const float* responses, const double* sums, const std::int32_t* segment,
                 const std::int32_t* order, Index count, double C, double tau, bool grouped,
                 double* w, double* radius, Poll poll) {
        double level = 0, before = HUGE_VAL;  // the objective up to a constant, now and before
        std::vector<double> old(s_), step(s_);
        // the response whose step the next pass applies to the heights
        const float* moved = nullptr;
        Index last = -1;
        for (Index t = 0;;) {
            // The last step is followed by one more evaluation.
            const Index j = t < count ? order[t] : last;
            if (j < 0) break;
            const float* const own = responses + j * m_;
            const double now = level + C * pass(tau, moved, own, poll);
            moved = nullptr;
            const double even = (grouped ? rounding_alone : rounding) * (std::abs(before) + C);
            if (last >= 0 && now > before + even) {
                for (Index s = 0; s < s_; ++s) step[s] = old[s] - w[last * s_ + s];
                level = before_level_;
                moved = responses + last * m_;
                plan(step.data());
                std::copy_n(old.begin(), s_, w + last * s_);
                radius[last] *= 0.25;
                last = -1;
                continue;
            }
            if (last >= 0) radius[last] *= 2.0;
            last = -1;
            if (t == count) break;
            before = now;
            before_level_ = level;
            std::copy_n(w + j * s_, s_, old.begin());
            for (Index y = 0; y < k_; ++y) slopes_[y] -= sums[j * k_ + y];
            model(C);
            if (grouped)
                minimize_group(old.data(), C, radius[j], step.data());
            else
                minimize(old.data(), segment[j], C, radius[j], step.data());
            for (Index s = 0; s < s_; ++s) w[j * s_ + s] += step[s];
            level += size(w + j * s_, grouped) - size(old.data(), grouped);
            plan(step.data());
            for (Index y = 0; y < k_; ++y) level -= C * move_[y] * sums[j * k_ + y];
            moved = own;
            last = j;
            ++t;
        }
        if (moved) pass(tau, moved, responses, poll);
    }

  private:
    // Examples are processed `stretch` at a time, whose temporary arrays fit into the L1 cache. Up to
    // most_square classes, the products of pairs of classes are computed. Not tuned.
    static constexpr Index stretch = 256, most_square = 16;
    // An increase of the objective below this, relative to its size plus C, counts as rounding.
    // `rounding_alone` is used if no linear program follows: sums in single precision may then
    // differ by more before the weights are optimal. Not tuned.
    static constexpr double rounding = 1e-9, rounding_alone = 1e-7;

    void plan(const double* step) {
        for (Index y = 0; y < k_; ++y) {
            move_[y] = 0;
            for (Index s = 0; s < s_; ++s) move_[y] += code_[y * s_ + s] * step[s];
        }
    }

    double size(const double* w, bool grouped) const {
        double sum = 0;
        for (Index s = 0; s < s_; ++s) sum += grouped ? w[s] * w[s] : std::abs(w[s]);
        return grouped ? std::sqrt(sum) : sum;
    }

    // Compute the slopes and the curvature of C times the risk in the segments.
    void model(double C) {
        slope_.assign(s_, 0.0);
        square_.assign(s_ * s_, 0.0);
        for (Index s = 0; s < s_; ++s) {
            for (Index y = 0; y < k_; ++y) slope_[s] += C * code_[y * s_ + s] * slopes_[y];
            for (Index r = 0; r <= s; ++r) {
                double sum = 0;
                for (Index y = 0; y < k_; ++y) {
                    const double share = code_[y * s_ + s];
                    if (share == 0) continue;
                    if (k_ > most_square)
                        sum += share * code_[y * s_ + r] * curve_[y];
                    else
                        for (Index x = 0; x < k_; ++x)
                            sum += share * code_[x * s_ + r] * curve_[y * k_ + x];
                }
                square_[s * s_ + r] = square_[r * s_ + s] = C * sum;
            }
        }
    }

    // Minimise slope'd + d' Q d / 2 + |w + d|_2 over d in a ball, at x = w + d. With c = Q w -
    // slope, the minimiser is x = 0 if |c| <= 1, and otherwise r (r Q + 1)^-1 c for the r = |x|
    // with |(r Q + 1)^-1 c| = 1. The inverse of that norm is concave and increases with r, so
    // Newton's method approaches r from one side. A step that leaves the ball is shortened. The
    // model still decreases, because it is convex.
    void minimize_group(const double* w, double C, double radius, double* d) {
        goal_.assign(s_, 0.0);
        double norm = 0;
        for (Index s = 0; s < s_; ++s) {
            square_[s * s_ + s] += 1e-12 * C;
            for (Index r = 0; r < s_; ++r) goal_[s] += square_[s * s_ + r] * w[r];
            goal_[s] -= slope_[s];
            norm += goal_[s] * goal_[s];
        }
        if (norm <= 1.0) {
            for (Index s = 0; s < s_; ++s) d[s] = -w[s];
        } else {
            double r = size(w, true);
            for (int round = 0; round < 20; ++round) {
                const auto [height, slope] = inverse_norm(r);
                if (std::abs(height - 1.0) <= 1e-10 || slope <= 0) break;
                r = std::max(r + (1.0 - height) / slope, 0.0);
            }
            const double x = size(x_.data(), true);
            for (Index s = 0; s < s_; ++s) d[s] = r / x * x_[s] - w[s];
        }
        const double length = size(d, true);
        if (length > radius)
            for (Index s = 0; s < s_; ++s) d[s] *= radius / length;
    }

    // Return 1 / |x| for the x with (r Q + 1) x = c, and its slope in r.
    std::pair<double, double> inverse_norm(double r) {
        factor_.assign(s_ * s_, 0.0);
        for (Index i = 0; i < s_; ++i)
            for (Index j = 0; j <= i; ++j) {
                double sum = r * square_[i * s_ + j] + (i == j ? 1.0 : 0.0);
                for (Index k = 0; k < j; ++k) sum -= factor_[i * s_ + k] * factor_[j * s_ + k];
                factor_[i * s_ + j] =
                    i == j ? std::sqrt(std::max(sum, 1e-12)) : sum / factor_[j * s_ + j];
            }
        x_ = goal_;
        solve(x_);
        change_.assign(s_, 0.0);
        for (Index i = 0; i < s_; ++i)
            for (Index j = 0; j < s_; ++j) change_[i] += square_[i * s_ + j] * x_[j];
        solve(change_);
        double inside = 0;
        for (Index i = 0; i < s_; ++i) inside += x_[i] * change_[i];
        const double norm = size(x_.data(), true);
        return {1.0 / norm, inside / (norm * norm * norm)};
    }

    // Solve with the Cholesky factors.
    void solve(std::vector<double>& x) const {
        for (Index i = 0; i < s_; ++i) {
            for (Index k = 0; k < i; ++k) x[i] -= factor_[i * s_ + k] * x[k];
            x[i] /= factor_[i * s_ + i];
        }
        for (Index i = s_; i-- > 0;) {
            for (Index k = i + 1; k < s_; ++k) x[i] -= factor_[k * s_ + i] * x[k];
            x[i] /= factor_[i * s_ + i];
        }
    }

    // Minimise slope'd + d' curve d / 2 + |w + d|_1 over d in a box, in the segments, by coordinate
    // descent.
    void minimize(const double* w, std::int32_t segment, double C, double radius, double* d) {
        std::fill_n(d, s_, 0.0);
        const Index first = segment < 0 ? 0 : segment, end = segment < 0 ? s_ : segment + 1;
        for (int round = 0; round < 20; ++round) {
            double most = 0;
            for (Index s = first; s < end; ++s) {
                double slope = slope_[s];
                for (Index r = first; r < end; ++r) slope += square_[s * s_ + r] * d[r];
                const double curve = std::max(square_[s * s_ + s], 1e-12 * C);
                const double free = w[s] + d[s] - slope / curve;
                double goal = std::max(free - 1.0 / curve, 0.0);
                if (segment < 0) goal -= std::max(-free - 1.0 / curve, 0.0);
                const double low = w[s] - radius, high = w[s] + radius;
                goal = std::min(std::max(goal, segment < 0 ? low : std::max(low, 0.0)), high);
                most = std::max(most, std::abs(goal - w[s] - d[s]));
                d[s] = goal - w[s];
            }
            if (most <= 1e-3 * radius) break;
        }
    }

    // Update the heights, and sum sum_i v_i (max + tau log sum), the slopes and the curvature along
    // a response. The heights are in double precision, and everything that is computed from them is
    // in single precision.
    double pass(double tau, const float* moved, const float* own, Poll poll) {
        std::fill(slopes_.begin(), slopes_.end(), 0.0);
        std::fill(curve_.begin(), curve_.end(), 0.0);
        double soft = 0;
        for (Index begin = 0; begin < m_; begin += stretch) {
            if (begin % (64 * stretch) == 0) poll();
            const Index n = std::min(stretch, m_ - begin);
            double top[stretch];
            float sum[stretch], first[stretch], second[stretch];
            for (Index i = 0; i < n; ++i) top[i] = -HUGE_VAL, sum[i] = 0;
            for (Index y = 0; y < k_; ++y) {
                double* const row = &heights_[y * m_ + begin];
                if (moved && move_[y] != 0) raise(row, moved + begin, move_[y], n);
                highest(row, top, n);
            }
            for (Index y = 0; y < k_; ++y)
                short_exponentials(&heights_[y * m_ + begin], top, 1.0 / tau, &p_[y * stretch], sum,
                                   n);
            soft += soften(&weights_[begin], own + begin, top, tau, sum, first, second, n);
            bend(sum, first, second, n);
        }
        for (Index y = 0; y < k_; ++y) {
            if (k_ > most_square) {
                // For many classes twice the diagonal, an upper bound on the matrix, is used.
                curve_[y] *= 2.0 / tau;
                continue;
            }
            double sum = 0;  // rows sum to zero
            for (Index x = 0; x < k_; ++x)
                if (x != y) sum += curve_[y * k_ + x] /= tau;
            curve_[y * k_ + y] = -sum;
        }
        return soft;
    }

    // Slopes sum_i v_i h_i p_iy, and curvature, sum_i v_i h_i^2 (p_y [x = y] - p_x p_y).
    void bend(const float* shares, const float* first, const float* second, Index n) {
        float moved[stretch];
        for (Index y = 0; y < k_; ++y) {
            float* const p = &p_[y * stretch];
            slopes_[y] += weigh(p, shares, first, second, moved, n);
            if (k_ > most_square) {
                curve_[y] += less(p, moved, n);
                continue;
            }
            for (Index x = 0; x < y; ++x) {
                const double both = dot(&p_[x * stretch], moved, n);
                curve_[y * k_ + x] -= both;
                curve_[x * k_ + y] -= both;
            }
        }
    }

    SETWISE_VECTORIZED static void raise(double* row, const float* own, double step, Index n) {
        for (Index i = 0; i < n; ++i) row[i] += step * static_cast<double>(own[i]);
    }

    SETWISE_VECTORIZED static void highest(const double* row, double* top, Index n) {
        for (Index i = 0; i < n; ++i) top[i] = row[i] > top[i] ? row[i] : top[i];
    }

    SETWISE_VECTORIZED static void exponentials(const double* row, const double* top, double scale,
                                                double* p, double* sum, double* tilt, Index n) {
        for (Index i = 0; i < n; ++i) {
            const double x = (row[i] - top[i]) * scale;
            p[i] = exponential_above(700.0, x);
            sum[i] += p[i];
            tilt[i] += p[i] * (x < -700.0 ? 0.0 : x);
        }
    }

    SETWISE_VECTORIZED static void logarithms(const double* sum, double* logs, Index n) {
        for (Index i = 0; i < n; ++i) logs[i] = logarithm(sum[i]);
    }

    SETWISE_VECTORIZED static void short_exponentials(const double* row, const double* top,
                                                      double scale, float* p, float* sum, Index n) {
        for (Index i = 0; i < n; ++i) {
            p[i] = short_exponential(static_cast<float>((row[i] - top[i]) * scale));
            sum[i] += p[i];
        }
    }

    // Replace the sums by their inverses; write v h to first and v h^2 to second. Return sum_i v_i
    // (top + tau log sum).
    SETWISE_VECTORIZED static double soften(const double* v, const float* own, const double* top,
                                            double tau, float* sum, float* first, float* second,
                                            Index n) {
        double value[stretch];
        for (Index i = 0; i < n; ++i)
            value[i] = v[i] * (top[i] + tau * logarithm(static_cast<double>(sum[i])));
        for (Index i = 0; i < n; ++i) {
            sum[i] = 1.0f / sum[i];
            first[i] = static_cast<float>(v[i]) * own[i];
            second[i] = first[i] * own[i];
        }
        double sums[8] = {};
        Index i = 0;
        for (; i + 8 <= n; i += 8)
            for (int lane = 0; lane < 8; ++lane) sums[lane] += value[i + lane];
        for (; i < n; ++i) sums[0] += value[i];
        return folded(sums);
    }

    // Normalise p to probabilities, and write them times `second` to moved. Return the dot product
    // with first.
    SETWISE_VECTORIZED static double weigh(float* p, const float* shares, const float* first,
                                           const float* second, float* moved, Index n) {
        for (Index i = 0; i < n; ++i) {
            p[i] *= shares[i];
            moved[i] = p[i] * second[i];
        }
        return sum_of_products(p, first, n);
    }

    SETWISE_VECTORIZED static double dot(const float* a, const float* b, Index n) {
        return sum_of_products(a, b, n);
    }

    // Return the sum of moved (1 - p).
    SETWISE_VECTORIZED static double less(const float* p, const float* moved, Index n) {
        float rest[stretch];
        for (Index i = 0; i < n; ++i) rest[i] = 1.0f - p[i];
        return sum_of_products(rest, moved, n);
    }

    SETWISE_INLINED static double sum_of_products(const float* a, const float* b, Index n) {
        float sums[16] = {};
        Index i = 0;
        for (; i + 16 <= n; i += 16)
            for (int lane = 0; lane < 16; ++lane) sums[lane] += a[i + lane] * b[i + lane];
        for (; i < n; ++i) sums[0] += a[i] * b[i];
        double halves[8];
        for (int lane = 0; lane < 8; ++lane)
            halves[lane] = static_cast<double>(sums[lane]) + static_cast<double>(sums[lane + 8]);
        return folded(halves);
    }

    SETWISE_INLINED static double folded(const double* s) {
        return ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    }

    std::vector<std::int32_t> labels_;
    std::vector<double> cost_, weights_, code_;
    Index m_, s_, k_;
    std::vector<double> heights_;  // (k, m)
    std::vector<float> p_;         // (k, stretch)
    std::vector<double> move_, slopes_, curve_, slope_, square_, goal_, factor_, x_, change_;
    double before_level_ = 0;
};

}  // namespace setwise

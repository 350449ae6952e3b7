// Learning to score boxes: a soft structured hinge over frames, with stumps on bytes.
//
// A frame has several boxes, the first of which is the right one. With s the loss of a box plus its
// score minus that of the right one, the frame costs tau log sum exp(s / tau), the soft maximum. A
// stump predicts +-1. In each frame its weight therefore changes the scores of all boxes on which
// it differs from the right one by the same amount. So the cost as a function of one weight depends
// on two sums per frame, and is minimised at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/poll.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// sum of the entries where the mask is `side`
SETWISE_VECTORIZED inline double masked_sum(const double* values, const std::int8_t* mask,
                                            std::int64_t n, std::int8_t side) {
    double sums[8] = {};
    std::int64_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (int l = 0; l < 8; ++l) sums[l] += mask[k + l] == side ? values[k + l] : 0.0;
    double sum = 0;
    for (; k < n; ++k) sum += mask[k] == side ? values[k] : 0.0;
    for (const double part : sums) sum += part;
    return sum;
}

SETWISE_VECTORIZED inline void masked_scale(double* values, const std::int8_t* mask, std::int64_t n,
                                            std::int8_t side, double factor) {
    for (std::int64_t k = 0; k < n; ++k) values[k] *= mask[k] == side ? factor : 1.0;
}

// A minimiser of 1'w + C/m sum_i tau log sum_y exp(s_iy / tau) over w >= 0 by exact steps along one
// weight.
class BoxDescent {
  public:
    BoxDescent(const std::int8_t* responses, std::int64_t stumps, const double* losses,
               const std::int64_t* starts, std::int64_t frames, double C, double tau)
        : responses_(responses),
          stumps_(stumps),
          losses_(losses),
          starts_(starts),
          frames_(frames),
          rows_(starts[frames]),
          price_(C / static_cast<double>(frames)),
          tau_(tau),
          odds_(static_cast<std::size_t>(rows_)),
          totals_(static_cast<std::size_t>(frames)),
          apart_(static_cast<std::size_t>(frames)) {}

    // Run sweeps over the weights, fewer if these stop changing.
    void descend(double* w, int sweeps, Poll poll) {
        for (int sweep = 0; sweep < sweeps; ++sweep) {
            restart(w);
            double moved = 0;
            for (std::int64_t k = 0; k < stumps_; ++k) moved = std::max(moved, step(k, w));
            poll();
            if (moved < 1e-4 * tau_) break;
        }
        restart(w);
    }

    // Write the probability of each box, (C/m) p_iy: the multipliers of the hinge; `hard` receives
    // the mean of max s.
    void multipliers(double* out, double& hard) const {
        hard = hard_;
        for (std::int64_t i = 0; i < frames_; ++i)
            for (std::int64_t r = starts_[i]; r < starts_[i + 1]; ++r)
                out[r] = price_ * odds_[static_cast<std::size_t>(r)] /
                         totals_[static_cast<std::size_t>(i)];
    }

  private:
    const std::int8_t* response(std::int64_t k) const { return responses_ + k * rows_; }

    // Recompute the odds from the weights, because many steps accumulate rounding errors.
    void restart(const double* w) {
        std::fill(odds_.begin(), odds_.end(), 0.0);
        for (std::int64_t k = 0; k < stumps_; ++k)
            if (w[k] != 0) {
                const std::int8_t* const h = response(k);
                for (std::int64_t r = 0; r < rows_; ++r)
                    odds_[static_cast<std::size_t>(r)] += w[k] * h[r];
            }
        hard_ = 0;
        for (std::int64_t i = 0; i < frames_; ++i) {
            const std::int64_t begin = starts_[i], end = starts_[i + 1];
            const double right = odds_[static_cast<std::size_t>(begin)];
            double most = 0;
            for (std::int64_t r = begin; r < end; ++r) {
                double& s = odds_[static_cast<std::size_t>(r)];
                s += losses_[r] - right;
                most = std::max(most, s);
            }
            hard_ += most / static_cast<double>(frames_);
            double total = 0;
            for (std::int64_t r = begin; r < end; ++r) {
                double& s = odds_[static_cast<std::size_t>(r)];
                s = std::exp((s - most) / tau_);
                total += s;
            }
            totals_[static_cast<std::size_t>(i)] = total;
        }
    }

    // Compute the best weight of one stump with the others fixed. Let B_i be the odds of the boxes
    // on which it differs from the right one, A_i the rest, and h_i its prediction for the right
    // one. Then the slope in the weight is 1 - 2 C/m sum_i h_i B_i q_i / (A_i + B_i q_i), with q_i
    // = exp(-2 h_i d / tau) and d the step.
    double step(std::int64_t k, double* w) {
        const std::int8_t* const h = response(k);
        for (std::int64_t i = 0; i < frames_; ++i) {
            const std::int64_t begin = starts_[i];
            apart_[static_cast<std::size_t>(i)] =
                masked_sum(odds_.data() + begin, h + begin, starts_[i + 1] - begin,
                           static_cast<std::int8_t>(-h[begin]));
        }
        const double largest_step =
            10.0 * tau_;  // a limit on one step, so that the odds stay accurate; not tuned
        const double lowest = std::max(-w[k], -largest_step);
        double low = lowest, high = largest_step, d = 0;
        bool low_is_known = false, high_is_known = false;
        for (int trial = 0; trial < 50; ++trial) {
            double slope = 1, bend = 0;
            const double fall = std::exp(-2 * d / tau_);
            for (std::int64_t i = 0; i < frames_; ++i) {
                const double side = h[starts_[i]], q = side > 0 ? fall : 1 / fall;
                const double b = apart_[static_cast<std::size_t>(i)];
                const double a = std::max(totals_[static_cast<std::size_t>(i)] - b, 0.0);
                const double share = b > 0 ? b * q / (a + b * q) : 0.0;
                slope -= 2 * price_ * side * share;
                bend += 4 * price_ * share * (1 - share) / tau_;
            }
            (slope > 0 ? high : low) = d;
            (slope > 0 ? high_is_known : low_is_known) = true;
            if (slope == 0 || high - low <= 1e-7 * tau_) break;
            if (slope > 0 ? d <= lowest : d >= largest_step) break;
            // Newton's step. If it leaves the bracket, take the end of the bracket if it was not
            // tried, otherwise the middle.
            double next = d - slope / std::max(bend, 1e-300);
            if (next <= low) next = low_is_known ? 0.5 * (low + high) : low;
            if (next >= high) next = high_is_known ? 0.5 * (low + high) : high;
            if (std::abs(next - d) <= 1e-7 * tau_) break;
            d = next;
        }
        if (d == 0) return 0;
        const double fall = std::exp(-2 * d / tau_);
        for (std::int64_t i = 0; i < frames_; ++i) {
            double& b = apart_[static_cast<std::size_t>(i)];
            if (b == 0) continue;
            const std::int64_t begin = starts_[i];
            const double q = h[begin] > 0 ? fall : 1 / fall;
            masked_scale(odds_.data() + begin, h + begin, starts_[i + 1] - begin,
                         static_cast<std::int8_t>(-h[begin]), q);
            double& total = totals_[static_cast<std::size_t>(i)];
            total = std::max(total - b, 0.0) + b * q;
        }
        w[k] = std::max(w[k] + d, 0.0);
        return std::abs(d);
    }

    const std::int8_t* responses_;  // (stumps, rows)
    std::int64_t stumps_;
    const double* losses_;
    const std::int64_t* starts_;
    std::int64_t frames_, rows_;
    double price_, tau_, hard_ = 0;
    // exp(s / tau) up to one factor per frame, and its sums
    std::vector<double> odds_, totals_, apart_;
};

struct ByteStump {
    double gain = 0;    // its sign is the prediction above the threshold
    int threshold = 0;  // values > threshold are above it
};

// For every feature, find the stump of largest |sum_r u_r h(x_r)|: codes (features, rows).
inline void best_byte_stumps(const std::uint8_t* codes, std::int64_t features, std::int64_t rows,
                             const double* weights, ByteStump* out, Poll poll) {
    double total = 0;
    for (std::int64_t r = 0; r < rows; ++r) total += weights[r];
    for (std::int64_t f = 0; f < features; ++f) {
        // four histograms, so that equal consecutive codes do not wait for each other
        double bins[4][256] = {};
        const std::uint8_t* const own = codes + f * rows;
        std::int64_t r = 0;
        for (; r + 4 <= rows; r += 4)
            for (int l = 0; l < 4; ++l) bins[l][own[r + l]] += weights[r + l];
        for (; r < rows; ++r) bins[0][own[r]] += weights[r];
        ByteStump best;
        double now = total;
        for (int code = 0; code < 255; ++code) {
            now -= 2 * (bins[0][code] + bins[1][code] + bins[2][code] + bins[3][code]);
            if (std::abs(now) > std::abs(best.gain)) best = {now, code};
        }
        out[f] = best;
        if ((f & 63) == 63) poll();
    }
}

}  // namespace setwise

// The dual of a sum of hinge losses, one label at a time, by coordinate steps (Hsieh and others,
// 2008):
//        maximise  sum_i b_i - 1/2 |sum_i y_i b_i x_i|^2   over   0 <= b_i <= most_i.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "dual_blocks/extrapolation.hpp"
#include "dual_blocks/features.hpp"
#include "dual_blocks/shuffle.hpp"
#include "numeric/poll.hpp"

namespace setwise {

struct HingeProblem {
    const std::uint8_t* positive;
    const double* most;
    std::int64_t n;
};

// The extrapolated limit of the passes, brought back into the box, if its dual is higher than the
// present one.
template <class Features>
class HingeLimit {
  public:
    HingeLimit(const Features& features, const HingeProblem& problem)
        : features_(features),
          problem_(problem),
          path_(problem.n, features.size()),
          b_(static_cast<std::size_t>(problem.n)),
          signed_(b_),
          state_(static_cast<std::size_t>(features.size())) {}

    void begin(const double* b, const double* state) { path_.begin(b, state); }

    void after_pass(double* b, double* state) {
        if (!path_.add(b, state)) return;
        if (path_.limit(b_.data(), state_.data())) {
            for (std::int64_t i = 0; i < problem_.n; ++i) {
                const double inside = std::min(std::max(b_[i], 0.0), problem_.most[i]);
                const double delta = problem_.positive[i] ? inside - b_[i] : b_[i] - inside;
                if (delta != 0) features_.add(i, &delta, state_.data(), 1);
                b_[i] = inside;
            }
            if (dual(b_.data(), state_.data()) > dual(b, state)) {
                std::copy(b_.begin(), b_.end(), b);
                std::copy(state_.begin(), state_.end(), state);
            }
        }
        path_.begin(b, state);
    }

  private:
    double dual(const double* b, const double* state) {
        double sum = 0;
        for (std::int64_t i = 0; i < problem_.n; ++i) {
            signed_[i] = problem_.positive[i] ? b[i] : -b[i];
            sum += b[i];
        }
        return sum - 0.5 * features_.squared(state, signed_.data());
    }

    const Features& features_;
    const HingeProblem& problem_;
    Extrapolation path_;
    std::vector<double> b_, signed_, state_;
};

// Make passes in one random order, with occasional extrapolations, until the gap of this label is
// within tol, relative to the largest possible gain. Elements at a bound whose gradients point
// outwards are skipped for a while, as far as the gradients of the last pass allow. Return the
// number of passes; b and the state of the features change in place.
template <class Features>
std::int64_t hinge_passes(const Features& features, const HingeProblem& problem, double tol,
                          std::int64_t passes, std::int64_t first, double* b, double* state,
                          Poll poll) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    const std::int64_t n = problem.n;
    std::vector<double> squares(static_cast<std::size_t>(n));
    std::vector<std::int32_t> order(static_cast<std::size_t>(n));
    double zero = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        squares[i] = std::max(features.square(i), 1e-300);
        order[i] = static_cast<std::int32_t>(i);
        zero += problem.most[i];
    }
    const auto slack_of = [&](std::int64_t i) {
        double score;
        features.scores(i, state, 1, &score);
        return problem.positive[i] ? 1.0 - score : 1.0 + score;
    };
    // |w|^2 = sum_i b_i y_i <x_i, w> is the sum of b minus the sum of b times the slacks.
    const auto gap_scale_of = [&](double risk, double used, double sum) {
        const double squared = std::max(sum - used, 0.0);
        return std::min(zero - (sum - 0.5 * squared), 0.5 * squared + risk);
    };
    HingeLimit<Features> limit(features, problem);
    limit.begin(b, state);
    Shuffle{static_cast<std::uint64_t>(first)}(order.data(), n);
    double gap_scale = zero;
    std::int64_t active = n, done = 0;
    double most_before = infinite, least_before = -infinite;
    while (done < passes) {
        const bool whole = active == n;
        double largest = -infinite, least = infinite, risk = 0, used = 0, sum = 0;
        std::int64_t visits = 0;
        for (std::int64_t k = 0; k < active; ++k) {
            const std::int32_t i = order[k];
            const double slack = slack_of(i), most = problem.most[i];
            double& now = b[i];
            risk += most * std::max(slack, 0.0);
            used += now * slack;
            sum += now;
            // the gradient of the dual, clipped to the directions in which b_i may move
            double gradient = slack;
            if (now <= 0) {
                if (slack < -most_before) {
                    std::swap(order[k--], order[--active]);
                    continue;
                }
                gradient = std::max(slack, 0.0);
            } else if (now >= most) {
                if (slack > -least_before) {
                    std::swap(order[k--], order[--active]);
                    continue;
                }
                gradient = std::min(slack, 0.0);
            }
            largest = std::max(largest, -gradient);
            least = std::min(least, -gradient);
            if (std::abs(gradient) > 1e-12) {
                const double next = std::min(std::max(now + slack / squares[i], 0.0), most);
                const double delta = problem.positive[i] ? next - now : now - next;
                now = next;
                if (delta != 0) features.add(i, &delta, state, 1);
            }
            if ((++visits & 255) == 0) poll();
        }
        ++done;
        poll();
        // The gap is first computed from the scores of the pass. If it is small enough, it is
        // computed again from new scores of all elements.
        if (whole) gap_scale = gap_scale_of(risk, used, sum);
        if (risk - used <= 1.5 * tol * gap_scale) {
            risk = used = sum = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const double slack = slack_of(i);
                risk += problem.most[i] * std::max(slack, 0.0);
                used += b[i] * slack;
                sum += b[i];
            }
            gap_scale = gap_scale_of(risk, used, sum);
            if (risk - used <= tol * gap_scale) break;
            active = n;
            if (!whole) {
                most_before = infinite;
                least_before = -infinite;
                limit.begin(b, state);
                continue;
            }
        }
        most_before = largest <= 0 ? infinite : largest;
        least_before = least >= 0 ? -infinite : least;
        limit.after_pass(b, state);
    }
    return done;
}

}  // namespace setwise

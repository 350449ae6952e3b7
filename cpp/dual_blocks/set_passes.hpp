// The dual of a sum of Lovász hinges, one set at a time:
//     maximise  sum_i b_i(all) - 1/2 |W(b)|^2   over   b_i in the polymatroid P_i of set i.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "dual_blocks/features.hpp"
#include "dual_blocks/polymatroid.hpp"
#include "dual_blocks/shuffle.hpp"
#include "numeric/poll.hpp"

namespace setwise {

struct SetProblem {
    SetFamilies families;
    const std::uint8_t* positive;
    const std::int64_t* offsets;  // offsets of the elements of a set
    const double* scales;         // scale of the function of a set
    std::int64_t n;               // number of sets

    std::int64_t begin(std::int64_t i) const { return offsets[i]; }
    std::int64_t size(std::int64_t i) const { return offsets[i + 1] - offsets[i]; }
    Polymatroid set(std::int64_t i) const {
        return {families, i, positive + begin(i), size(i), scales[i]};
    }
};

// The data of the sets that are kept from one call to the next.
struct SetState {
    double* b;           // one entry per element
    double* weights;     // the state of the features
    double* gaps;        // gap of each set when it was last visited
    double* curvature;   // curvature of each set; only those of groups change
    double gain;         // share of each step that the weights take: 1, or less if they are damped
    std::int32_t* rest;  // numbers of passes for which a set is skipped now, and was skipped last
};

// A set whose step was zero is skipped in the next passes, each time in twice as many as before.
struct Rest {
    // The largest number of passes for which a set is skipped; not tuned.
    static constexpr std::int32_t longest = 16;
    std::int32_t* counts;
    bool sleeps(std::int64_t i) const { return counts[2 * i] > 0 && counts[2 * i]-- > 0; }
    void after(std::int64_t i, bool moved) const {
        std::int32_t& last = counts[2 * i + 1];
        last = moved ? 0 : std::min(std::max(2 * last, 1), longest);
        counts[2 * i] = last;
    }
};

struct SetWork {
    PolymatroidWork polymatroid;
    std::vector<double> scores, slacks, z, next, step;
    std::vector<std::int32_t> order;
    void reserve(std::size_t p) {
        if (scores.size() >= p) return;
        for (auto* array : {&scores, &slacks, &z, &next, &step}) array->resize(p);
    }
};

// The rows of labels: element j of set i has the score of label j at example i. |W|^2 is separable
// by labels and |x_i|^2 is common to all, so the exact step is a projection:
//        b_i <- projection of b_i + (1 - y_i * (W x_i)) / |x_i|^2.
template <class Features>
struct LabelSteps {
    const Features& features;
    const SetProblem& problem;

    void slacks(std::int64_t i, const SetState& state, SetWork& work) const {
        const std::int64_t p = problem.size(i), at = problem.begin(i);
        features.scores(i, state.weights, p, work.scores.data());
        for (std::int64_t j = 0; j < p; ++j)
            work.slacks[j] = problem.positive[at + j] ? 1.0 - work.scores[j] : 1.0 + work.scores[j];
    }
    // Move the weights by the change of b. Return the step along it that maximises the dual.
    double move(std::int64_t i, const SetState& state, SetWork& work) const {
        const std::int64_t p = problem.size(i), at = problem.begin(i);
        for (std::int64_t j = 0; j < p; ++j)
            work.step[j] *= problem.positive[at + j] ? state.gain : -state.gain;
        features.add(i, work.step.data(), state.weights, p);
        return 1.0;
    }
};

// Groups of samples: each element has features of its own, the weights are shared. The step is a
// projection with an estimated curvature, followed by a line search along its direction.
template <class Features>
struct SampleSteps {
    const Features& features;
    const SetProblem& problem;

    void slacks(std::int64_t i, const SetState& state, SetWork& work) const {
        const std::int64_t p = problem.size(i), at = problem.begin(i);
        for (std::int64_t j = 0; j < p; ++j) {
            double score;
            features.scores(at + j, state.weights, 1, &score);
            work.slacks[j] = problem.positive[at + j] ? 1.0 - score : 1.0 + score;
        }
    }
    double move(std::int64_t i, const SetState& state, SetWork& work) const {
        const std::int64_t p = problem.size(i), at = problem.begin(i);
        double along = 0, length = 0;
        for (std::int64_t j = 0; j < p; ++j) {
            along += work.step[j] * work.slacks[j];
            length += work.step[j] * work.step[j];
            work.step[j] *= problem.positive[at + j] ? state.gain : -state.gain;
        }
        add(i, state, work, 1.0);
        // The curvature is the decrease of the slacks along the step.
        double curved = 0;
        for (std::int64_t j = 0; j < p; ++j) {
            if (work.step[j] == 0) continue;
            double score;
            features.scores(at + j, state.weights, 1, &score);
            const double before =
                problem.positive[at + j] ? 1.0 - work.slacks[j] : work.slacks[j] - 1.0;
            curved += work.step[j] * (score - before) / state.gain;
        }
        const double best = curved > 0 ? std::max(along / curved, 0.0) : 1.0;
        double& guess = state.curvature[i];
        if (best < 1.0) {
            add(i, state, work, best - 1.0);
            guess *= best > 0.5 ? 1.0 / best : 2.0;
        } else if (best > 1.5 && length > 0 && curved > 0) {
            guess = std::max(guess / 1.3, std::min(guess, curved / length));
        }
        return std::min(best, 1.0);
    }

  private:
    void add(std::int64_t i, const SetState& state, const SetWork& work, double factor) const {
        const std::int64_t p = problem.size(i), at = problem.begin(i);
        for (std::int64_t j = 0; j < p; ++j) {
            const double delta = factor * work.step[j];
            if (delta != 0) features.add(at + j, &delta, state.weights, 1);
        }
    }
};

// The least length of a step relative to the scale of the set. The direction of a shorter step is a
// rounding error.
constexpr double least_step = 1e-13;

// Make passes over the sets in random order, until the gaps at their visits add up to at most
// `target`. Return the number of passes. With a target of 0, passes do not end by the gaps, and
// only the gaps of the last pass are reported, none below 0. Everything in the state changes in
// place.
template <class Steps>
std::int64_t set_passes(const Steps& steps, double target, std::int64_t passes, std::int64_t first,
                        const SetState& state, Poll poll) {
    const SetProblem& problem = steps.problem;
    const Rest rest{state.rest};
    SetWork work;
    work.order.resize(static_cast<std::size_t>(problem.n));
    std::int64_t done = 0;
    double small = 0;  // a gap so small that the next passes can skip the set
    const auto share_of_gaps = [&](double share) {
        double left = 0;
        for (std::int64_t i = 0; i < problem.n; ++i) left += state.gaps[i];
        return std::make_pair(left, share * left / static_cast<double>(problem.n));
    };
    if (target == 0 && problem.n > 0) small = share_of_gaps(0.1).second;
    if (!std::isfinite(small)) small = 0;  // no gaps are known yet
    while (done < passes) {
        for (std::int64_t i = 0; i < problem.n; ++i) work.order[i] = static_cast<std::int32_t>(i);
        Shuffle{static_cast<std::uint64_t>(first + done)}(work.order.data(), problem.n);
        std::int64_t visits = 0;
        const bool measured = target > 0 || (target == 0 && done + 1 == passes);
        for (const std::int32_t i : work.order) {
            if (rest.sleeps(i)) continue;
            const std::int64_t p = problem.size(i);
            double* const b = state.b + problem.begin(i);
            work.reserve(static_cast<std::size_t>(p));
            steps.slacks(i, state, work);
            const Polymatroid set = problem.set(i);
            const double longest = 1.0 / state.curvature[i];
            for (std::int64_t j = 0; j < p; ++j) work.z[j] = b[j] + work.slacks[j] * longest;
            if (measured) {
                double used = 0;
                for (std::int64_t j = 0; j < p; ++j) used += b[j] * work.slacks[j];
                state.gaps[i] =
                    std::max(set.support(work.slacks.data(), work.polymatroid) - used, 0.0);
            }
            set.project(work.z.data(), work.next.data(), work.polymatroid);
            bool moved = false;
            for (std::int64_t j = 0; j < p; ++j) {
                work.step[j] = work.next[j] - b[j];
                moved = moved || std::abs(work.step[j]) > least_step * set.scale;
            }
            if (moved) {
                const double share = steps.move(i, state, work);
                for (std::int64_t j = 0; j < p; ++j)
                    b[j] = share == 1.0 ? work.next[j] : b[j] + share * (work.next[j] - b[j]);
            }
            if (measured) rest.after(i, moved && state.gaps[i] > small);
            if ((++visits & 63) == 0) poll();
        }
        ++done;
        poll();
        if (!measured) continue;
        const auto [left, share] = share_of_gaps(0.3);
        if (left <= target) break;
        small = share;
    }
    return done;
}

// Return the factor by which all b must shrink to lie in their polymatroids, which is 1 up to
// rounding.
inline double largest_excess(const SetProblem& problem, const double* b, Poll poll) {
    PolymatroidWork work;
    double most = 1.0;
    for (std::int64_t i = 0; i < problem.n; ++i) {
        most = std::max(most, problem.set(i).excess(b + problem.begin(i), work));
        if ((i & 63) == 63) poll();
    }
    return most;
}

}  // namespace setwise

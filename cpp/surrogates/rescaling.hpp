// Margin and slack rescaling: the exact maximiser over all sets of mistakes I of
//        margin:  l(I) - (2 / scale) sum_{i in I} g_i y_i
//        slack:   l(I) (1 - 2 sum_{i in I} g_i y_i)
// for losses of |I| and of the counts (n, q) of false negatives and false positives.
#pragma once

#include <limits>

#include "functions/families.hpp"
#include "numeric/branch_free.hpp"
#include "numeric/poll.hpp"
#include "surrogates/order.hpp"

namespace setwise {

struct Rescaling {
    bool slack;
    double weight;  // 2 / scale for margin rescaling, 2 for slack rescaling

    double objective(double loss, double margin_sum) const {
        return slack ? loss * (1.0 - weight * margin_sum) : loss - weight * margin_sum;
    }
    // Return the derivative of the objective with respect to the score of a chosen element, times
    // y.
    double slope(double loss) const { return slack ? -weight * loss : -weight; }
};

// Rescale a loss of |I|: the best k mistakes are the k smallest margins, so one sort and one scan
// suffice.
template <class Scalar>
double rescale_cardinality(const Row<Scalar>& row, const double* values, Rescaling rule,
                           Scalar* gradient, Workspace& work, Poll poll) {
    order_row(row, std::numeric_limits<double>::infinity(), work, poll);
    double best = rule.objective(values[0], 0.0), sum = 0;
    std::int64_t size = 0;
    for (std::int64_t k = 1; k <= row.p; ++k) {
        row.prefetch_margin(work.items, static_cast<std::size_t>(k - 1));
        sum += row.margin_of(work.items[static_cast<std::size_t>(k - 1)]);
        const double objective = rule.objective(values[k], sum);
        if (objective > best) {
            best = objective;
            size = k;
        }
    }
    std::fill(gradient, gradient + row.p, Scalar(0));
    const auto slope = static_cast<Scalar>(rule.slope(values[size]));
    for (std::int64_t k = 0; k < size; ++k) {
        const Packed item = work.items[static_cast<std::size_t>(k)];
        gradient[index_of(item)] = slope * row.sign_of(item);
    }
    return best;
}

struct CountsChoice {
    double objective;
    std::int64_t n, q;
};

// Write prefix sums of the sorted margins of the positives (first) and of the negatives (second).
template <class Scalar>
void split_margins(const Row<Scalar>& row, Workspace& work) {
    work.first.resize(work.items.size() + 1);
    work.second.resize(work.items.size() + 1);
    work.first[0] = work.second[0] = 0;
    std::size_t n = 0, q = 0;
    double firsts = 0, seconds = 0;
    for (std::size_t k = 0; k < work.items.size(); ++k) {
        row.prefetch_margin(work.items, k);
        const Packed item = work.items[k];  // one of the two writes repeats the old value
        const bool positive = is_positive(item);
        const double margin = row.margin_of(item);
        work.first[n += positive] = firsts += choose(positive, margin, 0.0);
        work.second[q += !positive] = seconds += choose(positive, 0.0, margin);
    }
    work.first.resize(n + 1);
    work.second.resize(q + 1);
}

// Search any loss of counts: every cell of the grid.
template <class Family>
CountsChoice scan_counts(const Family& family, const Workspace& work, Rescaling rule, Poll poll) {
    CountsChoice best{rule.objective(family.value(0, 0), 0.0), 0, 0};
    const auto m = static_cast<std::int64_t>(work.first.size()) - 1;
    const auto r = static_cast<std::int64_t>(work.second.size()) - 1;
    for (std::int64_t n = 0; n <= m; ++n) {
        for (std::int64_t q = 0; q <= r; ++q) {
            const double objective =
                rule.objective(family.value(n, q), work.first[static_cast<std::size_t>(n)] +
                                                       work.second[static_cast<std::size_t>(q)]);
            if (objective > best.objective) best = {objective, n, q};
        }
        poll();
    }
    return best;
}

// Search a loss that is non-negative, non-decreasing and concave in q. For fixed n the margin
// objective is concave in q. So is the factor t(q) = 1 - 2 (sum) of slack rescaling: before its
// peak (all negatives of negative margin) loss and factor rise together, and after it their product
// is log-concave while positive. In both cases one binary search finds the first step that does not
// rise.
template <class Family>
CountsChoice search_counts(const Family& family, const Workspace& work, Rescaling rule, Poll poll) {
    CountsChoice best{rule.objective(family.value(0, 0), 0.0), 0, 0};
    const auto m = static_cast<std::int64_t>(work.first.size()) - 1;
    const auto& falses = work.second;
    const auto r = static_cast<std::int64_t>(falses.size()) - 1;
    std::int64_t peak = 0;
    if (rule.slack)
        while (peak < r &&
               falses[static_cast<std::size_t>(peak + 1)] < falses[static_cast<std::size_t>(peak)])
            ++peak;
    std::int64_t near = peak;
    for (std::int64_t n = 0; n <= m; ++n) {
        const double base = work.first[static_cast<std::size_t>(n)];
        auto at = [&](std::int64_t q) {
            return rule.objective(family.value(n, q), base + falses[static_cast<std::size_t>(q)]);
        };
        auto positive = [&](std::int64_t q) {
            return 1.0 - rule.weight * (base + falses[static_cast<std::size_t>(q)]) > 0;
        };
        if (rule.slack && !positive(peak)) continue;
        auto rises = [&](std::int64_t q) {
            return q < r && (!rule.slack || positive(q + 1)) && at(q + 1) > at(q);
        };
        // The answer is near the previous one. Steps of increasing length find an interval [low,
        // high] that contains it.
        std::int64_t low = peak, high = r;
        const bool up = rises(near);
        (up ? low : high) = up ? near + 1 : near;
        for (std::int64_t step = 1; low < high; step *= 2) {
            const std::int64_t half = low + (high - low) / 2;
            const std::int64_t q =
                up ? std::min(low + step - 1, half) : std::max(high - step, half);
            if (rises(q))
                low = q + 1;
            else
                high = q;
        }
        near = low;
        const double objective = at(low);
        if (objective > best.objective) best = {objective, n, low};
        if ((n & 0xFFFF) == 0xFFFF) poll();
    }
    return best;
}

// Slack rescaling of a function of the false negatives alone, the supermodular part of F-beta:
// a negative increases the maximum if and only if its margin is negative, so only the positives are
// sorted.
template <class Scalar>
double slack_of_positives(const Row<Scalar>& row, const Ratio& family, Rescaling rule,
                          Scalar* gradient, Workspace& work, Poll poll) {
    order_kept(row, [](bool positive, double) { return positive; }, work, poll);
    double sum = 0;
    for (std::int64_t i = 0; i < row.p; ++i)
        sum -= choose(row.positive[i] != 0, 0.0, std::max(static_cast<double>(row.scores[i]), 0.0));
    double best = 0;
    std::size_t size = 0;
    for (std::size_t n = 1; n <= work.items.size(); ++n) {
        row.prefetch_margin(work.items, n - 1);
        sum += row.margin_of(work.items[n - 1]);
        const double objective = rule.objective(family.convex(static_cast<double>(n)), sum);
        if (objective > best) {
            best = objective;
            size = n;
        }
    }
    const auto slope = static_cast<Scalar>(rule.slope(family.convex(static_cast<double>(size))));
    for (std::int64_t i = 0; i < row.p; ++i)
        gradient[i] = -slope * static_cast<Scalar>((row.positive[i] == 0) & (row.scores[i] > 0));
    for (std::size_t n = 0; n < size; ++n) gradient[index_of(work.items[n])] = slope;
    return best;
}

// An element that costs more margin than any step of the loss gains is in no optimal set, so margin
// rescaling need not sort it. For slack rescaling there is no such bound.
template <class Scalar, class Family>
double rescale_counts(const Row<Scalar>& row, const Family& family, bool search, Rescaling rule,
                      Scalar* gradient, Workspace& work, Poll poll) {
    if constexpr (std::is_same_v<Family, Ratio>)
        if (rule.slack && family.part == Ratio::supermodular)
            return slack_of_positives(row, family, rule, gradient, work, poll);
    const double infinity = std::numeric_limits<double>::infinity();
    const bool bounded = !rule.slack && rule.weight > 0;
    order_row(row, bounded ? family.largest_step() / rule.weight : infinity, work, poll);
    split_margins(row, work);
    const CountsChoice best =
        search ? search_counts(family, work, rule, poll) : scan_counts(family, work, rule, poll);
    std::fill(gradient, gradient + row.p, Scalar(0));
    const auto slope = static_cast<Scalar>(rule.slope(family.value(best.n, best.q)));
    std::int64_t n = best.n, q = best.q;
    for (const Packed item : work.items) {
        if (n + q == 0) break;
        const bool positive = is_positive(item), taken = (positive ? n : q) > 0;
        n -= positive & taken;
        q -= !positive & taken;
        gradient[index_of(item)] =
            static_cast<Scalar>(choose(taken, slope * row.sign_of(item), 0.0));
    }
    return best.objective;
}

}  // namespace setwise

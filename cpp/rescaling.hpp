// Margin and slack rescaling: the exact maximiser over all sets of mistakes I of
//     margin:  l(I) - (2 / scale) sum_{i in I} g_i y_i
//     slack:   l(I) (1 - 2 sum_{i in I} g_i y_i)
// for losses of |I| and of the counts (n, q) of false negatives and false positives.
#pragma once

#include <limits>

#include "families.hpp"
#include "order.hpp"

namespace setwise {

struct Rescaling {
    bool slack;
    double weight;  // 2 / scale for margin rescaling, 2 for slack rescaling

    double objective(double loss, double margin_sum) const {
        return slack ? loss * (1.0 - weight * margin_sum) : loss - weight * margin_sum;
    }
    // Derivative of the objective with respect to the score of a chosen element, times y.
    double slope(double loss) const { return slack ? -weight * loss : -weight; }
};

// Loss of |I|: the best k mistakes are the k smallest margins, so one sort and one scan.
template <class Scalar>
double rescale_cardinality(const Row<Scalar>& row, const double* values, Rescaling rule,
                           Scalar* gradient, Workspace& work, Poll poll) {
    order_row(row, std::numeric_limits<double>::infinity(), work, poll);
    double best = rule.objective(values[0], 0.0), sum = 0;
    std::int64_t size = 0;
    for (std::int64_t k = 1; k <= row.p; ++k) {
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

// Prefix sums of the sorted margins of the positives (first) and of the negatives (second).
template <class Scalar>
void split_margins(const Row<Scalar>& row, Workspace& work) {
    work.first.assign(1, 0.0);
    work.second.assign(1, 0.0);
    for (const Packed item : work.items) {
        auto& sums = is_positive(item) ? work.first : work.second;
        sums.push_back(sums.back() + row.margin_of(item));
    }
}

// Any loss of counts: every cell of the grid.
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

// A loss that is non-negative, non-decreasing and concave in q. For fixed n the margin objective is
// concave in q. So is the factor t(q) = 1 - 2 (sum) of slack rescaling: before its peak (all
// negatives of negative margin) loss and factor rise together, after it their product is
// log-concave while positive. Either way one binary search for the first step that does not rise.
template <class Family>
CountsChoice search_counts(const Family& family, const Workspace& work, Rescaling rule, Poll poll) {
    CountsChoice best{rule.objective(family.value(0, 0), 0.0), 0, 0};
    const auto m = static_cast<std::int64_t>(work.first.size()) - 1;
    const auto& falses = work.second;
    const auto r = static_cast<std::int64_t>(falses.size()) - 1;
    std::int64_t peak = 0;
    if (rule.slack)
        while (peak < r && falses[static_cast<std::size_t>(peak + 1)] <
                               falses[static_cast<std::size_t>(peak)])
            ++peak;
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
        // The answer lies in [low, high]; often, and always for a loss of n alone, it is the first.
        std::int64_t low = peak, high = rises(peak) ? r : peak;
        while (low < high) {
            const std::int64_t q = low + (high - low) / 2;
            if (rises(q))
                low = q + 1;
            else
                high = q;
        }
        const double objective = at(low);
        if (objective > best.objective) best = {objective, n, low};
        if ((n & 0xFFFF) == 0xFFFF) poll();
    }
    return best;
}

template <class Scalar, class Family>
double rescale_counts(const Row<Scalar>& row, const Family& family, bool search, Rescaling rule,
                      Scalar* gradient, Workspace& work, Poll poll) {
    order_row(row, std::numeric_limits<double>::infinity(), work, poll);
    split_margins(row, work);
    const CountsChoice best = search ? search_counts(family, work, rule, poll)
                                     : scan_counts(family, work, rule, poll);
    std::fill(gradient, gradient + row.p, Scalar(0));
    const auto slope = static_cast<Scalar>(rule.slope(family.value(best.n, best.q)));
    std::int64_t n = best.n, q = best.q;
    for (const Packed item : work.items) {
        std::int64_t& left = is_positive(item) ? n : q;
        if (left == 0) continue;
        --left;
        gradient[index_of(item)] = slope * row.sign_of(item);
    }
    return best.objective;
}

}  // namespace setwise

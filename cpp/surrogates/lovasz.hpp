// The Lovász hinge (Yu and Blaschko, Definition 6), value and gradient of one row.
#pragma once

#include <limits>

#include "numeric/branch_free.hpp"
#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "surrogates/order.hpp"

namespace setwise {

// Sum (1 - margin) * gain along sorted elements and write the gradient -y gain; the gradient of
// every other element must be zero already. Case 2 takes the positive part of the whole sum.
template <class Scalar, class Chain>
double hinge_of_chain(const Row<Scalar>& row, bool componentwise, Chain chain,
                      const PackedBuffer& items, Scalar* gradient) {
    double value = 0;
    // the distance of prefetches, because sorted elements are scattered over the row; not tuned
    constexpr std::size_t ahead = 24;
    const std::size_t n = items.size();
    // The margin of a float is in its key; that of a double is scattered over the row, too. In a
    // long row in which most elements count, it is faster to write the gains first and then sum
    // them in memory order.
    const bool sum_now =
        std::is_same_v<Scalar, float> || row.p < 100000 || n < static_cast<std::size_t>(row.p) / 8;
    for (std::size_t k = 0; k < n; ++k) {
        if (k + ahead < n) {
            const std::uint32_t next = index_of(items[k + ahead]);
            prefetch(gradient + next);
        }
        const Packed item = items[k];
        const double gain = chain.step(is_positive(item));
        if (sum_now) value += (1.0 - row.margin_of(item)) * gain;
        gradient[index_of(item)] = with_sign(!is_positive(item), static_cast<Scalar>(gain));
    }
    if (!sum_now)
        for (std::uint32_t i = 0; i < row.p; ++i)
            value -= (1.0 - row.margin(i)) * with_sign(row.positive[i] != 0, gradient[i]);
    if (componentwise || value > 0) return value;
    std::fill(gradient, gradient + row.p, Scalar(0));
    return 0.0;
}

// Case 1 (componentwise): only violators, s = 1 - margin > 0, count, so only they are sorted.
template <class Scalar, class Family>
double lovasz_hinge(const Row<Scalar>& row, bool componentwise, const Family& family,
                    Scalar* gradient, Workspace& work, Poll poll) {
    std::fill(gradient, gradient + row.p, Scalar(0));
    order_row(row, componentwise ? 1.0 : std::numeric_limits<double>::infinity(), work, poll);
    return hinge_of_chain(row, componentwise, family.chain(), work.items, gradient);
}

}  // namespace setwise

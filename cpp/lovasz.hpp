// The Lovász hinge (Yu and Blaschko, Definition 6), value and gradient of one row.
#pragma once

#include <limits>

#include "order.hpp"

namespace setwise {

// Sums (1 - margin) * gain along sorted elements and writes the gradient -y gain; the gradient of
// every other element must be zero already. Case 2 takes the positive part of the whole sum.
template <class Scalar, class Chain>
double hinge_of_chain(const Row<Scalar>& row, bool componentwise, Chain chain,
                      const std::vector<Packed>& items, Scalar* gradient) {
    double value = 0;
    for (const Packed item : items) {
        const std::uint32_t i = index_of(item);
        const double gain = chain.step(row.positive[i] != 0, i);
        value += (1.0 - static_cast<double>(row.margin(i))) * gain;
        gradient[i] = static_cast<Scalar>(row.positive[i] ? -gain : gain);
    }
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

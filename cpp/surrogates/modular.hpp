// Weighted Hamming loss: elements are independent, so nothing is sorted.
#pragma once

#include "surrogates/order.hpp"

namespace setwise {

// Compute sum_i (w_i - w_i g_i y_i)_+ for the Lovász hinge (slope w_i), or sum_i (w_i - c g_i
// y_i)_+ for margin rescaling (slope c). A negative `slope` stands for each element's own weight.
template <class Scalar>
double hinge_modular(const Row<Scalar>& row, const double* weights, double slope,
                     Scalar* gradient) {
    double value = 0;
    for (std::int64_t i = 0; i < row.p; ++i) {
        const auto j = static_cast<std::uint32_t>(i);
        const double steep = slope < 0 ? weights[i] : slope;
        const double term = weights[i] - steep * static_cast<double>(row.margin(j));
        value += term > 0 ? term : 0.0;
        gradient[i] = static_cast<Scalar>(term > 0 ? -steep * row.sign(j) : 0.0);
    }
    return value;
}

}  // namespace setwise

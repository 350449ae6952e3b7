// The loops of a sweep over the variables of a block, for one label, without branches and calls.
// They run in vector instructions, in those of the present machine if the compiler supports the
// choice.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "numeric/exponentials.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// An integer as wide as a Scalar: comparisons and the selections by them then fill the same number
// of lanes.
template <class Scalar>
using LabelOf = std::conditional_t<sizeof(Scalar) == 4, std::int32_t, std::int64_t>;

// The largest exponent. The exponential of twice this number, times the number of labels, is
// finite.
template <class Scalar>
constexpr double largest_exponent = std::numeric_limits<Scalar>::max_exponent * 0.3;

// Return exp(x), limited so that sums do not overflow, and 0 where it is as small as the limit is
// large.
template <class Scalar>
SETWISE_INLINED Scalar mass_of(double x) {
    constexpr double most = largest_exponent<Scalar>;
    return static_cast<Scalar>(exponential_above(most, x > most ? most : x));
}

// The data of a sweep for each variable: its label of the least s, that s, and the second least s;
// the masses exp((second - s) / t) of the other labels that are done; and, with base the lower of
// `second` and the present s of that label, alpha = exp((base - s) / t) and beta = exp((base -
// second) / t).
template <class Scalar>
struct VariableState {
    LabelOf<Scalar>* lowest;
    Scalar *first, *second, *base, *alpha, *beta, *prefix;
};

namespace loops {

template <class Scalar>
SETWISE_INLINED void rank_label(const Scalar* __restrict s, LabelOf<Scalar> label, std::int64_t n,
                                Scalar* __restrict first, Scalar* __restrict second,
                                LabelOf<Scalar>* __restrict lowest) {
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar value = s[i], least = first[i], next = second[i];
        const bool lower = value < least;
        const Scalar higher = lower ? least : value;
        second[i] = higher < next ? higher : next;
        first[i] = lower ? value : least;
        lowest[i] = lower ? label : lowest[i];
    }
}

template <class Scalar>
SETWISE_INLINED void refer(double inverse, std::int64_t n, const VariableState<Scalar>& v) {
    const Scalar* __restrict first = v.first;
    const Scalar* __restrict second = v.second;
    Scalar* __restrict base = v.base;
    Scalar* __restrict alpha = v.alpha;
    Scalar* __restrict beta = v.beta;
    for (std::int64_t i = 0; i < n; ++i) {
        base[i] = first[i];
        alpha[i] = Scalar(1);
        beta[i] = mass_of<Scalar>(static_cast<double>(first[i] - second[i]) * inverse);
    }
}

template <class Scalar>
SETWISE_INLINED void add_mass(const Scalar* __restrict s, LabelOf<Scalar> label, double inverse,
                              std::int64_t n, const Scalar* __restrict second,
                              const LabelOf<Scalar>* __restrict lowest, Scalar* __restrict sum) {
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar mass = mass_of<Scalar>(static_cast<double>(second[i] - s[i]) * inverse);
        sum[i] += lowest[i] == label ? Scalar(0) : mass;
    }
}

template <class Scalar>
SETWISE_INLINED void logits(const Scalar* __restrict s, const Scalar* __restrict block,
                            const Scalar* __restrict suffix, LabelOf<Scalar> label, double t,
                            std::int64_t n, const VariableState<Scalar>& v, Scalar* __restrict z) {
    constexpr Scalar tiny = std::numeric_limits<Scalar>::min();
    const LabelOf<Scalar>* __restrict lowest = v.lowest;
    const Scalar* __restrict prefix = v.prefix;
    const Scalar* __restrict alpha = v.alpha;
    const Scalar* __restrict beta = v.beta;
    const Scalar* __restrict second = v.second;
    const Scalar* __restrict lower = v.base;
    for (std::int64_t i = 0; i < n; ++i) {
        const bool own = lowest[i] == label;
        const Scalar others = prefix[i] + suffix[i];
        const Scalar sum = own ? others : alpha[i] + beta[i] * others;
        const Scalar base = own ? second[i] : lower[i];
        const auto log =
            static_cast<Scalar>(t * logarithm(static_cast<double>(sum > tiny ? sum : tiny)));
        z[i] = block[i] + (base - log - s[i]);
    }
}

template <class Scalar>
SETWISE_INLINED void pass_label(const Scalar* __restrict s, LabelOf<Scalar> label, double inverse,
                                std::int64_t n, const VariableState<Scalar>& v) {
    const LabelOf<Scalar>* __restrict lowest = v.lowest;
    const Scalar* __restrict second = v.second;
    Scalar* __restrict prefix = v.prefix;
    Scalar* __restrict alpha = v.alpha;
    Scalar* __restrict beta = v.beta;
    Scalar* __restrict base = v.base;
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar value = s[i], next = second[i], old_base = base[i], old_alpha = alpha[i],
                     old_beta = beta[i];
        const bool own = lowest[i] == label;
        const Scalar difference = next - value;  // below 0: this label is now the lowest
        const Scalar exponent = own ? -std::abs(difference) : difference;
        const Scalar mass = mass_of<Scalar>(static_cast<double>(exponent) * inverse);
        prefix[i] += own ? Scalar(0) : mass;
        base[i] = own ? (next < value ? next : value) : old_base;
        alpha[i] = own ? (next < value ? mass : Scalar(1)) : old_alpha;
        beta[i] = own ? (next < value ? Scalar(1) : mass) : old_beta;
    }
}

template <class Scalar>
SETWISE_INLINED void extrapolate(double momentum, std::int64_t n, Scalar* __restrict now,
                                 Scalar* __restrict then) {
    const auto beta = static_cast<Scalar>(momentum);
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar value = now[i];
        now[i] = value + beta * (value - then[i]);
        then[i] = value;
    }
}

}  // namespace loops

// Take a label's s into account: update the least and second least s of each variable, and the
// label of the least.
SETWISE_VECTORIZED inline void rank_label(const double* s, std::int64_t label, std::int64_t n,
                                          double* first, double* second, std::int64_t* lowest) {
    loops::rank_label(s, label, n, first, second, lowest);
}
SETWISE_VECTORIZED inline void rank_label(const float* s, std::int32_t label, std::int64_t n,
                                          float* first, float* second, std::int32_t* lowest) {
    loops::rank_label(s, label, n, first, second, lowest);
}

// Initialise base, alpha and beta before any label is done.
SETWISE_VECTORIZED inline void refer(double inverse, std::int64_t n,
                                     const VariableState<double>& v) {
    loops::refer(inverse, n, v);
}
SETWISE_VECTORIZED inline void refer(double inverse, std::int64_t n,
                                     const VariableState<float>& v) {
    loops::refer(inverse, n, v);
}

// Add exp((second - s) / t) to sum where the label is not the lowest.
SETWISE_VECTORIZED inline void add_mass(const double* s, std::int64_t label, double inverse,
                                        std::int64_t n, const double* second,
                                        const std::int64_t* lowest, double* sum) {
    loops::add_mass(s, label, inverse, n, second, lowest, sum);
}
SETWISE_VECTORIZED inline void add_mass(const float* s, std::int32_t label, double inverse,
                                        std::int64_t n, const float* second,
                                        const std::int32_t* lowest, float* sum) {
    loops::add_mass(s, label, inverse, n, second, lowest, sum);
}

// Write z = block + t logit p of the label; `suffix` are the masses of the labels that follow.
SETWISE_VECTORIZED inline void logits(const double* s, const double* block, const double* suffix,
                                      std::int64_t label, double t, std::int64_t n,
                                      const VariableState<double>& v, double* z) {
    loops::logits(s, block, suffix, label, t, n, v, z);
}
SETWISE_VECTORIZED inline void logits(const float* s, const float* block, const float* suffix,
                                      std::int32_t label, double t, std::int64_t n,
                                      const VariableState<float>& v, float* z) {
    loops::logits(s, block, suffix, label, t, n, v, z);
}

// Finish the label: its new s enters the masses, or alpha and beta.
SETWISE_VECTORIZED inline void pass_label(const double* s, std::int64_t label, double inverse,
                                          std::int64_t n, const VariableState<double>& v) {
    loops::pass_label(s, label, inverse, n, v);
}
SETWISE_VECTORIZED inline void pass_label(const float* s, std::int32_t label, double inverse,
                                          std::int64_t n, const VariableState<float>& v) {
    loops::pass_label(s, label, inverse, n, v);
}

// Write now + momentum (now - then), and copy the old `now` to `then`.
SETWISE_VECTORIZED inline void extrapolate(double momentum, std::int64_t n, double* now,
                                           double* then) {
    loops::extrapolate(momentum, n, now, then);
}
SETWISE_VECTORIZED inline void extrapolate(double momentum, std::int64_t n, float* now,
                                           float* then) {
    loops::extrapolate(momentum, n, now, then);
}

// Replace x by exp(x), 0 below about 1e-304, for x <= 0.
SETWISE_VECTORIZED inline void decay_all(double* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = exponential_above(700.0, x[i]);
}

}  // namespace setwise

// exp and log without branches, calls or tables, of one number or of eight, so that a compiler
// turns loops over arrays into vector instructions. Both are inlined however large the loop is, and
// within two units in the last place of the true value.
#pragma once

#include <cstdint>
#include <cstring>

#include "numeric/vector_of_eight.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

SETWISE_INLINED std::uint64_t bits_of(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

SETWISE_INLINED double from_bits(std::uint64_t bits) {
    double x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

constexpr double log_2_high =
    0x1.62e42fefa0000p-1;  // the last bits are 0, so products with k are exact
constexpr double log_2_low = 0x1.cf79abc9e3b3ap-40;

// Return exp(x) for -708 <= x <= 708: 2^k exp(r) with |r| <= log(2) / 2, and the series of exp(r).
template <class Number>
SETWISE_INLINED Number exponential(Number x) {
    constexpr double shift =
        0x1.8p52;  // adding it to a number rounds that to an integer, in the last bits
    const Number shifted = x * 0x1.71547652b82fep0 + shift;
    const Number k = shifted - shift;
    const Number r = (x - k * log_2_high) - k * log_2_low;
    Number p = (1.0 / 6227020800.0) * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 1.0 / 2.0;
    p = 1.0 + (r + (r * r) * p);
    return from_bits(bits_of(p) + (bits_of(shifted) << 52));
}

// Return exp(x) for x <= 708, 0 below -limit.
template <class Number>
SETWISE_INLINED Number exponential_above(double limit, Number x) {
    const Number least = Number{} - limit;
    const Number value = exponential(where_below(x, least, least, x));
    return where_below(x, least, Number{}, value);
}

// Return log(x) for a normal x > 0: x = 2^k (1 + f) with 1 + f between sqrt(1/2) and sqrt(2), and
// log(1 + f) = 2 artanh(s) with s = f / (2 + f), so 2 s = f - s f.
template <class Number>
SETWISE_INLINED Number logarithm(Number x) {
    constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd, one = std::uint64_t(1) << 52;
    const auto exponent = (bits_of(x) - root_half + 1024 * one) >> 52;  // k + 1024
    const Number k = from_bits(std::uint64_t(0x4330000000000000) | exponent) - (0x1p52 + 1024.0);
    const Number f = from_bits(bits_of(x) - (exponent << 52) + 1024 * one) - 1.0;
    const Number s = f / (2.0 + f), z = s * s;
    Number p = (2.0 / 23.0) * z + 2.0 / 21.0;
    p = p * z + 2.0 / 19.0;
    p = p * z + 2.0 / 17.0;
    p = p * z + 2.0 / 15.0;
    p = p * z + 2.0 / 13.0;
    p = p * z + 2.0 / 11.0;
    p = p * z + 2.0 / 9.0;
    p = p * z + 2.0 / 7.0;
    p = p * z + 2.0 / 5.0;
    p = p * z + 2.0 / 3.0;
    return k * log_2_high + (f - (s * (f - z * p) - k * log_2_low));
}

}  // namespace setwise

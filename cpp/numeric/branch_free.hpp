// Choices without a branch.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace setwise {

// Return y ? x : -x without a branch: a branch predictor cannot predict labels.
template <class Scalar>
Scalar with_sign(bool y, Scalar x) {
    using Bits = std::conditional_t<std::is_same_v<Scalar, float>, std::uint32_t, std::uint64_t>;
    Bits bits;
    std::memcpy(&bits, &x, sizeof bits);
    bits ^= static_cast<Bits>(!y) << (8 * sizeof bits - 1);
    std::memcpy(&x, &bits, sizeof bits);
    return x;
}

// Return y ? x : z without a branch.
inline double choose(bool y, double x, double z) {
    const double both[2] = {z, x};
    return both[y];
}

}  // namespace setwise

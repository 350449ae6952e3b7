// Labels in {-1, +1}, {0, 1} or bool, read once.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace setwise {

enum LabelsSeen : int { saw_minus = 1, saw_zero = 2, saw_one = 4, saw_other = 8, saw_void = 16 };

// Write label > 0 for each label. Return which values occurred (a sum of LabelsSeen).
template <class Label>
int encode_labels(const Label* labels, std::int64_t count, std::uint8_t* positive) {
    bool minus = false, zero = false, one = false, other = false;
    for (std::int64_t i = 0; i < count; ++i) {
        const Label y = labels[i];
        const bool is_one = y == Label(1), is_zero = y == Label(0);
        const bool is_minus = std::is_signed_v<Label> && y == Label(-1);  // 255 is not -1
        positive[i] = is_one;
        one |= is_one;
        zero |= is_zero;
        minus |= is_minus;
        other |= !(is_one | is_zero | is_minus);
    }
    return minus * saw_minus + zero * saw_zero + one * saw_one + other * saw_other;
}

// Encode labels with one value for elements that belong to no set: 0 negative, 1 positive, 2 void.
// Return whether a void, an unknown label or -1 occurred, and a 0 beside a -1.
template <class Label>
int encode_targets(const Label* labels, std::int64_t count, double ignore, std::uint8_t* codes) {
    // A label that the type cannot hold, such as nan, never occurs.
    bool none = !(ignore == ignore);
    if constexpr (std::is_integral_v<Label>) {
        using Limits = std::numeric_limits<Label>;
        none = !(ignore >= static_cast<double>(Limits::min()) &&
                 ignore < static_cast<double>(Limits::max() / 2 + 1) * 2.0);
    }
    const Label skipped = none ? Label(0) : static_cast<Label>(ignore);
    bool minus = false, other = false, met = false;
    for (std::int64_t i = 0; i < count; ++i) {
        const Label y = labels[i];
        const bool is_void = !none & (y == skipped);
        const bool is_one = y == Label(1);
        const bool is_minus = std::is_signed_v<Label> && y == Label(-1);
        codes[i] = static_cast<std::uint8_t>(is_void ? 2 : is_one);
        other |= !(is_one | (y == Label(0)) | is_minus | is_void);
        met |= is_void;
        minus |= is_minus;
    }
    minus &= none | !(skipped == Label(-1));
    // Zeros are searched for only if they would make the encoding ambiguous.
    bool zero = false;
    const bool zero_is_void = !none & (skipped == Label(0));
    for (std::int64_t i = 0; minus & !zero_is_void & !zero & (i < count); ++i)
        zero = labels[i] == Label(0);
    return minus * saw_minus + zero * saw_zero + other * saw_other + met * saw_void;
}

// Return whether every number is finite, without a branch in the loop: x - x is 0 unless x is not
// finite.
template <class Scalar>
bool all_finite(const Scalar* x, std::int64_t count) {
    bool finite = true;
    for (std::int64_t i = 0; i < count; ++i) finite &= (x[i] - x[i] == Scalar(0));
    return finite;
}

}  // namespace setwise

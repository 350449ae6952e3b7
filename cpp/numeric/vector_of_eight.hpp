// Vectors of eight numbers, for loops that a compiler does not vectorise because they are too short
// or their bodies too long.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "numeric/vectorized.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // functions that take or return them are inlined
#endif

namespace setwise {

constexpr int eight = 8;

// If functions are not certain to be inlined, as under the sanitizers, vectors would change their
// calling convention.
#if defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
typedef double Eight __attribute__((vector_size(64)));
typedef std::uint64_t EightBits __attribute__((vector_size(64)));

// x where a < b, y elsewhere
SETWISE_INLINED Eight where_below(Eight a, Eight b, Eight x, Eight y) { return a < b ? x : y; }
#else
template <class Number>
struct EightOf {
    Number of[eight];
    Number& operator[](int k) { return of[k]; }
    Number operator[](int k) const { return of[k]; }
};
using Eight = EightOf<double>;
using EightBits = EightOf<std::uint64_t>;

#define SETWISE_EIGHT_OPERATOR(sign)                                             \
    template <class Number>                                                      \
    EightOf<Number> operator sign(EightOf<Number> x, const EightOf<Number>& y) { \
        for (int k = 0; k < eight; ++k) x.of[k] = x.of[k] sign y.of[k];          \
        return x;                                                                \
    }                                                                            \
    template <class Number, class Other>                                         \
    EightOf<Number> operator sign(EightOf<Number> x, Other y) {                  \
        for (int k = 0; k < eight; ++k) x.of[k] = x.of[k] sign Number(y);        \
        return x;                                                                \
    }                                                                            \
    template <class Number, class Other>                                         \
    EightOf<Number> operator sign(Other x, EightOf<Number> y) {                  \
        for (int k = 0; k < eight; ++k) y.of[k] = Number(x) sign y.of[k];        \
        return y;                                                                \
    }
SETWISE_EIGHT_OPERATOR(+)
SETWISE_EIGHT_OPERATOR(-)
SETWISE_EIGHT_OPERATOR(*)
SETWISE_EIGHT_OPERATOR(/)
#undef SETWISE_EIGHT_OPERATOR
inline EightBits operator|(std::uint64_t x, EightBits y) {
    for (int k = 0; k < eight; ++k) y.of[k] |= x;
    return y;
}
inline EightBits operator<<(EightBits x, int by) {
    for (int k = 0; k < eight; ++k) x.of[k] <<= by;
    return x;
}
inline EightBits operator>>(EightBits x, int by) {
    for (int k = 0; k < eight; ++k) x.of[k] >>= by;
    return x;
}
inline Eight where_below(const Eight& a, const Eight& b, Eight x, const Eight& y) {
    for (int k = 0; k < eight; ++k) x.of[k] = a.of[k] < b.of[k] ? x.of[k] : y.of[k];
    return x;
}
#endif

SETWISE_INLINED EightBits bits_of(Eight x) {
    EightBits bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}
SETWISE_INLINED Eight from_bits(EightBits bits) {
    Eight x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}
SETWISE_INLINED Eight load_eight(const double* from) {
    Eight x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
SETWISE_INLINED void store_eight(Eight x, double* to) { std::memcpy(to, &x, sizeof x); }
SETWISE_INLINED Eight all_eight(double x) { return Eight{} + x; }
SETWISE_INLINED Eight lower_of(Eight x, Eight y) { return where_below(y, x, y, x); }
SETWISE_INLINED Eight higher_of(Eight x, Eight y) { return where_below(x, y, y, x); }
// An array of Eight; its alignment depends on the instructions that a function is compiled for.
class Eights {
  public:
    explicit Eights(std::int64_t n) : numbers_(static_cast<std::size_t>((n + 1) * eight)) {}
    Eight* data() {
        const auto at = reinterpret_cast<std::uintptr_t>(numbers_.data());
        return reinterpret_cast<Eight*>((at + sizeof(Eight) - 1) / sizeof(Eight) * sizeof(Eight));
    }

  private:
    std::vector<double> numbers_;
};

SETWISE_INLINED double where_below(double a, double b, double x, double y) { return a < b ? x : y; }

}  // namespace setwise

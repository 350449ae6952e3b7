// Loops in the vector instructions of the present machine.
#pragma once

#include <cstring>

// Compiles a further version of a function for each of these instruction sets; the version is
// chosen when the module is loaded. The sanitizers do not support this choice, and neither does
// every C library. SETWISE_ONE_VERSION measures what the choice gains.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(SETWISE_ONE_VERSION)
#define SETWISE_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#define SETWISE_INLINED inline __attribute__((always_inline))
#else
#define SETWISE_VECTORIZED
#define SETWISE_INLINED inline
#endif

namespace setwise {

// Four numbers that are added, subtracted and compared at once. Compilers do not vectorize the
// minimum of two numbers in a loop over an array, because they may not exchange 0 and -0.
#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32)));
#else
struct Four {
    double of[4];
    double& operator[](int k) { return of[k]; }
    double operator[](int k) const { return of[k]; }
};
inline Four operator+(Four a, const Four& b) {
    for (int k = 0; k < 4; ++k) a.of[k] += b.of[k];
    return a;
}
inline Four operator-(Four a, const Four& b) {
    for (int k = 0; k < 4; ++k) a.of[k] -= b.of[k];
    return a;
}
inline Four operator*(Four a, const Four& b) {
    for (int k = 0; k < 4; ++k) a.of[k] *= b.of[k];
    return a;
}
#endif

SETWISE_INLINED void load(const double* from, Four& to) { std::memcpy(&to, from, sizeof(to)); }
SETWISE_INLINED void store(const Four& from, double* to) { std::memcpy(to, &from, sizeof(from)); }
SETWISE_INLINED void spread(double x, Four& to) {
    const double all[4] = {x, x, x, x};
    load(all, to);
}
// low becomes the lower of the two, in every place.
SETWISE_INLINED void lower(const Four& x, Four& low) {
#if defined(__GNUC__)
    low = x < low ? x : low;
#else
    for (int k = 0; k < 4; ++k) low[k] = x[k] < low[k] ? x[k] : low[k];
#endif
}
// high becomes the higher of the two, in every place.
SETWISE_INLINED void higher(const Four& x, Four& high) {
#if defined(__GNUC__)
    high = x > high ? x : high;
#else
    for (int k = 0; k < 4; ++k) high[k] = x[k] > high[k] ? x[k] : high[k];
#endif
}
SETWISE_INLINED double least(const Four& x) {
    const double a = x[0] < x[1] ? x[0] : x[1], b = x[2] < x[3] ? x[2] : x[3];
    return a < b ? a : b;
}

}  // namespace setwise

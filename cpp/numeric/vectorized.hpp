// Loops in the vector instructions of the machine at hand.
#pragma once

// One more version of a function for each of these instruction sets, chosen when the module is loaded.
// The sanitizers cannot do with that choice, and not every C library has it.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SETWISE_VECTORIZED __attribute__((target_clones("avx512f", "avx2", "default")))
#define SETWISE_INLINED inline __attribute__((always_inline))
#else
#define SETWISE_VECTORIZED
#define SETWISE_INLINED inline
#endif

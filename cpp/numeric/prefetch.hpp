// Prefetching of memory.
#pragma once

namespace setwise {

// Prefetch a line of memory that will be needed soon. This is a hint, and does nothing where it is
// not supported.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#endif
}

}  // namespace setwise

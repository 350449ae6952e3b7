// Memory that will be needed soon.
#pragma once

namespace setwise {

// Asks for a line of memory that will be needed soon; a hint, and nothing where there is none.
inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#endif
}

}  // namespace setwise

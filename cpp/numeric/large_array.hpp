// Vectors for state that is visited all over: in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace setwise {

// Large blocks are aligned to huge pages and offered for them: fewer faults when they are filled,
// fewer misses of the address cache when they are read in no order. Elsewhere plain memory.
template <class T>
struct LargeAllocator {
    using value_type = T;

    LargeAllocator() = default;
    template <class U>
    LargeAllocator(const LargeAllocator<U>&) {}

    T* allocate(std::size_t n) {
#if defined(__linux__)
        if (n * sizeof(T) >= 2 * huge) {
            const std::size_t bytes = (n * sizeof(T) + huge - 1) / huge * huge;
            void* const block = std::aligned_alloc(huge, bytes);
            if (!block) throw std::bad_alloc();
            madvise(block, bytes, MADV_HUGEPAGE);  // a hint: that it may fail is no matter
            return static_cast<T*>(block);
        }
#endif
        void* const block = std::malloc(n * sizeof(T));
        if (!block && n) throw std::bad_alloc();
        return static_cast<T*>(block);
    }
    void deallocate(T* block, std::size_t) { std::free(block); }

    template <class U>
    bool operator==(const LargeAllocator<U>&) const {
        return true;
    }
    template <class U>
    bool operator!=(const LargeAllocator<U>&) const {
        return false;
    }

  private:
    static constexpr std::size_t huge = std::size_t(1) << 21;
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace setwise

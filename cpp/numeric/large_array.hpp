// Arrays for state that is accessed in no particular order: in huge pages if the system has them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace setwise {

// The bytes of a huge page on x86-64 and most other machines.
constexpr std::size_t huge_page = std::size_t(1) << 21;

// An allocator that aligns large blocks to huge pages and asks the system to use these. This causes
// fewer page faults when blocks are filled, and fewer TLB misses when they are read in no
// particular order. On other systems this is plain memory.
template <class T>
struct LargeAllocator {
    using value_type = T;

    LargeAllocator() = default;
    template <class U>
    LargeAllocator(const LargeAllocator<U>&) {}

    T* allocate(std::size_t n) {
#if defined(__linux__)
        if (n * sizeof(T) >= 2 * huge_page) {
            const std::size_t bytes = (n * sizeof(T) + huge_page - 1) / huge_page * huge_page;
            void* const block = std::aligned_alloc(huge_page, bytes);
            if (!block) throw std::bad_alloc();
            madvise(block, bytes, MADV_HUGEPAGE);  // only a hint, so a failure does not matter
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
};

template <class T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

// An array whose entries begin as zero bytes. New memory from the system is zero already and is not
// written here. Whichever thread writes it first is therefore the first to touch it.
template <class T>
class ZeroedArray {
    static_assert(std::is_trivially_default_constructible_v<T> &&
                      std::is_trivially_destructible_v<T>,
                  "zero bytes must be an entry");

  public:
    ZeroedArray() = default;
    explicit ZeroedArray(std::size_t n) : size_(n) {
        if (n == 0) return;
        std::size_t bytes = n * sizeof(T), slack = 0;
        if (bytes >= 2 * huge_page) slack = huge_page;
        block_.reset(std::calloc(bytes + slack, 1));
        if (!block_) throw std::bad_alloc();
        void* place = block_.get();
        if (slack) {
            bytes += slack;
            place = std::align(huge_page, n * sizeof(T), place, bytes);
#if defined(__linux__)
            // only a hint, so a failure does not matter
            madvise(place, n * sizeof(T), MADV_HUGEPAGE);
#endif
        }
        data_ = static_cast<T*>(place);
    }
    ZeroedArray(const ZeroedArray& other) : ZeroedArray(other.size_) {
        std::copy_n(other.data_, size_, data_);
    }
    ZeroedArray(ZeroedArray&& other) noexcept { swap(other); }
    ZeroedArray& operator=(ZeroedArray other) noexcept {
        swap(other);
        return *this;
    }

    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    T* begin() { return data_; }
    T* end() { return data_ + size_; }
    const T* begin() const { return data_; }
    const T* end() const { return data_ + size_; }

  private:
    struct Free {
        void operator()(void* block) const { std::free(block); }
    };
    void swap(ZeroedArray& other) noexcept {
        std::swap(block_, other.block_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    std::unique_ptr<void, Free> block_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace setwise

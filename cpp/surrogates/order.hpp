// Sorting of margins, the most expensive step of every surrogate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "numeric/branch_free.hpp"
#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"

namespace setwise {

// An element of a row: the high half is a key that orders like the margin, followed by 31 bits of
// index and one of label. Sorted elements carry these data, so they need not be read from scattered
// memory.
using Packed = std::uint64_t;

constexpr std::int64_t most_elements = std::int64_t(1) << 31;

inline std::uint32_t index_of(Packed item) { return static_cast<std::uint32_t>(item) >> 1; }
inline bool is_positive(Packed item) { return item & 1; }

// Convert floats to unsigned integers of the same order, and back.
inline std::uint32_t ordered_bits(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ ((0u - (bits >> 31)) | 0x80000000u);
}

inline float from_ordered_bits(std::uint32_t bits) {
    bits ^= ((bits >> 31) - 1u) | 0x80000000u;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

template <class Scalar>
Packed pack(Scalar margin, std::uint32_t index, bool positive) {
    const Packed key = ordered_bits(static_cast<float>(margin));
    return (key << 32) | (index << 1) | static_cast<std::uint32_t>(positive);
}

// Packed elements in memory that grows and is never cleared. A vector would fill each new element
// with zeros, which is as much memory traffic as the packing itself.
class PackedBuffer {
  public:
    // Reserve memory for n elements, whose values are undefined.
    Packed* reserve(std::size_t n) {
        if (n > capacity_) {
            data_.reset(new Packed[n]);
            capacity_ = n;
        }
        return data_.get();
    }
    void resize(std::size_t n) { size_ = n; }  // n must be at most what was reserved
    Packed* data() { return data_.get(); }
    std::size_t size() const { return size_; }
    Packed operator[](std::size_t i) const { return data_[i]; }
    const Packed* begin() const { return data_.get(); }
    const Packed* end() const { return data_.get() + size_; }
    void swap(PackedBuffer& other) {
        data_.swap(other.data_);
        std::swap(capacity_, other.capacity_);
        std::swap(size_, other.size_);
    }

  private:
    std::unique_ptr<Packed[]> data_;
    std::size_t capacity_ = 0, size_ = 0;
};

// Sort up to `most` elements: the place of each is the number of smaller ones, counted without a
// branch over a fixed length, which compilers vectorize. Equal keys keep their order.
template <int most>
void rank_sort(Packed* items, std::size_t n) {
    std::array<std::int32_t, most> keys, places{}, index;
    std::array<Packed, most> unsorted;
    for (std::size_t i = 0; i < most; ++i) {
        const bool real = i < n;
        unsorted[i] = real ? items[i] : 0;
        keys[i] = real ? static_cast<std::int32_t>((items[i] >> 32) ^ 0x80000000u) : 0;
        index[i] = static_cast<std::int32_t>(i);
    }
    for (std::size_t j = 0; j < n; ++j) {
        const std::int32_t key = keys[j], here = static_cast<std::int32_t>(j);
        for (std::size_t i = 0; i < most; ++i)
            places[i] += (key < keys[i]) | ((key == keys[i]) & (here < index[i]));
    }
    for (std::size_t i = 0; i < n; ++i) items[places[i]] = unsorted[i];
}

// Sort by the 32 bits of the key, least significant digit first, `bits` per pass: stable in the
// index.
template <int bits>
void radix_sort(PackedBuffer& items, PackedBuffer& other, Poll poll) {
    constexpr int digits = (32 + bits - 1) / bits, size = 1 << bits;
    const std::size_t n = items.size();
    std::array<std::array<std::uint32_t, size>, digits> counts{};
    for (const Packed item : items)
        for (int d = 0; d < digits; ++d) ++counts[d][(item >> (32 + bits * d)) & (size - 1)];
    other.reserve(n);
    other.resize(n);
    for (int d = 0; d < digits; ++d) {
        auto& count = counts[d];
        const int shift = 32 + bits * d;
        if (count[(items[0] >> shift) & (size - 1)] == n) continue;
        std::uint32_t start = 0;
        for (auto& c : count) {
            const std::uint32_t here = c;
            c = start;
            start += here;
        }
        Packed* const out = other.data();
        for (const Packed item : items) out[count[(item >> shift) & (size - 1)]++] = item;
        items.swap(other);
        poll();
    }
}

// One row of a batch: p scores with the signs of the truth.
template <class Scalar>
struct Row {
    const std::uint8_t* positive;
    const Scalar* scores;
    std::int64_t p;

    Scalar sign(std::uint32_t i) const { return with_sign(positive[i] != 0, Scalar(1)); }
    Scalar margin(std::uint32_t i) const { return with_sign(positive[i] != 0, scores[i]); }

    Packed pack(std::uint32_t i) const { return setwise::pack(margin(i), i, positive[i] != 0); }
    static Scalar sign_of(Packed item) { return with_sign(is_positive(item), Scalar(1)); }
    double margin_of(Packed item) const {
        if constexpr (std::is_same_v<Scalar, float>)
            return static_cast<double>(from_ordered_bits(static_cast<std::uint32_t>(item >> 32)));
        else
            return with_sign(is_positive(item), scores[index_of(item)]);
    }
    // Prefetch the margin of an element after the k-th, because sorted elements are scattered over
    // the row.
    void prefetch_margin(const PackedBuffer& items, std::size_t k) const {
        if constexpr (std::is_same_v<Scalar, double>)
            prefetch(scores + index_of(items[std::min(k + 24, items.size() - 1)]));
    }
    std::int64_t positives() const {
        std::int64_t m = 0;
        for (std::int64_t i = 0; i < p; ++i) m += positive[i] != 0;
        return m;
    }
};

// Sort elements of the row by increasing margin. A double has its rounding to float as the key,
// which keeps the order except for ties: runs of equal keys are then sorted by the exact margin.
// Equal margins stay in the order of their indices.
template <class Scalar>
void sort_by_margin(const Row<Scalar>& row, PackedBuffer& items, PackedBuffer& other, Poll poll) {
    const std::size_t n = items.size();
    if (n < 2) return;
    if (n <= 8)
        rank_sort<8>(items.data(), n);
    else if (n <= 16)
        rank_sort<16>(items.data(), n);
    else if (n <= 24)
        rank_sort<24>(items.data(), n);
    else if (n <= 32)
        rank_sort<32>(items.data(), n);
    else if (n <= 64)
        rank_sort<64>(items.data(), n);
    // small digits need fewer counters and fewer distant pages; not tuned
    else if (n <= 4096 || n > 500000)
        radix_sort<8>(items, other, poll);
    else
        radix_sort<11>(items, other, poll);
    if constexpr (std::is_same_v<Scalar, double>) {
        Packed* const data = items.data();
        for (std::size_t begin = 0; begin + 1 < n;) {
            std::size_t end = begin + 1;
            while (end < n && (data[end] >> 32) == (data[begin] >> 32)) ++end;
            if (end - begin > 1)
                std::stable_sort(data + begin, data + end, [&](Packed x, Packed y) {
                    return row.margin_of(x) < row.margin_of(y);
                });
            begin = end;
        }
    }
}

struct Workspace {
    PackedBuffer items, other;
    std::vector<double> first, second;
};

// Fill workspace.items with the elements that keep(positive, margin) selects, by increasing margin.
template <class Scalar, class Keep>
void order_kept(const Row<Scalar>& row, Keep keep, Workspace& work, Poll poll) {
    Packed* const items = work.items.reserve(static_cast<std::size_t>(row.p));
    std::size_t count = 0;
    const auto p = static_cast<std::uint32_t>(row.p);
    for (std::uint32_t i = 0; i < p; ++i) {
        const bool positive = row.positive[i] != 0;
        const Scalar margin = with_sign(positive, row.scores[i]);
        items[count] =
            // an element that does not count is overwritten, which avoids a mispredicted branch
            pack(margin, i, positive);
        count += keep(positive, static_cast<double>(margin));
    }
    work.items.resize(count);
    sort_by_margin(row, work.items, work.other, poll);
}

// Select the elements of margin below `limit`, by increasing margin.
template <class Scalar>
void order_row(const Row<Scalar>& row, double limit, Workspace& work, Poll poll) {
    order_kept(row, [limit](bool, double margin) { return margin < limit; }, work, poll);
}

}  // namespace setwise

// Sorting margins: the one expensive step of every surrogate.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace setwise {

// Called between stretches of work; may throw to abandon the computation (Ctrl-C).
using Poll = void (*)();

// An element of a row: the high half is a key that orders like the margin, the low half its index.
using Packed = std::uint64_t;

inline std::uint32_t index_of(Packed item) { return static_cast<std::uint32_t>(item); }

// Unsigned integers in the order of the floats they come from.
inline std::uint32_t ordered_bits(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> 31) ? 0xFFFFFFFFu : 0x80000000u);
}

template <class Scalar>
Packed pack(Scalar margin, std::uint32_t index) {
    return (static_cast<Packed>(ordered_bits(static_cast<float>(margin))) << 32) | index;
}

// Sorts packed elements; `other` is scratch of the same size. The result lies in `items`.
// Least significant digit first, 11 bits a pass: three passes over the key, stable in the index.
inline void radix_sort(std::vector<Packed>& items, std::vector<Packed>& other, Poll poll) {
    constexpr int digits = 3, bits = 11, size = 1 << bits;
    std::array<std::array<std::uint32_t, size>, digits> counts{};
    for (const Packed item : items)
        for (int d = 0; d < digits; ++d) ++counts[d][(item >> (32 + bits * d)) & (size - 1)];
    other.resize(items.size());
    for (int d = 0; d < digits; ++d) {
        auto& count = counts[d];
        const int shift = 32 + bits * d;
        if (count[(items[0] >> shift) & (size - 1)] == items.size()) continue;
        std::uint32_t start = 0;
        for (auto& c : count) {
            const std::uint32_t here = c;
            c = start;
            start += here;
        }
        for (const Packed item : items) other[count[(item >> shift) & (size - 1)]++] = item;
        items.swap(other);
        poll();
    }
}

// Sorts `items` by increasing margin, where margin(i) is the exact margin of element i.
// A double is keyed on its rounding to float, which keeps the order but for ties: runs of equal
// keys are then sorted by the exact margin. Equal margins stay in the order of their indices.
template <class Scalar, class Margin>
void sort_by_margin(std::vector<Packed>& items, std::vector<Packed>& other, Margin margin,
                    Poll poll) {
    const std::size_t n = items.size();
    if (n < 2) return;
    if (n <= 32) {  // insertion sort: most rows of a multi-label batch are this short
        for (std::size_t i = 1; i < n; ++i) {
            const Packed item = items[i];
            std::size_t j = i;
            for (; j > 0 && items[j - 1] > item; --j) items[j] = items[j - 1];
            items[j] = item;
        }
    } else if (n <= 1024) {
        std::sort(items.begin(), items.end());
    } else {
        radix_sort(items, other, poll);
    }
    if constexpr (std::is_same_v<Scalar, double>) {
        for (std::size_t begin = 0; begin + 1 < n;) {
            std::size_t end = begin + 1;
            while (end < n && (items[end] >> 32) == (items[begin] >> 32)) ++end;
            if (end - begin > 1)
                std::stable_sort(items.begin() + static_cast<std::ptrdiff_t>(begin),
                                 items.begin() + static_cast<std::ptrdiff_t>(end),
                                 [&](Packed x, Packed y) {
                                     return margin(index_of(x)) < margin(index_of(y));
                                 });
            begin = end;
        }
    }
}

// One row of a batch: p scores with the signs of the truth.
template <class Scalar>
struct Row {
    const std::uint8_t* positive;
    const Scalar* scores;
    std::int64_t p;

    Scalar margin(std::uint32_t i) const { return positive[i] ? scores[i] : -scores[i]; }
    double sign(std::uint32_t i) const { return positive[i] ? 1.0 : -1.0; }
    std::int64_t positives() const {
        std::int64_t m = 0;
        for (std::int64_t i = 0; i < p; ++i) m += positive[i] != 0;
        return m;
    }
};

struct Workspace {
    std::vector<Packed> items, other;
    std::vector<double> first, second;
};

// Fills workspace.items with the elements of margin below `limit`, by increasing margin.
template <class Scalar>
void order_row(const Row<Scalar>& row, double limit, Workspace& work, Poll poll) {
    work.items.resize(static_cast<std::size_t>(row.p));
    std::size_t count = 0;
    const auto p = static_cast<std::uint32_t>(row.p);
    for (std::uint32_t i = 0; i < p; ++i) {
        const Scalar margin = row.margin(i);
        work.items[count] = pack(margin, i);  // overwritten unless it counts: no branch to miss
        count += static_cast<double>(margin) < limit;
    }
    work.items.resize(count);
    sort_by_margin<Scalar>(
        work.items, work.other, [&row](std::uint32_t i) { return row.margin(i); }, poll);
}

}  // namespace setwise

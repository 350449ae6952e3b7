// Counting instead of sorting: errors in one bucket are treated as equal, and ties may come in any
// order. So a histogram for each label and one scan over the buckets give the gains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "functions/families.hpp"
#include "numeric/branch_free.hpp"
#include "surrogates/order.hpp"

namespace setwise {

// Void elements belong to no set: labels are 0 (negative), 1 (positive), 2 (void).
constexpr std::uint8_t void_label = 2;

// The amount that a block of mistakes adds to a ratio, in closed form like its steps.
struct RatioBlocks {
    Ratio f;

    double negatives(double n, double q, double k) const {  // k more false negatives
        if (k == 0 || f.m == 0) return 0.0;
        const double below = f.x - f.d * n + q;
        return k * (f.a * below + f.d * (f.a * n + q)) / (below * (below - f.d * k));
    }
    double positives(double n, double q, double j) const {  // j more false positives
        if (j == 0) return 0.0;
        if (f.m == 0) return q > 0 ? 0.0 : 1.0;
        const double below = f.x - f.d * n + q;
        return j * (f.x - (f.d + f.a) * n) / (below * (below + j));
    }
};

// A loss of the number of mistakes: the amount that a block adds is divided equally among its
// elements.
struct TableBlocks {
    const double* values;
};

// The number of elements of each bucket and label, and the slope of each: entry 2 b + label. Bucket
// 0 holds the elements that do not count, with slope 0; errors increase with b.
struct Buckets {
    std::vector<std::uint32_t> counts;
    std::vector<float> slopes;

    void clear(std::size_t buckets) {
        counts.assign(2 * (buckets + 1), 0);
        slopes.assign(2 * (buckets + 1), 0.0f);
    }
};

// Scan the buckets by decreasing error, error(b) for b = buckets, ..., 1, sum error * (loss after -
// loss before), and write the slope -y gain of each label. Inside a bucket, take the mean of two
// orders, positives first and negatives first.
template <class Error>
double scan_buckets(const RatioBlocks& blocks, std::size_t buckets, Error error, Buckets& work) {
    double n = 0, q = 0, value = 0;
    for (std::size_t b = buckets; b > 0; --b) {
        const double j = work.counts[2 * b], k = work.counts[2 * b + 1], height = error(b);
        if (j + k == 0 || height <= 0) continue;
        const double missed = (blocks.negatives(n, q, k) + blocks.negatives(n, q + j, k)) / 2;
        const double added = (blocks.positives(n, q, j) + blocks.positives(n + k, q, j)) / 2;
        value += height * (missed + added);
        if (k > 0) work.slopes[2 * b + 1] = static_cast<float>(-missed / k);
        if (j > 0) work.slopes[2 * b] = static_cast<float>(added / j);
        n += k;
        q += j;
    }
    return value;
}

template <class Error>
double scan_buckets(const TableBlocks& blocks, std::size_t buckets, Error error, Buckets& work) {
    std::size_t size = 0;
    double value = 0;
    for (std::size_t b = buckets; b > 0; --b) {
        const std::size_t block = work.counts[2 * b] + work.counts[2 * b + 1];
        const double height = error(b);
        if (block == 0 || height <= 0) continue;
        const double rise = blocks.values[size + block] - blocks.values[size];
        value += height * rise;
        work.slopes[2 * b] = static_cast<float>(rise / static_cast<double>(block));
        work.slopes[2 * b + 1] = -work.slopes[2 * b];
        size += block;
    }
    return value;
}

// Count the elements, scan the buckets, and look up the slopes. `places(begin, end, out)` writes
// the entries 2 b + label of a range of elements. It is separate from the counting, so that a
// compiler can vectorize it. It is called twice, because that is faster than storing the entries.
template <class Places, class Scan>
double count_and_look_up(std::int64_t p, Places places, Scan scan, float* gradient, Buckets& work) {
    // The number of places that stay in the L1 cache; not tuned.
    constexpr std::int64_t stretch = 1024;
    std::int32_t at[stretch];
    for (std::int64_t begin = 0; begin < p; begin += stretch) {
        const std::int64_t length = std::min(stretch, p - begin);
        places(begin, length, at);
        for (std::int64_t i = 0; i < length; ++i) ++work.counts[static_cast<std::size_t>(at[i])];
    }
    const double value = scan();
    for (std::int64_t begin = 0; begin < p; begin += stretch) {
        const std::int64_t length = std::min(stretch, p - begin);
        places(begin, length, at);
        for (std::int64_t i = 0; i < length; ++i)
            gradient[begin + i] = work.slopes[static_cast<std::size_t>(at[i])];
    }
    return value;
}

// Return the entry of an error: its bucket 1 + floor(error * scale), at most 1 + last; 0 if it does
// not count. There is no branch, and even a nan stays inside the buckets.
inline std::int32_t entry_of(float error, float scale, float last, bool valid, bool positive) {
    const float scaled = error * scale;
    const float below = scaled < last ? scaled : last;
    const float kept = below > 0 ? below : 0.0f;
    const std::int32_t counted = -static_cast<std::int32_t>((error > 0) & valid);
    return (2 * (static_cast<std::int32_t>(kept) + 1) & counted) +
           static_cast<std::int32_t>(positive);
}

// Return the least margin g y of the elements that count; 1 if no margin is below 1.
inline float least_margin(const float* scores, const std::uint8_t* labels, std::int64_t p) {
    // The number of independent minima, so that the loop is vectorized; not tuned.
    constexpr std::int64_t lanes = 16;
    float least[lanes];
    std::fill(least, least + lanes, 1.0f);
    auto see = [&](std::int64_t i, std::int64_t lane) {
        // A void element gets the margin 1, so that it is not a violator.
        const float margin = with_sign(labels[i] == 1, scores[i]);
        const float seen = labels[i] == void_label ? 1.0f : margin;
        least[lane] = seen < least[lane] ? seen : least[lane];
    };
    std::int64_t i = 0;
    for (; i + lanes <= p; i += lanes)
        for (std::int64_t lane = 0; lane < lanes; ++lane) see(i + lane, lane);
    for (; i < p; ++i) see(i, 0);
    return *std::min_element(least, least + lanes);
}

// Return the Lovász hinge, case 1, of one row, in equal buckets of (0, largest error].
template <class Blocks>
double bucket_hinge(const float* scores, const std::uint8_t* labels, std::int64_t p,
                    const Blocks& blocks, std::size_t buckets, float* gradient, Buckets& work) {
    const double largest = 1.0 - static_cast<double>(least_margin(scores, labels, p));
    work.clear(buckets);
    const double width = largest / static_cast<double>(buckets);
    const float scale = largest > 0 ? static_cast<float>(1.0 / width) : 0.0f;
    const auto last = static_cast<float>(buckets - 1);
    auto places = [=](std::int64_t begin, std::int64_t length, std::int32_t* at) {
        for (std::int64_t i = 0; i < length; ++i) {
            const std::uint8_t label = labels[begin + i];
            const float error = 1.0f - with_sign(label == 1, scores[begin + i]);
            at[i] = entry_of(error, scale, last, label != void_label, label == 1);
        }
    };
    auto scan = [&] {
        auto center = [=](std::size_t b) { return (static_cast<double>(b) - 0.5) * width; };
        return scan_buckets(blocks, buckets, center, work);
    };
    return count_and_look_up(p, places, scan, gradient, work);
}

// Do the same for 16-bit scores: every value of -g y is a bucket, so that nothing is rounded.
// Bucket 1 + k holds the k-th of these numbers, with the error errors[k].
template <class Blocks>
double bucket_hinge_16(const std::uint16_t* scores, const std::uint8_t* labels, std::int64_t p,
                       const Blocks& blocks, const double* errors, float* gradient, Buckets& work) {
    constexpr std::size_t buckets = 1 << 16;
    work.clear(buckets);
    auto places = [=](std::int64_t begin, std::int64_t length, std::int32_t* at) {
        for (std::int64_t i = 0; i < length; ++i) {
            const std::uint8_t label = labels[begin + i];
            const std::int32_t positive = label == 1;
            const std::int32_t bits = scores[begin + i] ^ (positive << 15);
            const std::int32_t key = bits ^ (0x8000 | (0x7FFF & -(bits >> 15)));
            at[i] = (2 * (key + 1) & -static_cast<std::int32_t>(label != void_label)) + positive;
        }
    };
    auto scan = [&] {
        return scan_buckets(blocks, buckets, [=](std::size_t b) { return errors[b - 1]; }, work);
    };
    return count_and_look_up(p, places, scan, gradient, work);
}

}  // namespace setwise

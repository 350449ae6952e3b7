// Counting instead of sorting: errors in one bucket are taken for equal, and ties may come in any
// order, so that a histogram for each label and one scan over the buckets give the gains.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "families.hpp"
#include "order.hpp"

namespace setwise {

// What is void belongs to no set: labels are 0 (negative), 1 (positive), 2 (void).
constexpr std::uint8_t void_label = 2;

// What a block of mistakes adds to a ratio, in closed form as its steps are.
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

// The same for a loss of the number of mistakes: a block's cost is shared among its elements.
struct TableBlocks {
    const double* values;

    double share(double before, double block, double part) const {
        if (part == 0) return 0.0;
        const auto k = static_cast<std::size_t>(before), l = static_cast<std::size_t>(before + block);
        return (values[l] - values[k]) * part / block;
    }
};

// Numbers of elements of each bucket and label, and the gain of each: entry 2 b + label.
// The last bucket holds what does not count; its gains are 0.
struct Buckets {
    std::vector<std::uint32_t> counts;
    std::vector<float> gains;

    void clear(std::size_t buckets) {
        counts.assign(2 * (buckets + 1), 0);
        gains.assign(2 * (buckets + 1), 0.0f);
    }
};

// Walks the buckets by decreasing error, error(b) for bucket b = buckets - 1, ..., 0, sums
// error * (loss after - loss before) and notes the signed slope -y gain of each label. Inside a
// bucket the mean of two orders, positives first and negatives first.
template <class Error>
double scan_buckets(const RatioBlocks& blocks, std::size_t buckets, Error error, Buckets& work) {
    double n = 0, q = 0, value = 0;
    for (std::size_t b = buckets; b-- > 0;) {
        const double j = work.counts[2 * b], k = work.counts[2 * b + 1];
        if (j + k == 0) continue;
        const double missed = (blocks.negatives(n, q, k) + blocks.negatives(n, q + j, k)) / 2;
        const double added = (blocks.positives(n, q, j) + blocks.positives(n + k, q, j)) / 2;
        value += error(b) * (missed + added);
        if (k > 0) work.gains[2 * b + 1] = static_cast<float>(-missed / k);
        if (j > 0) work.gains[2 * b] = static_cast<float>(added / j);
        n += k;
        q += j;
    }
    return value;
}

template <class Error>
double scan_buckets(const TableBlocks& blocks, std::size_t buckets, Error error, Buckets& work) {
    double size = 0, value = 0;
    for (std::size_t b = buckets; b-- > 0;) {
        const double j = work.counts[2 * b], k = work.counts[2 * b + 1];
        if (j + k == 0) continue;
        const double gain = blocks.share(size, j + k, 1.0);
        value += error(b) * gain * (j + k);
        work.gains[2 * b + 1] = static_cast<float>(-gain);
        work.gains[2 * b] = static_cast<float>(gain);
        size += j + k;
    }
    return value;
}

// The bucket of an error: the scaled error rounded down, at most the last. Anything that is no
// number goes to the last as well, so that no bucket lies outside.
inline std::size_t bucket_of(float scaled, float last) {
    const float kept = scaled < last ? scaled : last;
    return static_cast<std::size_t>(static_cast<std::int32_t>(kept > 0 ? kept : 0.0f));
}

// The least margin g y of the elements that count; 1 where none is below.
inline float least_margin(const float* scores, const std::uint8_t* labels, std::int64_t p) {
    constexpr std::int64_t lanes = 16;
    float least[lanes];
    std::fill(least, least + lanes, 1.0f);
    auto see = [&](std::int64_t i, std::int64_t lane) {
        // A void element is seen with margin 1, which is no violator's.
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

// The Lovász hinge, case 1, of one row in even buckets of (0, largest error].
template <class Blocks>
double bucket_hinge(const float* scores, const std::uint8_t* labels, std::int64_t p,
                    const Blocks& blocks, std::size_t buckets, float* gradient, Buckets& work) {
    const double largest = 1.0 - static_cast<double>(least_margin(scores, labels, p));
    work.clear(buckets);
    const double width = largest / static_cast<double>(buckets);
    const float scale = largest > 0 ? static_cast<float>(1.0 / width) : 0.0f;
    const auto last = static_cast<float>(buckets - 1);
    // Non-violators go to bucket `buckets`, in the place after the last.
    auto place = [&](std::int64_t i) {
        const bool positive = labels[i] == 1;
        const float error = 1.0f - with_sign(positive, scores[i]);
        const bool counts = (error > 0) & (labels[i] != void_label);
        return 2 * (counts ? bucket_of(error * scale, last) : buckets) + positive;
    };
    for (std::int64_t i = 0; i < p; ++i) ++work.counts[place(i)];
    const double value = scan_buckets(
        blocks, buckets, [&](std::size_t b) { return (static_cast<double>(b) + 0.5) * width; }, work);
    for (std::int64_t i = 0; i < p; ++i) gradient[i] = work.gains[place(i)];
    return value;
}

// The same for 16-bit scores: every value of g y is a bucket, so that nothing is rounded. Buckets
// are in the order of the errors; errors[b] is the error of bucket b, counted if it is positive.
template <class Blocks>
double bucket_hinge_16(const std::uint16_t* scores, const std::uint8_t* labels, std::int64_t p,
                       const Blocks& blocks, const double* errors, float* gradient, Buckets& work) {
    constexpr std::size_t buckets = 1 << 16;
    work.clear(buckets);
    auto place = [&](std::int64_t i) {
        const bool positive = labels[i] == 1;
        // The error is one plus the score of a negative, minus that of a positive: its sign bit.
        const unsigned bits = scores[i] ^ (positive ? 0x8000u : 0u);
        const unsigned key = bits & 0x8000u ? 0xFFFFu ^ bits : bits | 0x8000u;
        const bool counts = (errors[key] > 0) & (labels[i] != void_label);
        return 2 * static_cast<std::size_t>(counts ? key : buckets) + positive;
    };
    for (std::int64_t i = 0; i < p; ++i) ++work.counts[place(i)];
    const double value =
        scan_buckets(blocks, buckets, [&](std::size_t b) { return errors[b]; }, work);
    for (std::int64_t i = 0; i < p; ++i) gradient[i] = work.gains[place(i)];
    return value;
}

}  // namespace setwise

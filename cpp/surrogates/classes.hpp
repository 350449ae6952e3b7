// Lovász-softmax: the errors |[target = c] - p_c| of each class as one set.
#pragma once

#include "functions/families.hpp"
#include "numeric/branch_free.hpp"
#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "surrogates/buckets.hpp"
#include "surrogates/order.hpp"

namespace setwise {

// The pixels of some images, class by class: image i, pixel j of class c is
// p[(i * n_classes + c) * pixels + j], of class target[i * pixels + j], or void (-1).
struct Classes {
    const float* p;
    const std::int32_t* target;
    std::int64_t images, n_classes, pixels;
};

// Return |[positive] - p| without a branch.
inline float error_of(float p, bool positive) {
    return static_cast<float>(positive) + with_sign(!positive, p);
}

// Call visit(place of the gradient, error, is positive) for the valid pixels of one class; the
// gradient has `kept` classes per image.
template <class Visit>
void each_pixel(const Classes& set, std::int32_t c, std::int64_t kept, Visit visit) {
    for (std::int64_t i = 0; i < set.images; ++i) {
        const float* const p = set.p + (i * set.n_classes + c) * set.pixels;
        const std::int32_t* const target = set.target + i * set.pixels;
        const std::int64_t base = i * kept * set.pixels;
        for (std::int64_t j = 0; j < set.pixels; ++j) {
            const bool positive = target[j] == c;
            visit(base + j, error_of(p[j], positive), positive, target[j] >= 0);
        }
    }
}

inline Ratio of_class(const Classes& set, std::int32_t c, Ratio family) {
    std::int64_t m = 0, valid = 0;
    for (std::int64_t k = 0; k < set.images * set.pixels; ++k) {
        m += set.target[k] == c;
        valid += set.target[k] >= 0;
    }
    family.reset(m, valid - m);
    return family;
}

// Compute the loss of one class by sorting by decreasing error: the complement of a non-negative
// float's bits has this order.
inline double sorted_class(const Classes& set, std::int32_t c, std::int64_t kept, Ratio family,
                           float* gradient, Workspace& work, Poll poll) {
    family = of_class(set, c, family);
    Packed* const items = work.items.reserve(static_cast<std::size_t>(set.images * set.pixels));
    std::size_t count = 0;
    each_pixel(set, c, kept, [&](std::int64_t place, float error, bool positive, bool valid) {
        std::uint32_t bits;
        std::memcpy(&bits, &error, sizeof bits);
        gradient[place] = 0.0f;
        items[count] = (static_cast<Packed>(~bits) << 32) | (static_cast<Packed>(place) << 1) |
                       static_cast<Packed>(positive);
        count += valid & (error > 0);
    });
    work.items.resize(count);
    const Row<float> row{nullptr, nullptr, 0};
    sort_by_margin(row, work.items, work.other, poll);
    double value = 0;
    auto chain = family.chain();
    constexpr std::size_t ahead = 24;  // as in lovasz.hpp
    for (std::size_t k = 0; k < count; ++k) {
        if (k + ahead < count) prefetch(gradient + index_of(work.items[k + ahead]));
        const Packed item = work.items[k];
        const std::uint32_t bits = ~static_cast<std::uint32_t>(item >> 32);
        float error;
        std::memcpy(&error, &bits, sizeof error);
        const double gain = chain.step(is_positive(item));
        value += static_cast<double>(error) * gain;
        gradient[index_of(item)] = with_sign(!is_positive(item), static_cast<float>(gain));
    }
    return value;
}

// Compute the loss of one class in equal buckets of [0, 1].
inline double bucketed_class(const Classes& set, std::int32_t c, std::int64_t kept, Ratio family,
                             std::size_t buckets, float* gradient, Buckets& work) {
    family = of_class(set, c, family);
    work.clear(buckets);
    const auto scale = static_cast<float>(buckets), last = static_cast<float>(buckets - 1);
    const double width = 1.0 / static_cast<double>(buckets);
    // The number of places that stay in the L1 cache; not tuned.
    constexpr std::int64_t stretch = 1024;
    std::int32_t at[stretch];
    auto each_stretch = [&](auto visit) {
        for (std::int64_t i = 0; i < set.images; ++i) {
            const float* const p = set.p + (i * set.n_classes + c) * set.pixels;
            const std::int32_t* const target = set.target + i * set.pixels;
            for (std::int64_t begin = 0; begin < set.pixels; begin += stretch) {
                const std::int64_t length = std::min(stretch, set.pixels - begin);
                for (std::int64_t j = 0; j < length; ++j) {
                    const bool positive = target[begin + j] == c;
                    const float error = error_of(p[begin + j], positive);
                    at[j] = entry_of(error, scale, last, target[begin + j] >= 0, positive);
                }
                visit(i * kept * set.pixels + begin, length);
            }
        }
    };
    each_stretch([&](std::int64_t, std::int64_t length) {
        for (std::int64_t j = 0; j < length; ++j) ++work.counts[static_cast<std::size_t>(at[j])];
    });
    auto center = [=](std::size_t b) { return (static_cast<double>(b) - 0.5) * width; };
    const double value = scan_buckets(RatioBlocks{family}, buckets, center, work);
    each_stretch([&](std::int64_t begin, std::int64_t length) {
        for (std::int64_t j = 0; j < length; ++j)
            gradient[begin + j] = work.slopes[static_cast<std::size_t>(at[j])];
    });
    return value;
}

}  // namespace setwise

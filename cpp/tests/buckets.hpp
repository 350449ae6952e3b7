// Buckets and classes under the sanitizers, tested against the error bound of buckets.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "surrogates/buckets.hpp"
#include "surrogates/classes.hpp"
#include "surrogates/labels.hpp"
#include "surrogates/lovasz.hpp"

namespace setwise {

inline void require_within(double x, double y, double bound, const char* what) {
    if (!(std::abs(x - y) <= bound)) throw std::runtime_error(what);
}

// Check that a row with void elements and nan scores stays inside its arrays. Without them the
// value must be within half a bucket width of the exact one.
inline void check_buckets(std::mt19937& random) {
    const auto p = static_cast<std::int64_t>(random() % 3000);
    const auto size = static_cast<std::size_t>(p);
    std::vector<float> scores(size), gradient(size);
    std::vector<std::uint8_t> labels(size);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < size; ++i) {
        scores[i] = normal(random);
        labels[i] = random() % 3 == 0;
    }
    Ratio family{1, 1, 0, Ratio::whole};
    std::int64_t m = 0;
    for (const auto label : labels) m += label;
    family.reset(m, p - m);
    Buckets work;
    Workspace sorted;
    const Row<float> row{labels.data(), scores.data(), p};
    const double exact = lovasz_hinge(row, true, family, gradient.data(), sorted, [] {});
    const double largest = 1.0 - static_cast<double>(least_margin(scores.data(), labels.data(), p));
    for (const std::size_t buckets : {2u, 100u, 65536u}) {
        const double value = bucket_hinge(scores.data(), labels.data(), p, RatioBlocks{family},
                                          buckets, gradient.data(), work);
        require_within(value, exact, largest / static_cast<double>(buckets) / 2 + 1e-5,
                       "buckets: further from the exact value than their bound");
    }
    std::vector<double> table;
    for (std::int64_t k = 0; k <= p; ++k) table.push_back(std::sqrt(static_cast<double>(k)));
    bucket_hinge(scores.data(), labels.data(), p, TableBlocks{table.data()}, 64, gradient.data(),
                 work);
    const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                         std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity(), 3e38f};
    std::vector<std::uint16_t> bits(size);
    for (std::size_t i = 0; i < size; ++i) {
        if (random() % 4 == 0) labels[i] = void_label;
        if (random() % 5 == 0) scores[i] = odd[random() % 4];
        bits[i] = static_cast<std::uint16_t>(random());
    }
    bucket_hinge(scores.data(), labels.data(), p, RatioBlocks{family}, 128, gradient.data(), work);
    const std::vector<double> errors(1 << 16, 1.0);
    bucket_hinge_16(bits.data(), labels.data(), p, RatioBlocks{family}, errors.data(),
                    gradient.data(), work);
    std::vector<std::uint8_t> codes(size);
    for (const double ignore : {255.0, -1e30, std::numeric_limits<double>::quiet_NaN(), 0.5}) {
        encode_targets(labels.data(), p, ignore, codes.data());
        encode_targets(reinterpret_cast<const std::int8_t*>(labels.data()), p, ignore,
                       codes.data());
        encode_targets(scores.data(), p, ignore, codes.data());
    }
}

// Check every class of a few images, sorted and in buckets.
inline void check_classes(std::mt19937& random) {
    const std::int64_t images = 1 + random() % 3, n_classes = 1 + random() % 4,
                       pixels = random() % 700, kept = n_classes;
    std::vector<float> p(static_cast<std::size_t>(images * n_classes * pixels));
    std::vector<float> gradient(p.size());
    std::vector<std::int32_t> target(static_cast<std::size_t>(images * pixels));
    std::uniform_real_distribution<float> uniform;
    for (auto& value : p) value = uniform(random);
    for (auto& c : target)
        c = static_cast<std::int32_t>(random() % static_cast<unsigned>(n_classes + 1)) - 1;
    const Classes set{p.data(), target.data(), images, n_classes, pixels};
    const Ratio family{1, 1, 0, Ratio::whole};
    Workspace work;
    Buckets counted;
    for (std::int32_t c = 0; c < n_classes; ++c) {
        float* const out = gradient.data() + c * pixels;
        const double exact = sorted_class(set, c, kept, family, out, work, [] {});
        const double value = bucketed_class(set, c, kept, family, 512, out, counted);
        require_within(value, exact, 0.5 / 512 + 1e-5, "classes: buckets are off by too much");
    }
}

}  // namespace setwise

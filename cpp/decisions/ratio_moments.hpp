// The expected Jaccard index, or F-beta score, of one set from sums of powers of the probabilities.
//
// The expectation is that of expected_ratio.hpp. Its integrands depend on the probabilities through
// sums of log(1 - p t) and of p / (1 - p t), 0 <= t <= 1. Probabilities are gathered in bins of 1 -
// p, eight bins per power of two. With q = 1 - p, the middle q0 of the bin of q (1 for the bin of
// small p, so that their sum is exact), p0 = 1 - q0, z = (q0 - q) / q0 and y = q0 t / (1 - p0 t),
//
//        log(1 - p t) = log(1 - p0 t) - sum_r (z y)^r / r,
//        p / (1 - p t) = (p0 + q0 z) sum_r (z y)^r / (1 - p0 t),
//
// and |z y| <= 1/16, so eight powers leave 1e-12 of an element. The sums are linear, so those of a
// set and of a part of it determine those of the rest without another pass over the pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "decisions/exponential_sum.hpp"

namespace setwise {

class RatioMoments {
  public:
    static constexpr int powers = 10;  // z^0 to z^9
    static constexpr int bins = 8 * 54;

    RatioMoments() : sums_(static_cast<std::size_t>(bins * powers)) {}

    void add(double p) {
        if (!(p > 0)) return;
        const double q = 1 - p;
        if (!(q > 0)) {
            ++certain_;
            return;
        }
        std::uint64_t bits;
        std::memcpy(&bits, &q, sizeof(bits));
        const int bin = p < 0.0625 ? 0 : bin_of(static_cast<std::int64_t>(bits >> 49));
        double* const of = sums_.data() + bin * powers;
        const double z = bin == 0 ? p : 1 - q / middle(bin);
        double power = 1;
        for (int r = 0; r < powers; ++r) {
            of[r] += power;
            power *= z;
        }
    }
    void clear() {
        sums_.assign(sums_.size(), 0.0);
        certain_ = 0;
    }
    // sign is 1 or -1.
    void add(const RatioMoments& other, double sign) {
        for (std::size_t j = 0; j < sums_.size(); ++j) sums_[j] += sign * other.sums_[j];
        certain_ += sign * other.certain_;
    }

    // The number of elements of a positive probability in bin j, whose probabilities decrease with
    // j, and the sum of these. Certain elements precede bin 0.
    double certain() const { return certain_; }
    double count(int j) const { return sums_[static_cast<std::size_t>(place(j) * powers)]; }
    double sum(int j) const {
        const double* const of = sums_.data() + place(j) * powers;
        const double q = middle(place(j));
        return (1 - q) * of[0] + q * of[1];
    }
    double total() const {
        double all = certain_;
        for (int j = 0; j < bins; ++j) all += sum(j);
        return all;
    }

    // Return the sum of log(1 - p t) for t = 1 - rest.
    double log_product(double rest) const {
        double total = certain_ > 0 ? certain_ * std::log(rest) : 0.0;
        for (int j = 0; j < bins; ++j) {
            const double* const of = sums_.data() + j * powers;
            if (of[0] == 0) continue;
            const double q = middle(j), below = q + (1 - q) * rest;
            const double y = q * (1 - rest) / below;
            double series = 0;
            for (int r = powers - 1; r >= 1; --r) series = (series + of[r] / r) * y;
            total += of[0] * std::log(below) - series;
        }
        return total;
    }

    // Return the sum of p rest / (1 - p t) for t = 1 - rest.
    double odds(double rest) const {
        double total = certain_;
        for (int j = 0; j < bins; ++j) {
            const double* const of = sums_.data() + j * powers;
            if (of[0] == 0) continue;
            const double q = middle(j), below = q + (1 - q) * rest;
            const double y = q * (1 - rest) / below;
            double series = 0;
            for (int r = powers - 2; r >= 0; --r)
                series = series * y + (1 - q) * of[r] + q * of[r + 1];
            total += rest * series / below;
        }
        return total;
    }

    // Return the expected score of a set of k >= 1 elements, `in`, among the elements `all`.
    static double expected(bool jaccard, double b, double k, double n, const RatioMoments& all,
                           const RatioMoments& in) {
        ExponentialSum rule;
        RatioMoments out;
        if (jaccard) {
            out = all;
            out.add(in, -1);
            rule.reset(k, n + 1);
        } else {
            rule.reset(k + b, (1 + b) * (n + 1));
        }
        const double hits = jaccard ? in.total() : 0;
        double value = 0;
        for (std::size_t j = 0; j < rule.size(); ++j) {
            const double u = rule.nodes[j], rest = std::exp(-b * u);
            const double logs = -k * u + (jaccard ? out : all).log_product(rest);
            if (logs < -700) continue;
            value += rule.weights[j] * std::exp(logs) * (jaccard ? hits : (1 + b) * in.odds(rest));
        }
        return value;
    }

  private:
    // The key of a number in (0, 1) is its exponent with the first three bits of its mantissa. The
    // keys of bins 0, 1, ... decrease from that of the numbers just below 1.
    static constexpr std::int64_t top = 1023 * 8 - 1;
    static int bin_of(std::int64_t key) {
        return static_cast<int>(
            std::min<std::int64_t>(std::max<std::int64_t>(top - key, 0), bins - 1));
    }
    static int place(int j) { return bins - 1 - j; }
    static double middle(int bin) {
        if (bin == 0) return 1;
        const auto bits = static_cast<std::uint64_t>(top - bin) << 49 | std::uint64_t(1) << 48;
        double x;
        std::memcpy(&x, &bits, sizeof(x));
        return x;
    }

    std::vector<double> sums_;
    double certain_ = 0;
};

}  // namespace setwise

// An upper bound on the expected score of every label map.
//
// For a mask A of class c with k pixels and the expected overlap p(A), the expected score is at most
// p(A) W_c(k), where W_c(k) belongs to the k most probable pixels: for Jaccard it is E 1 / (k + Y) with
// Y the number of true pixels outside them, and for F-beta (1 + b) E 1 / (k + b + b Y) with Y the number
// of true pixels other than the most probable one. Hence for any prices l of the pixels the score of
// a map is at most
//
//        sum_i l_i + sum_c max(none_c, max_k max_{|A| = k} sum_A (W_c(k) p_ic - l_i)).
//
// The bound is convex in l. Subgradient steps begin at l = 0, where it is at most the sum of the
// best scores of the single classes. They have Polyak's step length for the score of the map that
// was found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "decisions/expected_ratio.hpp"
#include "decisions/exponential_sum.hpp"
#include "decisions/label_map.hpp"
#include "decisions/priced_mask.hpp"

namespace setwise {

template <class T>
class LabelBound {
  public:
    LabelBound(const LabelMap<T>& map, int n_threads, Poll poll)
        : map_(map), n_threads_(n_threads), poll_(poll) {}

    // Return a bound on the score of every map; `found` is the score of one.
    double bound(double found) {
        const auto n_classes = static_cast<std::size_t>(map_.classes());
        const std::int64_t entries = map_.images() * map_.pixels() * map_.classes();
        const bool priced = entries <= priced_entries;
        classes_.resize(n_classes);
        each_task(map_.classes(), n_threads_, poll_, [&](std::int64_t c, int) {
            entries <= exact_entries ? read(c, priced) : read_histogram(c);
        });
        double best = 0;
        for (const Class& of : classes_) best += of.alone;
        if (!priced || n_classes == 1) return best;
        const auto n = static_cast<std::size_t>(map_.valid_pixels());
        std::vector<double> prices(n), taken(n);
        std::vector<double> values(n_classes);
        for (int step = 0; step < most_steps && best > found + 1e-9; ++step) {
            const double allowed = tolerance * (best - found) / static_cast<double>(n_classes);
            each_task(map_.classes(), n_threads_, poll_, [&](std::int64_t c, int) {
                const auto at = static_cast<std::size_t>(c);
                Class& of = classes_[at];
                values[at] = of.priced.best(of.p.data(), of.above.data(), prices.data(), n,
                                            map_.scores().none[at], allowed);
            });
            double value = 0, norm = 0;
            for (const double x : values) value += x;
            std::fill(taken.begin(), taken.end(), 1.0);
            for (const Class& of : classes_)
                for (const std::uint32_t i : of.priced.mask) taken[i] -= 1;
            for (std::size_t i = 0; i < n; ++i) {
                value += prices[i];
                norm += taken[i] * taken[i];
            }
            best = std::min(best, value);
            if (!(norm > 0)) break;
            const double length = (value - found) / norm;
            for (std::size_t i = 0; i < n; ++i) prices[i] -= length * taken[i];
        }
        return best;
    }

  private:
    // Up to this number of pixels times classes, the best scores of the single classes are computed
    // exactly, with about a hundred operations for each. Not tuned.
    static constexpr std::int64_t exact_entries = 1 << 20;
    // Up to this number of pixels times classes, prices are optimised, which takes about a hundred
    // passes for each class and step, in at most most_steps steps. Not tuned.
    static constexpr std::int64_t priced_entries = 1 << 13;
    static constexpr int most_steps = 20;
    // The score of the best mask under prices is computed up to this share of the present gap.
    // Smaller shares take more time and lead to the same gaps.
    static constexpr double tolerance = 0.2;
    // In larger problems, the steps of the grid of k, relative to k, and the number of bins of
    // probabilities. Not tuned.
    static constexpr double steps_per_octave = 4096;
    static constexpr int bins = 1 << 16;

    struct Class {
        double alone = 0;              // an upper bound on the score of every mask
        std::vector<double> p, above;  // probabilities of valid pixels; W(k + 1)
        PricedMask priced;             // the best mask under the last prices
    };

    double chance(std::int64_t image, std::int64_t c, std::int64_t i) const {
        const double p = static_cast<double>(
            map_.probabilities()[(image * map_.classes() + c) * map_.pixels() + i]);
        return std::min(map_.scores().scale[static_cast<std::size_t>(c)] * p, 1.0);
    }

    template <class Body>
    void each_chance(std::int64_t c, const Body& body) const {
        for (std::int64_t image = 0; image < map_.images(); ++image)
            for (std::int64_t i = 0; i < map_.pixels(); ++i)
                if (!map_.valid() || map_.valid()[image * map_.pixels() + i])
                    body(chance(image, c, i));
    }

    void read(std::int64_t c, bool priced) {
        const auto at = static_cast<std::size_t>(c);
        Class& of = classes_[at];
        of.p.reserve(static_cast<std::size_t>(map_.valid_pixels()));
        each_chance(c, [&](double x) { of.p.push_back(x); });
        std::vector<double> sorted = of.p;
        std::sort(sorted.begin(), sorted.end(), std::greater<double>());
        const ClassScores& scores = map_.scores();
        const double weight = scores.weight[at], none = weight > 0 ? scores.none[at] / weight : 0.0;
        ExpectedRatio ratio(scores.jaccard, scores.b);
        of.alone =
            weight * (1 + 1e-9) *
            ratio
                .best(
                    sorted.data(), nullptr, static_cast<std::int64_t>(sorted.size()), &none, +[] {})
                .score;
        if (priced && !sorted.empty()) read_curve(sorted, weight, of.above);
    }

    // W(k) of every k, by the quadrature of expected_ratio.hpp.
    void read_curve(const std::vector<double>& p, double weight, std::vector<double>& above) const {
        const bool jaccard = map_.scores().jaccard;
        const double b = map_.scores().b, n = static_cast<double>(p.size());
        ExponentialSum rule;
        jaccard ? rule.reset(1, n) : rule.reset(1 + b, (1 + b) * n);
        const std::size_t q = rule.size();
        std::vector<double> products = rule.weights, powers(q);
        for (std::size_t j = 0; j < q; ++j) powers[j] = std::exp(-b * rule.nodes[j]);
        const auto multiply = [&](double x) {
            for (std::size_t j = 0; j < q; ++j) products[j] *= 1 - x + x * powers[j];
        };
        if (!jaccard)
            for (std::size_t i = 1; i < p.size(); ++i) multiply(p[i]);
        above.resize(p.size());
        for (std::size_t k = p.size(); k >= 1; --k) {
            const double x = static_cast<double>(k) + (jaccard ? 0.0 : b);
            double sum = 0;
            for (std::size_t j = 0; j < q; ++j)
                sum += products[j] * exponential_above(700, -x * rule.nodes[j]);
            above[k - 1] = weight * (jaccard ? 1.0 : 1 + b) * sum * (1 + 1e-9);
            if (jaccard) multiply(p[k - 1]);
        }
    }

    // Bound the best score by moments, on a grid of k: E 1 / X <= 1 / mean + variance / (least mean^2).
    void read_histogram(std::int64_t c) {
        const auto at = static_cast<std::size_t>(c);
        std::vector<double> count(bins), sum(bins), squares(bins);
        each_chance(c, [&](double x) {
            const auto bin = static_cast<std::size_t>(x * (bins - 1));
            count[bin] += 1;
            sum[bin] += x;
            squares[bin] += x * x;
        });
        const ClassScores& scores = map_.scores();
        const bool jaccard = scores.jaccard;
        const double b = scores.b;
        double m = 0, variance = 0, largest = 0;
        for (std::size_t bin = 0; bin < count.size(); ++bin) {
            m += sum[bin];
            variance += sum[bin] - squares[bin];
            if (count[bin] > 0) largest = std::min(1.0, static_cast<double>(bin + 1) / (bins - 1));
        }
        // From the most probable bin downwards: size, overlap and variance of the bins before.
        double k = 0, a = 0, v = 0, best = 0;
        for (std::size_t bin = count.size(); bin-- > 0;) {
            const double top = std::min(1.0, static_cast<double>(bin + 1) / (bins - 1));
            for (double done = 0; done < count[bin];) {
                const double step = std::max(1.0, std::floor((k + done) / steps_per_octave));
                const double more = std::min(count[bin] - done, step), low = k + done + 1;
                const double most = std::min(a + (done + more) * top, a + sum[bin]);
                const double first = std::min(a + (done + 1) * top, a + sum[bin]);
                const double least = jaccard ? low : low + b;
                const double mean =
                    least + (jaccard ? std::max(m - first, 0.0) : b * std::max(m - largest, 0.0));
                const double spread = jaccard ? std::max(variance - v, 0.0) : b * b * variance;
                best = std::max(best, most * (1 / mean + spread / (least * mean * mean)));
                done += more;
            }
            k += count[bin];
            a += sum[bin];
            v += sum[bin] - squares[bin];
        }
        best *= scores.weight[at] * (jaccard ? 1.0 : 1 + b) * (1 + 1e-9);
        classes_[at].alone = std::max(scores.none[at], best);
    }

    const LabelMap<T>& map_;
    int n_threads_;
    Poll poll_;
    std::vector<Class> classes_;
};

}  // namespace setwise

// Decision stumps: for every feature and every weighting of the rows, the split with the largest
// gain.
//
// A stump predicts +-1 on the two sides of a threshold. With U the weights of one segment, T their
// sum and L the sum of those at or below the threshold, its gain is |T - 2 L|. One walk over the
// rows by increasing value meets every threshold; the sums of several segments are computed
// together. Rows with a missing value are a side of their own: with N the sum of their weights they
// add |N| to the gain. A feature whose values are categories has one side per category: sum_c
// |U_c|.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "boosting/lanes.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

// Two rows with neighbouring values, between which a threshold lies. `none` stands for rows that
// are not stored. If both are `none` there is no threshold, and all rows are on one side.
struct Split {
    static constexpr std::int64_t none = -1;
    double gain;         // T - 2 L: its sign is the side of the larger values
    std::int64_t low = none, high = none;
    double missing = 0;  // N
};

// The stumps that a feature may have: any, or only increasing or decreasing ones.
enum class Trend : std::int8_t { decreasing = -1, any = 0, increasing = 1 };

inline double allowed(Trend trend, double gain) {
    return trend == Trend::any ? std::abs(gain) : trend == Trend::increasing ? gain : -gain;
}

// Return the best gain along a walk. A constant may have either sign, whatever the trend.
inline double best_of(Trend trend, double total, double high, double low) {
    double best = std::abs(total);
    if (trend != Trend::decreasing) best = std::max(best, high);
    if (trend != Trend::increasing) best = std::max(best, -low);
    return best;
}

// A feature with many values: the rows in the order in which they are met, the smallest value
// first. Rows that are not stored (the zeros of a sparse matrix) share one value: `up` walks
// towards it from below, `down` from above. A mark on the last row of a run of equal values means
// that a threshold follows. Rows with a missing value are stored separately.
class SortedFeature {
  public:
    using Rows = std::vector<std::uint32_t>;

    SortedFeature(Rows up, Rows down, Rows missing, Trend trend)
        : up_(std::move(up)), down_(std::move(down)), missing_(std::move(missing)), trend_(trend) {}

    static std::size_t categories() { return 0; }
    static void sums(const double*, double*) {}

    // `doubled`: twice the weights, the lanes of a row side by side.
    void best(int fours, const double* doubled, const Lanes& totals, Lanes& gains) const {
        const int lanes = lanes_of(fours);
        const Lanes apart = sum_of_missing(lanes, doubled);
        Lanes present = totals;
        for (int k = 0; k < lanes; ++k) present[k] -= apart[k];
        Walk sums(present);
        walk_rows(false, fours, up_, doubled, sums);
        for (int k = 0; k < lanes; ++k) sums.now[k] = -present[k];
        walk_rows(true, fours, down_, doubled, sums);
        for (int k = 0; k < lanes; ++k)
            gains[k] = best_of(trend_, present[k], sums.high[k], sums.low[k]) + std::abs(apart[k]);
    }

    // Return the lowest threshold whose gain is within `slack` of the best, because such sums may
    // differ only by rounding.
    Split locate(const double* doubled, double total, double slack) const {
        Lanes gains, totals{};
        totals[0] = total;
        best(0, doubled, totals, gains);
        const double apart = sum_of_missing(1, doubled)[0];
        Split found = first(doubled, total - apart, gains[0] - std::abs(apart) - slack);
        found.missing = apart;
        return found;
    }

  private:
    Lanes sum_of_missing(int lanes, const double* doubled) const {
        Lanes sums{};
        for (const std::uint32_t entry : missing_)
            for (int k = 0; k < lanes; ++k) sums[k] += 0.5 * doubled[lanes * row_of(entry) + k];
        return sums;
    }

    Split first(const double* doubled, double total, double least) const {
        Split found{total};
        if (std::abs(total) >= least) return found;
        double now = total;
        for (std::size_t k = 0; k < up_.size(); ++k) {
            now -= doubled[row_of(up_[k])];
            if ((up_[k] & mark) && allowed(trend_, now) >= least)
                return {now, row_of(up_[k]), k + 1 < up_.size() ? row_of(up_[k + 1]) : Split::none};
        }
        now = -total;
        for (std::size_t k = 0; k < down_.size(); ++k) {
            now += doubled[row_of(down_[k])];
            if ((down_[k] & mark) && allowed(trend_, now) >= least)
                found = {now, k + 1 < down_.size() ? row_of(down_[k + 1]) : Split::none,
                         row_of(down_[k])};
        }
        return found;
    }

    Rows up_, down_, missing_;
    Trend trend_;
};

// A feature with few values: one code per row, increasing with the value, and one row that has each
// code. A larger code stands for a missing value.
template <class Code>
class BinnedFeature {
  public:
    BinnedFeature(std::vector<Code> codes, std::vector<std::int32_t> examples, Trend trend)
        : codes_(std::move(codes)), examples_(std::move(examples)), trend_(trend) {}

    static std::size_t categories() { return 0; }
    static void sums(const double*, double*) {}

    void best(int fours, const double* doubled, const Lanes& totals, Lanes& gains) const {
        best_of_bins(lanes_of(fours), histogram(fours, doubled), totals, gains);
    }

    Split locate(const double* doubled, double total, double slack) const {
        const std::vector<double> bins = histogram(0, doubled);
        Lanes gains, totals{};
        totals[0] = total;
        best_of_bins(1, bins, totals, gains);
        const double apart = 0.5 * bins.back();
        Split found = first(bins, total - apart, gains[0] - std::abs(apart) - slack);
        found.missing = apart;
        return found;
    }

  private:
    // The last bin is that of the missing values; it stays zero if there are none.
    std::vector<double> histogram(int fours, const double* doubled) const {
        return sums_by_code(fours, codes_, examples_.size() + 1, doubled);
    }

    void best_of_bins(int lanes, const std::vector<double>& bins, const Lanes& totals,
                      Lanes& gains) const {
        const double* const apart = &bins[examples_.size() * lanes];
        Lanes present = totals;
        for (int k = 0; k < lanes; ++k) present[k] -= 0.5 * apart[k];
        Walk sums(present);
        for (std::size_t b = 0; b + 1 < examples_.size(); ++b) {
            for (int k = 0; k < lanes; ++k) sums.now[k] -= bins[b * lanes + k];
            sums.compare(lanes);
        }
        for (int k = 0; k < lanes; ++k)
            gains[k] =
                best_of(trend_, present[k], sums.high[k], sums.low[k]) + std::abs(0.5 * apart[k]);
    }

    Split first(const std::vector<double>& bins, double total, double least) const {
        double now = total;
        for (std::size_t b = 0; std::abs(total) < least && b + 1 < examples_.size(); ++b) {
            now -= bins[b];
            if (allowed(trend_, now) >= least) return {now, examples_[b], examples_[b + 1]};
        }
        return {total};
    }

    std::vector<Code> codes_;
    std::vector<std::int32_t> examples_;
    Trend trend_;
};

// A feature whose values are categories, one code per row. The best subset takes each category by
// the sign of its sum, because the gain is linear in the prediction for a category.
template <class Code>
class CategoricalFeature {
  public:
    CategoricalFeature(std::vector<Code> codes, std::size_t categories)
        : codes_(std::move(codes)), categories_(categories) {}

    std::size_t categories() const { return categories_; }
    static Split locate(const double*, double total, double) { return {total}; }

    void best(int fours, const double* doubled, const Lanes&, Lanes& gains) const {
        const int lanes = lanes_of(fours);
        const std::vector<double> bins = sums_by_code(fours, codes_, categories_, doubled);
        gains.fill(0.0);
        for (std::size_t c = 0; c < categories_; ++c)
            for (int k = 0; k < lanes; ++k) gains[k] += std::abs(0.5 * bins[c * lanes + k]);
    }

    void sums(const double* weights, double* sums) const {
        const std::vector<double> bins = sums_by_code(0, codes_, categories_, weights);
        std::copy(bins.begin(), bins.end(), sums);
    }

  private:
    std::vector<Code> codes_;
    std::size_t categories_;
};

// All features of one matrix, presorted once for all rounds of boosting.
class StumpSearch {
  public:
    explicit StumpSearch(std::int64_t rows) : rows_(rows) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t features() const { return static_cast<std::int64_t>(features_.size()); }

    template <class Feature>
    void add(Feature feature) {
        features_.emplace_back(std::move(feature));
    }

    // weights (segments, rows), gains (features, segments). Threads share the features; no sum
    // depends on the thread that made it.
    void gains(const double* weights, std::int64_t segments, double* gains, int n_threads,
               Poll poll) const {
        if (segments == 0 || features() == 0) return;
        const std::int64_t groups = (segments + most_lanes - 1) / most_lanes;
        for (std::int64_t g = 0; g < groups; ++g) {
            const std::int64_t begin = segments * g / groups, end = segments * (g + 1) / groups;
            const Packed packed(weights + begin * rows_, static_cast<int>(end - begin), rows_);
            // Starting a thread costs about as much as a million additions.
            const std::int64_t worth = 1 + rows_ * features() * (end - begin) / 1000000;
            const auto helpers = static_cast<int>(std::min<std::int64_t>(n_threads, worth));
            each_task(features(), helpers, poll, [&](std::int64_t f, int) {
                Lanes own;
                std::visit(
                    [&](const auto& feature) {
                        feature.best(packed.fours, packed.doubled, packed.totals, own);
                    },
                    at(f));
                std::copy(own.begin(), own.begin() + (end - begin), gains + f * segments + begin);
            });
        }
    }

    // Return the number of categories of a feature, 0 if its values are numbers.
    std::int64_t categories(std::int64_t feature) const {
        return std::visit([](const auto& f) { return static_cast<std::int64_t>(f.categories()); },
                          at(feature));
    }

    // Return the best threshold of one numeric feature for one segment's weights, the lowest within
    // `slack`.
    Split locate(const double* weights, std::int64_t feature, double slack) const {
        const Packed packed(weights, 1, rows_);
        return std::visit(
            [&](const auto& f) { return f.locate(packed.doubled, packed.totals[0], slack); },
            at(feature));
    }

    // Sum one segment's weights by category.
    void sums(const double* weights, std::int64_t feature, double* sums) const {
        std::visit([&](const auto& f) { f.sums(weights, sums); }, at(feature));
    }

  private:
    using Feature =
        std::variant<SortedFeature, BinnedFeature<std::uint8_t>, BinnedFeature<std::uint16_t>,
                     CategoricalFeature<std::uint8_t>, CategoricalFeature<std::uint16_t>>;

    // Twice the weights of some segments, the lanes of a row side by side, and the sums of each
    // segment. Rows are aligned to cache lines.
    struct Packed {
        int fours;
        Lanes totals{};
        std::unique_ptr<double[]> buffer;
        double* doubled;

        Packed(const double* weights, int segments, std::int64_t rows)
            : fours(fours_for(segments)) {
            // block: number of rows that stay in the cache
            const std::int64_t stride = lanes_of(fours), block = 1024;
            std::size_t size = static_cast<std::size_t>(rows * stride + 8) * sizeof(double);
            // Not zeroed, because every entry is written below.
            buffer.reset(new double[size / sizeof(double)]);
            void* start = buffer.get();
            doubled = static_cast<double*>(std::align(64, size - 64, start, size));
            for (std::int64_t begin = 0; begin < rows; begin += block) {
                const std::int64_t end = std::min(begin + block, rows);
                for (int k = 0; k < segments; ++k) {
                    double total = totals[k];
                    for (std::int64_t i = begin; i < end; ++i) {
                        total += weights[k * rows + i];
                        doubled[i * stride + k] = 2 * weights[k * rows + i];
                    }
                    totals[k] = total;
                }
                for (std::int64_t i = begin; i < end; ++i)
                    for (std::int64_t k = segments; k < stride; ++k) doubled[i * stride + k] = 0;
            }
        }
        Packed(const Packed&) = delete;
        Packed& operator=(const Packed&) = delete;
    };

    const Feature& at(std::int64_t feature) const {
        return features_[static_cast<std::size_t>(feature)];
    }

    std::int64_t rows_;
    std::vector<Feature> features_;
};

}  // namespace setwise

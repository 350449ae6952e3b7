// Decision stumps: for every feature and every weighting of the rows, the split that tells them best.
//
// A stump says +-1 on the two sides of a threshold. With U the weights of one segment, T their sum
// and L the sum of those at or below the threshold, it gains |T - 2 L|. One walk over the rows by
// increasing value meets every threshold; the sums of several segments go along together. Rows whose
// value is missing are a side of their own: with N the sum of their weights they gain |N| more. A
// feature whose values are categories has a side for each: sum_c |U_c|.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "numeric/threads.hpp"

namespace setwise {

// Two rows with neighbouring values, between which a threshold lies; `none` is a row that is not
// stored. Both none: no threshold, one side.
struct Split {
    static constexpr std::int64_t none = -1;
    double gain;  // T - 2 L: its sign is the side of the larger values
    std::int64_t low = none, high = none;
    double missing = 0;  // N
};

// Which stumps a feature may have: any, or those alone that increase or decrease in it.
enum class Trend : std::int8_t { decreasing = -1, any = 0, increasing = 1 };

template <Trend trend>
double allowed(double gain) {
    return trend == Trend::any ? std::abs(gain) : trend == Trend::increasing ? gain : -gain;
}

// The same for a trend that is known when it runs.
template <class Body>
void with_trend(Trend trend, const Body& body) {
    if (trend == Trend::any)
        body(std::integral_constant<Trend, Trend::any>{});
    else if (trend == Trend::increasing)
        body(std::integral_constant<Trend, Trend::increasing>{});
    else
        body(std::integral_constant<Trend, Trend::decreasing>{});
}

// Segments that are summed together: enough to fill the registers, no more.
constexpr int most_lanes = 8;

// The sums of one walk; a constant has either sign, whatever the trend.
template <int lanes, Trend trend>
struct Sums {
    std::array<double, lanes> now, best;

    explicit Sums(const double* totals) {
        for (int k = 0; k < lanes; ++k) now[k] = totals[k], best[k] = std::abs(totals[k]);
    }
    void set(const double* totals, double factor) {
        for (int k = 0; k < lanes; ++k) now[k] = factor * totals[k];
    }
    void add(const double* values, double factor) {
        for (int k = 0; k < lanes; ++k) now[k] += factor * values[k];
    }
    void compare() {
        for (int k = 0; k < lanes; ++k) best[k] = std::max(best[k], allowed<trend>(now[k]));
    }
};

// A feature with many values: the rows as they are met, those of the smallest value first. Rows that
// are not stored (the zeros of a sparse matrix) share one value: `up` walks towards it from below,
// `down` from above. A mark on the last row of a run of equal values says that a threshold follows.
// Rows whose value is missing come apart.
class SortedFeature {
  public:
    using Rows = std::vector<std::uint32_t>;
    static constexpr std::uint32_t mark = 0x80000000u;

    SortedFeature(Rows up, Rows down, Rows missing, Trend trend)
        : up_(std::move(up)), down_(std::move(down)), missing_(std::move(missing)), trend_(trend) {}

    static std::size_t categories() { return 0; }
    static void sums(const double*, double*) {}

    // `doubled`: twice the weights, the lanes of a row side by side.
    template <int lanes>
    void best(const double* doubled, const double* totals, double* gains) const {
        if (missing_.empty()) return best_of_present<lanes>(doubled, totals, gains);
        const std::array<double, lanes> apart = sum_of_missing<lanes>(doubled);
        std::array<double, lanes> present;
        for (int k = 0; k < lanes; ++k) present[k] = totals[k] - apart[k];
        best_of_present<lanes>(doubled, present.data(), gains);
        for (int k = 0; k < lanes; ++k) gains[k] += std::abs(apart[k]);
    }

    // The lowest threshold whose gain is the best but for `slack`: sums that are equal but for their
    // rounding tie.
    Split locate(const double* doubled, double total, double slack) const {
        const double apart = sum_of_missing<1>(doubled)[0];
        total -= apart;
        double least;
        best_of_present<1>(doubled, &total, &least);
        least -= slack;
        Split found{total};
        if (std::abs(total) < least)
            with_trend(trend_, [&](auto t) {
                found = first<decltype(t)::value>(doubled, total, least);
            });
        found.missing = apart;
        return found;
    }

  private:
    static std::int64_t row(std::uint32_t entry) { return entry & ~mark; }

    template <int lanes>
    std::array<double, lanes> sum_of_missing(const double* doubled) const {
        std::array<double, lanes> sums{};
        for (const std::uint32_t entry : missing_)
            for (int k = 0; k < lanes; ++k) sums[k] += 0.5 * doubled[lanes * row(entry) + k];
        return sums;
    }

    template <int lanes>
    void best_of_present(const double* doubled, const double* totals, double* gains) const {
        with_trend(trend_, [&](auto trend) {
            Sums<lanes, decltype(trend)::value> sums(totals);
            walk(up_, doubled, sums, -1.0);
            sums.set(totals, -1.0);
            walk(down_, doubled, sums, 1.0);
            std::copy(sums.best.begin(), sums.best.end(), gains);
        });
    }

    template <Trend trend>
    Split first(const double* doubled, double total, double least) const {
        double now = total;
        for (std::size_t k = 0; k < up_.size(); ++k) {
            now -= doubled[row(up_[k])];
            if ((up_[k] & mark) && allowed<trend>(now) >= least)
                return {now, row(up_[k]), k + 1 < up_.size() ? row(up_[k + 1]) : Split::none};
        }
        Split found{total};
        now = -total;
        for (std::size_t k = 0; k < down_.size(); ++k) {
            now += doubled[row(down_[k])];
            if ((down_[k] & mark) && allowed<trend>(now) >= least)
                found = {now, k + 1 < down_.size() ? row(down_[k + 1]) : Split::none,
                         row(down_[k])};
        }
        return found;
    }

    template <int lanes, Trend trend>
    static void walk(const Rows& rows, const double* doubled, Sums<lanes, trend>& sums,
                     double factor) {
        constexpr std::size_t ahead = 24;
        const std::size_t n = rows.size();
        for (std::size_t k = 0; k < n; ++k) {
            prefetch(doubled + lanes * row(rows[std::min(k + ahead, n - 1)]));
            sums.add(doubled + lanes * row(rows[k]), factor);
            if (rows[k] & mark) sums.compare();
        }
    }

    Rows up_, down_, missing_;
    Trend trend_;
};

// The weights summed code by code, with the rows in the order of memory: (bins, lanes).
template <int lanes, class Code>
std::vector<double> sums_by_code(const std::vector<Code>& codes, std::size_t bins,
                                 const double* values) {
    std::vector<double> sums(bins * lanes, 0.0);
    for (const Code code : codes) {
        double* const sum = &sums[std::size_t(code) * lanes];
        for (int k = 0; k < lanes; ++k) sum[k] += values[k];
        values += lanes;
    }
    return sums;
}

// A feature with few values: a code a row, increasing with the value, and one row that has each. A
// code beyond them stands for a value that is missing.
template <class Code>
class BinnedFeature {
  public:
    BinnedFeature(std::vector<Code> codes, std::vector<std::int32_t> examples, Trend trend)
        : codes_(std::move(codes)), examples_(std::move(examples)), trend_(trend) {}

    static std::size_t categories() { return 0; }
    static void sums(const double*, double*) {}

    template <int lanes>
    void best(const double* doubled, const double* totals, double* gains) const {
        const std::vector<double> bins = histogram<lanes>(doubled);
        const double* const apart = &bins[examples_.size() * lanes];
        std::array<double, lanes> present;
        for (int k = 0; k < lanes; ++k) present[k] = totals[k] - 0.5 * apart[k];
        best_of_present<lanes>(bins, present.data(), gains);
        for (int k = 0; k < lanes; ++k) gains[k] += std::abs(0.5 * apart[k]);
    }

    Split locate(const double* doubled, double total, double slack) const {
        const std::vector<double> bins = histogram<1>(doubled);
        const double apart = 0.5 * bins.back();
        total -= apart;
        double least;
        best_of_present<1>(bins, &total, &least);
        least -= slack;
        Split found{total};
        if (std::abs(total) < least)
            with_trend(trend_, [&](auto t) {
                found = first<decltype(t)::value>(bins, total, least);
            });
        found.missing = apart;
        return found;
    }

  private:
    // The last bin is that of the missing values; it stays zero where there is none.
    template <int lanes>
    std::vector<double> histogram(const double* doubled) const {
        return sums_by_code<lanes>(codes_, examples_.size() + 1, doubled);
    }

    template <int lanes>
    void best_of_present(const std::vector<double>& bins, const double* totals,
                         double* gains) const {
        with_trend(trend_, [&](auto trend) {
            Sums<lanes, decltype(trend)::value> sums(totals);
            for (std::size_t b = 0; b + 1 < examples_.size(); ++b) {
                sums.add(&bins[b * lanes], -1.0);
                sums.compare();
            }
            std::copy(sums.best.begin(), sums.best.end(), gains);
        });
    }

    template <Trend trend>
    Split first(const std::vector<double>& bins, double total, double least) const {
        double now = total;
        for (std::size_t b = 0; b + 1 < examples_.size(); ++b) {
            now -= bins[b];
            if (allowed<trend>(now) >= least) return {now, examples_[b], examples_[b + 1]};
        }
        return {total};
    }

    std::vector<Code> codes_;
    std::vector<std::int32_t> examples_;
    Trend trend_;
};

// A feature whose values are categories, a code a row: the best subset of them takes each by the
// sign of its sum, because the gain is linear in what the stump says of a category.
template <class Code>
class CategoricalFeature {
  public:
    CategoricalFeature(std::vector<Code> codes, std::size_t categories)
        : codes_(std::move(codes)), categories_(categories) {}

    std::size_t categories() const { return categories_; }
    static Split locate(const double*, double total, double) { return {total}; }

    template <int lanes>
    void best(const double* doubled, const double*, double* gains) const {
        const std::vector<double> bins = sums_by_code<lanes>(codes_, categories_, doubled);
        std::fill(gains, gains + lanes, 0.0);
        for (std::size_t c = 0; c < categories_; ++c)
            for (int k = 0; k < lanes; ++k) gains[k] += std::abs(0.5 * bins[c * lanes + k]);
    }

    void sums(const double* weights, double* sums) const {
        const std::vector<double> bins = sums_by_code<1>(codes_, categories_, weights);
        std::copy(bins.begin(), bins.end(), sums);
    }

  private:
    std::vector<Code> codes_;
    std::size_t categories_;
};

// All features of one matrix, presorted: what every round of boosting asks again.
class StumpSearch {
  public:
    explicit StumpSearch(std::int64_t rows) : rows_(rows) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t features() const { return static_cast<std::int64_t>(features_.size()); }

    template <class Feature>
    void add(Feature feature) {
        features_.emplace_back(std::move(feature));
    }

    // weights (segments, rows), gains (features, segments). Threads share out the features; no sum
    // depends on which one made it.
    void gains(const double* weights, std::int64_t segments, double* gains, int n_threads,
               Poll poll) const {
        if (segments == 0 || features() == 0) return;
        const std::int64_t groups = (segments + most_lanes - 1) / most_lanes;
        for (std::int64_t g = 0; g < groups; ++g) {
            const std::int64_t begin = segments * g / groups, end = segments * (g + 1) / groups;
            with_lanes<most_lanes>(static_cast<int>(end - begin), [&](auto lanes) {
                constexpr int n = decltype(lanes)::value;
                std::vector<double> doubled(static_cast<std::size_t>(rows_) * n);
                std::array<double, n> totals{};
                for (int k = 0; k < n; ++k) {
                    const double* const own = weights + (begin + k) * rows_;
                    totals[k] = pack(own, doubled.data() + k, n);
                }
                // A thread costs as much as a million additions.
                const std::int64_t worth = 1 + rows_ * features() * n / 1000000;
                const auto helpers = static_cast<int>(std::min<std::int64_t>(n_threads, worth));
                each_task(features(), helpers, poll, [&](std::int64_t f, int) {
                    double* const own = gains + f * segments + begin;
                    std::visit(
                        [&](const auto& feature) {
                            feature.template best<n>(doubled.data(), totals.data(), own);
                        },
                        at(f));
                });
            });
        }
    }

    // How many categories a feature has, 0 if its values are numbers.
    std::int64_t categories(std::int64_t feature) const {
        return std::visit([](const auto& f) { return static_cast<std::int64_t>(f.categories()); },
                          at(feature));
    }

    // The best threshold of one feature of numbers for one segment's weights, the lowest within
    // `slack`.
    Split locate(const double* weights, std::int64_t feature, double slack) const {
        std::vector<double> doubled(static_cast<std::size_t>(rows_));
        const double total = pack(weights, doubled.data(), 1);
        return std::visit([&](const auto& f) { return f.locate(doubled.data(), total, slack); },
                          at(feature));
    }

    // One segment's weights summed category by category.
    void sums(const double* weights, std::int64_t feature, double* sums) const {
        std::visit([&](const auto& f) { f.sums(weights, sums); }, at(feature));
    }

  private:
    using Feature = std::variant<SortedFeature, BinnedFeature<std::uint8_t>,
                                 BinnedFeature<std::uint16_t>, CategoricalFeature<std::uint8_t>,
                                 CategoricalFeature<std::uint16_t>>;

    // Twice the weights, `stride` apart; returns their sum.
    double pack(const double* weights, double* doubled, int stride) const {
        double total = 0;
        for (std::int64_t i = 0; i < rows_; ++i) {
            total += weights[i];
            doubled[i * stride] = 2 * weights[i];
        }
        return total;
    }

    template <int lanes, class Body>
    static void with_lanes(int n, const Body& body) {
        if (n == lanes)
            body(std::integral_constant<int, lanes>{});
        else if constexpr (lanes > 1)
            with_lanes<lanes - 1>(n, body);
    }

    const Feature& at(std::int64_t feature) const {
        return features_[static_cast<std::size_t>(feature)];
    }

    std::int64_t rows_;
    std::vector<Feature> features_;
};

}  // namespace setwise

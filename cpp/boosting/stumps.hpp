// Decision stumps: for every feature and every weighting of the rows, the split that tells them best.
//
// A stump says +-1 on the two sides of a threshold. With U the weights of one segment, T their sum
// and L the sum of those at or below the threshold, it gains |T - 2 L|. One walk over the rows by
// increasing value meets every threshold; the sums of several segments go along together.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "numeric/threads.hpp"

namespace setwise {

// Two rows with neighbouring values, between which a threshold lies; `none` is a row that is not
// stored. Both none: the constant stump.
struct Split {
    static constexpr std::int64_t none = -1;
    double gain;  // T - 2 L: its sign is the side of the larger values
    std::int64_t low = none, high = none;
};

// Segments that are summed together: enough to fill the registers, no more.
constexpr int most_lanes = 8;

template <int lanes>
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
        for (int k = 0; k < lanes; ++k) best[k] = std::max(best[k], std::abs(now[k]));
    }
};

// A feature with many values: the rows as they are met, those of the smallest value first. Rows that
// are not stored (the zeros of a sparse matrix) share one value: `up` walks towards it from below,
// `down` from above. A mark on the last row of a run of equal values says that a threshold follows.
class SortedFeature {
  public:
    static constexpr std::uint32_t mark = 0x80000000u;

    SortedFeature(std::vector<std::uint32_t> up, std::vector<std::uint32_t> down)
        : up_(std::move(up)), down_(std::move(down)) {}

    // `doubled`: twice the weights, the lanes of a row side by side.
    template <int lanes>
    void best(const double* doubled, const double* totals, double* gains) const {
        Sums<lanes> sums(totals);
        walk(up_, doubled, sums, -1.0);
        sums.set(totals, -1.0);
        walk(down_, doubled, sums, 1.0);
        std::copy(sums.best.begin(), sums.best.end(), gains);
    }

    // The lowest threshold whose gain is the best but for `slack`: sums that are equal but for their
    // rounding tie.
    Split locate(const double* doubled, double total, double slack) const {
        double least;
        best<1>(doubled, &total, &least);
        least -= slack;
        if (std::abs(total) >= least) return {total};
        double now = total;
        for (std::size_t k = 0; k < up_.size(); ++k) {
            now -= doubled[row(up_[k])];
            if ((up_[k] & mark) && std::abs(now) >= least)
                return {now, row(up_[k]), k + 1 < up_.size() ? row(up_[k + 1]) : Split::none};
        }
        Split found{total};
        now = -total;
        for (std::size_t k = 0; k < down_.size(); ++k) {
            now += doubled[row(down_[k])];
            if ((down_[k] & mark) && std::abs(now) >= least)
                found = {now, k + 1 < down_.size() ? row(down_[k + 1]) : Split::none,
                         row(down_[k])};
        }
        return found;
    }

  private:
    static std::int64_t row(std::uint32_t entry) { return entry & ~mark; }

    template <int lanes>
    static void walk(const std::vector<std::uint32_t>& rows, const double* doubled,
                     Sums<lanes>& sums, double factor) {
        constexpr std::size_t ahead = 24;
        const std::size_t n = rows.size();
        for (std::size_t k = 0; k < n; ++k) {
            prefetch(doubled + lanes * row(rows[std::min(k + ahead, n - 1)]));
            sums.add(doubled + lanes * row(rows[k]), factor);
            if (rows[k] & mark) sums.compare();
        }
    }

    std::vector<std::uint32_t> up_, down_;
};

// A feature with few values: a code a row, increasing with the value, and one row that has each. The
// weights are summed value by value, with the rows in the order of memory.
template <class Code>
class BinnedFeature {
  public:
    BinnedFeature(std::vector<Code> codes, std::vector<std::int32_t> examples)
        : codes_(std::move(codes)), examples_(std::move(examples)) {}

    template <int lanes>
    void best(const double* doubled, const double* totals, double* gains) const {
        const std::vector<double> bins = histogram<lanes>(doubled);
        Sums<lanes> sums(totals);
        for (std::size_t b = 0; b + 1 < examples_.size(); ++b) {
            sums.add(&bins[b * lanes], -1.0);
            sums.compare();
        }
        std::copy(sums.best.begin(), sums.best.end(), gains);
    }

    Split locate(const double* doubled, double total, double slack) const {
        double least;
        best<1>(doubled, &total, &least);
        least -= slack;
        const std::vector<double> bins = histogram<1>(doubled);
        double now = total;
        for (std::size_t b = 0; std::abs(now) < least && b + 1 < bins.size(); ++b) {
            now -= bins[b];
            if (std::abs(now) >= least) return {now, examples_[b], examples_[b + 1]};
        }
        return {total};
    }

  private:
    template <int lanes>
    std::vector<double> histogram(const double* doubled) const {
        std::vector<double> bins(examples_.size() * lanes, 0.0);
        for (const Code code : codes_) {
            double* const bin = &bins[std::size_t(code) * lanes];
            for (int k = 0; k < lanes; ++k) bin[k] += doubled[k];
            doubled += lanes;
        }
        return bins;
    }

    std::vector<Code> codes_;
    std::vector<std::int32_t> examples_;
};

// All features of one matrix, presorted: what every round of boosting asks again.
class StumpSearch {
  public:
    explicit StumpSearch(std::int64_t rows) : rows_(rows) {}

    std::int64_t rows() const { return rows_; }
    std::int64_t features() const { return static_cast<std::int64_t>(places_.size()); }

    void add(SortedFeature feature) { add(sorted_, std::move(feature), Kind::sorted); }
    void add(BinnedFeature<std::uint8_t> feature) { add(small_, std::move(feature), Kind::small); }
    void add(BinnedFeature<std::uint16_t> feature) { add(large_, std::move(feature), Kind::large); }

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
                    visit(f, [&](const auto& feature) {
                        feature.template best<n>(doubled.data(), totals.data(),
                                                 gains + f * segments + begin);
                    });
                });
            });
        }
    }

    // The best threshold of one feature for one segment's weights, the lowest within `slack`.
    Split locate(const double* weights, std::int64_t feature, double slack) const {
        std::vector<double> doubled(static_cast<std::size_t>(rows_));
        const double total = pack(weights, doubled.data(), 1);
        Split found{total};
        visit(feature, [&](const auto& f) { found = f.locate(doubled.data(), total, slack); });
        return found;
    }

  private:
    enum class Kind : std::uint8_t { sorted, small, large };
    struct Place {
        Kind kind;
        std::size_t index;
    };

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

    template <class Feature>
    void add(std::vector<Feature>& features, Feature feature, Kind kind) {
        features.push_back(std::move(feature));
        places_.push_back({kind, features.size() - 1});
    }

    template <class Body>
    void visit(std::int64_t feature, const Body& body) const {
        const Place place = places_[static_cast<std::size_t>(feature)];
        if (place.kind == Kind::sorted)
            body(sorted_[place.index]);
        else if (place.kind == Kind::small)
            body(small_[place.index]);
        else
            body(large_[place.index]);
    }

    std::int64_t rows_;
    std::vector<Place> places_;
    std::vector<SortedFeature> sorted_;
    std::vector<BinnedFeature<std::uint8_t>> small_;
    std::vector<BinnedFeature<std::uint16_t>> large_;
};

}  // namespace setwise

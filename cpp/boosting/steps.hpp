// Steps: for every feature the split whose two levels have the largest gain for all weightings of
// the rows at once.
//
// A step predicts `high` for the rows above a threshold and `low` for the others. Each threshold
// has levels of its own that were fixed beforehand. With T_s the sum of the weights of segment s
// and L_s that of the rows below, its edge there is high T_s + (low - high) L_s, and its gain is
// the Euclidean norm of the edges of all segments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "numeric/poll.hpp"
#include "numeric/threads.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

class StepSearch {
  public:
    using Index = std::int64_t;

    // The first cut of a feature whose gain is within the slack of the largest; a cut of -1 means
    // none.
    struct Best {
        double gain = 0;
        Index cut = -1;
    };

    explicit StepSearch(Index rows) : rows_(rows) {}

    Index rows() const { return rows_; }
    Index features() const { return static_cast<Index>(features_.size()); }
    Index cuts(Index feature) const {
        return static_cast<Index>(features_[static_cast<std::size_t>(feature)].low.size());
    }

    // codes (rows,) are the index of each row's value among the `values` distinct ones of the
    // feature, or `values` itself if the value is missing. low and high are the levels of each cut.
    // A cut c < values has the values up to c below and the missing values above. The cut values +
    // c has the values up to c and the missing values below. The last cut of either kind may be
    // left out.
    void add(std::vector<std::int32_t> codes, Index values, std::vector<float> low,
             std::vector<float> high) {
        features_.push_back({std::move(codes), values, std::move(low), std::move(high)});
    }

    // weights (segments, rows), best (features,). Threads share the features; no sum depends on the
    // thread that made it.
    void gains(const double* weights, Index segments, double slack, Best* best, int n_threads,
               Poll poll) const {
        const Index stride = (segments + 3) / 4 * 4;
        std::vector<double> packed(static_cast<std::size_t>(rows_ * stride), 0.0);
        for (Index s = 0; s < segments; ++s)
            for (Index i = 0; i < rows_; ++i) packed[i * stride + s] = weights[s * rows_ + i];
        // Starting a thread costs about as much as a million additions.
        const Index worth = 1 + rows_ * features() * segments / 1000000;
        each_task(features(), static_cast<int>(std::min<Index>(n_threads, worth)), poll,
                  [&](Index f, int) {
                      best[f] = best_of(features_[static_cast<std::size_t>(f)], packed.data(),
                                        stride, slack);
                  });
    }

  private:
    struct Feature {
        std::vector<std::int32_t> codes;
        Index values;
        std::vector<float> low, high;
    };

    static Best best_of(const Feature& feature, const double* packed, Index stride, double slack) {
        const auto cuts = static_cast<Index>(feature.low.size());
        if (cuts == 0) return {};
        // First, the sums of the rows of each value. Afterwards below[v] is the sum of the values
        // up to v.
        std::vector<double> sums(static_cast<std::size_t>((feature.values + 1) * stride), 0.0);
        add_up(feature.codes.data(), static_cast<Index>(feature.codes.size()), packed, stride,
               sums.data());
        const double* const missing = &sums[feature.values * stride];
        for (Index v = 1; v < feature.values; ++v)
            add(&sums[(v - 1) * stride], &sums[v * stride], stride);
        std::vector<double> totals(missing, missing + stride),
            apart(static_cast<std::size_t>(stride), 0.0);
        if (feature.values > 0) add(&sums[(feature.values - 1) * stride], totals.data(), stride);
        std::vector<double> gains(static_cast<std::size_t>(cuts));
        double most = 0;
        for (Index c = 0; c < cuts; ++c) {
            const bool with = c >= feature.values;
            const double* const below = &sums[(with ? c - feature.values : c) * stride];
            gains[c] = square(totals.data(), below, with ? missing : apart.data(), feature.high[c],
                              feature.low[c], stride);
            most = std::max(most, gains[c]);
        }
        const double enough = std::max(std::sqrt(most) - slack, 0.0);
        for (Index c = 0; c < cuts; ++c)
            if (std::sqrt(gains[c]) >= enough) return {std::sqrt(gains[c]), c};
        return {};
    }

    SETWISE_VECTORIZED static void add_up(const std::int32_t* codes, Index rows,
                                          const double* packed, Index stride, double* sums) {
        for (Index i = 0; i < rows; ++i) {
            double* const own = sums + codes[i] * stride;
            const double* const row = packed + i * stride;
            for (Index s = 0; s < stride; s += 4)
                for (Index lane = 0; lane < 4; ++lane) own[s + lane] += row[s + lane];
        }
    }

    SETWISE_VECTORIZED static void add(const double* from, double* to, Index stride) {
        for (Index s = 0; s < stride; ++s) to[s] += from[s];
    }

    SETWISE_VECTORIZED static double square(const double* totals, const double* below,
                                            const double* apart, double high, double low,
                                            Index stride) {
        double sums[4] = {};
        for (Index s = 0; s < stride; s += 4)
            for (Index lane = 0; lane < 4; ++lane) {
                const double under = below[s + lane] + apart[s + lane];
                const double edge = high * (totals[s + lane] - under) + low * under;
                sums[lane] += edge * edge;
            }
        return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }

    Index rows_;
    std::vector<Feature> features_;
};

}  // namespace setwise

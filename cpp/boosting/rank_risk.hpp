// Sums over pairs of rows with different levels, by one sort and two sweeps, without listing pairs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "surrogates/order.hpp"

namespace setwise {

// Sums of weights of all levels below a given one: a Fenwick tree.
class LevelSums {
  public:
    void reset(std::size_t n_levels) { nodes_.assign(n_levels, 0.0); }
    void add(std::size_t level, double weight) {
        for (std::size_t k = level + 1; k < nodes_.size(); k += k & (~k + 1)) nodes_[k] += weight;
    }
    double below(std::size_t level) const {
        double sum = 0;
        for (std::size_t k = level; k > 0; k &= k - 1) sum += nodes_[k];
        return sum;
    }

  private:
    std::vector<double> nodes_;
};

// The same sums for two levels, without a branch.
class TwoLevelSums {
  public:
    void reset(std::size_t) { sum_ = 0; }
    void add(std::size_t level, double weight) { sum_ += static_cast<double>(1 - level) * weight; }
    double below(std::size_t level) const { return static_cast<double>(level) * sum_; }

  private:
    double sum_ = 0;
};

// Rows with levels and weights, in groups that are ranges of rows. A pair of rows of one group, i
// above j in level, is active if scores_i - margin < scores_j, and then has the weight w_i w_j.
class RankPairs {
  public:
    RankPairs(std::vector<std::int32_t> levels, std::vector<double> weights,
              std::vector<std::int64_t> offsets)
        : levels_(std::move(levels)),
          weights_(std::move(weights)),
          offsets_(std::move(offsets)),
          ones_(levels_.size(), 1) {}

    std::size_t rows() const { return levels_.size(); }

    // Write slopes_j: the weight of the active pairs in which j is the lower row, minus the weight
    // of those in which it is the higher row. Return the weight of all active pairs. The sum of
    // (margin - s_i + s_j) over them is this weight times margin, plus <slopes, scores>.
    double slopes(const double* scores, double margin, double* slopes, Poll poll) {
        double active = 0;
        for (std::size_t g = 1; g < offsets_.size(); ++g) {
            const auto begin = static_cast<std::size_t>(offsets_[g - 1]);
            sort(scores, begin, offsets_[g] - offsets_[g - 1], poll);
            active += n_levels_ == 2 ? sweep(two_, margin, slopes + begin, poll)
                                     : sweep(many_, margin, slopes + begin, poll);
        }
        return active;
    }

  private:
    struct Entry {
        double score, weight;
        std::uint32_t level, index;
    };

    void sort(const double* scores, std::size_t begin, std::int64_t n, Poll poll) {
        const double* const own = scores + begin;
        order_kept(
            Row<double>{ones_.data(), own, n}, [](bool, double) { return true; }, work_, poll);
        rows_.resize(static_cast<std::size_t>(n));
        slopes_.resize(rows_.size());
        n_levels_ = 0;
        for (std::size_t k = 0; k < rows_.size(); ++k) {
            const std::size_t later = index_of(work_.items[std::min(k + 24, rows_.size() - 1)]);
            prefetch(own + later);
            prefetch(&weights_[begin + later]);
            prefetch(&levels_[begin + later]);
            const std::uint32_t index = index_of(work_.items[k]);
            const auto level = static_cast<std::uint32_t>(levels_[begin + index]);
            rows_[k] = {own[index], weights_[begin + index], level, index};
            n_levels_ = std::max(n_levels_, std::size_t(level) + 1);
        }
    }

    template <class Sums>
    double sweep(Sums& sums, double margin, double* slopes, Poll poll) {
        const std::size_t size = rows_.size();
        double active = 0;
        sums.reset(n_levels_);
        for (std::size_t i = size, j = size; i-- > 0;) {
            for (; j > 0 && rows_[i].score - margin < rows_[j - 1].score; --j)
                sums.add(rows_[j - 1].level, rows_[j - 1].weight);
            slopes_[i] = rows_[i].weight * sums.below(rows_[i].level);
            active += slopes_[i];
        }
        poll();
        sums.reset(n_levels_);
        for (std::size_t i = 0, j = 0; j < size; ++j) {
            for (; i < size && rows_[i].score - margin < rows_[j].score; ++i)
                sums.add(n_levels_ - 1 - rows_[i].level, rows_[i].weight);
            const double above = sums.below(n_levels_ - 1 - rows_[j].level);
            slopes[rows_[j].index] = rows_[j].weight * above - slopes_[j];
        }
        poll();
        return active;
    }

    std::vector<std::int32_t> levels_;
    std::vector<double> weights_;
    std::vector<std::int64_t> offsets_;
    std::vector<std::uint8_t> ones_;
    // Work space for the present group.
    Workspace work_;
    std::vector<Entry> rows_;
    std::vector<double> slopes_;
    std::size_t n_levels_ = 0;
    LevelSums many_;
    TwoLevelSums two_;
};

}  // namespace setwise

// The worst interleaving of relevant and irrelevant rows for the average precision, exactly.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

// Queries are ranges of rows. Let x_1, ..., x_p be the relevant rows and z_1, ..., z_n the
// irrelevant ones, both by falling score. A ranking puts z_j above all relevant rows from k_j on.
// Its loss is 1 - (1/p) sum_i i / (i + #{j: k_j <= i}), and the risk of Yue et al. (2007) is the
// largest loss - 2 / (p n) sum over the pairs with i >= k_j of (x_i - z_j). Moving z_j from below
// x_i to above it changes the loss by i / (i + j - 1) - i / (i + j), whatever the other k are, so
// each k_j can be chosen separately. Both this term and z_j decrease in j, so k_j increases. Divide
// and conquer then takes O((p + n) log n) after the sort.
class AveragePrecisionRisk {
  public:
    AveragePrecisionRisk(std::vector<std::uint8_t> relevant, std::vector<std::int64_t> offsets)
        : relevant_(std::move(relevant)), offsets_(std::move(offsets)), harmonic_(1, 0.0) {}

    std::size_t rows() const { return relevant_.size(); }
    std::size_t queries() const { return offsets_.size() - 1; }

    // Compute the loss of the worst ranking of each query, and its slopes in the scores: the risk
    // is losses_q + <slopes, scores>. Both are zero for queries with rows of one kind only. Rows of
    // one kind with equal scores have equal slopes, which are means over all worst rankings.
    void plane(const double* scores, double* losses, double* slopes, Poll poll) {
        for (std::size_t q = 0; q + 1 < offsets_.size(); ++q) {
            const auto begin = static_cast<std::size_t>(offsets_[q]);
            const auto end = static_cast<std::size_t>(offsets_[q + 1]);
            high_.clear();
            low_.clear();
            for (std::size_t i = begin; i < end; ++i) {
                (relevant_[i] ? high_ : low_).push_back({scores[i], i});
                slopes[i] = 0;
            }
            losses[q] = 0;
            if (!high_.empty() && !low_.empty()) losses[q] = worst(slopes, poll);
            poll();
        }
    }

  private:
    struct Row {
        double score;
        std::size_t index;
    };

    double worst(double* slopes, Poll poll) {
        const std::size_t p = high_.size(), n = low_.size();
        for (auto* rows : {&high_, &low_})
            std::sort(rows->begin(), rows->end(), [](const Row& a, const Row& b) {
                return a.score != b.score ? a.score > b.score : a.index < b.index;
            });
        while (harmonic_.size() <= p + n)
            harmonic_.push_back(harmonic_.back() + 1.0 / static_cast<double>(harmonic_.size()));
        sums_.assign(p + 1, 0.0);
        for (std::size_t i = 0; i < p; ++i) sums_[i + 1] = sums_[i] + high_[i].score;
        place_.resize(n);
        interleave(0, n, 0, p, poll);

        const double pairs = static_cast<double>(p) * static_cast<double>(n);
        above_.assign(p, 0.0);
        double loss = 0;
        for (std::size_t i = 0, j = 0; i < p; ++i) {
            while (j < n && place_[j] <= i) ++j;
            above_[i] = static_cast<double>(j);
            loss += above_[i] / (static_cast<double>(i + 1) + above_[i]);
        }
        share_ties(high_, [&](std::size_t i) { return -2.0 * above_[i] / pairs; }, slopes);
        share_ties(
            low_, [&](std::size_t j) { return 2.0 * static_cast<double>(p - place_[j]) / pairs; },
            slopes);
        return loss / static_cast<double>(p);
    }

    // Return p times the gain of the loss and the scores if z_j, 0-based, stands above x_k,
    // x_(k+1), ...
    double gain(std::size_t j, std::size_t k) const {
        const std::size_t p = high_.size();
        const auto next = static_cast<double>(j + 1), now = static_cast<double>(j);
        const double cost = next * (harmonic_[p + j + 1] - harmonic_[k + j + 1]) -
                            now * (harmonic_[p + j] - harmonic_[k + j]);
        const double apart = sums_[p] - sums_[k] - static_cast<double>(p - k) * low_[j].score;
        return cost - 2.0 * apart / static_cast<double>(low_.size());
    }

    // Find the best places of z_begin, ..., z_(end - 1), known to lie between first and last.
    void interleave(std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                    Poll poll) {
        if (begin >= end) return;
        const std::size_t middle = begin + (end - begin) / 2;
        std::size_t best = first;
        double most = gain(middle, first);
        for (std::size_t k = first + 1; k <= last; ++k) {
            const double here = gain(middle, k);
            if (here > most) {
                most = here;
                best = k;
            }
        }
        place_[middle] = best;
        if (last - first > 4096) poll();
        interleave(begin, middle, first, best, poll);
        interleave(middle + 1, end, best, last, poll);
    }

    template <class Slope>
    static void share_ties(const std::vector<Row>& rows, Slope slope, double* slopes) {
        for (std::size_t i = 0, j = 0; i < rows.size(); i = j) {
            double sum = 0;
            for (; j < rows.size() && rows[j].score == rows[i].score; ++j) sum += slope(j);
            const double mean = sum / static_cast<double>(j - i);
            for (std::size_t t = i; t < j; ++t) slopes[rows[t].index] = mean;
        }
    }

    std::vector<std::uint8_t> relevant_;
    std::vector<std::int64_t> offsets_;
    std::vector<double> harmonic_;  // 1 + 1/2 + ... + 1/t
    // The rows of the present query.
    std::vector<Row> high_, low_;
    std::vector<double> sums_, above_;
    std::vector<std::size_t> place_;
};

}  // namespace setwise

// A given number of labels for each row, such that a mean over the labels is best: macro F-beta, macro
// Jaccard, or the probability that each label is right in some row.
//
// With m_c the expected number of rows that have label c, k_c the number of rows that get it and a_c
// the expected number of these that have it, the score is the sum over the labels of w_c times
//
//        F-beta:  (1 + b) a_c / (k_c + b m_c),     Jaccard:  a_c / (m_c + k_c - a_c),
//        coverage:  1 - prod_{rows with c} (1 - p_ic),
//
// and 0 for a label without rows. A row has each label at most once. So given all other rows, its best
// labels are those of the largest changes, and taking them row after row never lowers the score.
//
// For any prices l of the rows that have r_i labels, the score of every choice is at most
//
//        sum_i r_i l_i + sum_c max_A (score_c(A) - l(A)),
//
// over all sets A of candidate rows of label c; prices must not be negative where fewer labels are
// allowed. The first prices lie between the last change that was taken in a row and the next one.
// Subgradient steps follow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "decisions/priced_mask.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

enum class MacroScore { f_beta, jaccard, coverage };

// Probabilities in rows: entry e of row i, for e in [ends[i], ends[i + 1]), is that of label[e].
struct SparseRows {
    const double* p;
    const std::int64_t* label;
    const std::int64_t* ends;
    std::int64_t rows, labels;
};

class Budget {
  public:
    Budget(SparseRows rows, MacroScore score, double b, const double* weight, std::int64_t k,
           bool at_most, int n_threads, Poll poll)
        : rows_(rows),
          score_(score),
          b_(b),
          weight_(weight),
          k_(k),
          at_most_(at_most),
          n_threads_(n_threads),
          poll_(poll) {
        labels_.resize(static_cast<std::size_t>(rows.labels));
        for (std::int64_t e = 0; e < rows_.ends[rows_.rows]; ++e) at(e).m += rows_.p[e];
    }

    // Choose entries; `chosen` has a byte for each. Return a bound on the score of every choice,
    // from whose sets further ascents start.
    double solve(std::uint8_t* chosen) {
        std::vector<std::uint8_t> now(static_cast<std::size_t>(rows_.ends[rows_.rows]));
        double best = -1;
        const auto climb = [&] {
            double value = -1;
            for (int pass = 0; pass < most_passes; ++pass) {
                for (std::int64_t i = 0; i < rows_.rows; ++i) {
                    choose(i, now.data());
                    if ((i & 1023) == 0) poll_();
                }
                ++passes_;
                const double after = count(now.data());
                const bool done = after <= value + least_gain * std::abs(value);
                value = after;
                if (done) break;
            }
            if (value > best) {
                best = value;
                std::copy(now.begin(), now.end(), chosen);
            }
        };
        // The first pass is greedy.
        count(now.data());
        climb();
        by_label();
        double most = std::numeric_limits<double>::infinity();
        for (int round = 0; round < rounds; ++round) {
            most = std::min(most, bound(chosen));
            if (most - best <= small_gap * best) break;
            for (std::size_t e = 0; e < taken_.size(); ++e)
                now[static_cast<std::size_t>(entry_[e])] = taken_[e];
            count(now.data());
            climb();
        }
        count(chosen);
        return most;
    }

    std::int64_t passes() const { return passes_; }

    // Write the weighted score of each label, for the choice of the last call of `count`.
    void terms(double* to) const {
        for (std::size_t c = 0; c < labels_.size(); ++c) to[c] = weight_[c] * score(labels_[c]);
    }

  private:
    static constexpr int most_passes = 100;
    // An ascent ends when a pass adds less than this share of the score.
    static constexpr double least_gain = 1e-7;
    // Rounds of the bound and of an ascent from its sets, and steps of the bound in each.
    static constexpr int rounds = 2, most_steps = 3;
    // A gap of this share of the score needs no further step.
    static constexpr double small_gap = 1e-5;
    // Per-label maxima are found to this share of the gap; see label_bound.hpp.
    static constexpr double tolerance = 0.2;

    struct Label {
        double m = 0, a = 0, k = 0;
        double miss = 1;  // the probability that no row is right, without the certain ones
        double sure = 0;  // the number of chosen rows that have the label for certain
    };

    Label& at(std::int64_t e) { return labels_[static_cast<std::size_t>(rows_.label[e])]; }
    const Label& at(std::int64_t e) const {
        return labels_[static_cast<std::size_t>(rows_.label[e])];
    }

    double ratio(double m, double a, double k) const {
        return score_ == MacroScore::jaccard ? a / (m + k - a) : (1 + b_) * a / (k + b_ * m);
    }
    double score(const Label& c) const {
        if (score_ == MacroScore::coverage) return c.sure > 0 ? 1.0 : 1 - c.miss;
        return c.k > 0 ? ratio(c.m, c.a, c.k) : 0.0;
    }
    // The change of a label's score when it also gets a row of probability p.
    double gain(const Label& c, double p) const {
        if (score_ == MacroScore::coverage) return c.sure > 0 ? 0.0 : c.miss * p;
        return ratio(c.m, c.a + p, c.k + 1) - (c.k > 0 ? ratio(c.m, c.a, c.k) : 0.0);
    }
    static void put(Label& c, double p) {
        c.a += p;
        c.k += 1;
        p < 1 ? c.miss *= 1 - p : c.sure += 1;
    }
    static void take(Label& c, double p) {
        c.k -= 1;
        c.a = c.k > 0 ? std::max(c.a - p, 0.0) : 0.0;
        if (p < 1)
            c.miss = std::min(c.miss / (1 - p), 1.0);
        else
            c.sure -= 1;
    }

    // Compute the sizes of a choice, and return its score.
    double count(const std::uint8_t* chosen) {
        for (Label& c : labels_) c = Label{c.m};
        for (std::int64_t e = 0; e < rows_.ends[rows_.rows]; ++e)
            if (chosen[e]) put(at(e), rows_.p[e]);
        double total = 0;
        for (std::size_t c = 0; c < labels_.size(); ++c) total += weight_[c] * score(labels_[c]);
        return total;
    }

    using Gain = std::pair<double, std::int64_t>;

    // Choose the k entries of the largest gains; the first ones of equal gains.
    void keep_best(std::uint8_t* chosen) {
        if (at_most_)
            gains_.erase(std::remove_if(gains_.begin(), gains_.end(),
                                        [](const Gain& g) { return !(g.first > 0); }),
                         gains_.end());
        if (static_cast<std::int64_t>(gains_.size()) > k_) {
            std::nth_element(gains_.begin(), gains_.begin() + k_, gains_.end(), before);
            gains_.resize(static_cast<std::size_t>(k_));
        }
        for (const Gain& g : gains_) chosen[g.second] = 1;
    }
    static bool before(const Gain& x, const Gain& y) {
        return x.first > y.first || (x.first == y.first && x.second < y.second);
    }

    // Compute the gains of a row's entries, given all other rows.
    void gains_of(std::int64_t i, std::uint8_t* chosen) {
        gains_.clear();
        for (std::int64_t e = rows_.ends[i]; e < rows_.ends[i + 1]; ++e)
            if (chosen[e]) take(at(e), rows_.p[e]);
        for (std::int64_t e = rows_.ends[i]; e < rows_.ends[i + 1]; ++e)
            gains_.push_back({weight_[rows_.label[e]] * gain(at(e), rows_.p[e]), e});
    }

    void choose(std::int64_t i, std::uint8_t* chosen) {
        gains_of(i, chosen);
        std::fill(chosen + rows_.ends[i], chosen + rows_.ends[i + 1], std::uint8_t(0));
        keep_best(chosen);
        for (const Gain& g : gains_) put(at(g.second), rows_.p[g.second]);
    }

    // Return the first price of a row.
    double price(std::int64_t i, std::uint8_t* chosen) {
        gains_of(i, chosen);
        for (std::int64_t e = rows_.ends[i]; e < rows_.ends[i + 1]; ++e)
            if (chosen[e]) put(at(e), rows_.p[e]);
        const auto k = static_cast<std::size_t>(k_);
        if (gains_.size() <= k) return at_most_ ? 0.0 : -2 * largest_weight();  // all are taken
        if (k == 0) return std::max_element(gains_.begin(), gains_.end())->first;
        std::nth_element(gains_.begin(), gains_.begin() + k_, gains_.end(), before);
        const double next = gains_[k].first;
        double last = next;
        for (std::size_t j = 0; j < k; ++j)
            last = j ? std::min(last, gains_[j].first) : gains_[j].first;
        const double middle = (last + next) / 2;
        return at_most_ ? std::max(middle, 0.0) : middle;
    }

    double largest_weight() const { return *std::max_element(weight_, weight_ + rows_.labels); }

    // Return a bound on the score of every choice, by prices that start at those of this one.
    double bound(std::uint8_t* chosen) {
        const double found = count(chosen);
        const auto n_rows = static_cast<std::size_t>(rows_.rows);
        std::vector<double> prices(n_rows), direction(n_rows);
        for (std::int64_t i = 0; i < rows_.rows; ++i)
            prices[static_cast<std::size_t>(i)] = price(i, chosen);
        double best = std::numeric_limits<double>::infinity(), share = 0.5;
        for (int step = 0; step < most_steps; ++step) {
            const double value = dual(prices, found, best, direction);
            if (!(value < best)) share /= 2;
            best = std::min(best, value);
            if (best - found <= small_gap * found) break;
            double norm = 0;
            for (const double g : direction) norm += g * g;
            if (!(norm > 0)) break;
            const double length = share * (value - found) / norm;
            for (std::size_t i = 0; i < n_rows; ++i) {
                prices[i] -= length * direction[i];
                if (at_most_) prices[i] = std::max(prices[i], 0.0);
            }
        }
        return best;
    }

    // Arrange the entries label by label, with the factors of PricedMask.
    void by_label() {
        const auto n = static_cast<std::size_t>(rows_.ends[rows_.rows]);
        first_.assign(labels_.size() + 1, 0);
        for (std::size_t e = 0; e < n; ++e) ++first_[static_cast<std::size_t>(rows_.label[e]) + 1];
        for (std::size_t c = 0; c < labels_.size(); ++c) first_[c + 1] += first_[c];
        std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
        p_.resize(n);
        row_.resize(n);
        entry_.resize(n);
        above_.resize(n);
        for (std::int64_t i = 0; i < rows_.rows; ++i)
            for (std::int64_t e = rows_.ends[i]; e < rows_.ends[i + 1]; ++e) {
                const std::size_t to = next[static_cast<std::size_t>(rows_.label[e])]++;
                p_[to] = rows_.p[e];
                row_[to] = i;
                entry_[to] = e;
            }
        each_part([&](std::size_t c, PricedMask&, std::vector<double>& work) {
            const std::size_t size = first_[c + 1] - first_[c];
            const double* const p = p_.data() + first_[c];
            double* const above = above_.data() + first_[c];
            if (score_ == MacroScore::coverage) {
                for (std::size_t i = 0; i < size; ++i)
                    above[i] = -std::log1p(-std::min(p[i], below_one));
                return;
            }
            work.assign(p, p + size);
            if (score_ == MacroScore::jaccard)
                std::sort(work.begin(), work.end(), std::greater<double>());
            double overlap = 0;  // that of the most probable rows, the largest of this size
            for (std::size_t i = 0; i < size; ++i) {
                const auto k = static_cast<double>(i + 1);
                overlap += work[i];
                above[i] = weight_[c] * (score_ == MacroScore::jaccard
                                             ? 1 / (labels_[c].m + k - overlap)
                                             : (1 + b_) / (k + b_ * labels_[c].m));
            }
        });
    }

    // Call body(label, mask, work) for each label, a few at a time.
    template <class Body>
    void each_part(const Body& body) {
        const std::size_t step = 256;
        const auto parts = static_cast<std::int64_t>((labels_.size() + step - 1) / step);
        std::vector<PricedMask> masks(static_cast<std::size_t>(n_threads_));
        std::vector<std::vector<double>> work(masks.size());
        each_task(parts, n_threads_, poll_, [&](std::int64_t part, int worker) {
            const std::size_t begin = static_cast<std::size_t>(part) * step;
            const auto own = static_cast<std::size_t>(worker);
            for (std::size_t c = begin; c < std::min(begin + step, labels_.size()); ++c)
                body(c, masks[own], work[own]);
        });
    }

    // Return the bound for these prices. `direction` receives a subgradient: the labels that each
    // row has less those that it gets.
    double dual(const std::vector<double>& prices, double found, double best,
                std::vector<double>& direction) {
        const double gap = std::isfinite(best) ? best - found : 1e-3 * found;
        const double allowed = tolerance * gap / static_cast<double>(labels_.size() + 1);
        std::vector<double> values(labels_.size());
        taken_.assign(p_.size(), 0);
        each_part([&](std::size_t c, PricedMask& mask, std::vector<double>& work) {
            const std::size_t begin = first_[c], size = first_[c + 1] - begin;
            work.resize(size);
            for (std::size_t i = 0; i < size; ++i)
                work[i] = prices[static_cast<std::size_t>(row_[begin + i])];
            if (score_ == MacroScore::coverage) {
                values[c] = coverage(c, work);
                return;
            }
            values[c] = mask.best(p_.data() + begin, above_.data() + begin, work.data(), size, 0.0,
                                  allowed);
            for (const std::uint32_t i : mask.mask) taken_[begin + i] = 1;
        });
        double total = 0, magnitude = 0;
        for (std::int64_t i = 0; i < rows_.rows; ++i) {
            const auto row = static_cast<std::size_t>(i);
            const auto size = static_cast<double>(std::min(k_, rows_.ends[i + 1] - rows_.ends[i]));
            direction[row] = size;
            total += size * prices[row];
            magnitude += size * std::abs(prices[row]);
        }
        for (const double value : values) {
            total += value;
            magnitude += std::abs(value);
        }
        for (std::size_t e = 0; e < p_.size(); ++e)
            if (taken_[e]) direction[static_cast<std::size_t>(row_[e])] -= 1;
        return total + rounding * magnitude;
    }

    // With s = -log(1 - p), the coverage is a concave function of the sum of s over the rows, and lies
    // below its tangents 1 - t + t log t + t sum_A s_i, 0 < t <= 1. Return the least of
    //
    //        w (1 - t + t log t) + sum_i max(0, w t s_i - l_i).
    double coverage(std::size_t c, const std::vector<double>& prices) {
        const double* const s = above_.data() + first_[c];
        const double w = weight_[c];
        double low = std::log(1e-12), high = 0;
        for (int step = 0; step < 16; ++step) {  // any t gives a bound
            const double log_t = (low + high) / 2, t = std::exp(log_t);
            double slope = log_t;
            for (std::size_t i = 0; i < prices.size(); ++i)
                slope += w * t * s[i] > prices[i] ? s[i] : 0.0;
            (slope > 0 ? high : low) = log_t;
        }
        const double t = std::exp(high);
        double value = w * (1 - t + t * high);
        for (std::size_t i = 0; i < prices.size(); ++i) {
            const double more = w * t * s[i] - prices[i];
            value += more > 0 ? more : 0.0;
            taken_[first_[c] + i] = more > 0;
        }
        return value;
    }

    // Certain rows count as if their probability were this, which lowers no score by more than 1e-15.
    static constexpr double below_one = 1 - 1e-15;
    // The bound is rounded outwards by this share of its terms.
    static constexpr double rounding = 1e-11;

    SparseRows rows_;
    MacroScore score_;
    double b_;
    const double* weight_;
    std::int64_t k_;
    bool at_most_;
    int n_threads_;
    Poll poll_;
    std::vector<Label> labels_;
    std::vector<Gain> gains_;
    std::vector<std::size_t> first_;
    std::vector<double> p_, above_;
    std::vector<std::int64_t> row_, entry_;
    std::int64_t passes_ = 0;
    std::vector<std::uint8_t> taken_;
};

}  // namespace setwise

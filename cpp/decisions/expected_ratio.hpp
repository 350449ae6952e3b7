// The expected Jaccard index, or F-beta score, of sets with independent elements.
//
// Element i is in the true set with probability p_i and has the weight w_i. For the set of the
// first k of an order, with c_k = w_1 + ... + w_k and 1 / x = int_0^inf exp(-x u) du,
//
//        Jaccard:  sum_{i <= k} w_i p_i  int exp(-c_k u) prod_{j > k} f_j(u) du,
//        F-beta:   (1 + b) int exp(-c_k u) prod_j f_j(u) sum_{i <= k} w_i p_i exp(-b w_i u) / f_i(u) du,
//
// with f_j(u) = 1 - p_j + p_j exp(-b w_j u), b = 1 for Jaccard and beta^2 for F-beta. Bounds by
// moments leave few candidates k. Only products of factors are computed for all other k.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "decisions/exponential_sum.hpp"
#include "numeric/exponentials.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// The best set of a chain: the first k of an order have the largest expected score of all.
struct BestPrefix {
    std::int64_t k;
    double score;
    double most;  // an upper bound of the expected score of every set, by moments alone
};

class ExpectedRatio {
  public:
    // jaccard: b is 1 and the union counts; otherwise F-beta with b = beta^2.
    ExpectedRatio(bool jaccard, double b) : jaccard_(jaccard), b_(b) {}

    // p[0..n) decreasing. w[0..n): their positive weights, or nullptr for 1 each. *none: the
    // expected score of the empty set, or nullptr for that of independent elements.
    BestPrefix best(const double* p, const double* w, std::int64_t n, const double* none,
                    Poll poll) {
        // An element of probability 0 changes no expectation and is in no best set.
        while (!w && n > 0 && p[n - 1] == 0) --n;
        p_ = p, w_ = w, n_ = n;
        BestPrefix best{0, none ? *none : all_absent(), 0};
        best.most = best.score;
        bracket(best);
        if (candidates_.empty()) return best;
        scores_.resize(candidates_.size());
        const double least = sums_[static_cast<std::size_t>(candidates_.front())];
        if (jaccard_)
            sum_.reset(least, sums_.back());
        else
            sum_.reset(least + b_ * lightest_, (1 + b_) * sums_.back());
        powers_.resize(sum_.size());
        for (std::size_t j = 0; j < sum_.size(); ++j) powers_[j] = std::exp(-b_ * sum_.nodes[j]);
        products_.assign(sum_.weights.begin(), sum_.weights.end());
        jaccard_ ? suffix_products(poll) : prefix_sums(poll);
        for (std::size_t c = 0; c < candidates_.size(); ++c)
            if (scores_[c] > best.score) best = {candidates_[c], scores_[c], best.most};
        return best;
    }

  private:
    double weight(std::int64_t i) const { return w_ ? w_[i] : 1.0; }

    // Return the probability that the true set is empty, in which case the empty set has score 1.
    double all_absent() const {
        double sum = 0;
        for (std::int64_t i = 0; i < n_; ++i) sum += std::log1p(-p_[i]);
        return std::exp(sum);
    }

    // Compute which k can be best. Let mu and v be the mean and the variance of the weight G of the
    // true set outside the predicted one (Jaccard), or b times that of the whole true set (F-beta).
    // Then E 1 / (c + G) lies between 1 / (c + mu) and 1 / (c + mu) + v / (c (c + mu)^2).
    void bracket(BestPrefix& best) {
        const auto size = static_cast<std::size_t>(n_) + 1;
        sums_.assign(size, 0.0);
        upper_.resize(size);
        total_ = spread_ = 0;
        lightest_ = n_ > 0 ? weight(0) : 1.0;
        double heaviest = lightest_;
        for (std::int64_t i = 0; i < n_; ++i) {
            total_ += weight(i) * p_[i];
            spread_ += weight(i) * weight(i) * p_[i] * (1 - p_[i]);
            lightest_ = std::min(lightest_, weight(i));
            heaviest = std::max(heaviest, weight(i));
        }
        double hit = 0, within = 0, most_lower = best.score;
        for (std::int64_t k = 1; k <= n_; ++k) {
            const auto at = static_cast<std::size_t>(k);
            const double w = weight(k - 1), p = p_[k - 1];
            const double c = sums_[at] = sums_[at - 1] + w;
            hit += w * p;
            within += w * w * p * (1 - p);
            const double mean = mean_of(c, hit);
            upper_[at] = above(c, hit, std::max(spread_ - within, 0.0));
            const double lower = scale() * hit / (jaccard_ ? mean : mean + b_ * heaviest);
            most_lower = std::max(most_lower, lower * (1 - 1e-9));
            // Consider a set that weighs more than the last set of the chain and at most c. Its
            // expected hits are at most those of the chain at c, which takes the most probable
            // elements first.
            best.most =
                std::max(best.most, above(std::max(sums_[at - 1], lightest_), hit, spread_));
        }
        best.most = std::min(best.most, 1.0);
        candidates_.clear();
        for (std::int64_t k = 1; k <= n_; ++k)
            if (upper_[static_cast<std::size_t>(k)] >= most_lower) candidates_.push_back(k);
    }

    double scale() const { return jaccard_ ? 1.0 : 1.0 + b_; }

    // Return the mean of the union, or of c + b |y|, for a set of weight c with the expected
    // overlap `hit`.
    double mean_of(double c, double hit) const {
        return c + (jaccard_ ? std::max(total_ - hit, 0.0) : b_ * total_);
    }
    double above(double c, double hit, double variance) const {
        const double mean = mean_of(c, hit), v = jaccard_ ? variance : b_ * b_ * spread_;
        return scale() * hit * (1 / mean + v / (c * mean * mean)) * (1 + 1e-9);
    }

    void suffix_products(Poll poll) {
        std::int64_t i = n_;
        double inside = 0;
        hits_.resize(candidates_.size());
        for (std::size_t c = 0, k = 0; c < candidates_.size(); ++c) {
            for (; static_cast<std::int64_t>(k) < candidates_[c]; ++k)
                inside += weight(static_cast<std::int64_t>(k)) * p_[k];
            hits_[c] = inside;
        }
        for (std::size_t c = candidates_.size(); c-- > 0;) {
            for (; i > candidates_[c]; --i) {
                multiply(i - 1);
                if ((i & 8191) == 0) poll();
            }
            scores_[c] = hits_[c] * integral(sums_[static_cast<std::size_t>(candidates_[c])]);
        }
    }

    void prefix_sums(Poll poll) {
        const std::size_t q = sum_.size();
        for (std::int64_t i = n_; i-- > 0;) {
            multiply(i);
            if ((i & 8191) == 0) poll();
        }
        // Nodes at which the product is 0 add nothing, and may have factors of 0.
        std::size_t kept = 0;
        for (std::size_t j = 0; j < q; ++j)
            if (products_[j] > 1e-290) {
                products_[kept] = products_[j];
                sum_.nodes[kept] = sum_.nodes[j];
                powers_[kept++] = powers_[j];
            }
        sum_.nodes.resize(kept);
        products_.resize(kept);
        powers_.resize(kept);
        whole_ = products_;
        odds_.assign(kept, 0.0);
        std::int64_t i = 0;
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            for (; i < candidates_[c]; ++i) {
                add_odds(i);
                if ((i & 8191) == 0) poll();
            }
            for (std::size_t j = 0; j < kept; ++j) products_[j] = whole_[j] * odds_[j];
            scores_[c] = (1 + b_) * integral(sums_[static_cast<std::size_t>(candidates_[c])]);
        }
    }

    void multiply(std::int64_t i) {
        double* const products = products_.data();
        const double p = p_[i], rest = 1 - p;
        const std::size_t q = products_.size();
        if (w_) {
            const double rate = -b_ * w_[i];
            for (std::size_t j = 0; j < q; ++j)
                products[j] *= rest + p * exponential_above(700, rate * sum_.nodes[j]);
        } else {
            const double* const powers = powers_.data();
            for (std::size_t j = 0; j < q; ++j) products[j] *= rest + p * powers[j];
        }
    }

    void add_odds(std::int64_t i) {
        double* const odds = odds_.data();
        const double p = p_[i], rest = 1 - p;
        const std::size_t q = odds_.size();
        if (p == 0) return;
        if (w_) {
            const double rate = -b_ * w_[i], share = w_[i] * p;
            for (std::size_t j = 0; j < q; ++j) {
                const double power = exponential_above(700, rate * sum_.nodes[j]);
                odds[j] += share * power / (rest + p * power);
            }
        } else {
            const double* const powers = powers_.data();
            for (std::size_t j = 0; j < q; ++j) {
                const double there = p * powers[j];
                odds[j] += there / (rest + there);
            }
        }
    }

    // Return int exp(-c u) g(u) du, where products_ are the weights times g at the nodes.
    double integral(double c) const {
        double sum = 0;
        for (std::size_t j = 0; j < products_.size(); ++j)
            sum += products_[j] * exponential_above(700, -c * sum_.nodes[j]);
        return sum;
    }

    bool jaccard_;
    double b_;
    const double* p_ = nullptr;
    const double* w_ = nullptr;
    std::int64_t n_ = 0;
    double total_ = 0, spread_ = 0, lightest_ = 1;
    ExponentialSum sum_;
    std::vector<std::int64_t> candidates_;
    std::vector<double> sums_, upper_, scores_, hits_, products_, powers_, whole_, odds_;
};

}  // namespace setwise

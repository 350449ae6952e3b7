// Sums over all choices b in {0, 1}^n of independent elements and a function of their count,
//
//      Z = sum_b exp(sum_i a_i b_i - h(|b|)),  q_i = P(b_i = 1),  E[|b| b_i],  P(|b| = k),
//
// by divide and conquer. The distribution of a half's count is the convolution of those of its own
// halves, and the weight that the rest gives to each count of a half is passed back down. Only
// positive numbers are added, so nothing cancels: O(n^2) products in all, O(n log n) numbers. Plain
// numbers suffice unless the relevant choices have a probability below 1e-200. Then the same
// computation uses logarithms.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

// Distributions as plain numbers.
struct PlainLaws {
    static constexpr double nothing = 0;
    static double of_log(double x) { return std::exp(x); }
    static double times(double x, double y) { return x * y; }
    // out[k] = sum of a[i] b[k - i]
    static void convolve(const double* a, std::int64_t na, const double* b, std::int64_t nb,
                         double* out) {
        std::fill(out, out + na + nb - 1, 0.0);
        for (std::int64_t i = 0; i < na; ++i)
            for (std::int64_t j = 0; j < nb; ++j) out[i + j] += a[i] * b[j];
    }
    // out[j] = sum of b[m] h[j + m]
    static void correlate(const double* h, const double* b, std::int64_t nb, std::int64_t n,
                          double* out) {
        std::fill(out, out + n, 0.0);
        for (std::int64_t m = 0; m < nb; ++m)
            for (std::int64_t j = 0; j < n; ++j) out[j] += b[m] * h[j + m];
    }
    static double sum(const std::vector<double>& x) {
        double total = 0;
        for (const double one : x) total += one;
        return total;
    }
    static double log_of(double x) { return std::log(x); }
    static double ratio(double part, double whole) { return part / whole; }
};

// Distributions as logarithms.
struct LogLaws {
    static constexpr double nothing = -std::numeric_limits<double>::infinity();
    // The logarithm of 3e-20. If n entries are below this share of the largest, they change a
    // logarithm by less than its rounding error. Most entries are below it, since the counts of
    // independent elements concentrate around their mean.
    static constexpr double negligible = -45;
    static double of_log(double x) { return x; }
    static double times(double x, double y) { return x + y; }
    template <class At>
    static double sum_of(std::int64_t n, const At& at) {
        double top = nothing, total = 0;
        for (std::int64_t k = 0; k < n; ++k) top = std::max(top, at(k));
        if (top == nothing) return nothing;
        for (std::int64_t k = 0; k < n; ++k) {
            const double below = at(k) - top;
            if (below > negligible) total += std::exp(below);
        }
        return top + std::log(total);
    }
    static void convolve(const double* a, std::int64_t na, const double* b, std::int64_t nb,
                         double* out) {
        for (std::int64_t k = 0; k < na + nb - 1; ++k) {
            const std::int64_t first = std::max<std::int64_t>(0, k - nb + 1);
            out[k] = sum_of(std::min(na - 1, k) - first + 1,
                            [&](std::int64_t i) { return a[first + i] + b[k - first - i]; });
        }
    }
    static void correlate(const double* h, const double* b, std::int64_t nb, std::int64_t n,
                          double* out) {
        for (std::int64_t j = 0; j < n; ++j)
            out[j] = sum_of(nb, [&](std::int64_t m) { return b[m] + h[j + m]; });
    }
    static double sum(const std::vector<double>& x) {
        return sum_of(static_cast<std::int64_t>(x.size()), [&](std::int64_t k) { return x[k]; });
    }
    static double log_of(double x) { return x; }
    static double ratio(double part, double whole) { return std::exp(part - whole); }
};

// log(1 + exp x)
inline double log_of_both(double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

class CountSums {
    using Index = std::int64_t;

  public:
    // Compute log Z of n elements with heights h[0..n]; q (n,), E[count b_i] (n,) and the
    // distribution (n + 1,) of the count.
    double operator()(const double* a, Index n, const double* h, double* q, double* with_count,
                      double* counts, Poll poll) {
        const double least = *std::min_element(h, h + n + 1);
        double all = -least;
        for (Index i = 0; i < n; ++i) all += log_of_both(a[i]);
        const double plain = solve<PlainLaws>(a, n, h, least, q, with_count, counts, poll);
        if (plain > unseen) return all + plain;
        return all + solve<LogLaws>(a, n, h, least, q, with_count, counts, poll);
    }

  private:
    static constexpr double unseen = -460;  // log 1e-200; smaller sums may underflow

    // Return log of E exp(least - h(count)) for the elements alone.
    template <class Laws>
    double solve(const double* a, Index n, const double* h, double least, double* q,
                 double* with_count, double* counts, Poll poll) {
        elements_.resize(static_cast<std::size_t>(2 * n));
        for (Index i = 0; i < n; ++i) {
            elements_[2 * i] = Laws::of_log(-log_of_both(a[i]));
            elements_[2 * i + 1] = Laws::of_log(-log_of_both(-a[i]));
        }
        offsets_.assign(1, 0);
        laws_.clear();
        build<Laws>(0, 0, n, poll);
        down_.assign(1, std::vector<double>(static_cast<std::size_t>(n + 1)));
        std::vector<double>& top = down_[0];
        const double* const law = laws_.data() + offsets_[0];
        for (Index k = 0; k <= n; ++k) top[k] = Laws::times(law[k], Laws::of_log(least - h[k]));
        const double whole = Laws::sum(top);
        const double value = Laws::log_of(whole);
        if (!(value > unseen) && Laws::nothing == 0) return value;
        for (Index k = 0; k <= n; ++k) {
            counts[k] = Laws::ratio(top[k], whole);
            top[k] = Laws::of_log(least - h[k]);
        }
        const auto among_all = [&](Index i, const double* rest) {
            return Laws::ratio(Laws::times(elements_[2 * i + 1], rest[1]), whole);
        };
        each_element<Laws>(0, 0, 0, n, poll, [&](Index i, const double* rest) {
            q[i] = std::min(among_all(i, rest), 1.0);
        });
        for (Index k = 0; k <= n; ++k)
            down_[0][k] = Laws::times(Laws::of_log(std::log(static_cast<double>(k))),
                                      Laws::of_log(least - h[k]));
        each_element<Laws>(0, 0, 0, n, poll, [&](Index i, const double* rest) {
            with_count[i] = among_all(i, rest);
        });
        return value;
    }

    // Compute the distribution of the count of elements begin..end - 1, as node `node` of a binary
    // tree.
    template <class Laws>
    void build(std::size_t node, Index begin, Index end, Poll poll) {
        const Index n = end - begin;
        if (n > 1) {
            build<Laws>(2 * node + 1, begin, begin + n / 2, poll);
            build<Laws>(2 * node + 2, begin + n / 2, end, poll);
        }
        if (offsets_.size() <= node) offsets_.resize(2 * node + 1);
        const std::size_t at = laws_.size();
        laws_.resize(at + static_cast<std::size_t>(n + 1));
        offsets_[node] = at;
        double* const law = laws_.data() + at;
        if (n == 0) {
            law[0] = Laws::of_log(0.0);
        } else if (n == 1) {
            law[0] = elements_[2 * begin];
            law[1] = elements_[2 * begin + 1];
        } else {
            Laws::convolve(laws_.data() + offsets_[2 * node + 1], n / 2 + 1,
                           laws_.data() + offsets_[2 * node + 2], n - n / 2 + 1, law);
            if (n > 256) poll();
        }
    }

    // Call visit(element, the weights that the others give to its two states), from down_[depth]
    // for the node's count.
    template <class Laws, class Visit>
    void each_element(std::size_t node, std::size_t depth, Index begin, Index end, Poll poll,
                      const Visit& visit) {
        const Index n = end - begin;
        if (n == 0) return;
        if (n == 1) return visit(begin, down_[depth].data());
        if (down_.size() <= depth + 1) down_.emplace_back();
        if (n > 256) poll();
        const Index left = n / 2, right = n - left;
        for (const bool second : {false, true}) {
            const Index own = second ? right : left, other = n - own;
            down_[depth + 1].resize(static_cast<std::size_t>(right + 1));
            Laws::correlate(down_[depth].data(),
                            laws_.data() + offsets_[2 * node + (second ? 1 : 2)], other + 1,
                            own + 1, down_[depth + 1].data());
            each_element<Laws>(2 * node + (second ? 2 : 1), depth + 1,
                               second ? begin + left : begin, second ? end : begin + left, poll,
                               visit);
        }
    }

    std::vector<double> elements_, laws_;
    std::vector<std::size_t> offsets_;
    std::vector<std::vector<double>> down_;
};

}  // namespace setwise

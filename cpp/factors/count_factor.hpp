// A function of a count: h(number of chosen elements) plus a cost for each chosen element.
#pragma once

#include <algorithm>
#include <vector>

#include "factors/release.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/sort_costs.hpp"

namespace setwise {

// A factor that computes min over b in {0, 1}^K of h(|b|) + <costs, b> and its min-marginals, in
// O(K log K).
//
// With the costs sorted, the best b of size k takes the k cheapest: G(k) = h(k) + A(k), where A is
// the sum of the sorted costs up to k. If the element of rank p (0-based) must be chosen, a size k
// > p still has G(k), and a size 1 <= k <= p takes the k - 1 cheapest others. The case where it
// must not be chosen is similar. So prefix and suffix minima of four sequences give the answer for
// every element.
class CountFactor {
  public:
    // h has an entry for each size 0..K, and must outlive its use here.
    void reset(const double* h) { h_ = h; }

    double minimize(const std::vector<double>& costs) {
        sort(costs);
        return lowest();
    }

    // After minimize: call visit(element) for each chosen element of the minimiser.
    template <class Visit>
    void each_chosen(Visit visit) const {
        for (std::size_t k = 0; k < size_; ++k) visit(sorted_[k].second);
    }

    // differences[i] = min with b_i = 1 minus min with b_i = 0. Return the minimum.
    double min_marginals(const std::vector<double>& costs, std::vector<double>& differences) {
        sort(costs);
        const double best = lowest();
        const double* const h = h_;
        const std::size_t K = costs.size();
        differences.resize(K);
        if (K == 0) return best;
        // after_[p]: min over k > p of G(k); dropped_[p]: min over p < k < K of h(k) + A(k + 1).
        after_.resize(K);
        dropped_.resize(K);
        double with = unbounded, without = unbounded;
        for (std::size_t p = K; p-- > 0;) {
            with = std::min(with, h[p + 1] + sums_[p + 1]);
            if (p + 1 < K) without = std::min(without, h[p + 1] + sums_[p + 2]);
            after_[p] = with;
            dropped_[p] = without;
        }
        double before = unbounded, joined = unbounded;  // k <= p: G(k), and h(k) + A(k - 1)
        for (std::size_t p = 0; p < K; ++p) {
            before = std::min(before, h[p] + sums_[p]);
            if (p > 0) joined = std::min(joined, h[p] + sums_[p - 1]);
            const double cost = sorted_[p].first;
            differences[sorted_[p].second] =
                std::min(after_[p], joined + cost) - std::min(before, dropped_[p] - cost);
        }
        return best;
    }

    // Return the cost of the steps if each element makes its own choice, and at the last minimiser.
    double least(const std::vector<double>& steps) const {
        double sum = 0;
        for (const double step : steps) sum += std::min(0.0, step);
        return sum;
    }
    double at_minimizer(const std::vector<double>& steps) const {
        double sum = 0;
        each_chosen([&](std::size_t i) { sum += steps[i]; });
        return sum;
    }
    double size() const { return static_cast<double>(sorted_.size()); }

  private:
    void sort(const std::vector<double>& costs) {
        const std::size_t K = costs.size();
        if (sorted_.size() != K) {
            sorted_.resize(K);
            for (std::size_t i = 0; i < K; ++i) sorted_[i].second = i;
        }
        // The order of the last call is a good start for sorting, because the costs change little.
        for (auto& item : sorted_) item.first = costs[item.second];
        sort_costs(sorted_, space_);
        sums_.resize(K + 1);
        sums_[0] = 0;
        CompensatedSum<double, 2> sum;
        for (std::size_t k = 0; k < K; ++k) {
            sum.add(sorted_[k].first);
            sums_[k + 1] = sum.value();
        }
    }

    double lowest() {
        const double* const h = h_;
        double best = unbounded;
        for (std::size_t k = 0; k < sums_.size(); ++k)
            if (h[k] + sums_[k] < best) {
                best = h[k] + sums_[k];
                size_ = k;
            }
        return best;
    }

    std::vector<Cost> sorted_, space_;
    std::vector<double> sums_, after_, dropped_;
    const double* h_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace setwise

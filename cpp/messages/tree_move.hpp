// Moves of many variables at once: the best labels of an induced forest, given all other labels.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "messages/factor_graph.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// A move that uses unaries and pairs only. A forest is grown greedily, in a given order of the
// variables: a variable joins if no two of its neighbours in the forest are already connected
// there. On a grid about two thirds of the variables join. Dynamic programming then labels the
// forest exactly: O(E L^2), O(E L) for Potts. Without noise the energy never rises. Noise on the
// unaries, which decreases from move to move, lets a walk leave a local optimum.
class TreeMove {
  public:
    explicit TreeMove(const FactorGraph& graph) : g_(graph) {}

    template <class Poll>
    void move(std::vector<Index>& labels, const std::vector<Index>& order,
              const std::vector<double>& noise, Poll poll) {
        grow(order);
        poll();
        list_from_roots(order);
        const Index L = g_.labels;
        costs_.resize(g_.n * L);
        for (std::size_t k = visits_.size(); k-- > 0;) {
            if ((k & 63) == 63) poll();
            collect(visits_[k], labels, noise);
        }
        for (const Index i : visits_) {
            const double* const cost = costs_.data() + i * L;
            const Index e = above_[i];
            if (e < 0) {
                labels[i] = std::min_element(cost, cost + L) - cost;
                continue;
            }
            const Index y = labels[other(e, i)];
            double least = unbounded;
            for (Index x = 0; x < L; ++x) {
                const double value = cost[x] + energy(e, i, x, y);
                if (value < least) {
                    least = value;
                    labels[i] = x;
                }
            }
        }
    }

  private:
    Index other(Index e, Index i) const { return g_.low[e] == i ? g_.high[e] : g_.low[e]; }
    double energy(Index e, Index i, Index x, Index y) const {
        return g_.low[e] == i ? g_.pair_energy(e, x, y) : g_.pair_energy(e, y, x);
    }

    template <class Visit>
    void each_pair(Index i, Visit visit) const {
        for (Index e = g_.first_pair[i]; e < g_.first_pair[i + 1]; ++e) visit(e);
        for (Index k = g_.high_starts[i]; k < g_.high_starts[i + 1]; ++k) visit(g_.high_pairs[k]);
    }

    Index root(Index i) {
        while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
        return i;
    }

    void grow(const std::vector<Index>& order) {
        parent_.resize(g_.n);
        std::iota(parent_.begin(), parent_.end(), Index(0));
        joined_.assign(g_.n, 0);
        for (const Index i : order) {
            roots_.clear();
            each_pair(i, [&](Index e) {
                const Index j = other(e, i);
                if (joined_[j]) roots_.push_back(root(j));
            });
            std::sort(roots_.begin(), roots_.end());
            if (std::adjacent_find(roots_.begin(), roots_.end()) != roots_.end()) continue;
            joined_[i] = 1;
            for (const Index r : roots_) parent_[r] = i;
        }
    }

    // List the forest's variables, each after its parent.
    void list_from_roots(const std::vector<Index>& order) {
        visits_.clear();
        above_.assign(g_.n, -2);
        for (const Index start : order) {
            if (!joined_[start] || above_[start] != -2) continue;
            above_[start] = -1;
            visits_.push_back(start);
            for (std::size_t k = visits_.size() - 1; k < visits_.size(); ++k) {
                const Index i = visits_[k];
                each_pair(i, [&](Index e) {
                    const Index j = other(e, i);
                    if (!joined_[j] || above_[j] != -2) return;
                    above_[j] = e;
                    visits_.push_back(j);
                });
            }
        }
    }

    // costs[i, x]: the least energy of the subtree below i, with label x at i.
    void collect(Index i, const std::vector<Index>& labels, const std::vector<double>& noise) {
        const Index L = g_.labels;
        double* const cost = costs_.data() + i * L;
        for (Index x = 0; x < L; ++x) cost[x] = g_.unary_of(i)[x] + noise[i * L + x];
        each_pair(i, [&](Index e) {
            const Index j = other(e, i);
            if (!joined_[j]) {
                for (Index x = 0; x < L; ++x) cost[x] += energy(e, i, x, labels[j]);
            } else if (e != above_[i]) {
                const double* const below = costs_.data() + j * L;
                const double least = *std::min_element(below, below + L);
                for (Index x = 0; x < L; ++x) {
                    double value = unbounded;
                    if (g_.table[e] < 0)
                        value = std::min(below[x], least + g_.weight[e]);
                    else
                        for (Index y = 0; y < L; ++y)
                            value = std::min(value, below[y] + energy(e, i, x, y));
                    cost[x] += value;
                }
            }
        });
    }

    const FactorGraph& g_;
    std::vector<Index> parent_, roots_, visits_, above_;
    std::vector<std::uint8_t> joined_;
    std::vector<double> costs_;
};

}  // namespace setwise

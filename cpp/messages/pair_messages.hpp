// Messages between pairs and variables: sequential sweeps, tree-reweighted or of max-product.
//
// A message is the amount that a factor has given to a variable. Subtracting it from the factor and
// adding it to the variable's unaries changes no energy, so the sum of the minima of all parts is a
// lower bound on the energy.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "messages/factor_graph.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class PairMessages {
  public:
    // shares: for each sweep (forward, backward) and variable, the part of its unaries that each
    // pair ahead receives. The bound rises if no variable gives away more than it has. Shares of 1
    // give the sweeps of max-product, which give no bound. damping: the part of an old message that
    // is kept, positive for max-product.
    PairMessages(const FactorGraph& graph, std::vector<double> forward,
                 std::vector<double> backward, double damping)
        : g_(graph),
          damping_(damping),
          pair_(graph.pairs() * 2 * graph.labels, 0.0),
          gathered_(graph.n * graph.labels, 0.0),
          table_(graph.table),
          weight_(graph.weight),
          total_(graph.labels),
          shares_{std::move(backward), std::move(forward)},
          given_(graph.labels) {
        if (damping > 0) kept_ = pair_;
        if (graph.forbids)
            for (Index e = 0; e < graph.pairs(); ++e)
                for (int side = 0; side < 2; ++side) forbid(e, side);
    }

    // Run one sweep over the variables: each collects the messages of the pairs behind it, and
    // gives to those ahead. `labels` is decoded on the way: the best label given those behind it.
    template <class Poll>
    void sweep(bool forward, std::vector<Index>& labels, Poll poll) {
        labels.resize(g_.n);
        for (Index k = 0; k < g_.n; ++k) {
            if ((k & 63) == 63) poll();
            visit(forward ? k : g_.n - 1 - k, forward, labels);
        }
    }

  protected:
    const double* table_of(Index e) const {
        const std::vector<double>& tables = tables_.empty() ? g_.tables : tables_;
        return tables.data() + table_[e] * g_.labels * g_.labels;
    }
    // Return a pair's energy including what cycles have given to it.
    double held_energy(Index e, Index x, Index y) const {
        if (table_[e] < 0) return x == y ? 0 : weight_[e];
        return weight_[e] * table_of(e)[x * g_.labels + y];
    }
    double* message(Index e, int side) { return pair_.data() + (2 * e + side) * g_.labels; }
    bool is_max_product() const { return damping_ > 0; }

    template <class Visit>
    void each_pair(Index i, int side, Visit visit_pair) const {
        if (side == 0)
            for (Index e = g_.first_pair[i]; e < g_.first_pair[i + 1]; ++e) visit_pair(e);
        else
            for (Index k = g_.high_starts[i]; k < g_.high_starts[i + 1]; ++k)
                visit_pair(g_.high_pairs[k]);
    }

    double pair_minimum(Index e) {
        const Index L = g_.labels;
        const double *const low = message(e, 0), *const high = message(e, 1);
        double least = unbounded;
        if (table_[e] < 0) {
            double most_low = -unbounded, most_high = -unbounded;
            for (Index x = 0; x < L; ++x) {
                least = std::min(least, -low[x] - high[x]);
                most_low = std::max(most_low, low[x]);
                most_high = std::max(most_high, high[x]);
            }
            return std::min(least, weight_[e] - most_low - most_high);
        }
        const double *const rows = table_of(e), weight = weight_[e];
        for (Index x = 0; x < L; ++x)
            for (Index y = 0; y < L; ++y)
                least = std::min(least, weight * rows[x * L + y] - low[x] - high[y]);
        return least;
    }

    // Write the unaries plus all messages.
    void reparametrize(Index i, double* total) {
        const Index L = g_.labels;
        for (Index x = 0; x < L; ++x) total[x] = g_.unary_of(i)[x] + gathered_[i * L + x];
        for (int side = 0; side < 2; ++side)
            each_pair(i, side, [&](Index e) {
                const double* const in = message(e, side);
                for (Index x = 0; x < L; ++x) total[x] += in[x];
            });
        if (g_.forbids)
            for (Index x = 0; x < L; ++x)
                if (!g_.allowed(i, x)) total[x] = unbounded;
    }

    const FactorGraph& g_;
    double damping_;
    std::vector<double> pair_;      // (pairs, 2, labels)
    std::vector<double> gathered_;  // (n, labels): the sum of the messages of all larger factors
    // tables of the pairs and their factors, as in the graph; pairs in cycles have their own
    std::vector<Index> table_;
    std::vector<double> weight_;
    // tables including what cycles have given to the pairs; empty without cycles
    std::vector<double> tables_;
    std::vector<double> total_;  // (labels,): work space for one variable

  private:
    // A pair never takes a forbidden label, because its variable has given it +inf.
    void forbid(Index e, int side) {
        const Index i = side ? g_.high[e] : g_.low[e];
        double* const out = message(e, side);
        for (Index x = 0; x < g_.labels; ++x)
            if (!g_.allowed(i, x)) out[x] = -unbounded;
    }

    // Send all that the pair has to one side: min over the other label, in O(L) for Potts.
    void pull(Index e, int side) {
        const Index L = g_.labels;
        const double* const from = message(e, 1 - side);
        double* const out = message(e, side);
        if (table_[e] < 0) {
            const double largest = *std::max_element(from, from + L);
            const double differ = weight_[e] - largest;
            for (Index y = 0; y < L; ++y) out[y] = std::min(-from[y], differ);
        } else {
            const double *const rows = table_of(e), weight = weight_[e];
            if (side == 1) {
                std::fill(out, out + L, unbounded);
                for (Index x = 0; x < L; ++x)
                    for (Index y = 0; y < L; ++y)
                        out[y] = std::min(out[y], weight * rows[x * L + y] - from[x]);
            } else {
                for (Index x = 0; x < L; ++x) {
                    double least = unbounded;
                    for (Index y = 0; y < L; ++y)
                        least = std::min(least, weight * rows[x * L + y] - from[y]);
                    out[x] = least;
                }
            }
        }
        // The constant stays in the pair, so that messages do not grow along the sweep.
        if (g_.forbids) forbid(e, side);
        double least = unbounded;
        for (Index x = 0; x < L; ++x)
            if (out[x] > -unbounded) least = std::min(least, out[x]);
        for (Index x = 0; x < L; ++x) out[x] -= least;
        if (is_max_product()) {
            double* const kept = kept_.data() + (2 * e + side) * L;
            for (Index x = 0; x < L; ++x)
                if (out[x] > -unbounded)
                    kept[x] = out[x] = (1 - damping_) * out[x] + damping_ * kept[x];
        }
    }

    void visit(Index i, bool forward, std::vector<Index>& labels) {
        const Index L = g_.labels;
        const double* const own = g_.unary_of(i);
        double* const total = total_.data();  // unary plus all messages
        double* const given = given_.data();  // the same, given the labels of earlier variables
        for (Index x = 0; x < L; ++x) total[x] = given[x] = own[x] + gathered_[i * L + x];
        const int side = forward ? 1 : 0;     // side of i in the pairs behind it
        each_pair(i, side, [&](Index e) {
            pull(e, side);
            const double* const in = message(e, side);
            const Index y = labels[forward ? g_.low[e] : g_.high[e]];
            for (Index x = 0; x < L; ++x) {
                total[x] += in[x];
                given[x] += forward ? held_energy(e, y, x) : held_energy(e, x, y);
            }
        });
        each_pair(i, 1 - side, [&](Index e) {
            const double* const in = message(e, 1 - side);
            for (Index x = 0; x < L; ++x) {
                total[x] += in[x];
                given[x] += in[x];
            }
        });
        if (g_.forbids)
            for (Index x = 0; x < L; ++x)
                if (!g_.allowed(i, x)) total[x] = given[x] = unbounded;
        labels[i] = std::min_element(given, given + L) - given;
        const double least = *std::min_element(total, total + L);
        const double share = shares_[forward][i];
        for (Index x = 0; x < L; ++x) total[x] = share * (total[x] - least);
        each_pair(i, 1 - side, [&](Index e) {
            double* const out = message(e, 1 - side);
            for (Index x = 0; x < L; ++x) out[x] -= total[x];
        });
    }

    std::vector<double> shares_[2];
    std::vector<double> kept_, given_;
};

}  // namespace setwise

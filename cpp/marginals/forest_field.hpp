// Structured mean field: Q a product of trees that are components of the field's graph, each with all
// edges among its variables, so that
//
//     L(Q) = H(Q) - E_Q[E] / t <= log Z
//
// factorises over all edges between components. The best tree of a component, all others fixed, is the
// exact distribution of its own edges and the expected energies of all else; one component after the
// other, no step lowers the bound. Counts enter by concave functions above them, E h(K) <= h(E K): their
// variables need not be independent. So do costs of labels, by min(1, K).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/mean_field.hpp"
#include "marginals/tree_loops.hpp"
#include "numeric/compensated_sum.hpp"

namespace setwise {

class ForestField : public MeanField {
  public:
    ForestField(const double* unary, Index n, Index n_labels) : MeanField(unary, n, n_labels, 0) {}

    // To be called after the pairs are closed: which edges (E,) the trees have. They must form a forest,
    // with energies that differ by less than 600 t, so that no exponential is 0.
    void set_forest(const std::uint8_t* kept, double temperature) {
        kept_.assign(kept, kept + pairs_.edges());
        set_tables(temperature);
        up_.assign(static_cast<std::size_t>(n_), -1);
        order_.clear();
        starts_.assign(1, 0);
        std::vector<bool> seen(static_cast<std::size_t>(n_));
        for (Index top = 0; top < n_; ++top) {
            if (seen[top]) continue;
            seen[top] = true;
            order_.push_back(top);
            for (Index k = starts_.back(); k < static_cast<Index>(order_.size()); ++k)
                for (const Index* arc = pairs_.begin(order_[k]); arc != pairs_.end(order_[k]);
                     ++arc) {
                    const Index j = pairs_.head(*arc);
                    if (!kept_[*arc >> 1] || seen[j]) continue;
                    seen[j] = true;
                    up_[j] = *arc ^ 1;
                    order_.push_back(j);
                }
            starts_.push_back(static_cast<Index>(order_.size()));
        }
        inner_.assign(starts_.size() - 1, 0.0);
        b_.assign(q_.size(), 0.0);
        message_.assign(q_.size(), 0.0);
        level_.assign(static_cast<std::size_t>(n_), 0.0);
        zero_.assign(static_cast<std::size_t>(n_labels_), 0.0);
        mass_ = above_ = fresh_ = zero_;
    }

    // Every component once; returns the largest change of a probability.
    double sweep(double temperature, Poll poll) {
        refresh_means();
        double largest = 0;
        Index done = 0;
        for (std::size_t c = 0; c + 1 < starts_.size(); ++c) {
            largest = std::max(largest, update_tree(static_cast<Index>(c), temperature));
            done += starts_[c + 1] - starts_[c];
            if (done > 256) {
                poll();
                done = 0;
            }
        }
        return largest;
    }

    // H(Q) - E_Q[E] / t after a sweep, or less than that by Jensen's inequality.
    double value(double temperature, Poll poll) {
        refresh_means();
        CompensatedSum<double, 2> sum, energy;
        for (const double inner : inner_) sum.add(inner);
        std::vector<double> expected(static_cast<std::size_t>(n_labels_));
        for (Index i = 0; i < n_; ++i) {
            const double* const q = q_.data() + i * n_labels_;
            std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_,
                      expected.begin());
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (*arc % 2 == 0 && !kept_[*arc >> 1])
                    pairs_.add_expected(*arc, q_.data() + pairs_.head(*arc) * n_labels_,
                                        expected.data());
            for (Index j = 0; j < n_labels_; ++j)
                if (q[j] > 0) energy.add(q[j] * expected[j]);
            if (i % 1024 == 0) poll();
        }
        for (const auto& counts : counts_) energy.add(expected_counts(counts, 0, 1, poll));
        for (std::size_t c = 0; c < costs_.size(); ++c)
            energy.add(costs_[c].cost * std::min(1.0, used_[c]));
        return sum.value() - energy.value() / temperature;
    }

  private:
    void set_tables(double temperature) {
        change_.assign(kept_.size(), 0.0);
        least_.assign(kept_.size(), 0.0);
        table_at_.assign(kept_.size(), -1);
        tables_.clear();
        for (Index e = 0; e < static_cast<Index>(kept_.size()); ++e) {
            change_[e] = std::exp(-pairs_.weight(2 * e) / temperature);
            if (!kept_[e] || !pairs_.is_table(2 * e)) continue;
            table_at_[e] = static_cast<Index>(tables_.size());
            double least = pairs_.at(2 * e, 0, 0);
            for (Index a = 0; a < n_labels_; ++a)
                for (Index b = 0; b < n_labels_; ++b)
                    least = std::min(least, pairs_.at(2 * e, a, b));
            for (Index a = 0; a < n_labels_; ++a)
                for (Index b = 0; b < n_labels_; ++b)
                    tables_.push_back(std::exp((least - pairs_.at(2 * e, a, b)) / temperature));
            least_[e] = least / temperature;
        }
    }

    void refresh_means() {
        refresh();
        used_.assign(costs_.size(), 0.0);
        for (std::size_t c = 0; c < costs_.size(); ++c)
            for (Index i = 0; i < n_; ++i)
                used_[c] += 1 - costs_[c].avoided(q_.data() + i * n_labels_);
    }

    // out(y) = log sum_x exp(b(x) - theta(x, y) / t), x at the tail of the arc.
    void send(Index arc, const double* b, double* out) {
        const double top = masses(b, zero_.data(), n_labels_, mass_.data());
        const Index e = arc >> 1;
        if (table_at_[e] < 0) {
            potts_logs(mass_.data(), sum_of(mass_.data(), n_labels_), change_[e], -top, n_labels_,
                       out);
            return;
        }
        for (Index y = 0; y < n_labels_; ++y) {
            double sum = 0;
            for (Index x = 0; x < n_labels_; ++x) sum += mass_[x] * kernel(arc, x, y);
            out[y] = std::log(sum) + (top - least_[e]);
        }
    }

    double kernel(Index arc, Index x, Index y) const {
        const double* const table = tables_.data() + table_at_[arc >> 1];
        return arc & 1 ? table[y * n_labels_ + x] : table[x * n_labels_ + y];
    }

    double update_tree(Index c, double temperature) {
        const Index first = starts_[c], last = starts_[c + 1];
        // b: minus the expected energies; then messages from the leaves
        for (Index k = first; k < last; ++k) {
            const Index i = order_[k];
            double* const b = b_.data() + i * n_labels_;
            std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_, b);
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (!kept_[*arc >> 1])
                    pairs_.add_expected(*arc, q_.data() + pairs_.head(*arc) * n_labels_, b);
            for (auto& counts : counts_) add_slopes(counts, i, b);
            for (std::size_t s = 0; s < costs_.size(); ++s)
                if (used_[s] < 1)
                    for (Index j = 0; j < n_labels_; ++j)
                        b[j] += costs_[s].labels[j] ? costs_[s].cost : 0.0;
            for (Index j = 0; j < n_labels_; ++j) b[j] /= -temperature;
        }
        // what <energies, q> / t will be taken off: q changes below, the energies do not
        expected_.resize(static_cast<std::size_t>((last - first) * n_labels_));
        for (Index k = first; k < last; ++k)
            std::copy(b_.begin() + order_[k] * n_labels_, b_.begin() + (order_[k] + 1) * n_labels_,
                      expected_.begin() + (k - first) * n_labels_);
        CompensatedSum<double, 2> inner;
        for (Index k = last; k-- > first + 1;) {
            const Index i = order_[k], up = up_[i];
            double* const message = message_.data() + i * n_labels_;
            send(up, b_.data() + i * n_labels_, message);
            // the largest entry taken off: messages that grew along a chain would lose digits
            level_[i] = *std::max_element(message, message + n_labels_);
            for (Index j = 0; j < n_labels_; ++j) message[j] -= level_[i];
            inner.add(level_[i]);
            add_scaled(1.0, message, n_labels_, b_.data() + pairs_.head(up) * n_labels_);
        }
        double largest = 0;
        for (Index k = first; k < last; ++k) {
            const Index i = order_[k], up = up_[i];
            const double* const b = b_.data() + i * n_labels_;
            double* const fresh = fresh_.data();
            const double top = masses(b, zero_.data(), n_labels_, mass_.data());
            if (up < 0) {
                const double sum = sum_of(mass_.data(), n_labels_);
                inner.add(top + std::log(sum));
                for (Index j = 0; j < n_labels_; ++j) fresh[j] = mass_[j] / sum;
            } else {
                descend(up, top - level_[i], fresh);
            }
            const double* const given = expected_.data() + (k - first) * n_labels_;
            for (Index j = 0; j < n_labels_; ++j)
                if (fresh[j] > 0) inner.add(-fresh[j] * given[j]);
            double* const q = q_.data() + i * n_labels_;
            for (auto& counts : counts_) update(counts, i, q, fresh);
            for (std::size_t s = 0; s < costs_.size(); ++s)
                used_[s] += costs_[s].avoided(q) - costs_[s].avoided(fresh);
            for (Index j = 0; j < n_labels_; ++j) {
                largest = std::max(largest, std::abs(fresh[j] - q[j]));
                q[j] = fresh[j];
            }
        }
        inner_[c] = inner.value();
        return largest;
    }

    // fresh(x) = sum_y q(y) exp(b(x) - theta(x, y) / t - message(y)), y at the head: what is above it;
    // mass_ is exp(b) and e^-top, but for what was taken off the message.
    void descend(Index up, double top, double* fresh) {
        const Index e = up >> 1;
        const double* const q = q_.data() + pairs_.head(up) * n_labels_;
        const double* const message = message_.data() + pairs_.head(up ^ 1) * n_labels_;
        const double shift = table_at_[e] < 0 ? top : top - least_[e];
        for (Index y = 0; y < n_labels_; ++y)
            above_[y] = q[y] > 0 ? q[y] * exponential_above(700.0, shift - message[y]) : 0.0;
        double sum = 0;
        const double all = sum_of(above_.data(), n_labels_);
        for (Index x = 0; x < n_labels_; ++x) {
            double value = 0;
            if (table_at_[e] < 0)
                value = change_[e] * all + (1 - change_[e]) * above_[x];
            else
                for (Index y = 0; y < n_labels_; ++y) value += kernel(up, x, y) * above_[y];
            sum += fresh[x] = mass_[x] * value;
        }
        for (Index x = 0; x < n_labels_; ++x) fresh[x] /= sum;
    }

    std::vector<std::uint8_t> kept_;
    std::vector<Index> up_, order_, starts_;  // each component from its top down
    std::vector<double> inner_;               // (C,): H(Q_c) - E[edges of c] / t
    std::vector<double> change_, least_,
        tables_;                              // of the trees' edges: exp(-w / t); tables over t
    std::vector<Index> table_at_;             // (E,): -1 for Potts
    std::vector<double> b_, message_, level_, expected_, used_, zero_, mass_, above_, fresh_;
};

}  // namespace setwise

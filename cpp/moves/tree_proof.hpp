// The best labels of a field of unaries and Potts edges, and a bound by tree-reweighted messages.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "messages/padded_pairs.hpp"
#include "messages/tree_reweighted.hpp"
#include "moves/batch_search.hpp"
#include "moves/field_batch.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// An estimate of the remaining rise of a bound, from its rise so far. The rise per doubling of the
// number of passes falls from doubling to doubling. If it continues by the last factor, the rest is
// the sum of a geometric series.
class BoundRise {
  public:
    void note(double bound) { bounds_.push_back(bound); }

    // Return whether the gap is expected to stay above the goal and to decrease by at most a few
    // hundredths.
    bool is_over(double gap, double goal) const {
        constexpr double little = 0.03;  // LITTLE of _bound_extrapolation.py
        const std::size_t count = bounds_.size();
        if (count < 4) return false;
        const double half = bounds_[count / 2 - 1], quarter = bounds_[count / 4 - 1];
        const double last = bounds_.back() - half, before = half - quarter;
        if (last > 0.0 && last >= before) return false;
        const double rest = last > 0.0 ? last * last / (before - last) : 0.0;
        return rest <= little * gap && gap - rest > goal;
    }

  private:
    std::vector<double> bounds_;  // at equally spaced passes
};

// A search that runs moves from the present labels, and then sweeps that raise a bound. Every
// fourth pass decodes labels, from which moves continue when the bound no longer rises. All
// energies are relative to the least unaries.
class TreeProof {
  public:
    explicit TreeProof(const FieldOfBatch& field) : field_(field), least_(at(field.n)) {
        for (std::int64_t i = 0; i < field.n; ++i) {
            const double* const row = field.unary + i * field.labels;
            least_[at(i)] = *std::min_element(row, row + field.labels);
        }
    }

    // Search from the start z, which receives the answer. Return an upper bound on the amount by
    // which another answer is better. `messages` are empty, or those that the last proof for the
    // same edges left there.
    double search(std::int64_t* z, std::vector<double>& messages, Poll poll) {
        expand_all(field_, z, poll);
        best_.assign(z, z + field_.n);
        value_ = energy(best_);
        if (are_few()) {
            enumerate(poll);
            std::copy(best_.begin(), best_.end(), z);
            return 0.0;
        }
        raise_bound(messages, poll);
        std::copy(best_.begin(), best_.end(), z);
        return std::max(0.0, value_ - bound_);
    }

  private:
    using Labels = std::vector<std::int64_t>;
    // The constants of _tree_bound.py, which explains them, and the default tolerance of solve_map,
    // relative to the best energy found.
    static constexpr int most_passes = 1000, look = 4;
    static constexpr double closes = 0.75, much = 1e-3, tolerance = 1e-9;

    double energy(const Labels& z) const {
        double sum = 0.0;
        for (std::int64_t i = 0; i < field_.n; ++i)
            sum += field_.unary[i * field_.labels + z[at(i)]] - least_[at(i)];
        for (std::int64_t e = 0; e < field_.n_edges; ++e)
            if (z[at(field_.edges[at(2 * e)])] != z[at(field_.edges[at(2 * e + 1)])])
                sum += field_.weight[e];
        return sum;
    }

    // Return whether there are few enough labellings to try all of them, in about a millisecond.
    bool are_few() const {
        constexpr double few = 16384.0;
        return field_.n * std::log(static_cast<double>(field_.labels)) <= std::log(few);
    }
    void enumerate(Poll poll) {
        Labels z(best_.size(), 0);
        for (std::size_t i = 0; i < z.size();) {
            if (const double here = energy(z); here < value_) {
                value_ = here;
                best_ = z;
            }
            for (i = 0; i < z.size() && ++z[i] == field_.labels; ++i) z[i] = 0;
            if (z.empty() || z[0] == 0) poll();
        }
    }

    void raise_bound(std::vector<double>& messages, Poll poll) {
        TreeReweighted sweeps(pairs(), 0.0);
        if (!messages.empty()) sweeps.start_from(messages);
        raise_bound(sweeps, poll);
        messages = sweeps.messages();
    }
    void raise_bound(TreeReweighted& sweeps, Poll poll) {
        BoundRise rise;
        Labels z(best_.size()), decoded;
        double of_decoded = std::numeric_limits<double>::infinity();
        for (int pass = 1; pass <= most_passes; ++pass) {
            const double raised = sweeps.pass(poll);
            if (pass % look != 0) continue;
            bound_ = std::max(bound_, raised);
            sweeps.decode(z.data(), poll);
            if (const double here = energy(z); here < of_decoded) {
                of_decoded = here;
                decoded = z;
            }
            if (of_decoded < value_) {
                value_ = of_decoded;
                best_ = decoded;
            }
            rise.note(std::min(bound_, value_));
            const double gap = value_ - bound_, goal = tolerance * value_;
            if (gap <= goal) return;
            if (!rise.is_over(gap, goal) && pass + look <= most_passes) continue;
            if (decoded.empty()) return;
            expand_all(field_, decoded.data(), poll);
            if (const double here = energy(decoded); here < value_) {
                value_ = here;
                best_ = decoded;
            }
            const double left = value_ - bound_;
            if (left > closes * gap || left <= much * value_) return;
            decoded.clear();
            of_decoded = std::numeric_limits<double>::infinity();
        }
    }

    // Omit labels whose own cost exceeds that of the present labelling.
    PaddedPairs pairs() const {
        const double most = value_ * (1.0 + 1e-9);
        std::vector<double> unary(at(field_.n) * at(field_.labels));
        for (std::int64_t i = 0; i < field_.n; ++i)
            for (std::int64_t k = i * field_.labels; k < (i + 1) * field_.labels; ++k) {
                const double above = field_.unary[k] - least_[at(i)];
                unary[at(k)] = above <= most ? above : std::numeric_limits<double>::infinity();
            }
        std::vector<std::int64_t> order(at(field_.n_edges));
        const auto ends = [&](std::int64_t e) {
            return std::minmax(field_.edges[at(2 * e)], field_.edges[at(2 * e + 1)]);
        };
        for (std::size_t e = 0; e < order.size(); ++e) order[e] = static_cast<std::int64_t>(e);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t e, std::int64_t f) {
            return std::pair<std::int64_t, std::int64_t>(ends(e)) <
                   std::pair<std::int64_t, std::int64_t>(ends(f));
        });
        PaddedPairs g;
        g.n = field_.n;
        g.labels = field_.labels;
        for (const std::int64_t e : order) {
            g.low.push_back(ends(e).first);
            g.high.push_back(ends(e).second);
            g.weight.push_back(field_.weight[e]);
        }
        g.table.assign(order.size(), -1);
        g.fill(unary.data(), {});
        return g;
    }

    const FieldOfBatch& field_;
    std::vector<double> least_;  // least entry of each row
    Labels best_;
    double value_ = 0.0, bound_ = 0.0;
};

}  // namespace setwise

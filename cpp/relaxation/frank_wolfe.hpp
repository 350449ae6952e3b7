// Frank-Wolfe on the smoothed Lovász relaxation. It needs only greedy vertices of the base
// polytope, and s is one array instead of a sum of stored blocks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "numeric/poll.hpp"
#include "relaxation/relaxation.hpp"

namespace setwise {

class FrankWolfe : public Relaxation<double> {
  public:
    using Relaxation<double>::Relaxation;

    void set_scores(const double* s) { std::copy(s, s + n_ * n_labels_, total_.begin()); }

    // Write x (N, L): the point of the base polytope, unaries included, that maximises <p, x>.
    void vertex(const double* p, double* x, int n_threads, Poll poll) const {
        std::copy(unary_.begin(), unary_.end(), x);
        std::vector<SweepWork<double>> works(static_cast<std::size_t>(n_threads));
        for (const auto& group : groups_)
            each_block(group, n_threads, poll, [&](Index block, int worker) {
                auto& work = works[worker];
                work.reserve(group.size(block), 1);
                for (Index slot = 0; slot < group.slots(); ++slot) {
                    gather_masses(group, block, slot, p, work.z.data());
                    greedy(group, block, slot, work);
                    add_slot(group, block, slot, work.out.data(), x);
                }
            });
    }

    // Return the derivative of the objective along `direction`, at s + step * direction.
    double slope(const double* direction, double step, double temperature, int n_threads,
                 Poll poll) const {
        const Index tasks = (n_ + rows_a_task - 1) / rows_a_task;
        std::vector<double> parts(static_cast<std::size_t>(tasks));
        each_task(tasks, n_threads, poll, [&](Index task, int) {
            double part = 0;
            for (Index i = task * rows_a_task; i < std::min(n_, (task + 1) * rows_a_task); ++i) {
                const double* const s = total_.data() + i * n_labels_;
                const double* const d = direction + i * n_labels_;
                double least = s[0] + step * d[0];
                for (Index j = 1; j < n_labels_; ++j) least = std::min(least, s[j] + step * d[j]);
                double sum = 0, weighted = 0;
                for (Index j = 0; j < n_labels_; ++j) {
                    const double mass = decay((least - (s[j] + step * d[j])) / temperature);
                    sum += mass;
                    weighted += mass * d[j];
                }
                part -= weighted / sum;
            }
            parts[task] = part;
        });
        double value = 0;
        for (const double part : parts) value += part;
        return value;
    }

    // Shift s. This cannot be interrupted, because half a step would leave the base polytope.
    void shift(const double* direction, double step, int n_threads) {
        const Index tasks = (n_ + rows_a_task - 1) / rows_a_task;
        const Poll poll = [] {};
        each_task(tasks, n_threads, poll, [&](Index task, int) {
            const Index end = std::min(n_, (task + 1) * rows_a_task) * n_labels_;
            for (Index k = task * rows_a_task * n_labels_; k < end; ++k)
                total_[k] += step * direction[k];
        });
    }

  private:
    // Run Edmonds' greedy algorithm on one block: work.z are the probabilities, work.out the
    // vertex.
    static void greedy(const Group<double>& group, Index block, Index slot,
                       SweepWork<double>& work) {
        const Index n = group.size(block);
        const double* const p = work.z.data();
        double* const out = work.out.data();
        if (group.kind == BlockKind::count) {
            const double* const gains = group.parameters.data() + group.starts[block];
            auto& order = work.projection.order;
            sort_decreasing(p, n, order);
            for (Index k = 0; k < n; ++k) out[order.index[k]] = gains[k];
            return;
        }
        std::fill(out, out + n, 0.0);
        if (group.kind == BlockKind::simplex) {
            out[std::max_element(p, p + n) - p] = group.parameters[slot];
            return;
        }
        const double* const weights = group.parameters.data() + group.starts[block];
        for (Index k = 0; k + 1 < n; ++k) {
            const double w = p[k] >= p[k + 1] ? weights[k] : -weights[k];
            out[k] += w;
            out[k + 1] -= w;
        }
    }

    void add_slot(const Group<double>& group, Index block, Index slot, const double* values,
                  double* x) const {
        const Index begin = group.starts[block];
        for (Index i = 0; i < group.size(block); ++i) {
            double* const row = x + group.variables[begin + i] * n_labels_;
            if (!group.own.empty())
                row[group.own[begin + i]] += values[i];
            else
                for (Index k = group.slot_starts[slot]; k < group.slot_starts[slot + 1]; ++k)
                    row[group.slot_labels[k]] += values[i];
        }
    }
};

}  // namespace setwise

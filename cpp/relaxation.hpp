// Block minimisation of the smoothed Lovász relaxation of a field with N variables and L labels:
//
//     minimise over s   sum_i t log sum_j exp(-s_ij / t),    s = unary + sum of all blocks,
//
// each block in the base polytope of its submodular function. A group is a set of blocks over disjoint
// variables (the rows of a grid, the regions of a layer); within one, each block is swept label after
// label, and the step of a label, with all else fixed, is exact:
//
//     s_block <- projection of s_block + t logit p_label.
//
// Blocks of a group touch disjoint rows of s, so which thread sweeps which has no bearing on the answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <stdexcept>
#include <vector>

#include "blocks.hpp"
#include "sweep.hpp"
#include "threads.hpp"

namespace setwise {

template <class Scalar>
class Relaxation {
  public:
    using Index = std::int64_t;
    using Value = Scalar;

    Relaxation(const double* unary, Index n, Index n_labels)
        : n_(n), n_labels_(n_labels), unary_(unary, unary + n * n_labels), total_(unary_) {}

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    const std::vector<Group<Scalar>>& groups() const { return groups_; }
    const std::vector<Scalar>& total() const { return total_; }

    // Starts the group's blocks at the projection of 0: equal entries, or 0 in a chain.
    void add(Group<Scalar> group) {
        const Index positions = static_cast<Index>(group.variables.size()), k = group.slots();
        group.s.assign(static_cast<std::size_t>(positions * k), Scalar(0));
        const Index blocks = static_cast<Index>(group.starts.size()) - 1;
        for (Index block = 0; block < blocks && group.kind != BlockKind::chain; ++block) {
            const Index n = group.size(block), start = group.starts[block];
            for (Index slot = 0; slot < k; ++slot) {
                double sum = 0;
                if (group.kind == BlockKind::simplex)
                    sum = static_cast<double>(group.parameters[slot]);
                else
                    for (Index i = 0; i < n; ++i) sum += static_cast<double>(group.parameters[start + i]);
                Scalar* const at = group.s.data() + group.offset(block, slot);
                std::fill(at, at + n, static_cast<Scalar>(sum / static_cast<double>(n)));
            }
        }
        group.previous = group.s;
        if (group.own.empty() && static_cast<Index>(group.slot_labels.size()) == k) {
            group.slot_of.assign(static_cast<std::size_t>(n_labels_), -1);
            for (Index slot = 0; slot < k; ++slot) group.slot_of[group.slot_labels[slot]] = slot;
        }
        group.tasks.assign(1, 0);
        constexpr Index positions_a_task = 1024;
        for (Index block = 0; block < blocks; ++block)
            if (block + 1 == blocks ||
                group.starts[block + 1] - group.starts[group.tasks.back()] >= positions_a_task)
                group.tasks.push_back(block + 1);
        groups_.push_back(std::move(group));
    }

    void set_unary(const double* unary) {
        std::copy(unary, unary + n_ * n_labels_, unary_.begin());
    }

    // Every block s becomes s + momentum (s - the one before the last sweep); then total = their sum.
    void start(double momentum, int n_threads, Poll poll) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        std::copy(unary_.begin(), unary_.end(), total_.begin());
        for (auto& group : groups_)
            each_block(group, n_threads, poll, [&](Index block, int) {
                const Index n = group.size(block), begin = group.starts[block];
                for (Index slot = 0; slot < group.slots(); ++slot) {
                    const Index at = group.offset(block, slot);
                    for (Index i = 0; i < n; ++i) {
                        const Scalar now = group.s[at + i];
                        const Scalar then = group.previous[at + i];
                        const Scalar moved = now + static_cast<Scalar>(momentum) * (now - then);
                        group.previous[at + i] = now;
                        group.s[at + i] = moved;
                        add_to_total(group, slot, begin + i, moved);
                    }
                }
            });
    }

    // One pass over all groups, from where momentum leads. An interrupted pass is undone.
    void sweep(double temperature, double momentum, int n_threads, Poll poll) {
        if (n_labels_ == 1) return;
        try {
            start(momentum, n_threads, poll);
            std::vector<SweepWork<Scalar>> works(static_cast<std::size_t>(n_threads));
            for (auto& group : groups_)
                each_block(group, n_threads, poll, [&](Index block, int worker) {
                    sweep_block(group, block, temperature, total_.data(), n_labels_, works[worker]);
                });
        } catch (...) {
            revert(n_threads);
            throw;
        }
    }

    // Gives back the memory that only further sweeps need; there may be none after it.
    void finish() {
        for (auto& group : groups_) std::vector<Scalar>().swap(group.previous);
        finished_ = true;
    }

    // Back to the state before the last sweep.
    void revert(int n_threads) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        for (auto& group : groups_) group.s = group.previous;
        start(0, n_threads, [] {});
    }

    struct Values {
        double objective, bound;
    };

    // The smoothed objective and sum_i min_j s_ij, which no labelling's energy is below.
    Values evaluate(double temperature, int n_threads, Poll poll) const {
        constexpr Index rows = 2048;
        const Index tasks = (n_ + rows - 1) / rows;
        std::vector<Values> parts(static_cast<std::size_t>(tasks));
        each_task(tasks, n_threads, poll, [&](Index task, int) {
            Values part{0, 0};
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                const Scalar* const row = total_.data() + i * n_labels_;
                const double least = static_cast<double>(*std::min_element(row, row + n_labels_));
                part.bound += least;
                part.objective -= least;
                double sum = 0;
                for (Index j = 0; j < n_labels_; ++j)
                    sum += decay((least - static_cast<double>(row[j])) / temperature);
                part.objective += temperature * std::log(sum);
            }
            parts[task] = part;
        });
        Values value{0, 0};
        for (const Values& part : parts) {
            value.objective += part.objective;
            value.bound += part.bound;
        }
        for (const auto& group : groups_) {
            const double offset = group.offset_of_blocks();
            value.objective += offset;
            value.bound -= offset;
        }
        return value;
    }

    // p_ij proportional to exp(-s_ij / t), into (N, L).
    template <class Out>
    void probabilities(double temperature, Out* p, int n_threads, Poll poll) const {
        constexpr Index rows = 2048;
        each_task((n_ + rows - 1) / rows, n_threads, poll, [&](Index task, int) {
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                const Scalar* const row = total_.data() + i * n_labels_;
                Out* const out = p + i * n_labels_;
                const double least = static_cast<double>(*std::min_element(row, row + n_labels_));
                double sum = 0;
                for (Index j = 0; j < n_labels_; ++j) {
                    const double mass = decay((least - static_cast<double>(row[j])) / temperature);
                    out[j] = static_cast<Out>(mass);
                    sum += mass;
                }
                for (Index j = 0; j < n_labels_; ++j) out[j] = static_cast<Out>(out[j] / sum);
            }
        });
    }

    // f(p) - <s, p> at p (N, L), group by group: how far the smoothed objective can be from its least.
    template <class In>
    double gap(const In* p, int n_threads, Poll poll) const {
        double sum = 0;
        std::vector<SweepWork<Scalar>> works(static_cast<std::size_t>(n_threads));
        for (const auto& group : groups_) {
            std::vector<double> parts(group.starts.size(), 0);
            each_block(group, n_threads, poll, [&](Index block, int worker) {
                auto& work = works[worker];
                work.reserve(group.size(block), 1);
                for (Index slot = 0; slot < group.slots(); ++slot) {
                    gather_masses(group, block, slot, p, work.z.data());
                    parts[block] += group.gap(block, slot, work.z.data(), work.projection);
                }
            });
            for (const double part : parts) sum += part;
        }
        return sum;
    }

    // The blocks of all groups, one after the other.
    Index state_size() const {
        Index size = 0;
        for (const auto& group : groups_) size += static_cast<Index>(group.s.size());
        return size;
    }
    void copy_state(Scalar* out) const {
        for (const auto& group : groups_) out = std::copy(group.s.begin(), group.s.end(), out);
    }
    void set_state(const Scalar* state, int n_threads, Poll poll) {
        for (auto& group : groups_) {
            std::copy(state, state + group.s.size(), group.s.begin());
            state += group.s.size();
        }
        start(0, n_threads, poll);
    }

  protected:
    void add_to_total(const Group<Scalar>& group, Index slot, Index position, Scalar value) {
        Scalar* const row = total_.data() + group.variables[position] * n_labels_;
        if (!group.own.empty())
            row[group.own[position]] += value;
        else
            for (Index k = group.slot_starts[slot]; k < group.slot_starts[slot + 1]; ++k)
                row[group.slot_labels[k]] += value;
    }

    // The probability, under p (N, L), that each variable of a block takes a label of the slot.
    template <class In>
    void gather_masses(const Group<Scalar>& group, Index block, Index slot, const In* p,
                       Scalar* out) const {
        const Index n = group.size(block), begin = group.starts[block];
        for (Index i = 0; i < n; ++i) {
            const In* const row = p + group.variables[begin + i] * n_labels_;
            In mass = 0;
            if (!group.own.empty())
                mass = row[group.own[begin + i]];
            else
                for (Index k = group.slot_starts[slot]; k < group.slot_starts[slot + 1]; ++k)
                    mass += row[group.slot_labels[k]];
            out[i] = static_cast<Scalar>(mass);
        }
    }

    template <class Body>
    static void each_block(const Group<Scalar>& group, int n_threads, Poll poll, const Body& body) {
        const auto tasks = static_cast<Index>(group.tasks.size()) - 1;
        each_task(tasks, n_threads, poll, [&](Index task, int worker) {
            for (Index block = group.tasks[task]; block < group.tasks[task + 1]; ++block)
                body(block, worker);
        });
    }

    Index n_, n_labels_;
    std::vector<Scalar> unary_, total_;
    std::vector<Group<Scalar>> groups_;
    bool finished_ = false;
};

}  // namespace setwise

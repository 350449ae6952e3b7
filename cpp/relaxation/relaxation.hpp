// Block minimisation of the smoothed Lovász relaxation of a field with N variables and L labels:
//
//        minimise over s   sum_i t log sum_j exp(-s_ij / t),    s = unary + sum of all blocks,
//
// each block in the base polytope of its submodular function. A group is a set of blocks over
// disjoint variables (the rows of a grid, the regions of a layer). Within a group, each block is
// swept label after label, and the step of a label, with everything else fixed, is exact:
//
//        s_block <- projection of s_block + t logit p_label.
//
// Blocks of a group change disjoint rows of s, so the result does not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"
#include "relaxation/blocks.hpp"
#include "relaxation/sweep.hpp"

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

    // Add a group, whose blocks start at the projection of 0: equal entries, or 0 in a chain.
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
                    for (Index i = 0; i < n; ++i)
                        sum += static_cast<double>(group.parameters[start + i]);
                Scalar* const at = group.s.data() + group.offset(block, slot);
                std::fill(at, at + n, static_cast<Scalar>(sum / static_cast<double>(n)));
            }
        }
        if (group.own.empty() && static_cast<Index>(group.slot_labels.size()) == k) {
            group.slot_of.assign(static_cast<std::size_t>(n_labels_), -1);
            for (Index slot = 0; slot < k; ++slot) group.slot_of[group.slot_labels[slot]] = slot;
        }
        group.tasks.assign(1, 0);
        constexpr Index positions_a_task = 1024;  // microseconds of work or more; not tuned
        for (Index block = 0; block < blocks; ++block)
            if (block + 1 == blocks ||
                group.starts[block + 1] - group.starts[group.tasks.back()] >= positions_a_task)
                group.tasks.push_back(block + 1);
        groups_.push_back(std::move(group));
    }

    void set_unary(const double* unary) {
        std::copy(unary, unary + n_ * n_labels_, unary_.begin());
    }

    // Change the unaries between two sweeps. Momentum extrapolates only the changes of the blocks.
    void shift_unary(const double* unary, int n_threads) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        add_total(Scalar(-1), n_threads);
        set_unary(unary);
        add_up(n_threads, [](const Group<Scalar>& group) { return group.s.data(); });
        add_total(Scalar(1), n_threads);
    }

    // Make the present blocks those before the last sweep, too; the total is their sum.
    void start(int n_threads) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        for (auto& group : groups_) copy_all(group.s, group.previous, n_threads);
        add_up(n_threads, [](const Group<Scalar>& group) { return group.s.data(); });
        copy_all(total_, previous_total_, n_threads);
        turn_ = none;
    }

    // Choose the groups that take turns: one of them per pass, without momentum.
    void set_light(std::vector<bool> light, int n_threads) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        if (light == light_) return;
        light_ = std::move(light);
        // only the changes of groups with momentum may be extrapolated
        total_.swap(previous_total_);
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (is_light(g)) copy_all(groups_[g].s, groups_[g].previous, n_threads);
        add_up(n_threads, [](const Group<Scalar>& group) { return group.previous.data(); });
        total_.swap(previous_total_);
        turn_ = none;
    }

    // Run one pass: a light group in its turn, then all others from the extrapolated point. An
    // interrupted pass is undone.
    void sweep(double temperature, double momentum, int n_threads, Poll poll) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        if (n_labels_ == 1) return;
        std::vector<SweepWork<Scalar>> works(static_cast<std::size_t>(n_threads));
        const auto sweep_group = [&](Group<Scalar>& group) {
            each_block(group, n_threads, poll, [&](Index block, int worker) {
                sweep_block(group, block, temperature, total_.data(), n_labels_, works[worker]);
            });
        };
        turn_ = next_light();
        if (turn_ != none) {
            auto& group = groups_[turn_];
            copy_all(group.s, group.previous, n_threads);
            // the changes of this group are not part of what momentum extrapolates
            add_total(Scalar(-1), n_threads);
            try {
                sweep_group(group);
            } catch (...) {
                group.s = group.previous;
                start(n_threads);
                throw;
            }
            add_total(Scalar(1), n_threads);
        }
        move(momentum, n_threads);
        try {
            for (std::size_t g = 0; g < groups_.size(); ++g)
                if (!is_light(g)) sweep_group(groups_[g]);
        } catch (...) {
            revert(n_threads);
            throw;
        }
    }

    // Free the memory that only further sweeps need; no sweep may follow.
    void finish() {
        for (auto& group : groups_) std::vector<Scalar>().swap(group.previous);
        std::vector<Scalar>().swap(previous_total_);
        finished_ = true;
    }

    // Return to the state before the last sweep.
    void revert(int n_threads) {
        if (finished_) throw std::logic_error("nothing can change after finish");
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (!is_light(g) || g == turn_) copy_all(groups_[g].previous, groups_[g].s, n_threads);
        start(n_threads);
    }

    struct Values {
        double objective, bound;
    };

    // Return the smoothed objective and sum_i min_j s_ij, a lower bound on the energy of every
    // labelling. The sums are compensated, so that their rounding error is no larger than that of
    // the single terms.
    Values evaluate(double temperature, int n_threads, Poll poll) const {
        struct Sums {
            CompensatedSum<double, 2> objective, bound;
        };
        std::vector<Sums> parts(static_cast<std::size_t>((n_ + rows_a_task - 1) / rows_a_task));
        each_softmax(temperature, n_threads, poll, [&](Index i, double least, double sum, double*) {
            Sums& part = parts[i / rows_a_task];
            part.bound.add(least);
            part.objective.add(temperature * std::log(sum) - least);
        });
        Sums value;
        for (const Sums& part : parts) {
            value.objective.add(part.objective);
            value.bound.add(part.bound);
        }
        for (const auto& group : groups_) {
            const double offset = group.offset_of_blocks();
            value.objective.add(offset);
            value.bound.add(-offset);
        }
        return {value.objective.value(), value.bound.value()};
    }

    // Write p_ij proportional to exp(-s_ij / t), into (N, L).
    template <class Out>
    void probabilities(double temperature, Out* p, int n_threads, Poll poll) const {
        each_softmax(temperature, n_threads, poll,
                     [&](Index i, double, double sum, double* masses) {
                         Out* const out = p + i * n_labels_;
                         for (Index j = 0; j < n_labels_; ++j)
                             out[j] = static_cast<Out>(masses[j] / sum);
                     });
    }

    // Return f(p) - <s, p> at p (N, L) for each group: their sum bounds how far the smoothed
    // objective is above its minimum.
    std::vector<double> gaps(const Scalar* p, int n_threads, Poll poll) const {
        std::vector<double> sums(groups_.size());
        std::vector<SweepWork<Scalar>> works(static_cast<std::size_t>(n_threads));
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const auto& group = groups_[g];
            std::vector<double> parts(group.starts.size(), 0);
            each_block(group, n_threads, poll, [&](Index block, int worker) {
                auto& work = works[worker];
                const bool single =
                    !group.slot_of.empty();  // one label per slot: all labels are fetched at once
                if (single)
                    gather(group, block, p, n_labels_, work);
                else
                    work.reserve(group.size(block), 1);
                for (Index slot = 0; slot < group.slots(); ++slot) {
                    const Scalar* masses = work.z.data();
                    if (single)
                        masses = work.total.data() + group.slot_labels[slot] * group.size(block);
                    else
                        gather_masses(group, block, slot, p, work.z.data());
                    parts[block] += group.gap(block, slot, masses, work.projection);
                }
            });
            for (const double part : parts) sums[g] += part;
        }
        return sums;
    }

    // Return the size of the blocks of all groups, which are stored one after the other.
    Index state_size() const {
        Index size = 0;
        for (const auto& group : groups_) size += static_cast<Index>(group.s.size());
        return size;
    }
    void copy_state(Scalar* out) const {
        for (const auto& group : groups_) out = std::copy(group.s.begin(), group.s.end(), out);
    }
    void set_state(const Scalar* state, int n_threads) {
        for (auto& group : groups_) {
            std::copy(state, state + group.s.size(), group.s.begin());
            state += group.s.size();
        }
        start(n_threads);
    }

  protected:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    bool is_light(std::size_t g) const { return g < light_.size() && light_[g]; }
    // Return the light group after the one whose turn was last, cyclically.
    std::size_t next_light() {
        for (std::size_t k = 0; k < light_.size(); ++k) {
            last_light_ = (last_light_ + 1) % light_.size();
            if (light_[last_light_]) return last_light_;
        }
        return none;
    }

    // Set every block s to s + momentum (s - the one before the last sweep), and the total
    // likewise. This cannot be interrupted, because half of it could not be undone.
    void move(double momentum, int n_threads) {
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (!is_light(g)) extrapolate(momentum, n_threads, groups_[g].s, groups_[g].previous);
        extrapolate(momentum, n_threads, total_, previous_total_);
        if (++moves_ % moves_between_sums == 0)
            add_up(n_threads, [](const Group<Scalar>& group) { return group.s.data(); });
    }
    static void extrapolate(double momentum, int n_threads, std::vector<Scalar>& now,
                            std::vector<Scalar>& then) {
        each_run(now.size(), n_threads, [&](Index begin, Index size) {
            setwise::extrapolate(momentum, size, now.data() + begin, then.data() + begin);
        });
    }

    // Add the total times 1 or -1 to the one before the last sweep.
    void add_total(Scalar sign, int n_threads) {
        each_run(total_.size(), n_threads, [&](Index begin, Index size) {
            for (Index k = begin; k < begin + size; ++k) previous_total_[k] += sign * total_[k];
        });
    }
    static void copy_all(const std::vector<Scalar>& from, std::vector<Scalar>& to, int n_threads) {
        to.resize(from.size());
        each_run(from.size(), n_threads, [&](Index begin, Index size) {
            std::copy_n(from.data() + begin, size, to.data() + begin);
        });
    }
    // Call body(begin, size) for runs of entries. This cannot be interrupted.
    template <class Body>
    static void each_run(std::size_t entries, int n_threads, const Body& body) {
        // Entries per task, which takes at least microseconds; not tuned.
        constexpr Index most = 1 << 15;
        const auto size = static_cast<Index>(entries);
        each_task((size + most - 1) / most, n_threads, [] {},
                  [&](Index task, int) { body(task * most, std::min(most, size - task * most)); });
    }

    // Call body(i, min_j s_ij, sum, masses) for every variable, with masses exp((min - s_ij) / t),
    // (L,).
    template <class Body>
    void each_softmax(double temperature, int n_threads, Poll poll, const Body& body) const {
        each_task((n_ + rows_a_task - 1) / rows_a_task, n_threads, poll, [&](Index task, int) {
            // The number of rows at a time, which stay in the L1 cache; not tuned.
            constexpr Index rows = 32;
            std::vector<double> masses(static_cast<std::size_t>(rows * n_labels_)), least(rows);
            const Index last = std::min(n_, (task + 1) * rows_a_task);
            for (Index begin = task * rows_a_task; begin < last; begin += rows) {
                const Index count = std::min(rows, last - begin);
                for (Index i = 0; i < count; ++i) {
                    const Scalar* const row = total_.data() + (begin + i) * n_labels_;
                    least[i] = static_cast<double>(*std::min_element(row, row + n_labels_));
                    for (Index j = 0; j < n_labels_; ++j)
                        masses[i * n_labels_ + j] =
                            (least[i] - static_cast<double>(row[j])) / temperature;
                }
                decay_all(masses.data(), count * n_labels_);
                for (Index i = 0; i < count; ++i) {
                    double* const mass = masses.data() + i * n_labels_;
                    double sum = 0;
                    for (Index j = 0; j < n_labels_; ++j) sum += mass[j];
                    body(begin + i, least[i], sum, mass);
                }
            }
        });
    }

    // Recompute the total of the blocks, which removes the rounding errors of sweeps.
    template <class Blocks>
    void add_up(int n_threads, const Blocks& blocks) {
        copy_all(unary_, total_, n_threads);
        for (const auto& group : groups_)
            each_block(
                group, n_threads, [] {},
                [&](Index block, int) {
                    const Index n = group.size(block), begin = group.starts[block];
                    for (Index slot = 0; slot < group.slots(); ++slot) {
                        const Scalar* const s = blocks(group) + group.offset(block, slot);
                        for (Index i = 0; i < n; ++i) add_to_total(group, slot, begin + i, s[i]);
                    }
                });
    }

    void add_to_total(const Group<Scalar>& group, Index slot, Index position, Scalar value) {
        Scalar* const row = total_.data() + group.variables[position] * n_labels_;
        if (!group.own.empty())
            row[group.own[position]] += value;
        else
            for (Index k = group.slot_starts[slot]; k < group.slot_starts[slot + 1]; ++k)
                row[group.slot_labels[k]] += value;
    }

    // Write the probability, under p (N, L), that each variable of a block takes a label of the
    // slot.
    void gather_masses(const Group<Scalar>& group, Index block, Index slot, const Scalar* p,
                       Scalar* out) const {
        const Index n = group.size(block), begin = group.starts[block];
        for (Index i = 0; i < n; ++i) {
            const Scalar* const row = p + group.variables[begin + i] * n_labels_;
            Scalar mass = 0;
            if (!group.own.empty())
                mass = row[group.own[begin + i]];
            else
                for (Index k = group.slot_starts[slot]; k < group.slot_starts[slot + 1]; ++k)
                    mass += row[group.slot_labels[k]];
            out[i] = mass;
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
    std::vector<Scalar> unary_, total_, previous_total_;
    std::vector<Group<Scalar>> groups_;
    static constexpr Index rows_a_task = 2048;  // microseconds of work or more; not tuned
    // In single precision rounding errors are large, so the total is recomputed after every move.
    // The number for double precision is not tuned.
    static constexpr int moves_between_sums = sizeof(Scalar) == 4 ? 1 : 16;
    int moves_ = 0;
    std::vector<bool> light_;
    std::size_t turn_ = none, last_light_ = 0;  // the light group of the last sweep
    bool finished_ = false;
};

}  // namespace setwise

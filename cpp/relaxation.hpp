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
#include <limits>
#include <vector>

#include "projection.hpp"
#include "threads.hpp"

namespace setwise {

enum class BlockKind { chain, count, simplex, convex };

// Blocks over disjoint variables. A slot is what one projection moves: the pairs (variable, label) with
// the label in the slot's set, or with the variable's own label.
template <class Scalar>
struct Group {
    using Index = std::int64_t;

    BlockKind kind;
    std::vector<Index> variables;     // (P,), block after block
    std::vector<Index> starts;        // (B + 1,) of the blocks
    std::vector<Scalar> parameters;   // chain: weight to the next; count, convex: gains; simplex: (K,)
    std::vector<Index> slot_starts;   // (K + 1,) of the slots' labels
    std::vector<Index> slot_labels;
    std::vector<Index> own;           // (P,) with a single slot of own labels, else empty

    std::vector<Scalar> s, previous;  // (P K): block after block, slot after slot
    std::vector<Index> slot_of;       // (L,) where every slot is one label of its own, else empty
    std::vector<Index> tasks;         // runs of blocks

    Index slots() const { return own.empty() ? static_cast<Index>(slot_starts.size()) - 1 : 1; }
    Index size(Index block) const { return starts[block + 1] - starts[block]; }
    Index offset(Index block, Index slot) const {
        return starts[block] * slots() + slot * size(block);
    }
    bool contains(Index slot, Index position, Index label) const {
        if (!own.empty()) return own[position] == label;
        return std::binary_search(slot_labels.begin() + slot_starts[slot],
                                  slot_labels.begin() + slot_starts[slot + 1], label);
    }

    // The best entries of the slot: z is s + t logit p.
    void project(Index block, Index slot, const Scalar* z, double t, Scalar* out,
                 ProjectionWork<Scalar>& work) const {
        const Index n = size(block);
        if (kind == BlockKind::chain)
            project_chain(z, parameters.data() + starts[block], n, out, work);
        else if (kind == BlockKind::count)
            project_count(z, parameters.data() + starts[block], n, out, work);
        else if (kind == BlockKind::simplex)
            project_simplex(z, parameters[slot], n, out, work);
        else
            std::fill(out, out + n,
                      static_cast<Scalar>(balance_count(z, parameters.data() + starts[block], n, t)));
    }

    // What the blocks add to the objective beside s, and take from the bound.
    double offset_of_blocks() const {
        double sum = 0;
        if (kind != BlockKind::convex) return sum;
        for (Index block = 0; block + 1 < static_cast<Index>(starts.size()); ++block)
            sum += conjugate_of_slopes(parameters.data() + starts[block], size(block),
                                       static_cast<double>(s[offset(block, 0)]));
        return sum;
    }

    // The block's Lovász extension at p (n,), minus <s, p>; of a convex count g(sum of p) and its offset.
    double gap(Index block, Index slot, const Scalar* p, ProjectionWork<Scalar>& work) const {
        const Index n = size(block);
        const Scalar* const at = s.data() + offset(block, slot);
        double value = 0;
        for (Index i = 0; i < n; ++i) value -= static_cast<double>(at[i]) * p[i];
        if (kind == BlockKind::chain) {
            const Scalar* const w = parameters.data() + starts[block];
            for (Index i = 0; i + 1 < n; ++i) value += std::abs(static_cast<double>(p[i]) - p[i + 1]) * w[i];
        } else if (kind == BlockKind::simplex) {
            value += static_cast<double>(parameters[slot]) * *std::max_element(p, p + n);
        } else if (kind == BlockKind::convex) {
            double sum = 0;
            for (Index i = 0; i < n; ++i) sum += static_cast<double>(p[i]);
            const Scalar* const slopes = parameters.data() + starts[block];
            value += sum_of_slopes(slopes, n, sum) +
                     conjugate_of_slopes(slopes, n, static_cast<double>(at[0]));
        } else {
            sort_decreasing(p, n, work);
            const Scalar* const gains = parameters.data() + starts[block];
            for (Index k = 0; k < n; ++k)
                value += static_cast<double>(p[index_of(work.order[k])]) * gains[k];
        }
        return value;
    }
};

// What one thread needs to sweep a block.
template <class Scalar>
struct SweepWork {
    ProjectionWork<Scalar> projection;
    std::vector<Scalar> total, suffix, prefix, second, base, alpha, beta, z, out;
    std::vector<std::int64_t> lowest;

    void reserve(std::int64_t n, std::int64_t n_labels) {
        const auto size = static_cast<std::size_t>(n);
        if (total.size() < size * static_cast<std::size_t>(n_labels)) {
            total.resize(size * static_cast<std::size_t>(n_labels));
            suffix.resize(total.size());
        }
        if (z.size() >= size) return;
        for (auto* const array : {&prefix, &second, &base, &alpha, &beta, &z, &out})
            array->resize(size);
        lowest.resize(size);
    }
};

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
                    if (!group.slot_of.empty())
                        sweep_labels(group, block, temperature, works[worker]);
                    else
                        sweep_slots(group, block, temperature, works[worker]);
                });
        } catch (...) {
            revert(n_threads);
            throw;
        }
    }

    // Back to the state before the last sweep.
    void revert(int n_threads) {
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
    // exp(x) where a result below about 1e-304 is 0.
    static double decay(double x) { return x < -700 ? 0 : std::exp(x); }

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

    // Copies the block's rows of the total, label after label.
    void gather(const Group<Scalar>& group, Index block, SweepWork<Scalar>& work) const {
        const Index n = group.size(block), begin = group.starts[block];
        work.reserve(n, n_labels_);
        for (Index i = 0; i < n; ++i) {
            const Scalar* const row = total_.data() + group.variables[begin + i] * n_labels_;
            for (Index j = 0; j < n_labels_; ++j) work.total[j * n + i] = row[j];
        }
    }

    void scatter(const Group<Scalar>& group, Index block, const SweepWork<Scalar>& work) {
        const Index n = group.size(block), begin = group.starts[block];
        for (Index i = 0; i < n; ++i) {
            Scalar* const row = total_.data() + group.variables[begin + i] * n_labels_;
            for (Index j = 0; j < n_labels_; ++j) row[j] = work.total[j * n + i];
        }
    }

    // Sets the slot's entries to the best ones for work.z, and the total with them.
    void step(Group<Scalar>& group, Index block, Index slot, double t,
              SweepWork<Scalar>& work) const {
        const Index n = group.size(block);
        group.project(block, slot, work.z.data(), t, work.out.data(), work.projection);
        Scalar* const s = group.s.data() + group.offset(block, slot);
        for (Index i = 0; i < n; ++i) {
            const Scalar change = work.out[i] - s[i];
            s[i] = work.out[i];
            if (!group.slot_of.empty()) {
                work.total[group.slot_labels[slot] * n + i] += change;
                continue;
            }
            for (Index j = 0; j < n_labels_; ++j)
                if (group.contains(slot, group.starts[block] + i, j)) work.total[j * n + i] += change;
        }
    }

    // One label after the other. t logit p_j = -s_j - t log sum_{k != j} exp(-s_k / t), and that sum
    // is never a difference: labels done so far (prefix) plus labels to come (suffix), scaled by the
    // second lowest s; the lowest label, `lowest`, stands apart (alpha), so that nothing underflows.
    void sweep_labels(Group<Scalar>& group, Index block, double temperature, SweepWork<Scalar>& work) {
        const Index n = group.size(block);
        const auto t = static_cast<Scalar>(temperature), inverse = Scalar(1) / t;
        gather(group, block, work);
        Scalar* const total = work.total.data();
        const auto mass = [&](Scalar difference) {  // a label may rise in a sweep: no overflow
            const Scalar x = difference * inverse;
            return x < -largest_exponent() ? Scalar(0) : std::exp(std::min(x, largest_exponent()));
        };
        const auto refer = [&](Index i, Scalar lowest) {
            const Scalar base = std::min(lowest, work.second[i]);
            work.base[i] = base;
            work.alpha[i] = mass(base - lowest);
            work.beta[i] = mass(base - work.second[i]);
        };
        for (Index i = 0; i < n; ++i) {
            Index lowest = 0;
            Scalar first = total[i], second = std::numeric_limits<Scalar>::infinity();
            for (Index j = 1; j < n_labels_; ++j) {
                const Scalar value = total[j * n + i];
                if (value < first) {
                    second = first;
                    first = value;
                    lowest = j;
                } else if (value < second) {
                    second = value;
                }
            }
            work.lowest[i] = lowest;
            work.second[i] = second;
            work.prefix[i] = 0;
            refer(i, first);
        }
        std::fill(work.z.begin(), work.z.begin() + n, Scalar(0));
        for (Index j = n_labels_ - 1; j >= 0; --j)
            for (Index i = 0; i < n; ++i) {
                work.suffix[j * n + i] = work.z[i];
                if (work.lowest[i] != j) work.z[i] += mass(work.second[i] - total[j * n + i]);
            }
        constexpr Scalar tiny = std::numeric_limits<Scalar>::min();
        for (Index j = 0; j < n_labels_; ++j) {
            const Index slot = group.slot_of[j];
            Scalar* const label = total + j * n;
            if (slot >= 0) {
                const Scalar* const s = group.s.data() + group.offset(block, slot);
                const Scalar* const suffix = work.suffix.data() + j * n;
                for (Index i = 0; i < n; ++i) {
                    const bool own = work.lowest[i] == j;
                    const Scalar others = work.prefix[i] + suffix[i];
                    const Scalar sum = own ? others : work.alpha[i] + work.beta[i] * others;
                    const Scalar base = own ? work.second[i] : work.base[i];
                    work.z[i] = s[i] + (base - t * std::log(std::max(sum, tiny)) - label[i]);
                }
                step(group, block, slot, temperature, work);
            }
            for (Index i = 0; i < n; ++i) {
                if (work.lowest[i] == j)
                    refer(i, label[i]);
                else
                    work.prefix[i] += mass(work.second[i] - label[i]);
            }
        }
        scatter(group, block, work);
    }

    // Slots of several labels, or of a label of each variable's own: the sums over the labels in the
    // slot and outside it, afresh for each slot.
    void sweep_slots(Group<Scalar>& group, Index block, double temperature, SweepWork<Scalar>& work) {
        const Index n = group.size(block), begin = group.starts[block];
        gather(group, block, work);
        for (Index slot = 0; slot < group.slots(); ++slot) {
            const Scalar* const s = group.s.data() + group.offset(block, slot);
            for (Index i = 0; i < n; ++i) {
                double least[2], sum[2] = {0, 0};
                least[0] = least[1] = std::numeric_limits<double>::infinity();
                for (Index j = 0; j < n_labels_; ++j) {
                    double& side = least[group.contains(slot, begin + i, j)];
                    side = std::min(side, static_cast<double>(work.total[j * n + i]));
                }
                for (Index j = 0; j < n_labels_; ++j) {
                    const bool inside = group.contains(slot, begin + i, j);
                    sum[inside] +=
                        decay((least[inside] - static_cast<double>(work.total[j * n + i])) / temperature);
                }
                const double logit = least[0] - least[1] + temperature * std::log(sum[1] / sum[0]);
                work.z[i] = static_cast<Scalar>(static_cast<double>(s[i]) + logit);
            }
            step(group, block, slot, temperature, work);
        }
        scatter(group, block, work);
    }

    // Two such factors and L of them summed still fit.
    static constexpr Scalar largest_exponent() {
        return std::numeric_limits<Scalar>::max_exponent * Scalar(0.3);
    }

    Index n_, n_labels_;
    std::vector<Scalar> unary_, total_;
    std::vector<Group<Scalar>> groups_;
};

}  // namespace setwise

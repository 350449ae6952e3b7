// Mean field: for a factorised Q over N variables and L labels,
//
//        L(Q) = H(Q) - E_Q[E] / t <= log Z,
//
// is maximised one variable at a time: q_i proportional to exp(-D_i / t), D_ij the expected energy
// given x_i = j. Counts of small blocks are exact, because their Poisson binomial distributions are
// stored. Those of large blocks enter through a tangent to a concave function above h: E h(K) <=
// h(E K). In both cases the bound never decreases.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fields/pair_energies.hpp"
#include "mean_field/clique_energies.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poisson_binomial.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"
#include "relaxation/label_loops.hpp"

namespace setwise {

// Functions of counts: in block b, for every label j (or for each variable's own label only), the
// table of b at the number of its variables with that label. Blocks share no variable.
struct CountBlocks {
    using Index = std::int64_t;

    std::vector<Index> variables, starts, own;  // own: (P,) or empty
    std::vector<double> table;                  // block b from starts[b] + b, its size + 1 entries
    std::vector<double> majorant;               // the least concave function above each table
    std::vector<Index> block_of, own_of;        // (N,)
    std::vector<double> mean, slope;            // (B, slots); the majorant's slope at the mean
    std::vector<Index> law_starts;
    std::vector<double> law;                    // distributions of small blocks: slots x (size + 1)

    Index blocks() const { return static_cast<Index>(starts.size()) - 1; }
    Index size(Index block) const { return starts[block + 1] - starts[block]; }
    Index table_at(Index block) const { return starts[block] + block; }

    void close(Index n, Index slots, Index small) {
        block_of.assign(static_cast<std::size_t>(n), -1);
        if (!own.empty()) own_of.assign(static_cast<std::size_t>(n), 0);
        law_starts.assign(1, 0);
        majorant = table;
        std::vector<Index> hull;
        for (Index b = 0; b < blocks(); ++b) {
            for (Index k = starts[b]; k < starts[b + 1]; ++k) {
                block_of[variables[k]] = b;
                if (!own.empty()) own_of[variables[k]] = own[k];
            }
            law_starts.push_back(law_starts.back() +
                                 (size(b) <= small ? slots * (size(b) + 1) : 0));
            raise(majorant.data() + table_at(b), size(b), hull);
        }
        mean.assign(static_cast<std::size_t>(blocks() * slots), 0.0);
        slope.assign(mean.size(), 0.0);
        law.assign(static_cast<std::size_t>(law_starts.back()), 0.0);
    }

    double slope_at(Index block, double count) const {
        const double* const h = majorant.data() + table_at(block);
        const Index k = std::clamp<Index>(static_cast<Index>(count), 0, size(block) - 1);
        return h[k + 1] - h[k];
    }
    // Update the means of a large block after a change of one variable's probabilities (slots,).
    // The slope is recomputed only if it changes, because reading the table misses the cache.
    void shift_means(Index block, Index slots, const double* before, const double* now) {
        double* const m = mean.data() + block * slots;
        std::int32_t crossed = 0;
        for (Index slot = 0; slot < slots; ++slot) {
            const double fresh = m[slot] + (now[slot] - before[slot]);
            crossed |= static_cast<std::int32_t>(fresh) ^ static_cast<std::int32_t>(m[slot]);
            m[slot] = fresh;
        }
        if (crossed == 0) return;
        for (Index slot = 0; slot < slots; ++slot)
            slope[block * slots + slot] = slope_at(block, m[slot]);
    }

    // Replace h[0..n] by its upper concave hull.
    static void raise(double* h, Index n, std::vector<Index>& hull) {
        hull.clear();
        for (Index right = 0; right <= n; ++right) {
            while (hull.size() > 1) {
                const Index left = hull[hull.size() - 2], middle = hull.back();
                if ((h[middle] - h[left]) * static_cast<double>(right - left) >
                    (h[right] - h[left]) * static_cast<double>(middle - left))
                    break;
                hull.pop_back();
            }
            hull.push_back(right);
        }
        for (std::size_t m = 1; m < hull.size(); ++m) {
            const Index left = hull[m - 1], right = hull[m];
            const double slope = (h[right] - h[left]) / static_cast<double>(right - left);
            for (Index k = left + 1; k < right; ++k)
                h[k] = std::max(h[k], h[left] + slope * static_cast<double>(k - left));
        }
    }
};

struct LabelSetCost {
    double cost;
    std::vector<std::uint8_t> labels;  // (L,)
    // the log of the probability that no variable takes one of them, without those that certainly do
    CompensatedSum<double, 2> log_unused{};
    std::int64_t certain = 0;  // the number of these

    // Return the probability that a variable takes none of them.
    double avoided(const double* q) const {
        double mass = 0;
        for (std::size_t j = 0; j < labels.size(); ++j) mass += labels[j] ? 0.0 : q[j];
        return mass;
    }
    void count(double mass, int sign) {
        if (mass > 0)
            log_unused.add(sign * std::log(mass));
        else
            certain += sign;
    }
    double unused() const { return certain > 0 ? 0 : std::exp(std::min(log_unused.value(), 0.0)); }
};

class MeanField {
  public:
    using Index = std::int64_t;

    MeanField(const double* unary, Index n, Index n_labels, Index small)
        : n_(n),
          n_labels_(n_labels),
          small_(small),
          unary_(unary, unary + n * n_labels),
          q_(unary_.size(), 1.0 / static_cast<double>(n_labels)),
          pairs_(n, n_labels),
          cliques_(n, n_labels) {
        pairs_.close();
    }

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    PairEnergies& pairs() { return pairs_; }
    CliqueEnergies& cliques() { return cliques_; }
    std::vector<double>& q() { return q_; }

    void add_counts(CountBlocks counts) {
        counts.close(n_, counts.own.empty() ? n_labels_ : 1, small_);
        counts_.push_back(std::move(counts));
    }
    Index counts() const { return static_cast<Index>(counts_.size()); }
    const CountBlocks& counts(Index which) const { return counts_[which]; }
    // Replace the own labels of the variables of the counts added as number `which`.
    void replace_own(Index which, const Index* own) {
        CountBlocks& counts = counts_[which];
        std::copy(own, own + counts.own.size(), counts.own.begin());
        for (std::size_t k = 0; k < counts.own.size(); ++k)
            counts.own_of[counts.variables[k]] = counts.own[k];
    }
    void add_cost(double cost, const std::uint8_t* labels) {
        costs_.push_back({cost, {labels, labels + n_labels_}});
    }

    // Update every variable once. Return the largest change of a probability.
    double sweep(double temperature, Poll poll) {
        refresh();
        std::vector<double> expected(static_cast<std::size_t>(n_labels_)), fresh(expected);
        double largest = 0;
        for (Index i = 0; i < n_; ++i) {
            double* const q = q_.data() + i * n_labels_;
            std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_,
                      expected.begin());
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                pairs_.add_expected(*arc, q_.data() + pairs_.head(*arc) * n_labels_,
                                    expected.data());
            cliques_.add_expected(i, q_.data(), expected.data());
            for (std::size_t f = 0; f < counts_.size(); ++f)
                add_slopes(counts_[f], i, expected.data());
            for (auto& cost : costs_) {
                cost.count(cost.avoided(q), -1);
                const double rise = cost.cost * cost.unused();
                for (Index j = 0; j < n_labels_; ++j) expected[j] += cost.labels[j] ? rise : 0.0;
            }
            softmin(expected.data(), temperature, fresh.data());
            for (auto& counts : counts_) update(counts, i, q, fresh.data());
            for (auto& cost : costs_) cost.count(cost.avoided(fresh.data()), 1);
            for (Index j = 0; j < n_labels_; ++j) {
                largest = std::max(largest, std::abs(fresh[j] - q[j]));
                q[j] = fresh[j];
            }
            if (i % 256 == 0) poll();
        }
        return largest;
    }

    struct Value {
        double entropy, energy;
    };

    // Return H(Q) and E_Q[E], or an upper bound of the latter by Jensen's inequality in blocks of
    // more than `exact`.
    Value value(Index exact, int n_threads, Poll poll) const {
        // Variables per task, which takes at least microseconds; not tuned.
        constexpr Index rows = 2048;
        // sums with one term per variable, for which a plain sum would lose digits
        CompensatedSum<double, 2> entropy, energy;
        std::vector<Value> parts(static_cast<std::size_t>((n_ + rows - 1) / rows));
        each_task(static_cast<Index>(parts.size()), n_threads, poll, [&](Index task, int) {
            std::vector<double> expected(static_cast<std::size_t>(n_labels_));
            CompensatedSum<double, 2> own_entropy, own_energy;
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                const double* const q = q_.data() + i * n_labels_;
                std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_,
                          expected.begin());
                for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                    if (*arc % 2 == 0)
                        pairs_.add_expected(*arc, q_.data() + pairs_.head(*arc) * n_labels_,
                                            expected.data());
                for (Index j = 0; j < n_labels_; ++j)
                    if (q[j] > 0) {
                        own_energy.add(q[j] * expected[j]);
                        own_entropy.add(-q[j] * std::log(q[j]));
                    }
            }
            parts[task] = {own_entropy.value(), own_energy.value()};
        });
        for (const Value& part : parts) {
            entropy.add(part.entropy);
            energy.add(part.energy);
        }
        if (cliques_.forbids(q_.data()))
            return {entropy.value(), std::numeric_limits<double>::infinity()};
        cliques_.add_energy(q_.data(), energy);
        for (const auto& counts : counts_)
            energy.add(expected_counts(counts, exact, n_threads, poll));
        for (const auto& cost : costs_) {
            LabelSetCost fresh{cost.cost, cost.labels};
            for (Index i = 0; i < n_; ++i) fresh.count(fresh.avoided(q_.data() + i * n_labels_), 1);
            energy.add(fresh.cost * (1 - fresh.unused()));
        }
        return {entropy.value(), energy.value()};
    }

  protected:
    Index slots(const CountBlocks& counts) const { return counts.own.empty() ? n_labels_ : 1; }
    double mass(const CountBlocks& counts, Index slot, Index i, const double* q) const {
        return q[counts.own.empty() ? slot : counts.own_of[i]];
    }

    // Recompute means, distributions and products from q, which removes the rounding errors of a
    // sweep.
    void refresh() {
        for (auto& counts : counts_) {
            const Index k = slots(counts);
            std::fill(counts.mean.begin(), counts.mean.end(), 0.0);
            for (Index b = 0; b < counts.blocks(); ++b) {
                double* const mean = counts.mean.data() + b * k;
                const Index n = counts.size(b);
                for (Index at = 0; at < n; ++at) {
                    const Index i = counts.variables[counts.starts[b] + at];
                    for (Index slot = 0; slot < k; ++slot) {
                        const double q = mass(counts, slot, i, q_.data() + i * n_labels_);
                        mean[slot] += q;
                        if (n > small_) continue;
                        double* const law = law_of(counts, b, slot);
                        if (at == 0) law[0] = 1;
                        add_event(law, at, q);
                    }
                }
                for (Index slot = 0; slot < k; ++slot)
                    counts.slope[b * k + slot] = counts.slope_at(b, mean[slot]);
            }
        }
        for (auto& cost : costs_) {
            cost.log_unused = {};
            cost.certain = 0;
            for (Index i = 0; i < n_; ++i) cost.count(cost.avoided(q_.data() + i * n_labels_), 1);
        }
    }

    double* law_of(CountBlocks& counts, Index b, Index slot) const {
        return counts.law.data() + counts.law_starts[b] + slot * (counts.size(b) + 1);
    }

    // Add what label j of variable i contributes to the expected energy through its block.
    void add_slopes(CountBlocks& counts, Index i, double* expected) {
        const Index b = counts.block_of[i];
        if (b < 0) return;
        const Index n = counts.size(b);
        if (n > small_) {
            const double* const slope = counts.slope.data() + b * slots(counts);
            if (counts.own.empty())
                for (Index j = 0; j < n_labels_; ++j) expected[j] += slope[j];
            else
                expected[counts.own_of[i]] += slope[0];
            return;
        }
        work_.resize(static_cast<std::size_t>(n + 1));
        const double* const h = counts.table.data() + counts.table_at(b);
        for (Index slot = 0; slot < slots(counts); ++slot) {
            double slope = 0;
            const double q = mass(counts, slot, i, q_.data() + i * n_labels_);
            remove_event(law_of(counts, b, slot), n, q, work_.data());
            for (Index k = 0; k < n; ++k) slope += work_[k] * (h[k + 1] - h[k]);
            expected[counts.own.empty() ? slot : counts.own_of[i]] += slope;
        }
    }

    void update(CountBlocks& counts, Index i, const double* before, const double* now) {
        const Index b = counts.block_of[i];
        if (b < 0) return;
        const Index n = counts.size(b);
        if (n > small_) {
            const Index first = counts.own.empty() ? 0 : counts.own_of[i];
            counts.shift_means(b, slots(counts), before + first, now + first);
            return;
        }
        for (Index slot = 0; slot < slots(counts); ++slot) {
            const double old = mass(counts, slot, i, before), q = mass(counts, slot, i, now);
            counts.mean[b * slots(counts) + slot] += q - old;
            if (q == old) continue;
            double* const law = law_of(counts, b, slot);
            work_.resize(static_cast<std::size_t>(n + 1));
            remove_event(law, n, old, work_.data());
            std::copy(work_.begin(), work_.begin() + n, law);
            add_event(law, n - 1, q);
        }
    }

    double expected_counts(const CountBlocks& counts, Index exact, int n_threads, Poll poll) const {
        std::vector<double> parts(static_cast<std::size_t>(counts.blocks()));
        each_task(counts.blocks(), n_threads, poll, [&](Index b, int) {
            const Index n = counts.size(b);
            std::vector<double> q(static_cast<std::size_t>(n)), work;
            for (Index slot = 0; slot < slots(counts); ++slot) {
                CompensatedSum<double, 2> sum;
                for (Index k = 0; k < n; ++k) {
                    const Index i = counts.variables[counts.starts[b] + k];
                    sum.add(q[k] = mass(counts, slot, i, q_.data() + i * n_labels_));
                }
                const double mean = sum.value();
                if (n <= exact) {
                    const double* const h = counts.table.data() + counts.table_at(b);
                    parts[b] += expected_of_count(q.data(), n, h, work);
                    continue;
                }
                const double* const h = counts.majorant.data() + counts.table_at(b);
                const Index k = std::clamp<Index>(static_cast<Index>(mean), 0, n - 1);
                parts[b] += h[k] + (mean - static_cast<double>(k)) * (h[k + 1] - h[k]);
            }
        });
        CompensatedSum<double, 2> sum;
        for (const double part : parts) sum.add(part);
        return sum.value();
    }

    // Set q proportional to exp(-energy / t); 0 where the energy is infinite.
    void softmin(const double* energy, double temperature, double* q) const {
        const double least = *std::min_element(energy, energy + n_labels_);
        for (Index j = 0; j < n_labels_; ++j) q[j] = (least - energy[j]) / temperature;
        decay_all(q, n_labels_);
        double sum = 0;
        for (Index j = 0; j < n_labels_; ++j) sum += q[j];
        for (Index j = 0; j < n_labels_; ++j) q[j] /= sum;
    }

    Index n_, n_labels_, small_;
    std::vector<double> unary_, q_;
    PairEnergies pairs_;
    CliqueEnergies cliques_;
    std::vector<CountBlocks> counts_;
    std::vector<LabelSetCost> costs_;
    std::vector<double> work_;
};

}  // namespace setwise

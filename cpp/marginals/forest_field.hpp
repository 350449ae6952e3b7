// Structured mean field: Q a product of trees that are components of the field's graph, each with all
// edges among its variables, so that
//
//     L(Q) = H(Q) - E_Q[E] / t <= log Z
//
// factorises over all edges between components. The best tree of a component, all others fixed, is the
// exact distribution of its own edges and the expected energies of all else. Counts enter by concave
// functions above them, E h(K) <= h(E K): their variables need not be independent. So do costs of
// labels, by min(1, K). Components without edges between them meet in counts alone, whose tangents are
// above them and sums over the components: many move at once, and no such step lowers the bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/mean_field.hpp"
#include "marginals/tree_loops.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/threads.hpp"

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
        color();
        inner_.assign(starts_.size() - 1, 0.0);
        b_.assign(q_.size(), 0.0);
        message_.assign(q_.size(), 0.0);
        fresh_.assign(q_.size(), 0.0);
        level_.assign(static_cast<std::size_t>(n_), 0.0);
    }

    // Every component once; returns the largest change of a probability. An interrupted sweep leaves
    // some components as they were.
    double sweep(double temperature, int n_threads, Poll poll) {
        refresh_means();
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        std::vector<double> changes(inner_.size());
        for (std::size_t k = 0; k + 1 < color_starts_.size(); ++k) {
            const Index first = color_starts_[k], tasks = color_starts_[k + 1] - first;
            each_task(tasks, n_threads, poll, [&](Index task, int worker) {
                for (Index at = task_starts_[first + task]; at < task_starts_[first + task + 1];
                     ++at)
                    changes[by_color_[at]] = update_tree(by_color_[at], temperature, works[worker]);
            });
            follow(task_starts_[first], task_starts_[first + tasks], n_threads, poll);
        }
        return changes.empty() ? 0.0 : *std::max_element(changes.begin(), changes.end());
    }

    // H(Q) - E_Q[E] / t after a sweep, or less than that by Jensen's inequality.
    double value(double temperature, int n_threads, Poll poll) {
        refresh_means();
        CompensatedSum<double, 2> sum, energy;
        for (const double inner : inner_) sum.add(inner);
        std::vector<CompensatedSum<double, 2>> parts(
            static_cast<std::size_t>((n_ + variables_a_task - 1) / variables_a_task));
        each_task(static_cast<Index>(parts.size()), n_threads, poll, [&](Index task, int) {
            std::vector<double> expected(static_cast<std::size_t>(n_labels_));
            CompensatedSum<double, 2> part;
            const Index last = std::min(n_, (task + 1) * variables_a_task);
            for (Index i = task * variables_a_task; i < last; ++i) {
                const double* const q = q_.data() + i * n_labels_;
                std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_,
                          expected.begin());
                for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                    if (*arc % 2 == 0 && !kept_[*arc >> 1])
                        pairs_.add_expected(*arc, q_.data() + pairs_.head(*arc) * n_labels_,
                                            expected.data());
                for (Index j = 0; j < n_labels_; ++j)
                    if (q[j] > 0) part.add(q[j] * expected[j]);
            }
            parts[task] = part;
        });
        for (const auto& part : parts) energy.add(part);
        for (const auto& counts : counts_) energy.add(expected_counts(counts, 0, n_threads, poll));
        for (std::size_t c = 0; c < costs_.size(); ++c)
            energy.add(costs_[c].cost * std::min(1.0, used_[c]));
        return sum.value() - energy.value() / temperature;
    }

  private:
    static constexpr Index variables_a_task = 1024;

    struct Work {
        explicit Work(Index n_labels)
            : zero(static_cast<std::size_t>(n_labels), 0.0), mass(zero), above(zero) {}
        std::vector<double> zero, mass, above, expected;
    };

    // Components of one colour have no edges between them; tasks are some of one colour.
    void color() {
        const auto components = static_cast<Index>(starts_.size()) - 1;
        std::vector<Index> component(static_cast<std::size_t>(n_)), color(starts_.size(), -1);
        for (Index c = 0; c < components; ++c)
            for (Index k = starts_[c]; k < starts_[c + 1]; ++k) component[order_[k]] = c;
        Index colors = 0;
        std::vector<Index> taken;  // by the component that was the last to see a colour near it
        for (Index c = 0; c < components; ++c) {
            for (Index k = starts_[c]; k < starts_[c + 1]; ++k)
                for (const Index* arc = pairs_.begin(order_[k]); arc != pairs_.end(order_[k]);
                     ++arc) {
                    const Index near = color[component[pairs_.head(*arc)]];
                    if (near >= 0) taken[near] = c;
                }
            Index free = 0;
            while (free < colors && taken[free] == c) ++free;
            if (free == colors) {
                ++colors;
                taken.push_back(-1);
            }
            color[c] = free;
        }
        by_color_.clear();
        task_starts_.assign(1, 0);
        color_starts_.assign(1, 0);
        for (Index k = 0; k < colors; ++k) {
            Index size = 0;
            for (Index c = 0; c < components; ++c) {
                if (color[c] != k) continue;
                by_color_.push_back(c);
                size += starts_[c + 1] - starts_[c];
                if (size < variables_a_task) continue;
                task_starts_.push_back(static_cast<Index>(by_color_.size()));
                size = 0;
            }
            if (size > 0) task_starts_.push_back(static_cast<Index>(by_color_.size()));
            color_starts_.push_back(static_cast<Index>(task_starts_.size()) - 1);
        }
    }

    // The fresh probabilities of components by_color[begin, end) become Q, and the counts follow.
    void follow(Index begin, Index end, int n_threads, Poll poll) {
        const auto each_variable = [&](const auto& body) {
            for (Index at = begin; at < end; ++at)
                for (Index k = starts_[by_color_[at]]; k < starts_[by_color_[at] + 1]; ++k)
                    body(order_[k], q_.data() + order_[k] * n_labels_,
                         fresh_.data() + order_[k] * n_labels_);
        };
        each_task(counts(), n_threads, poll, [&](Index f, int) {
            each_variable([&](Index i, const double* q, const double* fresh) {
                update(counts_[f], i, q, fresh);
            });
        });
        each_task(static_cast<Index>(costs_.size()), n_threads, poll, [&](Index s, int) {
            each_variable([&](Index, const double* q, const double* fresh) {
                used_[s] += costs_[s].avoided(q) - costs_[s].avoided(fresh);
            });
        });
        each_variable(
            [&](Index, double* q, const double* fresh) { std::copy(fresh, fresh + n_labels_, q); });
    }

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
    void send(Index arc, const double* b, Work& work, double* out) const {
        const double* const mass = work.mass.data();
        const double top = masses(b, work.zero.data(), n_labels_, work.mass.data());
        const Index e = arc >> 1;
        if (table_at_[e] < 0) {
            potts_logs(mass, sum_of(mass, n_labels_), change_[e], -top, n_labels_, out);
            return;
        }
        for (Index y = 0; y < n_labels_; ++y) {
            double sum = 0;
            for (Index x = 0; x < n_labels_; ++x) sum += mass[x] * kernel(arc, x, y);
            out[y] = std::log(sum) + (top - least_[e]);
        }
    }

    double kernel(Index arc, Index x, Index y) const {
        const double* const table = tables_.data() + table_at_[arc >> 1];
        return arc & 1 ? table[y * n_labels_ + x] : table[x * n_labels_ + y];
    }

    double update_tree(Index c, double temperature, Work& work) {
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
        work.expected.resize(static_cast<std::size_t>((last - first) * n_labels_));
        for (Index k = first; k < last; ++k)
            std::copy(b_.begin() + order_[k] * n_labels_, b_.begin() + (order_[k] + 1) * n_labels_,
                      work.expected.begin() + (k - first) * n_labels_);
        CompensatedSum<double, 2> inner;
        for (Index k = last; k-- > first + 1;) {
            const Index i = order_[k], up = up_[i];
            double* const message = message_.data() + i * n_labels_;
            send(up, b_.data() + i * n_labels_, work, message);
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
            double* const fresh = fresh_.data() + i * n_labels_;
            const double top = masses(b, work.zero.data(), n_labels_, work.mass.data());
            if (up < 0) {
                const double sum = sum_of(work.mass.data(), n_labels_);
                inner.add(top + std::log(sum));
                for (Index j = 0; j < n_labels_; ++j) fresh[j] = work.mass[j] / sum;
            } else {
                descend(up, top - level_[i], work, fresh);
            }
            const double* const given = work.expected.data() + (k - first) * n_labels_;
            const double* const q = q_.data() + i * n_labels_;
            for (Index j = 0; j < n_labels_; ++j) {
                if (fresh[j] > 0) inner.add(-fresh[j] * given[j]);
                largest = std::max(largest, std::abs(fresh[j] - q[j]));
            }
        }
        inner_[c] = inner.value();
        return largest;
    }

    // fresh(x) = sum_y fresh(y) exp(b(x) - theta(x, y) / t - message(y)), y at the head, done before;
    // work.mass is exp(b) and e^-top, but for what was taken off the message.
    void descend(Index up, double top, Work& work, double* fresh) const {
        const Index e = up >> 1;
        const double* const q = fresh_.data() + pairs_.head(up) * n_labels_;
        const double* const message = message_.data() + pairs_.head(up ^ 1) * n_labels_;
        const double shift = table_at_[e] < 0 ? top : top - least_[e];
        double* const above = work.above.data();
        weigh_exponentials(q, shift, message, n_labels_, above);
        double sum = 0;
        const double all = sum_of(above, n_labels_);
        for (Index x = 0; x < n_labels_; ++x) {
            double value = 0;
            if (table_at_[e] < 0)
                value = change_[e] * all + (1 - change_[e]) * above[x];
            else
                for (Index y = 0; y < n_labels_; ++y) value += kernel(up, x, y) * above[y];
            sum += fresh[x] = work.mass[x] * value;
        }
        for (Index x = 0; x < n_labels_; ++x) fresh[x] /= sum;
    }

    std::vector<std::uint8_t> kept_;
    std::vector<Index> up_, order_, starts_;  // each component from its top down
    std::vector<Index> by_color_, task_starts_, color_starts_;
    std::vector<double> inner_;               // (C,): H(Q_c) - E[edges of c] / t
    std::vector<double> change_, least_,
        tables_;                              // of the trees' edges: exp(-w / t); tables over t
    std::vector<Index> table_at_;             // (E,): -1 for Potts
    std::vector<double> b_, message_, level_, fresh_, used_;
};

}  // namespace setwise

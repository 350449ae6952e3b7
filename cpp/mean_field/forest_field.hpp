// Structured mean field: Q is a product of trees that are components of the field's graph, each
// with all edges among its variables, so that
//
//        L(Q) = H(Q) - E_Q[E] / t <= log Z
//
// factorises over all edges between components. The best tree of a component, with all others
// fixed, is the exact distribution for its own edges and the expected energies of all other terms.
// Counts enter through concave majorants, E h(K) <= h(E K), so their variables need not be
// independent. Costs of labels enter in the same way, by min(1, K). Components without edges
// between them interact through counts alone. The tangents of the counts are majorants and sums
// over the components, so many components can be updated at once, and no such step lowers the
// bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/tree_lanes.hpp"
#include "mean_field/forest_layout.hpp"
#include "mean_field/mean_field.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/threads.hpp"

namespace setwise {

class ForestField : public MeanField {
  public:
    ForestField(const double* unary, Index n, Index n_labels) : MeanField(unary, n, n_labels, 0) {}

    // Choose which edges (E,) the trees have. Call this after the pairs are closed. The edges must
    // form a forest, with energies that differ by less than 600 t, so that no exponential is 0.
    void set_forest(const std::uint8_t* kept, double temperature) {
        kept_.assign(kept, kept + pairs_.edges());
        set_tables(temperature);
        layout_ = ForestLayout(pairs_, kept_, n_, variables_a_task);
        set_arcs();
        inner_.assign(layout_.task_starts.size() - 1, 0.0);
        b_.assign(q_.size(), 0.0);
        given_.assign(q_.size(), 0.0);
        fresh_.assign(q_.size(), 0.0);
    }

    // Update every component once. Return the largest change of a probability. An interrupted sweep
    // leaves some components as they were.
    double sweep(double temperature, int n_threads, Poll poll) {
        refresh_means();
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        std::vector<double> changes(inner_.size());
        for (std::size_t k = 0; k + 1 < layout_.color_starts.size(); ++k) {
            const Index first = layout_.color_starts[k],
                        tasks = layout_.color_starts[k + 1] - first;
            each_task(tasks, n_threads, poll, [&](Index task, int worker) {
                changes[first + task] = update_trees(first + task, temperature, works[worker]);
            });
            follow(layout_.task_starts[first], layout_.task_starts[first + tasks], n_threads, poll);
        }
        return changes.empty() ? 0.0 : *std::max_element(changes.begin(), changes.end());
    }

    // Return H(Q) - E_Q[E] / t after a sweep, or a lower bound of it by Jensen's inequality.
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
    // Variables per task, which takes at least microseconds; not tuned.
    static constexpr Index variables_a_task = 2048;

    struct Work {
        explicit Work(Index n_labels)
            : mass(static_cast<std::size_t>(eight * n_labels)),
              message(mass),
              above(mass),
              turned(n_labels) {}
        std::vector<double> mass, message, above;
        Eights turned;
        double changes[eight] = {}, tops[eight], levels[eight];
    };

    // An edge to another component: its weight, or the arc of its table.
    struct Crossing {
        Index head, arc;
        double weight;
    };

    // Collect the edges of each variable to other components, in the order of the variables.
    void set_arcs() {
        crossings_.clear();
        crossing_starts_.assign(1, 0);
        for (const Index i : layout_.order) {
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (!kept_[*arc >> 1])
                    crossings_.push_back({pairs_.head(*arc), pairs_.is_table(*arc) ? *arc : -1,
                                          pairs_.weight(*arc)});
            crossing_starts_.push_back(static_cast<Index>(crossings_.size()));
        }
    }

    // Make the fresh probabilities of variables order[begin, end) those of Q, and update the
    // counts.
    void follow(Index begin, Index end, int n_threads, Poll poll) {
        const auto each_variable = [&](const auto& body) {
            for (Index k = begin; k < end; ++k)
                body(layout_.order[k], q_.data() + layout_.order[k] * n_labels_,
                     fresh_.data() + k * n_labels_);
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
            change_[e] =
                pairs_.is_table(2 * e) ? 1.0 : std::exp(-pairs_.weight(2 * e) / temperature);
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

    double kernel(Index arc, Index x, Index y) const {
        const double* const table = tables_.data() + table_at_[arc >> 1];
        return arc & 1 ? table[y * n_labels_ + x] : table[x * n_labels_ + y];
    }

    double update_trees(Index task, double temperature, Work& work) {
        const Index first = layout_.task_starts[task], last = layout_.task_starts[task + 1];
        for (Index k = first; k < last; ++k) {
            double* const b = b_.data() + k * n_labels_;
            expected_energies(k, b);
            for (Index j = 0; j < n_labels_; ++j) b[j] /= -temperature;
            // <energies, q> / t is subtracted later, and messages are added to b, so keep a copy
            std::copy(b, b + n_labels_, given_.begin() + k * n_labels_);
        }
        CompensatedSum<double, 2> inner;
        for (Index run = layout_.task_runs[task + 1]; run-- > layout_.task_runs[task];)
            each_eight(run, [&](Index begin, Index end) { send(begin, end, work, inner); });
        double largest = 0;
        for (Index run = layout_.task_runs[task]; run < layout_.task_runs[task + 1]; ++run)
            each_eight(run, [&](Index begin, Index end) { receive(begin, end, work); });
        for (Index k = first; k < last; ++k) {
            const double* const q = q_.data() + layout_.order[k] * n_labels_;
            const double* const fresh = fresh_.data() + k * n_labels_;
            double expected = 0;
            for (Index j = 0; j < n_labels_; ++j) {
                if (fresh[j] > 0) expected += fresh[j] * given_[k * n_labels_ + j];
                largest = std::max(largest, std::abs(fresh[j] - q[j]));
            }
            inner.add(-expected);
        }
        inner_[task] = inner.value();
        return largest;
    }

    // Write to b (L,) the expected energies of a variable's labels, without the edges of its tree.
    void expected_energies(Index k, double* b) {
        const Index i = layout_.order[k];
        std::copy(unary_.begin() + i * n_labels_, unary_.begin() + (i + 1) * n_labels_, b);
        for (Index c = crossing_starts_[k]; c < crossing_starts_[k + 1]; ++c) {
            const Crossing& crossing = crossings_[c];
            const double* const q = q_.data() + crossing.head * n_labels_;
            if (crossing.arc >= 0)
                pairs_.add_expected(crossing.arc, q, b);
            else
                for (Index j = 0; j < n_labels_; ++j) b[j] += crossing.weight * (1 - q[j]);
        }
        for (auto& counts : counts_) add_slopes(counts, i, b);
        for (std::size_t s = 0; s < costs_.size(); ++s)
            if (used_[s] < 1)
                for (Index j = 0; j < n_labels_; ++j)
                    b[j] += costs_[s].labels[j] ? costs_[s].cost : 0.0;
    }

    template <class Body>
    void each_eight(Index run, const Body& body) const {
        for (Index k = layout_.run_starts[run]; k < layout_.run_starts[run + 1]; k += eight)
            body(k, std::min(k + eight, layout_.run_starts[run + 1]));
    }

    // Return eight rows of b. If there are fewer, they are copied, because the rows after them may
    // belong to another task.
    const double* eight_rows(Index begin, Index end, Work& work) const {
        const double* const b = b_.data() + begin * n_labels_;
        if (end - begin == eight) return b;
        std::copy(b, b + (end - begin) * n_labels_, work.mass.begin());
        return work.mass.data();
    }

    // Add the messages of a few variables, with no edges between them, to b of their parents, with
    // the largest entries subtracted, because numbers that grow along a chain would have large
    // rounding errors. Their own b becomes exp(b), up to a factor. Roots have its sum as their
    // message, which is that of an edge of change 1.
    void send(Index begin, Index end, Work& work, CompensatedSum<double, 2>& inner) {
        double* const b = b_.data() + begin * n_labels_;
        for (Index k = begin; k < end; ++k)
            work.changes[k - begin] = layout_.up[k] < 0 ? 1.0 : change_[layout_.up[k] >> 1];
        send_rows(eight_rows(begin, end, work), work.changes, n_labels_, work.turned.data(),
                  work.mass.data(), work.message.data(), work.tops, work.levels);
        std::copy(work.mass.begin(), work.mass.begin() + (end - begin) * n_labels_, b);
        for (Index k = begin; k < end; ++k) {
            double* const message = work.message.data() + (k - begin) * n_labels_;
            const bool by_table = layout_.up[k] >= 0 && table_at_[layout_.up[k] >> 1] >= 0;
            const double level = by_table
                                     ? send_table(layout_.up[k], b_.data() + k * n_labels_, message)
                                     : work.levels[k - begin];
            inner.add(work.tops[k - begin] + level);
            if (layout_.above[k] >= 0)
                add_scaled(1.0, message, n_labels_, b_.data() + layout_.above[k] * n_labels_);
        }
    }

    double send_table(Index up, const double* mass, double* message) const {
        for (Index y = 0; y < n_labels_; ++y) {
            double sum = 0;
            for (Index x = 0; x < n_labels_; ++x) sum += mass[x] * kernel(up, x, y);
            message[y] = std::log(sum);
        }
        const double level = *std::max_element(message, message + n_labels_);
        for (Index y = 0; y < n_labels_; ++y) message[y] -= level;
        return level - least_[up >> 1];
    }

    // Compute the probabilities of a few variables whose parents are done.
    void receive(Index begin, Index end, Work& work) {
        double* const fresh = fresh_.data() + begin * n_labels_;
        for (Index k = begin; k < end; ++k) {
            double* const q = work.above.data() + (k - begin) * n_labels_;
            work.changes[k - begin] = layout_.up[k] < 0 ? 1.0 : change_[layout_.up[k] >> 1];
            if (layout_.above[k] >= 0)
                std::copy_n(fresh_.begin() + layout_.above[k] * n_labels_, n_labels_, q);
            else
                std::fill(q, q + n_labels_, 1.0);
        }
        receive_rows(eight_rows(begin, end, work), work.above.data(), work.changes, n_labels_,
                     work.turned.data(), work.message.data());
        std::copy(work.message.begin(), work.message.begin() + (end - begin) * n_labels_, fresh);
        for (Index k = begin; k < end; ++k)
            if (layout_.up[k] >= 0 && table_at_[layout_.up[k] >> 1] >= 0)
                receive_table(layout_.up[k], b_.data() + k * n_labels_,
                              work.above.data() + (k - begin) * n_labels_,
                              fresh_.data() + k * n_labels_);
    }

    void receive_table(Index up, const double* mass, double* above, double* fresh) const {
        for (Index y = 0; y < n_labels_; ++y) {
            double sum = 0;
            for (Index x = 0; x < n_labels_; ++x) sum += mass[x] * kernel(up, x, y);
            above[y] /= sum;
        }
        double whole = 0;
        for (Index x = 0; x < n_labels_; ++x) {
            double value = 0;
            for (Index y = 0; y < n_labels_; ++y) value += kernel(up, x, y) * above[y];
            whole += fresh[x] = mass[x] * value;
        }
        for (Index x = 0; x < n_labels_; ++x) fresh[x] /= whole;
    }

    std::vector<std::uint8_t> kept_;
    ForestLayout layout_;
    std::vector<Crossing> crossings_;
    std::vector<Index> crossing_starts_;
    std::vector<double> inner_;  // H(Q_c) - E[edges of c] / t, summed for each task
    std::vector<double> change_, least_,
        tables_;                 // for the edges of the trees: exp(-w / t), and tables divided by t
    std::vector<Index> table_at_;                   // (E,): -1 for Potts
    std::vector<double> b_, given_, fresh_, used_;  // the first three in the order of the variables
};

}  // namespace setwise

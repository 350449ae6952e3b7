// An upper bound on the log partition function of unaries v and pairs theta (energies over the
// temperature) by the elimination of one variable after the other. The edges from i to later variables
// share out at most 1: sum of rho_e <= 1. With m_e the message that goes on along e, r_e the one that
// came back along it, and b_i = -v_i + the sum over all edges of i of rho_e times what came to i,
// Hoelder's inequality is
//
//   sum_x_i exp(-v_i + sum_in rho m - sum_out theta_e)
//       <= prod_out (sum_x_i exp(b_i - r_e - theta_e / rho_e))^rho_e (sum_x_i exp b_i)^(1 - sum_out rho),
//
// for any r. Each factor is a message to a later variable, so a pass over all variables bounds log Z
// whatever r is; a pass back makes r what the messages back are. At the fixed point the bound is the
// tree-reweighted one, max over consistent mu of sum H(mu_i) - sum rho_e I(mu_e) - energy, and on a
// forest, leaves first, it is log Z.
//
// Variables are visited in blocks; blocks of one level do not depend on each other, so that the
// threads have no bearing on the answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "fields/pair_energies.hpp"
#include "marginals/tree_loops.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

class TreeBound {
  public:
    using Index = std::int64_t;

    TreeBound(const double* unary, Index n, Index n_labels)
        : n_(n), n_labels_(n_labels), unary_(unary, unary + n * n_labels), pairs_(n, n_labels) {
        pairs_.close();
    }

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    Index edges() const { return pairs_.edges(); }
    PairEnergies& pairs() { return pairs_; }
    std::vector<double>& messages() { return messages_; }

    void set_unary(const double* unary) {
        std::copy(unary, unary + n_ * n_labels_, unary_.begin());
    }

    // To be called when all pairs are added: the order of elimination (N,) in blocks, flat messages.
    void close(const Index* order, const Index* starts, Index blocks) {
        pairs_.close();
        order_.assign(order, order + n_);
        block_starts_.assign(starts, starts + blocks + 1);
        position_.resize(static_cast<std::size_t>(n_));
        for (Index k = 0; k < n_; ++k) position_[order_[k]] = k;
        first_later_.resize(static_cast<std::size_t>(n_ + 1));
        arc_starts_.assign(1, 0);
        for (Index i = 0; i < n_; ++i) {
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (!is_later(*arc)) arcs_.push_back(*arc);
            first_later_[i] = static_cast<Index>(arcs_.size());
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (is_later(*arc)) arcs_.push_back(*arc);
            arc_starts_.push_back(static_cast<Index>(arcs_.size()));
        }
        set_levels();
        messages_.assign(static_cast<std::size_t>(2 * edges() * n_labels_), 0.0);
        rho_.assign(static_cast<std::size_t>(edges()), 1.0);
    }

    // The share (E,) of each edge; of those to later variables at most 1 a variable.
    void set_shares(const double* rho) {
        rho_.assign(rho, rho + edges());
        const Index size = n_labels_ * n_labels_;
        change_.resize(rho_.size());
        least_.assign(rho_.size(), 0.0);
        table_at_.assign(rho_.size(), -1);
        tables_.clear();
        for (Index e = 0; e < edges(); ++e) {
            change_[e] = std::exp(-pairs_.weight(2 * e) / rho_[e]);
            if (!pairs_.is_table(2 * e)) continue;
            table_at_[e] = static_cast<Index>(tables_.size());
            tables_.resize(tables_.size() + static_cast<std::size_t>(size));
            double* const table = tables_.data() + table_at_[e];
            double least = pairs_.at(2 * e, 0, 0);
            for (Index a = 0; a < n_labels_; ++a)
                for (Index b = 0; b < n_labels_; ++b)
                    least = std::min(least, pairs_.at(2 * e, a, b));
            least_[e] = least;
            for (Index a = 0; a < n_labels_; ++a)
                for (Index b = 0; b < n_labels_; ++b)
                    table[a * n_labels_ + b] =
                        std::max(std::exp((least - pairs_.at(2 * e, a, b)) / rho_[e]), tiny_mass);
        }
    }

    // Eliminates all variables; the bound on log Z.
    double forward(int n_threads, Poll poll) {
        const auto blocks = static_cast<Index>(block_starts_.size()) - 1;
        std::vector<Sum> parts(static_cast<std::size_t>(blocks));
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        for (std::size_t level = 0; level + 1 < level_starts_.size(); ++level)
            each_block(level, n_threads, poll, [&](Index block, int worker) {
                Sum sum;
                for (Index k = block_starts_[block]; k < block_starts_[block + 1]; ++k)
                    sum.add(eliminate(order_[k], works[worker]));
                parts[block] = sum;
            });
        return total_of(parts);
    }

    // The messages back, last variable first, each a step of this size from what it was; and log p
    // (N, L) of each variable.
    void backward(double step, double* logs, int n_threads, Poll poll) {
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        for (std::size_t level = level_starts_.size() - 1; level-- > 0;)
            each_block(level, n_threads, poll, [&](Index block, int worker) {
                for (Index k = block_starts_[block + 1]; k-- > block_starts_[block];)
                    send_back(order_[k], step, works[worker], logs + order_[k] * n_labels_);
            });
    }

    // log p (N, L) of the messages as they are.
    void beliefs(double* logs, int n_threads, Poll poll) const {
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        each_task(tasks(), n_threads, poll, [&](Index task, int worker) {
            Work& work = works[worker];
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                gather(i, work.b.data());
                normalize(work, logs + i * n_labels_);
            }
        });
    }

    // Messages as if exp(logs) (N, L) were the marginals: where a search may start.
    void set_beliefs(const double* logs, int n_threads, Poll poll) {
        std::fill(messages_.begin(), messages_.end(), 0.0);
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(n_labels_));
        each_task(tasks(), n_threads, poll, [&](Index task, int worker) {
            Work& work = works[worker];
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                std::copy(logs + i * n_labels_, logs + (i + 1) * n_labels_, work.b.begin());
                for (Index k = arc_starts_[i]; k < first_later_[i]; ++k) send(arcs_[k], work);
            }
        });
    }

    // sum H(mu_i) - <v, mu> - sum rho I(mu_e) - energy of pairs at consistent mu: mu_i = exp(logs), mu_e
    // near the messages' own, scaled to its ends' mu and rounded so as to meet them. No bound of these
    // shares and unaries is below. Energies (E,) and informations (E,) are those of the mu_e.
    double dual(const double* logs, double* energies, double* informations, int n_threads,
                Poll poll) const {
        std::vector<Sum> parts(static_cast<std::size_t>(tasks()));
        std::vector<PairWork> works(static_cast<std::size_t>(n_threads), PairWork(n_labels_));
        each_task(tasks(), n_threads, poll, [&](Index task, int worker) {
            Sum sum;
            for (Index i = task * rows; i < std::min(n_, (task + 1) * rows); ++i) {
                double* const p = works[worker].p.data();
                exponentials_of(logs + i * n_labels_, n_labels_, p);
                for (Index a = 0; a < n_labels_; ++a)
                    if (p[a] > 0)
                        sum.add(-p[a] * (logs[i * n_labels_ + a] + unary_[i * n_labels_ + a]));
                for (Index k = first_later_[i]; k < arc_starts_[i + 1]; ++k) {
                    const Pair pair = pair_of(arcs_[k], logs, works[worker]);
                    const Index e = arcs_[k] >> 1;
                    sum.add(-(rho_[e] * pair.information + pair.energy));
                    energies[e] = pair.energy;
                    informations[e] = pair.information;
                }
            }
            parts[task] = sum;
        });
        return total_of(parts);
    }

    // The bound by an order (N,) and shares (E,) of its own, 0 for edges that it leaves out, of what the
    // messages make of the field: b_i for each variable, minus theta / rho and both messages for each
    // edge. Where rho is the mean of several such shares, the mean of their bounds is one on log Z.
    double cover_bound(const Index* order, const double* shares, Poll poll) const {
        std::vector<Index> position(static_cast<std::size_t>(n_));
        for (Index k = 0; k < n_; ++k) position[order[k]] = k;
        std::vector<double> sent(static_cast<std::size_t>(edges() * n_labels_));
        Work work(n_labels_);
        Sum bound;
        for (Index k = 0; k < n_; ++k) {
            const Index i = order[k];
            double rest = 1;
            gather(i, work.b.data());
            for (Index a = arc_starts_[i]; a < arc_starts_[i + 1]; ++a) {
                const Index e = arcs_[a] >> 1;
                if (shares[e] > 0 && position[pairs_.head(arcs_[a])] < k)
                    add_scaled(shares[e], sent.data() + e * n_labels_, n_labels_, work.b.data());
            }
            for (Index a = arc_starts_[i]; a < arc_starts_[i + 1]; ++a) {
                const Index e = arcs_[a] >> 1;
                if (!(shares[e] > 0) || position[pairs_.head(arcs_[a])] < k) continue;
                double* const out = sent.data() + e * n_labels_;
                const double level = pass(arcs_[a], work, out);
                add_scaled(-1.0, message(arcs_[a]), n_labels_, out);
                bound.add(shares[e] * (level + lower_to_zero(out)));
                rest -= shares[e];
            }
            if (rest > 1e-12) {
                const double top =
                    masses(work.b.data(), work.zero.data(), n_labels_, work.mass.data());
                bound.add(rest * (top + std::log(sum_of(work.mass.data(), n_labels_))));
            }
            if (k % 256 == 0) poll();
        }
        return bound.value();
    }

    // The mu_e (L, L) of an edge, as `dual` has it.
    void pair_marginal(Index e, const double* logs, double* marginal) const {
        PairWork work(n_labels_);
        const Index arc = 2 * e;
        exponentials_of(logs + pairs_.head(arc ^ 1) * n_labels_, n_labels_, work.p.data());
        pair_of(arc, logs, work);
        const double lacking = sum_of(work.column.data(), n_labels_);
        const double scale = lacking > 0 ? 1 / lacking : 0;
        for (Index x = 0; x < n_labels_; ++x)
            for (Index y = 0; y < n_labels_; ++y) {
                const double k = table_at_[e] < 0 ? (x == y ? 1.0 : change_[e]) : kernel(arc, x, y);
                marginal[x * n_labels_ + y] =
                    work.a[x] * k * work.b[y] + work.row[x] * work.column[y] * scale;
            }
    }

  private:
    static constexpr Index rows = 1024;  // a task

    struct Work {
        explicit Work(Index n_labels)
            : b(static_cast<std::size_t>(n_labels)), mass(b), before(b), zero(b.size(), 0.0) {}
        std::vector<double> b, mass, before, zero;
    };
    struct PairWork {
        explicit PairWork(Index n_labels)
            : p(static_cast<std::size_t>(n_labels)),
              q(p),
              a(p),
              b(p),
              scale_a(p),
              scale_b(p),
              row(p),
              column(p),
              logs(p) {}
        std::vector<double> p, q, a, b, scale_a, scale_b, row, column, logs;
    };
    struct Pair {
        double information, energy;
    };

    // Of as many logarithms as there are variables: a plain one loses digits for each of them.
    using Sum = CompensatedSum<double, 2>;
    static double total_of(const std::vector<Sum>& parts) {
        Sum total;
        for (const Sum& part : parts) total.add(part);
        return total.value();
    }

    Index tasks() const { return (n_ + rows - 1) / rows; }
    bool is_later(Index arc) const {
        return position_[pairs_.head(arc)] > position_[pairs_.head(arc ^ 1)];
    }
    double* message(Index arc) { return messages_.data() + arc * n_labels_; }
    const double* message(Index arc) const { return messages_.data() + arc * n_labels_; }

    // A block's level is above those of all blocks that its variables have earlier neighbours in.
    void set_levels() {
        const auto blocks = static_cast<Index>(block_starts_.size()) - 1;
        std::vector<Index> block_of(static_cast<std::size_t>(n_)), level(block_starts_.size(), 0);
        Index highest = -1;
        for (Index block = 0; block < blocks; ++block) {
            for (Index k = block_starts_[block]; k < block_starts_[block + 1]; ++k)
                block_of[order_[k]] = block;
            for (Index k = block_starts_[block]; k < block_starts_[block + 1]; ++k)
                for (Index a = arc_starts_[order_[k]]; a < first_later_[order_[k]]; ++a) {
                    const Index other = block_of[pairs_.head(arcs_[a])];
                    if (other != block) level[block] = std::max(level[block], level[other] + 1);
                }
            highest = std::max(highest, level[block]);
        }
        level_starts_.assign(static_cast<std::size_t>(highest + 2), 0);
        for (Index block = 0; block < blocks; ++block) ++level_starts_[level[block] + 1];
        for (Index k = 0; k <= highest; ++k) level_starts_[k + 1] += level_starts_[k];
        std::vector<Index> next(level_starts_.begin(), level_starts_.end() - 1);
        by_level_.resize(static_cast<std::size_t>(blocks));
        for (Index block = 0; block < blocks; ++block) by_level_[next[level[block]]++] = block;
    }

    template <class Body>
    void each_block(std::size_t level, int n_threads, Poll poll, const Body& body) const {
        const Index start = level_starts_[level];
        each_task(level_starts_[level + 1] - start, n_threads, poll,
                  [&](Index task, int worker) { body(by_level_[start + task], worker); });
    }

    void gather(Index i, double* b) const {
        for (Index a = 0; a < n_labels_; ++a) b[a] = -unary_[i * n_labels_ + a];
        for (Index k = arc_starts_[i]; k < arc_starts_[i + 1]; ++k)
            add_scaled(rho_[arcs_[k] >> 1], message(arcs_[k] ^ 1), n_labels_, b);
    }

    double eliminate(Index i, Work& work) {
        gather(i, work.b.data());
        double bound = 0, rest = 1;
        for (Index k = first_later_[i]; k < arc_starts_[i + 1]; ++k) {
            const double rho = rho_[arcs_[k] >> 1];
            bound += rho * send(arcs_[k], work);
            rest -= rho;
        }
        if (rest > 1e-12) {
            const double top = masses(work.b.data(), work.zero.data(), n_labels_, work.mass.data());
            bound += rest * (top + std::log(sum_of(work.mass.data(), n_labels_)));
        }
        return bound;
    }

    void send_back(Index i, double step, Work& work, double* logs) {
        gather(i, work.b.data());
        for (Index k = arc_starts_[i]; k < first_later_[i]; ++k) {
            double* const out = message(arcs_[k]);
            if (step != 1) std::copy(out, out + n_labels_, work.before.begin());
            send(arcs_[k], work);
            if (step != 1)
                for (Index a = 0; a < n_labels_; ++a)
                    out[a] = work.before[a] + step * (out[a] - work.before[a]);
        }
        normalize(work, logs);
    }

    void normalize(Work& work, double* logs) const {
        const double top = masses(work.b.data(), work.zero.data(), n_labels_, work.mass.data());
        const double level = top + std::log(sum_of(work.mass.data(), n_labels_));
        for (Index a = 0; a < n_labels_; ++a) logs[a] = work.b[a] - level;
    }

    // The message along an arc, its largest entry 0; returns what was taken off for that.
    double send(Index arc, Work& work) { return pass(arc, work, message(arc)); }

    double pass(Index arc, Work& work, double* out) const {
        const Index e = arc >> 1;
        const double* const back = message(arc ^ 1);
        const double top = masses(work.b.data(), back, n_labels_, work.mass.data());
        if (table_at_[e] >= 0) return top + pass_table(arc, work.mass.data(), out);
        const double sum = sum_of(work.mass.data(), n_labels_), change = change_[e];
        const double level = std::log(change * (sum - 1) + 1);
        if (change > 1e-260) {
            potts_logs(work.mass.data(), sum, change, level, n_labels_, out);
            return top + level;
        }
        // a change so dear that masses cannot show it: in logarithms
        const double fall = -pairs_.weight(arc) / rho_[e];
        for (Index a = 0; a < n_labels_; ++a) {
            const double stay = work.b[a] - back[a] - top;
            const double others = std::max(sum - work.mass[a], 0.0);
            const double move = fall + (others > 0 ? std::log(others) : -700.0);
            const double high = std::max(stay, move), low = std::min(stay, move);
            out[a] = high + std::log1p(std::exp(low - high)) - level;
        }
        return top + level;
    }

    double pass_table(Index arc, const double* mass, double* out) const {
        const Index e = arc >> 1;
        const double* const table = tables_.data() + table_at_[e];
        std::fill(out, out + n_labels_, 0.0);
        if (arc & 1) {
            for (Index b = 0; b < n_labels_; ++b) {
                double sum = 0;
                for (Index a = 0; a < n_labels_; ++a) sum += mass[a] * table[b * n_labels_ + a];
                out[b] = sum;
            }
        } else {
            for (Index a = 0; a < n_labels_; ++a)
                if (mass[a] > 0) add_scaled(mass[a], table + a * n_labels_, n_labels_, out);
        }
        logs_of(out, n_labels_);
        return lower_to_zero(out) - least_[e] / rho_[e];
    }

    // Takes the largest entry off; returns it.
    double lower_to_zero(double* x) const {
        const double level = *std::max_element(x, x + n_labels_);
        for (Index a = 0; a < n_labels_; ++a) x[a] -= level;
        return level;
    }

    double kernel(Index from, Index x, Index y) const {
        const double* const table = tables_.data() + table_at_[from >> 1];
        return from & 1 ? table[y * n_labels_ + x] : table[x * n_labels_ + y];
    }

    // sums[x] = sum over y of kernel(x, y) values[y]; x is at the tail of the arc.
    void apply(Index from, const double* values, double* sums) const {
        if (table_at_[from >> 1] < 0) {
            const double change = change_[from >> 1];
            line(change * sum_of(values, n_labels_), 1 - change, values, n_labels_, sums);
            return;
        }
        for (Index x = 0; x < n_labels_; ++x) {
            double sum = 0;
            for (Index y = 0; y < n_labels_; ++y) sum += values[y] * kernel(from, x, y);
            sums[x] = sum;
        }
    }

    // mu_e = a K b + row column, scaled, with a K b near the belief of the edge with neither sum above its end's mu, and
    // row and column what the ends lack. The information is at most the mean of the two
    // parts', for it is convex.
    Pair pair_of(Index arc, const double* logs, PairWork& work) const {
        const Index head = pairs_.head(arc), e = arc >> 1;
        const double* const p = work.p.data();  // exp(logs) at the tail
        double* const q = work.q.data();
        double* const a = work.a.data();
        double* const b = work.b.data();
        double* const row = work.row.data();
        double* const column = work.column.data();
        exponentials_of(logs + head * n_labels_, n_labels_, q);
        masses(logs + head * n_labels_, message(arc), n_labels_, b);
        for (int round = 0; round < 2; ++round) {
            apply(arc, b, row);
            rescale(p, row, n_labels_, work.scale_a.data(), a);
            apply(arc ^ 1, a, column);
            rescale(q, column, n_labels_, work.scale_b.data(), b);
        }
        apply(arc, b, row);
        for (Index x = 0; x < n_labels_; ++x) {
            const double sum = a[x] * row[x], fall = sum > p[x] ? p[x] / sum : 1.0;
            work.scale_a[x] *= fall;
            a[x] *= fall;
            row[x] = sum < p[x] ? sum : p[x];
        }
        apply(arc ^ 1, a, column);
        for (Index y = 0; y < n_labels_; ++y) {
            const double sum = b[y] * column[y];
            column[y] = sum < q[y] ? sum : q[y];
        }
        // the part a K b
        const double mass = sum_of(row, n_labels_);
        double energy = 0, information = 0;
        weigh_logs(row, work.scale_a.data(), n_labels_, work.logs.data());
        information += sum_of(work.logs.data(), n_labels_);
        weigh_logs(column, work.scale_b.data(), n_labels_, work.logs.data());
        information += sum_of(work.logs.data(), n_labels_);
        if (mass > 0) information -= mass * std::log(mass);
        if (table_at_[e] < 0) {
            double same = 0;
            for (Index x = 0; x < n_labels_; ++x) same += a[x] * b[x];
            energy = pairs_.weight(arc) * std::max(mass - same, 0.0);
            information -= energy / rho_[e];
        } else {
            for (Index x = 0; x < n_labels_; ++x)
                for (Index y = 0; y < n_labels_; ++y) {
                    const double k = kernel(arc, x, y), cell = a[x] * k * b[y];
                    energy += cell * pairs_.at(arc, x, y);
                    if (cell > 0) information += cell * std::log(k);
                }
        }
        // the rest
        double lacking_tail = 0, lacking_head = 0;
        for (Index x = 0; x < n_labels_; ++x) {
            row[x] = p[x] - row[x];
            column[x] = q[x] - column[x];
            lacking_tail += row[x];
            lacking_head += column[x];
        }
        if (lacking_tail > 0 && lacking_head > 0) {
            const double scale = lacking_tail / lacking_head;
            for (Index x = 0; x < n_labels_; ++x) {
                if (row[x] > 0) information += row[x] * std::log(row[x] / (lacking_tail * p[x]));
                if (column[x] > 0)
                    information += column[x] * scale * std::log(column[x] / (lacking_head * q[x]));
            }
            double rest = 0;
            if (table_at_[e] < 0) {
                for (Index x = 0; x < n_labels_; ++x) rest += row[x] * (lacking_head - column[x]);
                rest *= pairs_.weight(arc);
            } else {
                for (Index x = 0; x < n_labels_; ++x)
                    for (Index y = 0; y < n_labels_; ++y)
                        rest += row[x] * column[y] * pairs_.at(arc, x, y);
            }
            energy += rest / lacking_head;
        }
        return {information, energy};
    }

    Index n_, n_labels_;
    std::vector<double> unary_;
    PairEnergies pairs_;
    std::vector<Index> order_, position_, block_starts_, level_starts_, by_level_;
    std::vector<Index> arcs_, arc_starts_,
        first_later_;                           // a variable's arcs: to earlier ones first
    std::vector<double> messages_;              // (2 E, L): what went along each arc
    std::vector<double> rho_, change_, least_;  // (E,)
    std::vector<Index> table_at_;               // (E,): -1 for Potts
    std::vector<double> tables_;                // exp((least - theta) / rho)
};

}  // namespace setwise

// The certificate of a bound by trees: a point of its dual,
//
//      sum H(mu_i) - <v, mu> - sum rho I(mu_e) - energy of pairs
//
// at consistent marginals of variables and pairs. No bound with these shares and unaries is below
// it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/tree_messages.hpp"

namespace setwise {

struct PairValue {
    double information, energy;
};

// The arrays (L,) of one edge: mu of its ends, and factors, sums and remainders of mu_e.
struct PairWork {
    explicit PairWork(std::int64_t n_labels)
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

// Return log(part / (whole mass)), also if the product underflows.
inline double log_odds(double part, double whole, double mass) {
    const double product = whole * mass;
    return product > least_mass ? std::log(part / product)
                                : std::log(part / mass) - std::log(whole);
}

// Compute mu_e = a K b + row column, scaled, with a K b near the belief of the edge, neither of its
// sums above its end's mu, and row and column the remainders of the ends. The mutual information is
// at most the mean of those of the two parts, because it is convex. `apply(forward, values, sums)`
// multiplies by K or its transpose; `inner(a, b)` is the energy of a K b and what log K adds to its
// information; `outer(row, column)` is the energy of their product. At the start work.p is
// exp(logs) at the tail, and work.b the head's mu over the message to it.
template <class Apply, class Inner, class Outer>
PairValue pair_value(std::int64_t n, PairWork& work, const Apply& apply, const Inner& inner,
                     const Outer& outer) {
    const double* const p = work.p.data();
    const double* const q = work.q.data();
    double* const a = work.a.data();
    double* const b = work.b.data();
    double* const scale_a = work.scale_a.data();
    double* const scale_b = work.scale_b.data();
    double* const row = work.row.data();
    double* const column = work.column.data();
    for (int round = 0; round < 2; ++round) {
        apply(true, b, row);
        rescale(p, row, n, scale_a, a);
        apply(false, a, column);
        rescale(q, column, n, scale_b, b);
    }
    apply(true, b, row);
    for (std::int64_t x = 0; x < n; ++x) {
        const double sum = a[x] * row[x], fall = sum > p[x] ? p[x] / sum : 1.0;
        scale_a[x] *= fall;
        a[x] *= fall;
        row[x] = sum < p[x] ? sum : p[x];
    }
    apply(false, a, column);
    for (std::int64_t y = 0; y < n; ++y) {
        const double sum = b[y] * column[y];
        column[y] = sum < q[y] ? sum : q[y];
    }
    // the part a K b
    const double mass = sum_of(row, n);
    weigh_logs(row, scale_a, n, work.logs.data());
    double information = sum_of(work.logs.data(), n);
    weigh_logs(column, scale_b, n, work.logs.data());
    information += sum_of(work.logs.data(), n);
    if (mass > 0) information -= mass * std::log(mass);
    const PairValue kept = inner(a, b, mass);
    information += kept.information;
    double energy = kept.energy;
    // the remainder
    double lacking_tail = 0, lacking_head = 0;
    for (std::int64_t x = 0; x < n; ++x) {
        row[x] = p[x] - row[x];
        column[x] = q[x] - column[x];
        lacking_tail += row[x];
        lacking_head += column[x];
    }
    if (lacking_tail > least_mass && lacking_head > least_mass) {
        const double scale = lacking_tail / lacking_head;
        for (std::int64_t x = 0; x < n; ++x) {
            if (row[x] > 0) information += row[x] * log_odds(row[x], lacking_tail, p[x]);
            if (column[x] > 0)
                information += column[x] * scale * log_odds(column[x], lacking_head, q[x]);
        }
        energy += outer(row, column, lacking_head) / lacking_head;
    }
    return {information, energy};
}

// For a Potts edge between variables of two labels: the mu_e with these ends whose odds are those
// of the edge, mu_00 mu_11 = mu_01 mu_10 / change^2, a root of a quadratic. This mu_e is optimal.
inline PairValue binary_pair(const double* p, const double* q, double change, double weight) {
    const double squared = change * change;
    const double half = squared + (1 - squared) * (p[1] + q[1]);
    const double inside = half * half - 4 * (1 - squared) * p[1] * q[1];
    const double most = p[1] < q[1] ? p[1] : q[1];
    const double root = 2 * p[1] * q[1] / (half + std::sqrt(inside > 0 ? inside : 0.0));
    // The root may be nan (0 / 0), which also gives `most`.
    const double both = root < most ? root : most;
    const double tail = p[1] - both, head = std::min(q[1] - both, p[0]), none = p[0] - head;
    const auto part = [](double mass, double apart) {
        return mass > tiny_mass ? mass * logarithm(mass / std::max(apart, tiny_mass)) : 0.0;
    };
    return {part(both, p[1] * q[1]) + part(tail, p[1] * q[0]) + part(head, p[0] * q[1]) +
                part(none, p[0] * q[0]),
            weight * (tail + head)};
}

template <class Real>
class TreeDual : public TreeMessages<Real> {
    using Base = TreeMessages<Real>;

  protected:
    using Base::rows;
    using typename Base::Sum;

  public:
    using Base::Base;
    using typename Base::Index;

    // Return the value of the dual at mu_i = exp(logs) (N, L), with mu_e near those of the
    // messages, scaled to the mu of its ends and rounded so that they agree. Informations (E,) are
    // those of the mu_e.
    double dual(const double* logs, double* informations, int n_threads, Poll poll) const {
        std::vector<Sum> parts(static_cast<std::size_t>(this->tasks()));
        std::vector<PairWork> works(static_cast<std::size_t>(n_threads), PairWork(this->n_labels_));
        std::vector<PairRows> rows_of(works.size(), PairRows(this->n_labels_));
        std::vector<double> ordered(this->unary_.size());  // in the numbering of the variables
        for (Index i = 0; i < this->n_; ++i)
            std::copy_n(logs + this->row(i), this->n_labels_,
                        ordered.begin() + i * this->n_labels_);
        each_task(this->tasks(), n_threads, poll, [&](Index task, int worker) {
            Sum sum;
            PairWork& work = works[worker];
            PairRows& pairs = rows_of[worker];
            double* const p = work.p.data();
            const auto done = [&](Index e, const PairValue& pair) {
                sum.add(-(this->rho_[e] * pair.information + pair.energy));
                informations[this->edge_[e]] = pair.information;
            };
            for (Index i = task * rows; i < std::min(this->n_, (task + 1) * rows); ++i) {
                const double* const own = ordered.data() + i * this->n_labels_;
                exponentials_of(own, this->n_labels_, p);
                for (Index a = 0; a < this->n_labels_; ++a)
                    if (p[a] > 0)
                        sum.add(-p[a] *
                                (this->weight(i) * own[a] + this->unary_[i * this->n_labels_ + a]));
                for (Index k = this->first_later_[i]; k < this->arc_starts_[i + 1]; ++k) {
                    const Index arc = this->arcs_[k];
                    const double* const head =
                        ordered.data() + this->pairs_.head(arc) * this->n_labels_;
                    if (this->is_plain_) {
                        add_row(arc, own, head, pairs);
                        if (pairs.count == eight) value_rows(pairs, done);
                    } else {
                        done(arc >> 1, value_of(arc, head, work));
                    }
                }
            }
            value_rows(pairs, done);
            parts[task] = sum;
        });
        return Base::total_of(parts);
    }

    // Write the mu_e (L, L) of an edge that `dual` uses.
    void pair_marginal(Index edge, const double* logs, double* marginal) const {
        PairWork work(this->n_labels_);
        const Index e = this->rank_[edge], arc = 2 * e;
        exponentials_of(logs + this->row(this->pairs_.head(arc ^ 1)), this->n_labels_,
                        work.p.data());
        pair_of(arc, logs + this->row(this->pairs_.head(arc)), work);
        const double lacking = sum_of(work.column.data(), this->n_labels_);
        const double scale = lacking > 0 ? 1 / lacking : 0;
        for (Index x = 0; x < this->n_labels_; ++x)
            for (Index y = 0; y < this->n_labels_; ++y) {
                const double k = this->table_at_[e] < 0 ? (x == y ? 1.0 : this->change_[e])
                                                        : this->kernel(arc, x, y);
                marginal[x * this->n_labels_ + y] =
                    work.a[x] * k * work.b[y] + work.row[x] * work.column[y] * scale;
            }
    }

  private:
    void add_row(Index arc, const double* tail, const double* head, PairRows& pairs) const {
        const Index n = this->n_labels_, at = pairs.count * n, e = arc >> 1;
        const Real* const message = this->message(arc);
        for (Index a = 0; a < n; ++a) {
            pairs.tail[at + a] = tail[a];
            pairs.head[at + a] = head[a];
            pairs.message[at + a] = static_cast<double>(message[a]);
        }
        pairs.edge[pairs.count] = e;
        pairs.change[pairs.count] = this->change_[e];
        pairs.weight[pairs.count] = this->pairs_.weight(arc);
        pairs.share[pairs.count++] = this->rho_[e];
    }

    template <class Done>
    void value_rows(PairRows& pairs, const Done& done) const {
        if (pairs.count == 0) return;
        if (this->n_labels_ == 2)
            binary_pairs(pairs);
        else
            potts_pairs(pairs, this->n_labels_);
        for (int k = 0; k < pairs.count; ++k)
            done(pairs.edge[k], PairValue{pairs.information[k], pairs.energy[k]});
        pairs.count = 0;
    }

    // work.p is exp(logs) at the tail, head log mu (L,) at the head.
    PairValue value_of(Index arc, const double* head, PairWork& work) const {
        const Index e = arc >> 1;
        if (this->n_labels_ != 2 || this->table_at_[e] >= 0) return pair_of(arc, head, work);
        exponentials_of(head, 2, work.q.data());
        return binary_pair(work.p.data(), work.q.data(), this->change_[e],
                           this->pairs_.weight(arc));
    }

    PairValue pair_of(Index arc, const double* head, PairWork& work) const {
        const Index e = arc >> 1;
        const Real* const message = this->message(arc);
        const Index n = this->n_labels_;
        exponentials_of(head, n, work.q.data());
        masses(head, message, n, work.b.data());
        if (this->table_at_[e] < 0) {
            const double change = this->change_[e], weight = this->pairs_.weight(arc);
            return pair_value(
                n, work,
                [&](bool, const double* values, double* sums) {
                    line(change * sum_of(values, n), 1 - change, values, n, sums);
                },
                [&](const double* a, const double* b, double mass) {
                    double same = 0;
                    for (Index x = 0; x < n; ++x) same += a[x] * b[x];
                    const double energy = weight * std::max(mass - same, 0.0);
                    return PairValue{-energy / this->rho_[e], energy};
                },
                [&](const double* row, const double* column, double lacking) {
                    double rest = 0;
                    for (Index x = 0; x < n; ++x) rest += row[x] * (lacking - column[x]);
                    return weight * rest;
                });
        }
        return pair_value(
            this->n_labels_, work,
            [&](bool ahead, const double* values, double* sums) {
                for (Index x = 0; x < this->n_labels_; ++x) {
                    double sum = 0;
                    for (Index y = 0; y < this->n_labels_; ++y)
                        sum += values[y] * this->kernel(ahead ? arc : arc ^ 1, x, y);
                    sums[x] = sum;
                }
            },
            [&](const double* a, const double* b, double) {
                PairValue value{0, 0};
                for (Index x = 0; x < this->n_labels_; ++x)
                    for (Index y = 0; y < this->n_labels_; ++y) {
                        const double k = this->kernel(arc, x, y), cell = a[x] * k * b[y];
                        value.energy += cell * this->pairs_.at(arc, x, y);
                        if (cell > 0) value.information += cell * std::log(k);
                    }
                return value;
            },
            [&](const double* row, const double* column, double) {
                double rest = 0;
                for (Index x = 0; x < this->n_labels_; ++x)
                    for (Index y = 0; y < this->n_labels_; ++y)
                        rest += row[x] * column[y] * this->pairs_.at(arc, x, y);
                return rest;
            });
    }
};

}  // namespace setwise

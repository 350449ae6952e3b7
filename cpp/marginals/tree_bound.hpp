// An upper bound on the log partition function of unaries v and pairs theta (energies over the
// temperature) by the elimination of one variable after the other. The shares of the edges from i
// to later variables sum to at most 1: sum of rho_e <= 1. Let m_e be the message passed on along e
// and r_e the one that came back along it, and let b_i = -v_i + the sum over all edges of i of
// rho_e times the message to i. Then Hoelder's inequality is
//
//      sum_x_i exp(-v_i + sum_in rho m - sum_out theta_e)
//          <= prod_out (sum_x_i exp(b_i - r_e - theta_e / rho_e))^rho_e (sum_x_i exp b_i)^(1 - sum_out rho),
//
// for any r. Each factor is a message to a later variable, so a pass over all variables bounds log
// Z for any r. A backward pass sets r to the messages back. At the fixed point the bound is the
// tree-reweighted one, max over consistent mu of sum H(mu_i) - sum rho_e I(mu_e) - energy; on a
// forest, leaves first, it is log Z. If other factors use a part of a variable's entropy, the
// shares of its edges sum to at most the remaining part c_i, and b_i / c_i replaces b_i.
//
// Variables are visited in blocks. Blocks of one level do not depend on each other, so the result
// does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/tree_dual.hpp"

namespace setwise {

template <class Real>
class TreeBound : public TreeDual<Real> {
    using Base = TreeDual<Real>;
    using typename Base::Sum;
    using typename Base::Work;

  public:
    using Base::Base;
    using Base::edges;
    using typename Base::Index;

    // Eliminate all variables. Return the bound on log Z.
    double forward(int n_threads, Poll poll) {
        const auto blocks = static_cast<Index>(this->block_starts_.size()) - 1;
        std::vector<Sum> parts(static_cast<std::size_t>(blocks));
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(this->n_labels_));
        for (std::size_t level = 0; level + 1 < this->level_starts_.size(); ++level)
            each_block(level, n_threads, poll, [&](Index block, int worker) {
                Sum sum;
                Work& work = works[worker];
                const auto done = [&](Index arc, const double* out, double height) {
                    sum.add(this->rho_[arc >> 1] * height);
                    this->keep_up(arc, out);
                };
                each_run(block, [&](Index begin, Index end) {
                    for (Index k = begin; k < end; ++k) sum.add(eliminate(k, work, done));
                    this->pass_waiting(work, done);
                });
                parts[block] = sum;
            });
        return total_of(parts);
    }

    // Compute the messages back, last variable first, each with this step size from its old value.
    // Write log p (N, L) of each variable if `logs` is not null.
    void backward(double step, double* logs, int n_threads, Poll poll) {
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(this->n_labels_));
        std::vector<Rows> rows_of(works.size(), Rows(this->n_labels_));
        for (std::size_t level = this->level_starts_.size() - 1; level-- > 0;)
            each_block(level, n_threads, poll, [&](Index block, int worker) {
                Work& work = works[worker];
                const auto done = [&](Index arc, const double* out, double) {
                    keep_back(arc, step, out);
                };
                each_run_back(block, [&](Index begin, Index end) {
                    for (Index i = begin; i < end; ++i) {
                        this->gather(i, work.b.data());
                        for (Index a = this->arc_starts_[i]; a < this->first_later_[i]; ++a)
                            send_back(this->arcs_[a], work, done);
                        if (logs) rows_of[worker].add(this->order_[i], work.b.data(), logs);
                    }
                    this->pass_waiting(work, done);
                });
                rows_of[worker].finish(logs);
            });
    }

    // Write log p (N, L) of the present messages.
    void beliefs(double* logs, int n_threads, Poll poll) const {
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(this->n_labels_));
        std::vector<Rows> rows_of(works.size(), Rows(this->n_labels_));
        each_task(tasks(), n_threads, poll, [&](Index task, int worker) {
            Work& work = works[worker];
            for (Index i = task * rows; i < std::min(this->n_, (task + 1) * rows); ++i) {
                this->gather(i, work.b.data());
                rows_of[worker].add(this->order_[i], work.b.data(), logs);
            }
            rows_of[worker].finish(logs);
        });
    }

    // Set messages as if exp(logs) (N, L) were the marginals, as a start of a search.
    void set_beliefs(const double* logs, int n_threads, Poll poll) {
        std::fill(this->messages_.begin(), this->messages_.end(), Real(0));
        std::vector<Work> works(static_cast<std::size_t>(n_threads), Work(this->n_labels_));
        each_task(tasks(), n_threads, poll, [&](Index task, int worker) {
            Work& work = works[worker];
            const auto done = [&](Index arc, const double* out, double) {
                keep_back(arc, 1.0, out);
            };
            for (Index i = task * rows; i < std::min(this->n_, (task + 1) * rows); ++i) {
                const double* const given = logs + this->row(i);
                std::copy(given, given + this->n_labels_, work.b.begin());
                for (Index k = this->arc_starts_[i]; k < this->first_later_[i]; ++k)
                    send_back(this->arcs_[k], work, done);
            }
            this->pass_waiting(work, done);
        });
    }

    // Return the bound for another order (N,) and other shares (E,), which are 0 for edges that it
    // leaves out, of the field reparametrised by the messages: b_i for each variable, minus theta /
    // rho and both messages for each edge. If rho is the mean of several such shares, the mean of
    // their bounds is a bound on log Z.
    double cover_bound(const Index* order, const double* shares, Poll poll) const {
        std::vector<Index> position(static_cast<std::size_t>(this->n_));
        for (Index k = 0; k < this->n_; ++k) position[this->position_[order[k]]] = k;
        std::vector<double> sent(static_cast<std::size_t>(edges() * this->n_labels_));
        Work work(this->n_labels_);
        Sum bound;
        for (Index k = 0; k < this->n_; ++k) {
            const Index i = this->position_[order[k]];
            double rest = this->weight(i);
            const double scale = 1 / rest;
            this->gather(i, work.b.data());
            for (Index a = this->arc_starts_[i]; a < this->arc_starts_[i + 1]; ++a) {
                const Index e = this->arcs_[a] >> 1;
                if (shares[this->edge_[e]] > 0 && position[this->pairs_.head(this->arcs_[a])] < k)
                    add_scaled(scale * shares[this->edge_[e]], sent.data() + e * this->n_labels_,
                               this->n_labels_, work.b.data());
            }
            for (Index a = this->arc_starts_[i]; a < this->arc_starts_[i + 1]; ++a) {
                const Index e = this->arcs_[a] >> 1;
                if (!(shares[this->edge_[e]] > 0) ||
                    position[this->pairs_.head(this->arcs_[a])] < k)
                    continue;
                double* const out = sent.data() + e * this->n_labels_;
                const double level = this->pass(this->arcs_[a], work, out);
                add_scaled(-1.0, this->message(this->arcs_[a]), this->n_labels_, out);
                bound.add(shares[this->edge_[e]] * (level + this->lower_to_zero(out)));
                rest -= shares[this->edge_[e]];
            }
            if (rest > 1e-12) {
                const double top =
                    masses(work.b.data(), work.zero.data(), this->n_labels_, work.mass.data());
                bound.add(rest * (top + std::log(sum_of(work.mass.data(), this->n_labels_))));
            }
            if (k % 256 == 0) poll();
        }
        return bound.value();
    }

  private:
    using Base::each_block;
    using Base::rows;
    using Base::tasks;
    using Base::total_of;

    // Rows of log p, normalised eight at a time.
    class Rows {
      public:
        explicit Rows(Index n_labels)
            : n_labels_(n_labels),
              b_(static_cast<std::size_t>(eight * n_labels)),
              turned_(n_labels) {}

        void add(Index i, const double* b, double* logs) {
            std::copy(b, b + n_labels_, b_.begin() + count_ * n_labels_);
            variables_[count_] = i;
            if (++count_ == eight) finish(logs);
        }
        void finish(double* logs) {
            if (count_ > 0) normalize_rows(b_.data(), n_labels_, turned_.data());
            for (int k = 0; k < count_; ++k)
                std::copy(b_.begin() + k * n_labels_, b_.begin() + (k + 1) * n_labels_,
                          logs + variables_[k] * n_labels_);
            count_ = 0;
        }

      private:
        Index n_labels_;
        std::vector<double> b_;
        Eights turned_;
        Index variables_[eight];
        int count_ = 0;
    };

    template <class Body>
    void each_run(Index block, const Body& body) const {
        for (Index run = this->block_runs_[block]; run < this->block_runs_[block + 1]; ++run)
            body(this->run_starts_[run], this->run_starts_[run + 1]);
    }
    template <class Body>
    void each_run_back(Index block, const Body& body) const {
        for (Index run = this->block_runs_[block + 1]; run-- > this->block_runs_[block];)
            body(this->run_starts_[run], this->run_starts_[run + 1]);
    }

    // Return the contribution of a variable to the bound, without queued messages.
    template <class Done>
    double eliminate(Index i, Work& work, const Done& done) {
        this->gather(i, work.b.data());
        double bound = 0, rest = this->weight(i);
        for (Index k = this->first_later_[i]; k < this->arc_starts_[i + 1]; ++k) {
            const Index arc = this->arcs_[k];
            rest -= this->rho_[arc >> 1];
            if (this->is_plain_) {
                this->pass_later(arc, work, done);
            } else {
                const double level = this->pass(arc, work, work.out.data());
                done(arc, work.out.data(), level);
            }
        }
        if (rest > 1e-12) {
            const double top =
                masses(work.b.data(), work.zero.data(), this->n_labels_, work.mass.data());
            bound += rest * (top + std::log(sum_of(work.mass.data(), this->n_labels_)));
        }
        return bound;
    }

    template <class Done>
    void send_back(Index arc, Work& work, const Done& done) const {
        if (this->is_plain_) {
            this->pass_later(arc, work, done);
            return;
        }
        this->pass(arc, work, work.out.data());
        done(arc, work.out.data(), 0.0);
    }

    void keep_back(Index arc, double step, const double* out) {
        Real* const kept = this->message(arc);
        for (Index a = 0; a < this->n_labels_; ++a) {
            const auto before = static_cast<double>(kept[a]);
            kept[a] = static_cast<Real>(step < 1 ? before + step * (out[a] - before) : out[a]);
        }
    }
};

}  // namespace setwise

// The state of a bound by trees: variables in the order of their elimination, the shares of edges,
// and the messages along each arc (see tree_bound.hpp). Internally, variables are numbered in that
// order, and edges in the order in which it meets them, so that a pass reads memory consecutively.
// Messages are stored in Real and summed in double. Those to later variables are rounded up when
// they are stored. The bound increases with them and is valid for any messages back, so it is valid
// in single precision too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "fields/pair_energies.hpp"
#include "marginals/tree_lanes.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

namespace setwise {

template <class Real>
class TreeMessages {
  public:
    using Index = std::int64_t;

    TreeMessages(const double* unary, Index n, Index n_labels)
        : n_(n), n_labels_(n_labels), unary_(unary, unary + n * n_labels), pairs_(n, n_labels) {
        pairs_.close();
        order_.resize(static_cast<std::size_t>(n));
        std::iota(order_.begin(), order_.end(), Index(0));
    }

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    Index edges() const { return pairs_.edges(); }
    PairEnergies& pairs() { return pairs_; }
    // Return both messages (2, L) of an edge.
    Real* messages_of(Index e) { return messages_.data() + 2 * rank_[e] * n_labels_; }

    void set_unary(const double* unary) {
        for (Index i = 0; i < n_; ++i)
            std::copy(unary + row(i), unary + row(i) + n_labels_, unary_.begin() + i * n_labels_);
    }

    // Set the order of elimination (N,) in blocks, and flat messages. Call this after all pairs are
    // added.
    void close(const Index* order, const Index* starts, Index blocks) {
        pairs_.close();
        order_.assign(order, order + n_);
        block_starts_.assign(starts, starts + blocks + 1);
        position_.resize(static_cast<std::size_t>(n_));
        for (Index k = 0; k < n_; ++k) position_[order_[k]] = k;
        set_runs();
        renumber();
        first_later_.resize(static_cast<std::size_t>(n_ + 1));
        arc_starts_.assign(1, 0);
        arc_starts_.reserve(first_later_.size());
        arcs_.reserve(static_cast<std::size_t>(2 * edges()));
        for (Index i = 0; i < n_; ++i) {
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (pairs_.head(*arc) < i) arcs_.push_back(*arc);
            first_later_[i] = static_cast<Index>(arcs_.size());
            for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
                if (pairs_.head(*arc) > i) arcs_.push_back(*arc);
            arc_starts_.push_back(static_cast<Index>(arcs_.size()));
        }
        set_levels();
        messages_.assign(static_cast<std::size_t>(2 * edges() * n_labels_), Real(0));
        rho_.assign(static_cast<std::size_t>(edges()), 1.0);
    }

    // Set the share (E,) of each edge; the shares of the edges from a variable to later ones sum to
    // at most 1.
    void set_shares(const double* rho) {
        rho_.resize(static_cast<std::size_t>(edges()));
        for (Index e = 0; e < edges(); ++e) rho_[rank_[e]] = rho[e];
        const Index size = n_labels_ * n_labels_;
        change_.resize(rho_.size());
        least_.assign(rho_.size(), 0.0);
        table_at_.assign(rho_.size(), -1);
        tables_.clear();
        is_plain_ = true;
        for (Index e = 0; e < edges(); ++e) {
            change_[e] = std::exp(-pairs_.weight(2 * e) / rho_[e]);
            is_plain_ = is_plain_ && !pairs_.is_table(2 * e) && change_[e] > least_change;
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

    // Set the part (N,) of each variable's entropy that belongs to the trees. The shares of the
    // edges to later variables then sum to at most this part.
    void set_weights(const double* weights) {
        weights_.resize(static_cast<std::size_t>(n_));
        for (Index i = 0; i < n_; ++i) weights_[i] = weights[order_[i]];
    }

  protected:
    // Rows per task, which take at least microseconds; not tuned.
    static constexpr Index rows = 1024;
    static constexpr double least_change = 1e-260;

    struct Work {
        explicit Work(Index n_labels)
            : b(static_cast<std::size_t>(n_labels)),
              mass(b),
              out(b),
              zero(b.size(), 0.0),
              rows_in(static_cast<std::size_t>(eight * n_labels)),
              rows_out(rows_in),
              turned(n_labels) {}
        std::vector<double> b, mass, out, zero;
        // messages that wait until there are eight of them
        std::vector<double> rows_in, rows_out;
        Eights turned;
        Index arcs[eight];
        double changes[eight] = {}, levels[eight];
        int count = 0;
    };

    // A sum with one logarithm per variable, for which a plain sum would lose digits.
    using Sum = CompensatedSum<double, 2>;
    static double total_of(const std::vector<Sum>& parts) {
        Sum total;
        for (const Sum& part : parts) total.add(part);
        return total.value();
    }

    double weight(Index i) const { return weights_.empty() ? 1.0 : weights_[i]; }
    Index tasks() const { return (n_ + rows - 1) / rows; }
    // Return where the row (L,) of a variable is in the caller's arrays.
    Index row(Index i) const { return order_[i] * n_labels_; }
    Real* message(Index arc) { return messages_.data() + arc * n_labels_; }
    const Real* message(Index arc) const { return messages_.data() + arc * n_labels_; }

    // Store a message to a later variable, rounded up.
    void keep_up(Index arc, const double* out) {
        Real* const kept = message(arc);
        for (Index a = 0; a < n_labels_; ++a) {
            kept[a] = static_cast<Real>(out[a]);
            if constexpr (!std::is_same_v<Real, double>) {
                constexpr Real ulp = std::numeric_limits<Real>::epsilon();
                if (static_cast<double>(kept[a]) < out[a]) kept[a] += ulp * std::abs(kept[a]);
            }
        }
    }

    // Find runs of variables without edges between them in each block, ordered by the longest path
    // from its first variables. Any order that keeps that of neighbours is equivalent.
    void set_runs() {
        std::vector<Index> depth(static_cast<std::size_t>(n_)), starts, kept;
        run_starts_.assign(1, 0);
        block_runs_.assign(1, 0);
        for (std::size_t block = 0; block + 1 < block_starts_.size(); ++block) {
            const Index begin = block_starts_[block], end = block_starts_[block + 1];
            Index highest = 0;
            for (Index k = begin; k < end; ++k) {
                const Index i = order_[k];
                for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc) {
                    const Index j = pairs_.head(*arc);
                    if (position_[j] >= begin && position_[j] < k)
                        depth[i] = std::max(depth[i], depth[j] + 1);
                }
                highest = std::max(highest, depth[i]);
            }
            starts.assign(static_cast<std::size_t>(highest + 2), 0);
            for (Index k = begin; k < end; ++k) ++starts[depth[order_[k]] + 1];
            for (Index k = 0; k <= highest; ++k) starts[k + 1] += starts[k];
            for (Index k = 1; k <= highest + 1; ++k) run_starts_.push_back(begin + starts[k]);
            block_runs_.push_back(static_cast<Index>(run_starts_.size()) - 1);
            kept.assign(order_.begin() + begin, order_.begin() + end);
            for (const Index i : kept) order_[begin + starts[depth[i]]++] = i;
            for (Index k = begin; k < end; ++k) position_[order_[k]] = k;
        }
    }

    // From here on variables and edges have the numbers of the order.
    void renumber() {
        std::vector<double> unary(unary_.size());
        edge_.clear();
        edge_.reserve(static_cast<std::size_t>(edges()));
        for (Index i = 0; i < n_; ++i) {
            std::copy(unary_.begin() + row(i), unary_.begin() + row(i) + n_labels_,
                      unary.begin() + i * n_labels_);
            for (const Index* arc = pairs_.begin(order_[i]); arc != pairs_.end(order_[i]); ++arc)
                if (position_[pairs_.head(*arc)] > i) edge_.push_back(*arc >> 1);
        }
        unary_ = std::move(unary);
        rank_.resize(edge_.size());
        for (Index e = 0; e < edges(); ++e) rank_[edge_[e]] = e;
        pairs_ = pairs_.renumbered(edge_, position_);
    }

    // Set the level of each block above those of all blocks with earlier neighbours of its
    // variables.
    void set_levels() {
        const auto blocks = static_cast<Index>(block_starts_.size()) - 1;
        std::vector<Index> block_of(static_cast<std::size_t>(n_)), level(block_starts_.size(), 0);
        Index highest = -1;
        for (Index block = 0; block < blocks; ++block) {
            for (Index i = block_starts_[block]; i < block_starts_[block + 1]; ++i)
                block_of[i] = block;
            for (Index i = block_starts_[block]; i < block_starts_[block + 1]; ++i)
                for (Index a = arc_starts_[i]; a < first_later_[i]; ++a) {
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
        if (n_labels_ == 2) {
            double first = -unary_[2 * i], second = -unary_[2 * i + 1];
            for (Index k = arc_starts_[i]; k < arc_starts_[i + 1]; ++k) {
                const Real* const came = message(arcs_[k] ^ 1);
                const double rho = rho_[arcs_[k] >> 1];
                first += rho * static_cast<double>(came[0]);
                second += rho * static_cast<double>(came[1]);
            }
            b[0] = weights_.empty() ? first : first / weights_[i];
            b[1] = weights_.empty() ? second : second / weights_[i];
            return;
        }
        for (Index a = 0; a < n_labels_; ++a) b[a] = -unary_[i * n_labels_ + a];
        for (Index k = arc_starts_[i]; k < arc_starts_[i + 1]; ++k)
            add_scaled(rho_[arcs_[k] >> 1], message(arcs_[k] ^ 1), n_labels_, b);
        if (!weights_.empty())
            for (Index a = 0; a < n_labels_; ++a) b[a] /= weights_[i];
    }

    // Compute the message along an arc, with its largest entry 0. Return what was subtracted for
    // that.
    double pass(Index arc, Work& work, double* out) const {
        const Index e = arc >> 1;
        const Real* const back = message(arc ^ 1);
        const double change = change_[e];
        if (table_at_[e] < 0 && change > least_change)
            return potts_message(work.b.data(), back, change, n_labels_, work.mass.data(), out);
        const double top = masses(work.b.data(), back, n_labels_, work.mass.data());
        if (table_at_[e] >= 0) return top + pass_table(arc, work.mass.data(), out);
        const double sum = sum_of(work.mass.data(), n_labels_);
        const double level = std::log(change * (sum - 1) + 1);
        // if a change is so expensive that masses would underflow, use logarithms
        const double fall = -pairs_.weight(arc) / rho_[e];
        for (Index a = 0; a < n_labels_; ++a) {
            const double stay = work.b[a] - static_cast<double>(back[a]) - top;
            const double others = std::max(sum - work.mass[a], 0.0);
            const double move = fall + (others > 0 ? std::log(others) : -700.0);
            const double high = std::max(stay, move), low = std::min(stay, move);
            out[a] = high + std::log1p(std::exp(low - high)) - level;
        }
        return top + level;
    }

    // Queue the message along an arc, and compute all queued ones once there are eight: done(arc,
    // out, level) receives each. Only if all edges are plain.
    template <class Done>
    void pass_later(Index arc, Work& work, const Done& done) const {
        const Real* const back = message(arc ^ 1);
        double* const row = work.rows_in.data() + work.count * n_labels_;
        for (Index a = 0; a < n_labels_; ++a) row[a] = work.b[a] - static_cast<double>(back[a]);
        work.arcs[work.count] = arc;
        work.changes[work.count] = change_[arc >> 1];
        if (++work.count == eight) pass_waiting(work, done);
    }

    template <class Done>
    void pass_waiting(Work& work, const Done& done) const {
        if (work.count <= few_rows) {
            for (int k = 0; k < work.count; ++k) {
                const Index at = k * n_labels_;
                work.levels[k] =
                    potts_message(work.rows_in.data() + at, work.zero.data(), work.changes[k],
                                  n_labels_, work.mass.data(), work.rows_out.data() + at);
            }
        } else {
            potts_messages(work.rows_in.data(), work.changes, n_labels_, work.turned.data(),
                           work.rows_out.data(), work.levels);
        }
        for (int k = 0; k < work.count; ++k)
            done(work.arcs[k], work.rows_out.data() + k * n_labels_, work.levels[k]);
        work.count = 0;
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

    // Subtract the largest entry and return it.
    double lower_to_zero(double* x) const {
        const double level = *std::max_element(x, x + n_labels_);
        for (Index a = 0; a < n_labels_; ++a) x[a] -= level;
        return level;
    }

    double kernel(Index from, Index x, Index y) const {
        const double* const table = tables_.data() + table_at_[from >> 1];
        return from & 1 ? table[y * n_labels_ + x] : table[x * n_labels_ + y];
    }

    Index n_, n_labels_;
    std::vector<double> unary_;
    PairEnergies pairs_;
    std::vector<Index> order_, position_;         // (N,): variables by number, numbers by variable
    std::vector<Index> edge_, rank_;              // (E,): edges by number, numbers by edge
    std::vector<Index> block_starts_, level_starts_, by_level_;
    std::vector<Index> run_starts_, block_runs_;  // runs of each block
    std::vector<Index> arcs_, arc_starts_,
        // start of the arcs to later variables, which come after those to earlier ones
        first_later_;
    std::vector<Real> messages_;                // (2 E, L): last message along each arc
    std::vector<double> rho_, change_, least_;  // (E,)
    bool is_plain_ = true;                      // no tables, and no change too expensive for masses
    std::vector<double> weights_;               // (N,): none if all are 1
    std::vector<Index> table_at_;               // (E,): -1 for Potts
    std::vector<double> tables_;                // exp((least - theta) / rho)
};

}  // namespace setwise

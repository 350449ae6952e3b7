// The least energy of a network by depth-first branch and bound, from the open problem of least
// bound (Allouche et al., 2015, "Anytime hybrid best-first search with tree decomposition").
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "branching/soft_network.hpp"

namespace setwise {

class BranchAndBound {
  public:
    using Index = SoftNetwork::Index;

    BranchAndBound(Index n, Index labels, std::vector<double> unary)
        : network_(n, labels, std::move(unary)), weight_(n, 1.0) {}

    SoftNetwork& network() { return network_; }
    const SoftNetwork& network() const { return network_; }

    // `gain` is the least amount by which energies differ, 0 if unknown: a labelling that is better
    // than the best one by less does not exist.
    void begin(double gain) {
        network_.begin();
        gain_ = std::max(0.0, gain - network_.grid() - network_.rounded());
        gain_ = std::floor(gain_ / network_.grid()) * network_.grid();
    }

    // Keep a labelling if it is the best one so far. Return whether it is.
    bool offer(const std::vector<Index>& labels) {
        ExactSum energy;
        if (!network_.energy(labels.data(), energy)) return false;
        if (found_ && energy.minus(value_) >= 0) return false;
        best_ = labels;
        value_ = energy;
        found_ = true;
        ExactSum limit = value_;
        limit.add(-gain_);
        network_.set_limit(limit, true);
        return true;
    }

    // Make passes over the whole network, before the search. Return false if they end the search.
    template <class Poll>
    bool settle_root(Index passes, Poll poll) {
        if (done_) return false;
        if (!network_.prune() || !network_.propagate(passes, 0.0, poll)) done_ = true;
        return !done_;
    }

    // Assign labels to variables before the search; -1 leaves a variable open.
    bool fix(const std::vector<Index>& given) {
        for (Index i = 0; i < network_.n; ++i)
            if (given[i] >= 0 && !network_.assign(i, given[i])) done_ = true;
        return !done_;
    }

    template <class Poll>
    bool push(const std::uint8_t* inside, Poll poll) {
        if (!done_ && !network_.push(inside, poll)) done_ = true;
        return !done_;
    }

    // Search until the search ends or about `work` cells of tables were read. Return whether it has
    // ended.
    template <class Poll>
    bool search(std::int64_t work, Poll poll) {
        const std::int64_t end = network_.work() + work;
        while (!done_) {
            if (!active_ && !resume(poll)) continue;
            while (active_) {
                if (network_.work() > end) return false;
                if (nodes_ % 16 == 0) poll();
                if (backtracks_ >= most_backtracks_) {
                    leave();
                    break;
                }
                if (!descend(poll)) backtrack(poll);
            }
        }
        return true;
    }

    bool done() const { return done_; }
    bool found() const { return found_; }
    const std::vector<Index>& best() const { return best_; }
    std::int64_t nodes() const { return nodes_; }
    std::int64_t work() const { return network_.work(); }
    double rounded() const { return network_.rounded(); }

    // The bound on the energy of every labelling.
    double bound() const {
        ExactSum least;
        bool any = false;
        const auto take = [&](const ExactSum& one) {
            if (!any || one.minus(least) < 0) least = one;
            any = true;
        };
        if (found_) {
            ExactSum limit = value_;
            limit.add(-gain_);
            take(limit);
        }
        if (!done_) {
            if (!open_.empty()) take(open_.top().bound);
            if (active_) {
                take(network_.bound());
                for (const Frame& frame : frames_)
                    if (!frame.second) take(frame.bound);
            } else if (open_.empty()) {
                take(network_.bound());
            }
        }
        return any ? least.below() : unbounded;
    }

  private:
    struct Decision {
        std::int32_t variable, label;
        bool equal;
    };
    struct Frame {
        Index variable, label;
        ExactSum bound;
        bool second;  // whether the variable's other labels are being tried
    };
    struct Open {
        ExactSum bound;
        std::int64_t number;
        std::vector<Decision> decisions;
        bool operator<(const Open& other) const {  // the top of the queue is the least
            const double difference = bound.minus(other.bound);
            return difference > 0 || (difference == 0 && number < other.number);
        }
    };

    bool is_open(const ExactSum& bound) const { return !found_ || value_.minus(bound) > gain_; }

    // Go to the open problem of least bound. Return false if it has no better labelling.
    template <class Poll>
    bool resume(Poll poll) {
        while (network_.level() > 0) network_.undo();
        frames_.clear();
        if (began_ && open_.empty()) {
            done_ = true;
            return false;
        }
        path_.clear();
        if (began_) {
            if (!is_open(open_.top().bound)) {
                done_ = true;
                return false;
            }
            path_ = open_.top().decisions;
            open_.pop();
        }
        began_ = true;
        if (!network_.prune()) {
            done_ = true;
            return false;
        }
        network_.mark();
        ++nodes_;
        active_ = true;  // from here on the network's bound is that of this problem
        backtracks_ = 0;
        for (const Decision& one : path_)
            active_ = active_ && (one.equal ? network_.assign(one.variable, one.label)
                                            : network_.remove(one.variable, one.label));
        if (active_ && !network_.propagate(passes, worthwhile, poll)) {
            blame();
            active_ = false;
        }
        return active_;
    }

    // Branch on a variable and go to its first label. Return false if this has no better labelling.
    template <class Poll>
    bool descend(Poll poll) {
        const Index i = choose();
        if (i < 0) {
            std::vector<Index> labels(network_.n);
            for (Index k = 0; k < network_.n; ++k) labels[k] = network_.domain(k)[0];
            offer(labels);
            return false;
        }
        const Index x = likely(i);
        frames_.push_back({i, x, network_.bound(), false});
        return try_label(poll);
    }

    template <class Poll>
    bool try_label(Poll poll) {
        const Frame& frame = frames_.back();
        network_.mark();
        ++nodes_;
        const bool left = frame.second ? network_.remove(frame.variable, frame.label)
                                       : network_.assign(frame.variable, frame.label);
        if (left && network_.propagate(passes, worthwhile, poll)) return true;
        weight_[frame.variable] += 1;
        last_ = frame.variable;
        blame();
        return false;
    }

    void blame() {
        if (network_.failed() >= 0) weight_[network_.failed()] += 1;
    }

    // Go to the latest alternative that is still open.
    template <class Poll>
    void backtrack(Poll poll) {
        ++backtracks_;
        while (!frames_.empty()) {
            network_.undo();
            Frame& frame = frames_.back();
            if (!frame.second && is_open(frame.bound)) {
                frame.second = true;
                if (try_label(poll)) return;
                continue;
            }
            frames_.pop_back();
        }
        active_ = false;
        adapt();
    }

    // Leave the present problem: its alternatives become open problems.
    void leave() {
        keep(network_.bound(), frames_.size());
        for (std::size_t k = 0; k < frames_.size(); ++k)
            if (!frames_[k].second && is_open(frames_[k].bound)) {
                frames_[k].second = true;
                keep(frames_[k].bound, k + 1);
                frames_[k].second = false;
            }
        active_ = false;
        adapt();
    }

    void keep(const ExactSum& bound, std::size_t count) {
        std::vector<Decision> decisions = path_;
        for (std::size_t k = 0; k < count; ++k)
            decisions.push_back({static_cast<std::int32_t>(frames_[k].variable),
                                 static_cast<std::int32_t>(frames_[k].label), !frames_[k].second});
        kept_ += decisions.size();
        open_.push({bound, ++number_, std::move(decisions)});
    }

    // Problems are left so often that about a tenth of the nodes are made again.
    void adapt() {
        replayed_ += static_cast<std::int64_t>(path_.size());
        const double share = static_cast<double>(replayed_) / static_cast<double>(nodes_ + 1);
        if (share > 0.1 && most_backtracks_ < (Index(1) << 20)) most_backtracks_ *= 2;
        if (share < 0.05 && most_backtracks_ > 1) most_backtracks_ /= 2;
        if (kept_ > most_kept) most_backtracks_ = Index(1) << 62;  // memory: depth first only
    }

    // The variable to branch on: the one of the last failure, else of few labels and many failures.
    Index choose() const {
        if (last_ >= 0 && network_.size(last_) > 1) return last_;
        Index best = -1;
        double least = unbounded;
        for (Index i = 0; i < network_.n; ++i) {
            if (network_.size(i) < 2) continue;
            const double score = static_cast<double>(network_.size(i)) / weight_[i];
            if (score < least) {
                least = score;
                best = i;
            }
        }
        return best;
    }

    // The cheapest label, that of the best labelling among equals.
    Index likely(Index i) const {
        const Index* const row = network_.domain(i);
        Index best = row[0];
        const auto worse = [&](Index x, Index y) {
            const double a = network_.cost(i, x), b = network_.cost(i, y);
            if (a != b) return a > b;
            if (found_ && (best_[i] == x) != (best_[i] == y)) return best_[i] == y;
            return x > y;
        };
        for (Index k = 1; k < network_.size(i); ++k)
            if (worse(best, row[k])) best = row[k];
        return best;
    }

    static constexpr Index passes = 4;          // pairs of passes at a node, not tuned
    static constexpr double worthwhile = 0.05;  // the rise, as a share of the gap, for more passes
    static constexpr std::size_t most_kept = std::size_t(1) << 25;  // decisions of open problems

    SoftNetwork network_;
    std::vector<double> weight_;
    std::vector<Index> best_;
    ExactSum value_;
    double gain_ = 0;
    bool found_ = false, done_ = false, active_ = false, began_ = false;
    std::vector<Frame> frames_;
    std::vector<Decision> path_;
    std::priority_queue<Open> open_;
    std::int64_t number_ = 0, nodes_ = 0, replayed_ = 0;
    std::size_t kept_ = 0;
    Index backtracks_ = 0, most_backtracks_ = 1, last_ = -1;
};

}  // namespace setwise

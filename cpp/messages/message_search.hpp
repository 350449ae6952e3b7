// A search for the best labelling of a factor graph by messages, with a bound.
#pragma once

#include <utility>
#include <vector>

#include "messages/factor_graph.hpp"
#include "messages/labeling.hpp"
#include "messages/messages.hpp"
#include "messages/tree_move.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// A search with two sets of messages: those of the dual, whose bound increases from pass to pass,
// and those of max-product, which give no bound and often find better labellings. The best
// labelling of both is stored.
class MessageSearch {
  public:
    MessageSearch(FactorGraph graph, const std::vector<double>& forward,
                  const std::vector<double>& backward, double damping)
        : graph_(std::move(graph)),
          labeling_(graph_),
          trees_(graph_),
          dual_(graph_, forward, backward, 0.0),
          product_(graph_, std::vector<double>(graph_.n, 1.0), std::vector<double>(graph_.n, 1.0),
                   damping) {}

    const FactorGraph& graph() const { return graph_; }
    const std::vector<Index>& best() const { return best_; }
    double value() const { return value_; }

    template <class Poll>
    void pass(bool dual, Poll poll) {
        Messages& messages = dual ? dual_ : product_;
        least_ = unbounded;
        const auto note = [&](const std::vector<Index>& labels) { consider(labels); };
        for (const bool forward : {false, true}) {
            messages.sweep(forward, decoded_, poll);
            consider(decoded_);
            messages.update_cycles(forward, poll);
            messages.update_factors(forward, note, poll);
        }
        offer(candidate_, poll);
    }

    bool add_cycles(const std::vector<Index>& starts, const std::vector<Index>& variables) {
        return dual_.add_cycles(starts, variables);
    }

    template <class Poll>
    void step(double rise, Poll poll) {
        dual_.step(rise, poll);
    }

    template <class Poll>
    double bound(Poll poll) {
        return dual_.bound(poll);
    }
    // The sum of the absolute values of the terms of the bound.
    double magnitude() const { return dual_.magnitude(); }

    // Descend from a labelling and keep the result if it is the best so far.
    template <class Poll>
    void offer(const std::vector<Index>& labels, Poll poll) {
        labeling_.set(labels);
        labeling_.descend(most_rounds, poll);
        keep();
    }

    // Relabel a forest, grown in this order, of the present labelling of the walk. With `anew` a
    // walk starts again from the best labelling. Messages replace factors other than pairs here, so
    // with such factors a move may raise the energy, and a descent from its end follows.
    template <class Poll>
    void move_tree(bool anew, const std::vector<Index>& order, std::vector<double> noise,
                   Poll poll) {
        if (anew || walk_.empty()) walk_ = best_;
        if (!graph_.only_pairs())
            for (std::size_t k = 0; k < noise.size(); ++k) noise[k] += dual_.gathered()[k];
        trees_.move(walk_, order, noise, poll);
        if (graph_.only_pairs()) {
            labeling_.set(walk_);
            keep();
        } else {
            offer(walk_, poll);
        }
    }

  private:
    void keep() {
        const double energy = labeling_.energy();
        if (energy < value_ || best_.empty()) {
            value_ = energy;
            best_ = labeling_.labels();
        }
    }

    // Consider a labelling as the best of the pass, from which to descend.
    void consider(const std::vector<Index>& labels) {
        labeling_.set(labels);
        const double energy = labeling_.energy();
        if (energy < least_ || candidate_.empty()) {
            least_ = energy;
            candidate_ = labels;
        }
    }

    // The most rounds of coordinate descent from a decoded labelling; later passes decode again. Not
    // tuned.
    static constexpr int most_rounds = 5;

    const FactorGraph graph_;
    Labeling labeling_;
    TreeMove trees_;
    Messages dual_, product_;
    std::vector<Index> decoded_, candidate_, best_, walk_;
    double least_ = unbounded, value_ = unbounded;
};

}  // namespace setwise

// The terms of a field and its present labelling, which moves change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "moves/move_counts.hpp"
#include "moves/move_pairs.hpp"

namespace setwise {

template <class Integer>
std::size_t at(Integer i) {
    return static_cast<std::size_t>(i);
}

class MoveField {
  public:
    // unary (labels, n), +inf where a label is forbidden, must outlive this object.
    MoveField(Variable n, LabelIndex labels, const double* unary)
        : pairs(n, labels), n_(n), labels_(labels), unary_(unary) {}

    Pairs pairs;

    // Region numbers must be in range; the tables must outlive this object.
    void add_layer(Layer layer) {
        layer.first = n_functions_;
        layer.counts.assign(layer.sizes.size() * at(layer.n_groups), 0);
        if (layer.counts.size() > at(std::numeric_limits<std::int32_t>::max() - n_functions_))
            throw std::length_error("a field must have fewer than 2**31 regions times labels");
        n_functions_ += static_cast<std::int32_t>(layer.counts.size());
        layers_.push_back(std::move(layer));
    }

    // Set the first labelling, which has no forbidden label. Call this after all terms are added.
    void start(const std::int64_t* labels) {
        pairs.lay();
        present_.assign(labels, labels + n_);
        pair_range_.assign(at(n_), 0.0);
        unary_now_.resize(at(n_));
        dissent_.resize(at(n_));
        for (Variable i = 0; i < n_; ++i) {
            for (std::int32_t e = pairs.begin(i); e < pairs.end(i); ++e)
                pair_range_[at(i)] += pairs.range(e);
            unary_now_[at(i)] = unary(i, label(i));
            dissent_[at(i)] = dissent_at(i);
        }
        for (Layer& layer : layers_)
            for (Variable i = 0; i < n_; ++i) count(layer, i, label(i), 1);
        for (Transitions& term : pairs.transitions())
            for (std::size_t e = 0; e < term.tails.size(); ++e)
                term.join(label(term.tails[e]), label(term.heads[e]), labels_, 1);
    }

    Variable variables() const { return n_; }
    LabelIndex labels() const { return labels_; }
    const std::vector<Layer>& layers() const { return layers_; }
    std::int32_t functions() const { return n_functions_; }

    LabelIndex label(Variable i) const { return present_[at(i)]; }
    const std::vector<LabelIndex>& present() const { return present_; }
    double unary(Variable i, LabelIndex l) const { return unary_[at(l) * at(n_) + at(i)]; }
    const double* unary_row(LabelIndex l) const { return unary_ + at(l) * at(n_); }
    double unary_now(Variable i) const { return unary_now_[at(i)]; }
    // Return the most that the edges of a variable can gain by a change of its label, whatever its
    // neighbours do.
    double pair_range(Variable i) const { return pair_range_[at(i)]; }
    // Return the same bound if its neighbours keep their labels or share the cost.
    double dissent(Variable i) const { return dissent_[at(i)]; }

    // All changes of a label so far, in order.
    const std::vector<Variable>& changes() const { return changes_; }
    std::int64_t now() const { return static_cast<std::int64_t>(changes_.size()); }

    // Change a label. Call settle() after all changes that belong together.
    void relabel(Variable i, LabelIndex l) {
        for (Layer& layer : layers_) {
            count(layer, i, label(i), -1);
            count(layer, i, l, 1);
        }
        present_[at(i)] = l;
        unary_now_[at(i)] = unary(i, l);
        changes_.push_back(i);
    }
    void settle(std::int64_t since) {
        for (std::int64_t c = since; c < now(); ++c) {
            const Variable i = changes_[at(c)];
            dissent_[at(i)] = dissent_at(i);
            for (std::int32_t e = pairs.begin(i); e < pairs.end(i); ++e)
                dissent_[at(pairs.neighbor(e))] = dissent_at(pairs.neighbor(e));
        }
    }

  private:
    double dissent_at(Variable i) const {
        double sum = 0.0;
        for (std::int32_t e = pairs.begin(i); e < pairs.end(i); ++e)
            if (pairs.is_table(e) || label(i) != label(pairs.neighbor(e))) sum += pairs.range(e);
        return sum;
    }
    static void count(Layer& layer, Variable i, LabelIndex l, int one) {
        const std::int64_t r = layer.region(i);
        const std::int32_t g = layer.groups[at(l)];
        if (r >= 0 && g >= 0) layer.counts[layer.place(r, g)] += one;
    }

    Variable n_;
    LabelIndex labels_;
    const double* unary_;
    std::vector<Layer> layers_;
    std::int32_t n_functions_ = 0;
    std::vector<LabelIndex> present_;
    std::vector<double> unary_now_, pair_range_, dissent_;
    std::vector<Variable> changes_;
};

}  // namespace setwise

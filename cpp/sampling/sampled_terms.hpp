// Terms of many variables for a sampler: the amount that each label of a variable adds to the
// energy, given the labels of the variables that were added before. Adding all variables one after
// the other sums to the whole term.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace setwise {

class SampledTerm {
  public:
    using Index = std::int64_t;
    virtual ~SampledTerm() = default;
    virtual std::unique_ptr<SampledTerm> copy() const = 0;

    // Remove all variables.
    virtual void clear() = 0;
    virtual void insert(Index i, Index label, const Index* labels) = 0;
    virtual void erase(Index i, Index label, const Index* labels) = 0;
    // Return what label `label` of variable i, which is not yet added, adds to the energy.
    virtual double rise(Index i, Index label, const Index* labels) const = 0;
};

// Functions of counts in regions that share no variable: for every label j the table of region r at
// the number of its variables with that label, or for each variable's own label only.
class SampledCounts : public SampledTerm {
  public:
    SampledCounts(Index n_labels, std::vector<Index> region, std::vector<Index> starts,
                  std::vector<double> table, std::vector<Index> own)
        : slots_(own.empty() ? n_labels : 1),
          region_(std::move(region)),
          starts_(std::move(starts)),
          own_(std::move(own)),
          table_(std::move(table)) {
        clear();
    }
    std::unique_ptr<SampledTerm> copy() const override {
        return std::make_unique<SampledCounts>(*this);
    }
    void clear() override { count_.assign((starts_.size() - 1) * slots_, 0); }
    void insert(Index i, Index label, const Index*) override { shift(i, label, 1); }
    void erase(Index i, Index label, const Index*) override { shift(i, label, -1); }
    double rise(Index i, Index label, const Index*) const override {
        const Index at = slot(i, label);
        if (at < 0) return 0;
        const double* const h = table_.data() + starts_[region_[i]] + count_[at];
        return h[1] - h[0];
    }

  private:
    Index slot(Index i, Index label) const {
        const Index r = region_[i];
        if (r < 0) return -1;
        if (own_.empty()) return r * slots_ + label;
        return label == own_[i] ? r : -1;
    }
    void shift(Index i, Index label, Index step) {
        const Index at = slot(i, label);
        if (at >= 0) count_[at] += step;
    }

    Index slots_;
    std::vector<Index> region_, starts_, own_, count_;
    std::vector<double> table_;
};

// sum_r w_r min(1, (s_r - max_j n_rj) / Q_r)
class SampledRobust : public SampledTerm {
  public:
    SampledRobust(Index n_labels, std::vector<Index> region, std::vector<double> weight,
                  std::vector<double> truncation)
        : n_labels_(n_labels),
          region_(std::move(region)),
          size_(weight.size(), 0),
          weight_(std::move(weight)),
          truncation_(std::move(truncation)) {
        for (const Index r : region_)
            if (r >= 0) ++size_[r];
        clear();
    }
    std::unique_ptr<SampledTerm> copy() const override {
        return std::make_unique<SampledRobust>(*this);
    }
    void clear() override { count_.assign(size_.size() * n_labels_, 0); }
    void insert(Index i, Index label, const Index*) override {
        if (region_[i] >= 0) ++count_[region_[i] * n_labels_ + label];
    }
    void erase(Index i, Index label, const Index*) override {
        if (region_[i] >= 0) --count_[region_[i] * n_labels_ + label];
    }
    double rise(Index i, Index label, const Index*) const override {
        const Index r = region_[i];
        if (r < 0) return 0;
        const Index* const count = count_.data() + r * n_labels_;
        const Index most = *std::max_element(count, count + n_labels_);
        return cost(r, std::max(most, count[label] + 1)) - cost(r, most);
    }

  private:
    double cost(Index r, Index most) const {
        return weight_[r] * std::min(1.0, static_cast<double>(size_[r] - most) / truncation_[r]);
    }

    Index n_labels_;
    std::vector<Index> region_, size_, count_;
    std::vector<double> weight_, truncation_;
};

// A cost that is due once if some variable takes a label of a group.
class SampledCost : public SampledTerm {
  public:
    SampledCost(double cost, std::vector<std::uint8_t> labels)
        : cost_(cost), labels_(std::move(labels)) {}
    std::unique_ptr<SampledTerm> copy() const override {
        return std::make_unique<SampledCost>(*this);
    }
    void clear() override { used_ = 0; }
    void insert(Index, Index label, const Index*) override { used_ += labels_[label]; }
    void erase(Index, Index label, const Index*) override { used_ -= labels_[label]; }
    double rise(Index, Index label, const Index*) const override {
        return used_ == 0 && labels_[label] ? cost_ : 0.0;
    }

  private:
    double cost_;
    std::vector<std::uint8_t> labels_;
    Index used_ = 0;
};

// The neighbours of each variable.
class Neighbours {
  public:
    using Index = std::int64_t;
    Neighbours(Index n, const Index* edges, Index count)
        : starts_(static_cast<std::size_t>(n + 1), 0), heads_(static_cast<std::size_t>(2 * count)) {
        for (Index k = 0; k < 2 * count; ++k) ++starts_[edges[k] + 1];
        for (Index i = 0; i < n; ++i) starts_[i + 1] += starts_[i];
        std::vector<Index> next(starts_.begin(), starts_.end() - 1);
        for (Index k = 0; k < 2 * count; ++k) heads_[next[edges[k]]++] = edges[k ^ 1];
    }
    const Index* begin(Index i) const { return heads_.data() + starts_[i]; }
    const Index* end(Index i) const { return heads_.data() + starts_[i + 1]; }

  private:
    std::vector<Index> starts_, heads_;
};

// sum_{a < b} c_ab h(n_ab), n_ab the number of edges that join a and b.
class SampledTransitions : public SampledTerm {
  public:
    SampledTransitions(Index n, Index n_labels, const Index* edges, Index count,
                       std::vector<double> costs, std::vector<double> heights)
        : n_labels_(n_labels),
          neighbours_(n, edges, count),
          costs_(std::move(costs)),
          heights_(std::move(heights)),
          in_(static_cast<std::size_t>(n)) {
        clear();
    }
    std::unique_ptr<SampledTerm> copy() const override {
        return std::make_unique<SampledTransitions>(*this);
    }
    void clear() override {
        met_.assign(static_cast<std::size_t>(n_labels_ * n_labels_), 0);
        std::fill(in_.begin(), in_.end(), std::uint8_t(0));
    }
    void insert(Index i, Index label, const Index* labels) override {
        shift(i, label, labels, 1);
        in_[i] = 1;
    }
    void erase(Index i, Index label, const Index* labels) override {
        in_[i] = 0;
        shift(i, label, labels, -1);
    }
    double rise(Index i, Index label, const Index* labels) const override {
        double sum = 0;
        const Index* const first = neighbours_.begin(i);
        for (const Index* j = first; j != neighbours_.end(i); ++j) {
            if (!in_[*j] || labels[*j] == label) continue;
            Index before = 0;  // number of i's edges to this label
            for (const Index* k = first; k != j; ++k) before += in_[*k] && labels[*k] == labels[*j];
            const Index met = met_[pair(label, labels[*j])] + before;
            sum += costs_[label * n_labels_ + labels[*j]] * (heights_[met + 1] - heights_[met]);
        }
        return sum;
    }

  private:
    Index pair(Index a, Index b) const { return std::min(a, b) * n_labels_ + std::max(a, b); }
    void shift(Index i, Index label, const Index* labels, Index step) {
        for (const Index* j = neighbours_.begin(i); j != neighbours_.end(i); ++j)
            if (in_[*j] && labels[*j] != label) met_[pair(label, labels[*j])] += step;
    }

    Index n_labels_;
    Neighbours neighbours_;
    std::vector<double> costs_, heights_;
    std::vector<Index> met_;
    std::vector<std::uint8_t> in_;
};

// Tables over a few variables each: the entry of a table counts when the last of its variables is
// added.
class SampledTables : public SampledTerm {
  public:
    SampledTables(Index n, Index n_labels)
        : n_labels_(n_labels), of_(static_cast<std::size_t>(n)) {}
    void add(const Index* scope, Index size, const double* table, Index cells) {
        for (Index k = 0; k < size; ++k)
            of_[scope[k]].push_back(static_cast<Index>(scopes_.size()));
        scopes_.emplace_back(scope, scope + size);
        tables_.emplace_back(table, table + cells);
        in_.push_back(0);
    }
    std::unique_ptr<SampledTerm> copy() const override {
        return std::make_unique<SampledTables>(*this);
    }
    void clear() override { std::fill(in_.begin(), in_.end(), 0); }
    void insert(Index i, Index, const Index*) override {
        for (const Index f : of_[i]) ++in_[f];
    }
    void erase(Index i, Index, const Index*) override {
        for (const Index f : of_[i]) --in_[f];
    }
    double rise(Index i, Index label, const Index* labels) const override {
        double sum = 0;
        for (const Index f : of_[i]) {
            if (in_[f] + 1 < static_cast<Index>(scopes_[f].size())) continue;
            Index at = 0;
            for (const Index j : scopes_[f]) at = at * n_labels_ + (j == i ? label : labels[j]);
            sum += tables_[f][at];
        }
        return sum;
    }

  private:
    Index n_labels_;
    std::vector<std::vector<Index>> of_, scopes_;
    std::vector<std::vector<double>> tables_;
    std::vector<Index> in_;  // number of a table's variables that are added
};

}  // namespace setwise

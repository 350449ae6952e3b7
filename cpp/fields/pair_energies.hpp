// Energies of pairs of variables, w [x_i != x_j] or w times any table, seen from either end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace setwise {

class PairEnergies {
  public:
    using Index = std::int64_t;

    PairEnergies(Index n, Index n_labels) : n_(n), n_labels_(n_labels), starts_(1, 0) {}

    Index edges() const { return static_cast<Index>(weight_.size()); }
    Index tables() const { return static_cast<Index>(tables_.size()) / (n_labels_ * n_labels_); }

    void add_potts(const Index* edges, const double* weights, Index count) {
        ends_.insert(ends_.end(), edges, edges + 2 * count);
        weight_.insert(weight_.end(), weights, weights + count);
        table_.insert(table_.end(), static_cast<std::size_t>(count), -1);
    }

    // Add edges with weights[e] times the table of number which[e], of `n_tables`.
    void add_tables(const Index* edges, const Index* which, const double* weights, Index count,
                    const double* tables, Index n_tables) {
        const Index size = n_labels_ * n_labels_;
        for (Index e = 0; e < count; ++e)
            table_.push_back(static_cast<Index>(tables_.size()) + which[e] * size);
        ends_.insert(ends_.end(), edges, edges + 2 * count);
        weight_.insert(weight_.end(), weights, weights + count);
        tables_.insert(tables_.end(), tables, tables + n_tables * size);
    }

    // Replace the values of the tables added last (one each, in the same order).
    void replace_tables(const double* tables, Index count) {
        const Index size = n_labels_ * n_labels_;
        std::copy(tables, tables + count * size,
                  tables_.end() - static_cast<std::ptrdiff_t>(count * size));
    }

    // Arc 2 e leaves the first end of edge e, arc 2 e + 1 the second. Call this after all pairs are
    // added.
    void close() {
        starts_.assign(static_cast<std::size_t>(n_ + 1), 0);
        for (const Index v : ends_) ++starts_[v + 1];
        for (Index i = 0; i < n_; ++i) starts_[i + 1] += starts_[i];
        std::vector<Index> next(starts_.begin(), starts_.end() - 1);
        arcs_.resize(ends_.size());
        for (Index a = 0; a < static_cast<Index>(ends_.size()); ++a) arcs_[next[ends_[a]]++] = a;
    }

    // Return the same energies with variable i as number position[i], and edge order[k] as edge k.
    PairEnergies renumbered(const std::vector<Index>& order,
                            const std::vector<Index>& position) const {
        PairEnergies fresh(n_, n_labels_);
        fresh.tables_ = tables_;
        fresh.ends_.reserve(ends_.size());
        fresh.weight_.reserve(weight_.size());
        fresh.table_.reserve(table_.size());
        for (const Index e : order) {
            fresh.ends_.push_back(position[ends_[2 * e]]);
            fresh.ends_.push_back(position[ends_[2 * e + 1]]);
            fresh.weight_.push_back(weight_[e]);
            fresh.table_.push_back(table_[e]);
        }
        fresh.close();
        return fresh;
    }

    const Index* begin(Index i) const { return arcs_.data() + starts_[i]; }
    const Index* end(Index i) const { return arcs_.data() + starts_[i + 1]; }
    Index head(Index arc) const { return ends_[arc ^ 1]; }
    bool is_table(Index arc) const { return table_[arc >> 1] >= 0; }
    double weight(Index arc) const { return weight_[arc >> 1]; }
    // Return the energy of label a at the tail of the arc and b at its head.
    double at(Index arc, Index a, Index b) const {
        const double* const table = tables_.data() + table_[arc >> 1];
        return weight(arc) * (arc & 1 ? table[b * n_labels_ + a] : table[a * n_labels_ + b]);
    }

    // Add to `out` (L,) the expected energy of each label at the tail, with q (L,) at the head.
    void add_expected(Index arc, const double* q, double* out) const {
        if (!is_table(arc)) {
            const double w = weight(arc);
            for (Index a = 0; a < n_labels_; ++a) out[a] += w * (1 - q[a]);
            return;
        }
        for (Index a = 0; a < n_labels_; ++a)
            for (Index b = 0; b < n_labels_; ++b) out[a] += at(arc, a, b) * q[b];
    }

  private:
    Index n_, n_labels_;
    std::vector<Index> ends_, table_, starts_, arcs_;
    std::vector<double> weight_, tables_;
};

}  // namespace setwise

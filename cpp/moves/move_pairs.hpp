// The pairwise terms of a field as rows of neighbours, and costs of transitions between labels,
// linearised at the present labels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

namespace setwise {

using Variable = std::int32_t;
using LabelIndex = std::int32_t;

constexpr std::int64_t most_pairs = (std::int64_t(1) << 30) - 1;

// sum over pairs a < b of costs[a, b] h(n_ab), n_ab the number of edges that join labels a and b.
struct Transitions {
    std::vector<double> costs;         // (L, L)
    const double* concave;             // h(0), h(1), ..., h(edges)
    std::vector<Variable> tails, heads;
    std::vector<std::int64_t> joins;   // n_ab at [a * L + b], a < b
    std::vector<std::int64_t> before;  // n_ab before a move
    std::vector<double> slopes;        // (L, L), the table of every edge in a move

    static std::size_t pair(LabelIndex a, LabelIndex b, LabelIndex labels) {
        return static_cast<std::size_t>(a < b ? a * labels + b : b * labels + a);
    }
    void join(LabelIndex a, LabelIndex b, LabelIndex labels, int one) {
        if (a != b) joins[pair(a, b, labels)] += one;
    }
};

// Every edge is in the rows of both its ends. An entry is a neighbour with the cost of a pair of
// labels, and stores the index of the entry of the other end.
class Pairs {
  public:
    Pairs(Variable n, LabelIndex labels) : n_(n), labels_(labels) {}

    // Edges are (i, j) one after the other, different ends in [0, n).
    void add_potts(const std::int64_t* edges, const double* weights, std::int64_t count) {
        for (std::int64_t e = 0; e < count; ++e)
            add({static_cast<Variable>(edges[2 * e]), static_cast<Variable>(edges[2 * e + 1]),
                 potts, weights[e]});
    }
    // A table for each edge, or one for all if `shared`, times the weights. The tables must outlive
    // this object.
    void add_tables(const std::int64_t* edges, const double* tables, bool shared,
                    const double* weights, std::int64_t count) {
        std::int32_t table = 0;
        for (std::int64_t e = 0; e < count; ++e) {
            if (e == 0 || !shared) {
                const double* const own = tables + static_cast<std::size_t>(e) * table_size();
                const auto [low, high] = std::minmax_element(own, own + table_size());
                table = add_table(own, *high - *low);
            }
            add({static_cast<Variable>(edges[2 * e]), static_cast<Variable>(edges[2 * e + 1]),
                 table, weights[e]});
        }
    }
    // concave (count + 1,) must outlive this object.
    void add_transitions(const std::int64_t* edges, std::int64_t count, const double* costs,
                         const double* concave) {
        Transitions term{{costs, costs + table_size()},
                         concave,
                         {},
                         {},
                         std::vector<std::int64_t>(table_size()),
                         {},
                         std::vector<double>(table_size())};
        // A vector's elements stay in place when the vector is moved, so this pointer remains
        // valid.
        const std::int32_t table = add_table(term.slopes.data(), 0.0);
        for (std::int64_t e = 0; e < count; ++e) {
            term.tails.push_back(static_cast<Variable>(edges[2 * e]));
            term.heads.push_back(static_cast<Variable>(edges[2 * e + 1]));
            add({term.tails.back(), term.heads.back(), table, 1.0});
        }
        transitions_.push_back(std::move(term));
    }

    // Build the rows. Call this once, after all edges are added.
    void lay() {
        first_.assign(static_cast<std::size_t>(n_) + 1, 0);
        for (const Edge& edge : edges_) {
            ++first_[static_cast<std::size_t>(edge.tail) + 1];
            ++first_[static_cast<std::size_t>(edge.head) + 1];
        }
        for (std::size_t i = 0; i < static_cast<std::size_t>(n_); ++i) first_[i + 1] += first_[i];
        const std::size_t size = 2 * edges_.size();
        neighbor_.resize(size);
        sister_.resize(size);
        weight_.resize(size);
        if (!tables_.empty()) table_.resize(size);
        std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
        for (const Edge& edge : edges_) {
            const std::int32_t a = next[static_cast<std::size_t>(edge.tail)]++;
            const std::int32_t b = next[static_cast<std::size_t>(edge.head)]++;
            enter(a, b, edge.head, edge, 0);
            enter(b, a, edge.tail, edge, 1);
        }
        edges_ = {};
    }

    std::int32_t begin(Variable i) const { return first_[static_cast<std::size_t>(i)]; }
    std::int32_t end(Variable i) const { return first_[static_cast<std::size_t>(i) + 1]; }
    std::int32_t entries() const { return static_cast<std::int32_t>(neighbor_.size()); }
    Variable neighbor(std::int32_t entry) const {
        return neighbor_[static_cast<std::size_t>(entry)];
    }
    std::int32_t sister(std::int32_t entry) const {
        return sister_[static_cast<std::size_t>(entry)];
    }

    // Return the cost of own label a and the neighbour's label b.
    double cost(std::int32_t entry, LabelIndex a, LabelIndex b) const {
        const auto e = static_cast<std::size_t>(entry);
        if (!is_table(entry)) return a == b ? 0.0 : weight_[e];
        const double* table = tables_[static_cast<std::size_t>(table_[e] >> 1)];
        return weight_[e] * (table_[e] & 1 ? table[b * labels_ + a] : table[a * labels_ + b]);
    }
    bool has_table(std::int32_t entry, const double* table) const {
        const auto e = static_cast<std::size_t>(entry);
        return is_table(entry) && tables_[static_cast<std::size_t>(table_[e] >> 1)] == table;
    }
    bool is_table(std::int32_t entry) const {
        return !table_.empty() && table_[static_cast<std::size_t>(entry)] != potts;
    }
    // Return the largest cost minus the smallest.
    double range(std::int32_t entry) const {
        const auto e = static_cast<std::size_t>(entry);
        return is_table(entry) ? weight_[e] * range_[static_cast<std::size_t>(table_[e] >> 1)]
                               : weight_[e];
    }

    std::vector<Transitions>& transitions() { return transitions_; }
    const std::vector<Transitions>& transitions() const { return transitions_; }
    std::size_t table_size() const {
        return static_cast<std::size_t>(labels_) * static_cast<std::size_t>(labels_);
    }

  private:
    static constexpr std::int32_t potts = -1;
    struct Edge {
        Variable tail, head;
        std::int32_t table;
        double weight;  // the factor of the table; for Potts the cost of different labels
    };

    void add(const Edge& edge) {
        if (static_cast<std::int64_t>(edges_.size()) >= most_pairs)
            throw std::length_error("a field must have fewer than 2**30 edges");
        edges_.push_back(edge);
    }
    std::int32_t add_table(const double* table, double range) {
        tables_.push_back(table);
        range_.push_back(range);
        return static_cast<std::int32_t>(tables_.size() - 1);
    }
    void enter(std::int32_t entry, std::int32_t sister, Variable neighbor, const Edge& edge,
               int side) {
        const auto e = static_cast<std::size_t>(entry);
        neighbor_[e] = neighbor;
        sister_[e] = sister;
        weight_[e] = edge.weight;
        if (!table_.empty()) table_[e] = edge.table == potts ? potts : 2 * edge.table + side;
    }

    Variable n_;
    LabelIndex labels_;
    std::vector<Edge> edges_;
    std::vector<const double*> tables_;
    std::vector<Transitions> transitions_;
    std::vector<std::int32_t> first_, sister_, table_;
    std::vector<Variable> neighbor_;
    std::vector<double> weight_, range_;  // of each entry; of each table: largest minus least cost
};

}  // namespace setwise

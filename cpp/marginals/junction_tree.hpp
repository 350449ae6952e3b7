// Exact sums over all labellings by variable elimination: log Z, and marginals by a backward pass.
// With maxima instead of sums, the best labelling.
//
// A factor is a table of logarithms over a few variables. The clique of a variable contains it and
// all later variables that share a factor or a message with it. Its message sums the product of its
// factors and messages over its labels. In the backward pass the marginal of a clique is that of
// its separator, which is known from the clique that received the message, times the conditional
// distribution of the variable.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "marginals/tree_loops.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class JunctionTree {
  public:
    using Index = std::int64_t;

    // A label whose logarithm is minus infinity is left out of every table.
    JunctionTree(const double* logs, Index n, Index n_labels) : n_(n), n_labels_(n_labels) {
        starts_.push_back(0);
        for (Index i = 0; i < n; ++i) {
            for (Index a = 0; a < n_labels; ++a) {
                if (logs[i * n_labels + a] == -std::numeric_limits<double>::infinity()) continue;
                allowed_.push_back(a);
                unary_.push_back(logs[i * n_labels + a]);
            }
            starts_.push_back(static_cast<Index>(allowed_.size()));
        }
    }

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    bool planned() const { return planned_; }
    bool summed() const { return summed_; }

    // Return the number of labels that a variable may take; likewise the highest of them.
    Index card(Index i) const { return starts_[i + 1] - starts_[i]; }
    Index highest(Index i) const { return card(i) > 0 ? allowed_[starts_[i + 1] - 1] : -1; }
    Index factors() const { return static_cast<Index>(factors_.size()); }
    bool complete() const { return complete_; }

    // Add a factor over distinct variables. Its table is in C order of them, has sides that cover
    // all allowed labels, and is minus infinity where it forbids labels.
    void add_factor(const Index* scope, Index size, const Index* sides, const double* table) {
        factors_.push_back({{scope, scope + size}, {}});
        Factor& factor = factors_.back();
        std::vector<Index> at(factor.scope.size(), 0);
        double cells = 1;
        for (const Index i : factor.scope) cells *= static_cast<double>(card(i));
        factor.table.reserve(static_cast<std::size_t>(cells));
        if (cells == 0) return;
        for (;;) {
            Index place = 0;
            for (Index k = 0; k < size; ++k)
                place = place * sides[k] + allowed_[starts_[scope[k]] + at[k]];
            factor.table.push_back(table[place]);
            Index axis = size;
            while (axis-- > 0) {
                if (++at[axis] < card(scope[axis])) break;
                at[axis] = 0;
                if (axis == 0) return;
            }
            if (size == 0) return;
        }
    }
    // Add the scope of a factor, for a plan only.
    void add_scope(const Index* scope, Index size) {
        factors_.push_back({{scope, scope + size}, {}});
        complete_ = false;
    }

    // The cost of an order of elimination.
    struct Plan {
        double largest;   // the largest number of cells of a clique
        double messages;  // the cells of all messages; infinity if the order was abandoned
        Index width;      // the largest number of variables of a message
    };

    // Plan the order of elimination in which each variable adds the fewest edges (minimum fill).
    // The order is abandoned at a clique of more than `most` cells, and the plan then describes
    // that clique.
    Plan plan(double most, Poll poll) {
        std::vector<std::set<Index>> near(static_cast<std::size_t>(n_));
        for (const auto& factor : factors_)
            for (const Index i : factor.scope)
                for (const Index j : factor.scope)
                    if (i != j) near[i].insert(j);
        Plan found{0, 0, 0};
        if (is_wider(near, most, found, poll)) return found;
        std::vector<Index> fill = fill_of(near, poll), stale;
        std::set<std::pair<Index, Index>> waiting;
        for (Index i = 0; i < n_; ++i) waiting.insert({fill[i], i});
        const auto change = [&](Index a, Index by) {
            waiting.erase({fill[a], a});
            waiting.insert({fill[a] += by, a});
        };
        cliques_.clear();
        place_.assign(static_cast<std::size_t>(n_), -1);
        while (!waiting.empty()) {
            const Index i = waiting.begin()->second;
            waiting.erase(waiting.begin());
            place_[i] = static_cast<Index>(cliques_.size());
            double message = 1;
            for (const Index a : near[i]) message *= static_cast<double>(card(a));
            found.largest = std::max(found.largest, message * static_cast<double>(card(i)));
            found.messages += message;
            found.width = std::max(found.width, static_cast<Index>(near[i].size()));
            if (message * static_cast<double>(card(i)) > most) return given_up(found);
            cliques_.push_back({i, {near[i].begin(), near[i].end()}, {}, {}, {}, {}, 0.0});
            const std::vector<Index>& around = cliques_.back().separator;
            for (const Index a : around) near[a].erase(i);
            // Without i, one pair less is missing around a for each of a's neighbours that is not a
            // neighbour of i.
            for (const Index a : around) {
                Index strangers = 0;
                if (near[a].size() < around.size())
                    for (const Index b : near[a]) strangers += near[i].count(b) == 0;
                else {
                    strangers = static_cast<Index>(near[a].size());
                    for (const Index b : around) strangers -= static_cast<Index>(near[a].count(b));
                }
                if (strangers > 0) change(a, -strangers);
            }
            near[i].clear();
            // A new edge is no longer missing around the common neighbours of its ends, and each
            // end gains the neighbours of the other as missing pairs.
            for (std::size_t x = 0; x < around.size(); ++x)
                for (std::size_t y = x + 1; y < around.size(); ++y) {
                    const Index a = around[x], b = around[y];
                    if (near[a].count(b)) continue;
                    shared(near, a, b, stale);
                    for (const Index c : stale) change(c, -1);
                    const auto both = static_cast<Index>(stale.size());
                    change(a, static_cast<Index>(near[a].size()) - both);
                    change(b, static_cast<Index>(near[b].size()) - both);
                    near[a].insert(b);
                    near[b].insert(a);
                }
            poll();
        }
        for (auto& clique : cliques_)  // the order is reversed: the variable itself is fastest
            std::sort(clique.separator.begin(), clique.separator.end(),
                      [&](Index a, Index b) { return place_[a] > place_[b]; });
        for (std::size_t f = 0; f < factors_.size(); ++f) {
            Index first = -1;
            for (const Index i : factors_[f].scope)
                if (first < 0 || place_[i] < place_[first]) first = i;
            if (first >= 0) cliques_[place_[first]].factors.push_back(static_cast<Index>(f));
        }
        for (std::size_t c = 0; c < cliques_.size(); ++c)
            if (!cliques_[c].separator.empty())
                cliques_[place_[cliques_[c].separator.back()]].children.push_back(
                    static_cast<Index>(c));
        planned_ = true;
        return found;
    }

    // Return log Z, minus infinity if every labelling is forbidden.
    double log_partition(Poll poll) {
        const double sum = eliminate<false>(poll);
        summed_ = sum > -std::numeric_limits<double>::infinity();
        return sum;
    }

    // Return the largest sum of logarithms, and write labels (N,) that attain it: the first of
    // equals. Return minus infinity if every labelling is forbidden.
    double best(Index* labels, Poll poll) {
        const double sum = eliminate<true>(poll);
        summed_ = false;
        if (sum == -std::numeric_limits<double>::infinity()) return sum;
        std::vector<double> row;
        for (std::size_t c = cliques_.size(); c-- > 0;) {
            const Clique& clique = cliques_[c];
            const double* const unary = unary_.data() + starts_[clique.variable];
            row.assign(unary, unary + card(clique.variable));
            for (const Index f : clique.factors)
                add_row(clique.variable, factors_[f].scope, factors_[f].table, labels, row.data());
            for (const Index child : clique.children)
                add_row(clique.variable, cliques_[child].separator, cliques_[child].message, labels,
                        row.data());
            labels[clique.variable] = std::max_element(row.begin(), row.end()) - row.begin();
        }
        for (Index i = 0; i < n_; ++i) labels[i] = allowed_[starts_[i] + labels[i]];
        return sum;
    }

    // Write p (N, L) and the expectation of each factor's table (F,). Call log_partition first.
    void marginals(double* p, double* expected, Poll poll) {
        std::vector<double> table;
        for (std::size_t c = cliques_.size(); c-- > 0;) {
            Clique& clique = cliques_[c];
            if (clique.separator.empty()) clique.marginal.assign(1, 1.0);
            fill_table(clique, table);
            double* const row = p + clique.variable * n_labels_;
            const Index count = card(clique.variable);
            const Index* const allowed = allowed_.data() + starts_[clique.variable];
            std::fill(row, row + n_labels_, 0.0);
            for (std::size_t k = 0; k < clique.message.size(); ++k) {
                const double mass = clique.marginal[k], level = clique.level + clique.message[k];
                double* const cell = table.data() + static_cast<Index>(k) * count;
                for (Index a = 0; a < count; ++a) {
                    cell[a] = mass > 0 ? mass * exponential_above(700.0, cell[a] - level) : 0.0;
                    row[allowed[a]] += cell[a];
                }
                if (k % 65536 == 65535) poll();
            }
            const auto scope = scope_of(clique);
            for (const Index f : clique.factors) {
                CompensatedSum<double, 2> sum;
                each_cell(scope, factors_[f].scope, [&](Index cell, Index there) {
                    if (table[cell] > 0) sum.add(table[cell] * factors_[f].table[there]);
                });
                expected[f] = sum.value();
            }
            for (const Index child : clique.children) {
                Clique& other = cliques_[child];
                other.marginal.assign(other.message.size(), 0.0);
                each_cell(scope, other.separator,
                          [&](Index there, Index here) { other.marginal[here] += table[there]; });
            }
            std::vector<double>().swap(clique.marginal);
            poll();
        }
        for (Index i = 0; i < n_; ++i) {
            const double sum = sum_of(p + i * n_labels_, n_labels_);
            for (Index a = 0; a < n_labels_; ++a) p[i * n_labels_ + a] /= sum;
        }
    }

  private:
    struct Factor {
        std::vector<Index> scope;
        std::vector<double> table;
    };
    struct Clique {
        Index variable;
        std::vector<Index> separator;           // the later variables of the clique, last first
        std::vector<Index> factors, children;
        std::vector<double> message, marginal;  // over the separator
        double level = 0;                       // the constant subtracted from the message
    };

    // Compute every message with its largest entry subtracted: numbers that grew along a chain
    // would lose digits.
    template <bool largest>
    double eliminate(Poll poll) {
        CompensatedSum<double, 2> sum;
        std::vector<double> table;
        for (Index i = 0; i < n_; ++i)
            if (card(i) == 0) return -std::numeric_limits<double>::infinity();
        for (auto& clique : cliques_) {
            fill_table(clique, table);
            const Index count = card(clique.variable);
            const Index cells = static_cast<Index>(table.size()) / count;
            clique.message.assign(static_cast<std::size_t>(cells), 0.0);
            for (Index k = 0; k < cells; ++k) {
                const double* const row = table.data() + k * count;
                clique.message[k] =
                    largest ? *std::max_element(row, row + count) : log_sum(row, count);
                if (k % 65536 == 65535) poll();
            }
            clique.level = *std::max_element(clique.message.begin(), clique.message.end());
            if (clique.level == -std::numeric_limits<double>::infinity()) return clique.level;
            for (double& entry : clique.message) entry -= clique.level;
            sum.add(clique.level);
            poll();
        }
        return sum.value();
    }

    // Add to the row of a variable a table over `scope` at the labels of the others.
    void add_row(Index variable, const std::vector<Index>& scope, const std::vector<double>& table,
                 const Index* labels, double* row) const {
        Index place = 0, stride = 0, step = 1;
        for (std::size_t k = scope.size(); k-- > 0; step *= card(scope[k])) {
            if (scope[k] == variable)
                stride = step;
            else
                place += labels[scope[k]] * step;
        }
        for (Index a = 0; a < card(variable); ++a) row[a] += table[place + a * stride];
    }

    // Write the variables that are neighbours of both.
    static void shared(const std::vector<std::set<Index>>& near, Index a, Index b,
                       std::vector<Index>& both) {
        if (near[a].size() > near[b].size()) std::swap(a, b);
        both.clear();
        for (const Index c : near[a])
            if (near[b].count(c)) both.push_back(c);
    }

    // Return the number of edges missing among the neighbours of each variable: all pairs minus the
    // triangles. This costs O(E^1.5) at most, also with variables of many edges.
    static std::vector<Index> fill_of(const std::vector<std::set<Index>>& near, Poll poll) {
        std::vector<Index> fill, both;
        for (const auto& around : near) {
            const auto d = static_cast<Index>(around.size());
            fill.push_back(d * (d - 1) / 2);
        }
        for (std::size_t a = 0; a < near.size(); ++a) {
            for (auto b = near[a].upper_bound(static_cast<Index>(a)); b != near[a].end(); ++b) {
                shared(near, static_cast<Index>(a), *b, both);
                for (const Index c : both) --fill[c];
            }
            poll();
        }
        return fill;
    }

    static Plan given_up(Plan found) {
        found.messages = std::numeric_limits<double>::infinity();
        return found;
    }

    // Return whether no order keeps the cliques within `most` cells. This holds if in some part of
    // the graph every variable has too many neighbours, because then the first of them in any order
    // has. Dense graphs are detected in O(E log N), without an order; `found` receives a lower
    // bound on the width of that part.
    bool is_wider(const std::vector<std::set<Index>>& near, double most, Plan& found,
                  Poll poll) const {
        const double limit = std::log(most) + 1e-6;
        if (!(limit < std::numeric_limits<double>::infinity())) return false;
        const auto size = [&](Index i) {
            return std::log(static_cast<double>(std::max<Index>(card(i), 1)));
        };
        std::vector<double> cells(static_cast<std::size_t>(n_));
        std::set<std::pair<double, Index>> left;
        for (Index i = 0; i < n_; ++i) {
            cells[i] = size(i);
            for (const Index a : near[i]) cells[i] += size(a);
            left.insert({cells[i], i});
        }
        std::vector<std::uint8_t> gone(static_cast<std::size_t>(n_), 0);
        while (!left.empty()) {
            const auto [least, i] = *left.begin();
            if (least > limit) {
                const auto width = std::count_if(near[i].begin(), near[i].end(),
                                                 [&](Index a) { return !gone[a]; });
                found = given_up({std::exp(least), 0, static_cast<Index>(width)});
                return true;
            }
            left.erase(left.begin());
            gone[i] = 1;
            for (const Index a : near[i]) {
                if (gone[a]) continue;
                left.erase({cells[a], a});
                left.insert({cells[a] -= size(i), a});
            }
            poll();
        }
        return false;
    }

    std::vector<Index> scope_of(const Clique& clique) const {
        std::vector<Index> scope = clique.separator;
        scope.push_back(clique.variable);
        return scope;
    }

    // Call body(k, place of k in a table over `inner`) for every cell k of a table over `scope`.
    template <class Body>
    void each_cell(const std::vector<Index>& scope, const std::vector<Index>& inner,
                   const Body& body) const {
        const std::size_t d = scope.size();
        std::vector<Index> stride(d, 0), at(d, 0);
        Index step = 1;
        for (std::size_t k = inner.size(); k-- > 0;) {
            const auto where = std::find(scope.begin(), scope.end(), inner[k]) - scope.begin();
            stride[static_cast<std::size_t>(where)] = step;
            step *= card(inner[k]);
        }
        const Index last = stride[d - 1], count = card(scope[d - 1]);
        for (Index cell = 0, place = 0;;) {
            for (Index a = 0; a < count; ++a, ++cell) body(cell, place + a * last);
            std::size_t axis = d - 1;
            while (axis-- > 0) {
                place += stride[axis];
                if (++at[axis] < card(scope[axis])) break;
                place -= stride[axis] * card(scope[axis]);
                at[axis] = 0;
                if (axis == 0) return;
            }
            if (d == 1) return;
        }
    }

    void fill_table(const Clique& clique, std::vector<double>& table) const {
        const auto scope = scope_of(clique);
        std::size_t cells = 1;
        for (const Index i : scope) cells *= static_cast<std::size_t>(card(i));
        table.resize(cells);
        const double* const unary = unary_.data() + starts_[clique.variable];
        const auto count = static_cast<std::size_t>(card(clique.variable));
        for (std::size_t k = 0; k < cells; k += count)
            std::copy(unary, unary + count, table.begin() + static_cast<std::ptrdiff_t>(k));
        for (const Index f : clique.factors)
            each_cell(scope, factors_[f].scope,
                      [&](Index cell, Index there) { table[cell] += factors_[f].table[there]; });
        for (const Index child : clique.children)
            each_cell(scope, cliques_[child].separator, [&](Index cell, Index there) {
                table[cell] += cliques_[child].message[there];
            });
    }

    static double log_sum(const double* x, Index count) {
        double top = x[0], sum = 0;
        for (Index a = 1; a < count; ++a) top = std::max(top, x[a]);
        if (top == -std::numeric_limits<double>::infinity()) return top;
        for (Index a = 0; a < count; ++a) sum += exponential_above(700.0, x[a] - top);
        return top + std::log(sum);
    }

    Index n_, n_labels_;
    std::vector<Index> allowed_, starts_;  // the labels of each variable, and where they begin
    std::vector<double> unary_;            // logarithms of these labels
    std::vector<Factor> factors_;
    std::vector<Clique> cliques_;          // in the order of elimination
    std::vector<Index> place_;
    bool planned_ = false, summed_ = false, complete_ = true;
};

}  // namespace setwise

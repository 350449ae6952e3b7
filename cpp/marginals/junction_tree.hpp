// Exact sums over all labellings by variable elimination: log Z, and marginals by a backward pass.
// With maxima instead of sums, the same passes find the best labelling.
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
#include <tuple>
#include <utility>
#include <vector>

#include "marginals/cell_blocks.hpp"
#include "marginals/elimination_orders.hpp"
#include "marginals/tree_loops.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"

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
        double largest;  // the largest number of cells of a clique
        double total;    // the cells of all cliques; infinity if every order was given up
        Index width;     // the largest number of variables of a message
        double memory;   // the most cells that are in memory at once
    };

    // Plan the order of elimination whose cliques have few cells in total, and the cliques after
    // which messages are kept, so that memory stays within `memory` cells if it can. The plan is
    // given up if every order that was tried has more than `most` cells, or a clique of more than
    // `memory`; it then describes a clique that cannot be avoided, if one is known.
    Plan plan(double memory, double most, Poll poll) {
        std::vector<std::vector<Index>> near(static_cast<std::size_t>(n_));
        for (const auto& factor : factors_)
            for (const Index i : factor.scope)
                for (const Index j : factor.scope)
                    if (i != j) near[i].push_back(j);
        std::vector<Index> cards;
        for (Index i = 0; i < n_; ++i) {
            std::sort(near[i].begin(), near[i].end());
            near[i].erase(std::unique(near[i].begin(), near[i].end()), near[i].end());
            cards.push_back(card(i));
        }
        Plan found{0, 0, 0, 0};
        const double largest = std::min(memory, most);
        if (is_wider(near, largest, found, poll)) return found;
        EliminationOrders orders(near, cards, poll);
        const std::vector<Index> order = orders.cheapest(largest, most);
        if (n_ > 0 && order.empty()) {
            std::tie(found.largest, found.width) = orders.refused();
            return given_up(found);
        }
        make_cliques(near, order, found);
        found.memory = divide(memory);
        planned_ = true;
        return found;
    }

    // Return log Z, minus infinity if every labelling is forbidden.
    double log_partition(int n_threads, Poll poll) {
        const double sum = eliminate<false>(n_threads, poll);
        summed_ = sum > -std::numeric_limits<double>::infinity();
        return sum;
    }

    // Return the largest sum of logarithms, and write labels (N,) that attain it. Return minus
    // infinity if every labelling is forbidden.
    double best(Index* labels, int n_threads, Poll poll) {
        const double sum = eliminate<true>(n_threads, poll);
        summed_ = false;
        if (sum == -std::numeric_limits<double>::infinity()) return sum;
        std::vector<double> row;
        backward<true>(n_threads, poll, [&](Index c) {
            const Clique& clique = cliques_[c];
            const double* const unary = unary_.data() + starts_[clique.variable];
            row.assign(unary, unary + card(clique.variable));
            for (const Index f : clique.factors)
                add_row(clique.variable, factors_[f].scope, factors_[f].table, labels, row.data());
            for (const Index child : clique.children)
                add_row(clique.variable, cliques_[child].separator, cliques_[child].message, labels,
                        row.data());
            labels[clique.variable] = std::max_element(row.begin(), row.end()) - row.begin();
        });
        for (Index i = 0; i < n_; ++i) labels[i] = allowed_[starts_[i] + labels[i]];
        return sum;
    }

    // Write p (N, L), and the expectation of each factor's table (F,) unless that is null. Call
    // log_partition first; its messages are used up.
    void marginals(double* p, double* expected, int n_threads, Poll poll) {
        summed_ = false;
        backward<false>(n_threads, poll, [&](Index c) {
            Clique& clique = cliques_[c];
            if (clique.separator.empty()) clique.marginal.assign(1, 1.0);
            share(clique, p + clique.variable * n_labels_, expected, n_threads, poll);
            Table().swap(clique.marginal);
        });
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
    using Table = LargeArray<double>;
    struct Clique {
        Index variable;
        std::vector<Index> separator;  // the later variables of the clique, last first
        std::vector<Index> factors, children;
        Index parent = -1;             // the clique that receives the message
        Index segment = 0;
        Table message, marginal;       // over the separator
        double level = 0;              // the largest entry of the message
    };

    // A table with fewer cells is not divided among threads, because starting them would take
    // longer. Not tuned.
    static constexpr double cells_for_threads = 1 << 17;

    double cells_of(const Clique& clique, bool of_message) const {
        double cells = of_message ? 1.0 : static_cast<double>(card(clique.variable));
        for (const Index i : clique.separator) cells *= static_cast<double>(card(i));
        return cells;
    }

    // Make the cliques of an order. Children come directly before their parents, so that few
    // messages are in memory at a time. The answer does not depend on this.
    void make_cliques(const std::vector<std::vector<Index>>& near, const std::vector<Index>& order,
                      Plan& found) {
        std::vector<Index> rank(static_cast<std::size_t>(n_)), parent(rank.size(), -1);
        std::vector<std::vector<Index>> later(rank.size()), children(rank.size());
        for (Index k = 0; k < n_; ++k) rank[order[k]] = k;
        for (const Index i : order) {
            std::vector<Index>& mine = later[i];
            for (const Index a : near[i])
                if (rank[a] > rank[i]) mine.push_back(a);
            for (const Index c : children[i])
                for (const Index a : later[c])
                    if (a != i) mine.push_back(a);
            std::sort(mine.begin(), mine.end(),
                      [&](Index a, Index b) { return rank[a] > rank[b]; });
            mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
            if (mine.empty()) continue;
            parent[i] = mine.back();
            children[parent[i]].push_back(i);
        }
        cliques_.clear();
        place_.assign(rank.size(), -1);
        std::vector<std::pair<Index, std::size_t>>
            open;  // a variable, and how many children are done
        for (const Index root : order) {
            if (parent[root] >= 0) continue;
            open.push_back({root, 0});
            while (!open.empty()) {
                auto& [i, done] = open.back();
                if (done < children[i].size()) {
                    const Index next = children[i][done++];
                    open.push_back({next, 0});
                    continue;
                }
                place_[i] = static_cast<Index>(cliques_.size());
                cliques_.push_back({});
                cliques_.back().variable = i;
                cliques_.back().separator = std::move(later[i]);
                open.pop_back();
            }
        }
        for (std::size_t c = 0; c < cliques_.size(); ++c) {
            Clique& clique = cliques_[c];
            const double cells = cells_of(clique, false);
            found.largest = std::max(found.largest, cells);
            found.total += cells;
            found.width = std::max(found.width, static_cast<Index>(clique.separator.size()));
            if (clique.separator.empty()) continue;
            clique.parent = place_[clique.separator.back()];
            cliques_[clique.parent].children.push_back(static_cast<Index>(c));
        }
        for (std::size_t f = 0; f < factors_.size(); ++f) {
            Index first = -1;
            for (const Index i : factors_[f].scope)
                if (first < 0 || place_[i] < first) first = place_[i];
            if (first >= 0) cliques_[first].factors.push_back(static_cast<Index>(f));
        }
    }

    // Divide the order into segments, as few as the memory allows, and return the cells that it
    // takes. The messages into later segments are kept. Those within a segment are computed again
    // before the backward pass over it, unless it is the last.
    double divide(double most) {
        double total = 0, least = std::numeric_limits<double>::infinity();
        std::vector<double> cells;
        for (const auto& clique : cliques_) total += cells.emplace_back(cells_of(clique, true));
        Index fewest = 1;
        const auto memory_of = [&](Index count) {
            double sum = 0;
            for (std::size_t c = 0; c < cliques_.size(); ++c) {
                cliques_[c].segment = std::min<Index>(
                    count - 1, static_cast<Index>(sum / total * static_cast<double>(count)));
                sum += cells[c];
            }
            // The marginals of the messages that cross the present clique take memory too.
            std::vector<double> inside(static_cast<std::size_t>(count), 0.0),
                change(cells.size() + 1);
            double kept = 0;
            for (std::size_t c = 0; c < cliques_.size(); ++c) {
                const Clique& clique = cliques_[c];
                const Index parent = clique.parent < 0 ? static_cast<Index>(c) : clique.parent;
                if (cliques_[parent].segment == clique.segment)
                    inside[clique.segment] += cells[c];
                else
                    kept += cells[c];
                change[c] += cells[c];
                change[parent] -= cells[c];
            }
            double waiting = 0, wait = 0;
            for (const double by : change) waiting = std::max(waiting, wait += by);
            return kept + *std::max_element(inside.begin(), inside.end()) + 2 * waiting;
        };
        if (cliques_.empty()) return 0;
        for (Index count = 1; count <= 256; count *= 2) {
            const double memory = memory_of(count);
            if (memory < least) fewest = count, least = memory;
            if (memory <= most) break;
        }
        segments_ = fewest;
        return memory_of(fewest);
    }

    // Compute the messages, and keep those that a backward pass begins with.
    template <bool largest>
    double eliminate(int n_threads, Poll poll) {
        for (Index i = 0; i < n_; ++i)
            if (card(i) == 0) return -std::numeric_limits<double>::infinity();
        CompensatedSum<double, 2> sum;
        for (std::size_t c = 0; c < cliques_.size(); ++c) {
            Clique& clique = cliques_[c];
            send<largest>(clique, n_threads, poll);
            if (clique.level == -std::numeric_limits<double>::infinity()) return clique.level;
            sum.add(clique.level);
            for (const Index child : clique.children)
                if (cliques_[child].segment == clique.segment && clique.segment < segments_ - 1)
                    Table().swap(cliques_[child].message);
        }
        return sum.value();
    }

    // Call body(clique) for the cliques from the last to the first, each with the messages of its
    // children and its own.
    template <bool largest, class Body>
    void backward(int n_threads, Poll poll, const Body& body) {
        auto end = static_cast<Index>(cliques_.size());
        for (Index segment = segments_; segment-- > 0;) {
            Index begin = end;
            while (begin > 0 && cliques_[begin - 1].segment == segment) --begin;
            for (Index c = begin; c < end; ++c)
                if (cliques_[c].message.empty()) send<largest>(cliques_[c], n_threads, poll);
            for (Index c = end; c-- > begin;) {
                body(c);
                Table().swap(cliques_[c].message);
            }
            end = begin;
            poll();
        }
    }

    // The tables of a clique as blocks, with the parts that are the same in each block and the
    // other parts.
    struct Inputs {
        CellBlocks blocks;
        std::vector<double> base;
        std::vector<const double*> values;
        std::vector<TablePlace> places;  // places of the values, then of the output
    };

    Inputs inputs_of(const Clique& clique, bool shared) const {
        const auto scope = scope_of(clique);
        std::vector<Index> cards;
        double cells = 1;
        for (const Index i : scope) {
            cards.push_back(card(i));
            cells *= static_cast<double>(card(i));
        }
        // Tasks may write to the same child unless its table has the axes that number the tasks.
        std::vector<std::uint8_t> tasks(scope.size(), cells >= cells_for_threads);
        if (shared)
            for (const Index child : clique.children)
                for (std::size_t k = 0; k < scope.size(); ++k) {
                    const auto& its = cliques_[child].separator;
                    if (std::find(its.begin(), its.end(), scope[k]) == its.end()) tasks[k] = 0;
                }
        Inputs found{CellBlocks(scope, cards, tasks), {}, {}, {}};
        const Index n = found.blocks.inner_cells, count = cards.back();
        found.base.resize(static_cast<std::size_t>(n));
        const double* const unary = unary_.data() + starts_[clique.variable];
        for (Index c = 0; c < n; ++c) found.base[c] = unary[c % count];
        const auto add = [&](const std::vector<Index>& variables, const double* values) {
            TablePlace place = found.blocks.place(variables);
            if (found.blocks.is_inside(variables) && place.kind != TablePlace::Kind::contiguous) {
                gather_cells(found.base.data(), values, place.inner.data(), n);
                return;
            }
            found.values.push_back(values);
            found.places.push_back(std::move(place));
        };
        for (const Index f : clique.factors) add(factors_[f].scope, factors_[f].table.data());
        for (const Index child : clique.children) {
            for (double& x : found.base) x -= cliques_[child].level;
            add(cliques_[child].separator, cliques_[child].message.data());
        }
        return found;
    }

    // Write the cells of a block.
    static void fill(const Inputs& in, const Index* offsets, Index count, double* row,
                     double* cells) {
        const Index n = in.blocks.inner_cells;
        std::copy(in.base.begin(), in.base.end(), cells);
        bool rows = false;
        for (std::size_t k = 0; k < in.values.size(); ++k) {
            const TablePlace& place = in.places[k];
            const double* const values = in.values[k] + offsets[k];
            if (place.kind == TablePlace::Kind::contiguous)
                add_cells(cells, values, n);
            else if (place.kind == TablePlace::Kind::gathered)
                gather_cells(cells, values, place.inner.data(), n);
            else {
                if (!rows) std::fill(row, row + count, 0.0);
                rows = true;
                for (Index a = 0; a < count; ++a) row[a] += values[place.inner[a]];
            }
        }
        if (rows) add_to_rows(cells, row, count, n / count);
    }

    // Compute the message of a clique. Its largest entry is subtracted, because numbers that grow
    // along a chain would have large rounding errors.
    template <bool largest>
    void send(Clique& clique, int n_threads, Poll poll) {
        Inputs in = inputs_of(clique, false);
        in.places.push_back(in.blocks.place(clique.separator));
        clique.message.resize(static_cast<std::size_t>(cells_of(clique, true)));
        const Index count = card(clique.variable), n_rows = in.blocks.inner_cells / count;
        std::vector<double> tops(static_cast<std::size_t>(in.blocks.n_tasks));
        const auto work = [&](Index task, Poll how) {
            std::vector<double> cells(in.base.size()), row(static_cast<std::size_t>(count));
            double top = -std::numeric_limits<double>::infinity();
            in.blocks.each(task, in.places, [&](const Index* offsets, Index block) {
                fill(in, offsets, count, row.data(), cells.data());
                double* const out = clique.message.data() + offsets[in.values.size()];
                if (largest)
                    largest_of_rows(cells.data(), count, n_rows, out);
                else
                    log_sums_of_rows(cells.data(), count, n_rows, out);
                top = std::max(top, *std::max_element(out, out + n_rows));
                if (block % 256 == 255) how();
            });
            tops[static_cast<std::size_t>(task)] = top;
        };
        run(in.blocks.n_tasks, n_threads, poll, work);
        clique.level = *std::max_element(tops.begin(), tops.end());
    }

    // Write the marginals of a clique's variable, of its children's separators, and the expectations
    // of its factors.
    void share(Clique& clique, double* p, double* expected, int n_threads, Poll poll) {
        Inputs in = inputs_of(clique, true);
        const std::size_t n_values = in.values.size(), n_children = clique.children.size();
        in.places.push_back(in.blocks.place(clique.separator));
        for (const Index child : clique.children) {
            Clique& other = cliques_[child];
            other.marginal.assign(other.message.size(), 0.0);
            in.places.push_back(in.blocks.place(other.separator));
        }
        if (expected)
            for (const Index f : clique.factors)
                in.places.push_back(in.blocks.place(factors_[f].scope));
        const Index count = card(clique.variable), n = in.blocks.inner_cells, n_rows = n / count;
        const std::size_t n_factors = expected ? clique.factors.size() : 0;
        std::vector<std::vector<double>> rows(static_cast<std::size_t>(in.blocks.n_tasks)),
            sums(rows.size());
        const auto work = [&](Index task, Poll how) {
            std::vector<double> cells(in.base.size()), row(static_cast<std::size_t>(count));
            auto& mine = rows[static_cast<std::size_t>(task)];
            auto& of_factors = sums[static_cast<std::size_t>(task)];
            mine.assign(static_cast<std::size_t>(count), 0.0);
            of_factors.assign(n_factors, 0.0);
            in.blocks.each(task, in.places, [&](const Index* offsets, Index block) {
                fill(in, offsets, count, row.data(), cells.data());
                const Index* at = offsets + n_values;
                masses_of_rows(cells.data(), count, n_rows, clique.message.data() + *at,
                               clique.marginal.data() + *at);
                sum_rows(cells.data(), count, n_rows, mine.data());
                for (std::size_t k = 0; k < n_children; ++k) {
                    ++at;
                    spread(cells.data(), n, in.places[n_values + 1 + k],
                           cliques_[clique.children[k]].marginal.data() + *at);
                }
                for (std::size_t k = 0; k < n_factors; ++k) {
                    ++at;
                    const auto& place = in.places[n_values + 1 + n_children + k];
                    const double* const table = factors_[clique.factors[k]].table.data() + *at;
                    double sum = 0;
                    for (Index c = 0; c < n; ++c)
                        if (cells[c] > 0) sum += cells[c] * table[place.inner[c]];
                    of_factors[k] += sum;
                }
                if (block % 256 == 255) how();
            });
        };
        run(in.blocks.n_tasks, n_threads, poll, work);
        std::fill(p, p + n_labels_, 0.0);
        const Index* const allowed = allowed_.data() + starts_[clique.variable];
        for (const auto& row : rows)
            for (Index a = 0; a < count; ++a) p[allowed[a]] += row[a];
        for (std::size_t k = 0; k < n_factors; ++k) {
            CompensatedSum<double, 2> sum;
            for (const auto& one : sums) sum.add(one[k]);
            expected[clique.factors[k]] = sum.value();
        }
    }

    template <class Work>
    static void run(Index n_tasks, int n_threads, Poll poll, const Work& work) {
        if (n_tasks == 1)
            work(0, poll);
        else
            each_long_task(n_tasks, n_threads, poll, work);
    }

    static void sum_rows(const double* cells, Index count, Index n_rows, double* sums) {
        if (count == 2) {
            double x = 0, y = 0;
            for (Index k = 0; k < n_rows; ++k) {
                x += cells[2 * k];
                y += cells[2 * k + 1];
            }
            sums[0] += x;
            sums[1] += y;
            return;
        }
        for (Index k = 0; k < n_rows; ++k, cells += count)
            for (Index a = 0; a < count; ++a) sums[a] += cells[a];
    }

    // Add the cells of a block to a smaller table.
    static void spread(const double* cells, Index n, const TablePlace& place, double* table) {
        if (place.kind == TablePlace::Kind::contiguous)
            add_cells(table, cells, n);
        else
            for (Index c = 0; c < n; ++c) table[place.inner[c]] += cells[c];
    }

    // Add to the row of a variable a table over `scope` at the labels of the others.
    template <class Values>
    void add_row(Index variable, const std::vector<Index>& scope, const Values& table,
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

    static Plan given_up(Plan found) {
        found.total = std::numeric_limits<double>::infinity();
        return found;
    }

    // Return whether no order keeps the cliques within `most` cells. This holds if in some part of
    // the graph every variable has too many neighbours, because the first of them in any order then
    // has too large a clique. Dense graphs are detected in O(E log N), without an order; `found`
    // receives a lower bound on the width of that part.
    bool is_wider(const std::vector<std::vector<Index>>& near, double most, Plan& found,
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
                found = given_up({std::exp(least), 0, static_cast<Index>(width), std::exp(least)});
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

    Index n_, n_labels_;
    std::vector<Index> allowed_, starts_;  // the labels of each variable, and where they begin
    std::vector<double> unary_;            // logarithms of these labels
    std::vector<Factor> factors_;
    std::vector<Clique> cliques_;          // in the order of elimination
    std::vector<Index> place_;
    Index segments_ = 1;
    bool planned_ = false, summed_ = false, complete_ = true;
};

}  // namespace setwise

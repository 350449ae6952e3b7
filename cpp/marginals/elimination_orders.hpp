// Orders of elimination whose tables have few cells in total.
//
// No rule is best everywhere. The order in which each variable adds the fewest edges suits sparse
// and irregular graphs; on grids and tori sweeps of a frontier from one end to the other are far
// better. So several rules are tried, and the cheapest order is kept. The search is limited by a
// count of steps, not by a clock: the order decides the last bits of an answer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

class EliminationOrders {
  public:
    using Index = std::int64_t;

    // `near` has the sorted neighbours of each variable, `cards` the numbers of their labels.
    EliminationOrders(const std::vector<std::vector<Index>>& near, const std::vector<Index>& cards,
                      Poll poll)
        : near_(near), n_(static_cast<Index>(near.size())), poll_(poll) {
        for (const Index card : cards)
            bits_.push_back(std::llround(unit * std::log2(double(std::max<Index>(card, 1)))));
    }

    // Return an order whose tables have few cells in total. If every order that was tried has more
    // than `most` cells, or a table of more than `largest`, the order is empty.
    std::vector<Index> cheapest(double largest, double most) {
        largest_ = log_of(largest);
        std::vector<Index> best = greedy(Rule::fill, most, nullptr), order;
        if (n_ == 0 || n_ > most_variables || (!best.empty() && total_ <= few_cells)) return best;
        double total = best.empty() ? most : total_;
        bool found = !best.empty();
        const auto keep = [&] {
            if (order.empty() || (found && total_ >= total)) return;
            best.swap(order);
            total = total_;
            found = true;
        };
        // A step costs about as much as a cell, so the search may take an eighth of the time of the
        // elimination, and less while there is no order.
        const auto goes_on = [&] {
            poll_();
            return steps_ < std::clamp(total / (found ? 8 : 64), least_steps, most_steps);
        };
        order = dissection(total);
        keep();
        // The starts are spread over the numbers of the variables, which usually reflect their
        // positions.
        Index stride = std::max<Index>(1, n_ * 5 / 8);
        while (std::gcd(stride, n_) > 1) ++stride;
        for (Index k = 0, start = 0; k < n_ && goes_on(); ++k, start = (start + stride) % n_)
            for (const bool in_turn : {false, true}) {
                order = sweep(start, in_turn, total);
                keep();
            }
        std::mt19937_64 random(1);
        for (int k = 0; k < restarts && goes_on(); ++k) {
            order = greedy(k % 2 ? Rule::fill : Rule::weight, total, &random);
            keep();
        }
        return best;
    }

    // Return the cells of the smallest table at which an order was given up, and its neighbours.
    std::pair<double, Index> refused() const { return {cells_of(refused_), refused_width_}; }

  private:
    static constexpr double unit = 65536;  // logarithms of cells are whole numbers in this unit
    // With fewer cells a search for orders is not worthwhile; not tuned.
    static constexpr double few_cells = 1 << 16;
    // Limits on the work of a search for orders, which is otherwise a share of the work of the
    // elimination. The lower limit takes no noticeable time, the upper one about a second. Not
    // tuned.
    static constexpr double least_steps = 1 << 14, most_steps = 1 << 27;
    // The largest number of variables for which orders are searched, and the largest number of
    // random orders that are tried. Not tuned.
    static constexpr Index most_variables = 20000;
    static constexpr int restarts = 50;

    enum class Rule { fill, weight };

    static double cells_of(Index bits) { return std::exp2(static_cast<double>(bits) / unit); }
    static Index log_of(double cells) {
        return cells < 1e300 ? std::llround(unit * std::log2(std::max(cells, 1.0))) + 1
                             : std::numeric_limits<Index>::max() / 2;
    }

    // Count a table over a variable and its neighbours; return whether the order is given up.
    bool is_too_much(Index bits, std::size_t neighbours, double most) {
        widest_ = std::max(widest_, bits);
        total_ += cells_of(bits);
        const bool given_up = total_ > most || bits > largest_;
        if (given_up && (refused_ == 0 || bits < refused_)) {
            refused_ = bits;
            refused_width_ = static_cast<Index>(neighbours);
        }
        return given_up;
    }

    // Eliminate the variable of the fewest new edges, or of the smallest table, one after the other.
    // Ties go to the lowest number, or to a random one.
    std::vector<Index> greedy(Rule rule, double most, std::mt19937_64* random) {
        using Key = std::tuple<Index, std::uint64_t, Index>;
        total_ = 0;
        widest_ = 0;
        std::vector<std::set<Index>> near(near_.size());
        for (Index i = 0; i < n_; ++i) near[i] = {near_[i].begin(), near_[i].end()};
        std::vector<Index> score =
            rule == Rule::fill ? fill_of(near) : std::vector<Index>(near.size());
        std::vector<Index> size(bits_), order, stale;
        std::vector<std::uint64_t> tie(near.size(), 0);
        std::set<Key> waiting;
        for (Index i = 0; i < n_; ++i) {
            for (const Index a : near[i]) size[i] += bits_[a];
            if (rule == Rule::weight) score[i] = size[i];
            if (random) tie[i] = (*random)();
            waiting.insert({score[i], tie[i], i});
        }
        const auto change = [&](Index a, Index by) {
            if (by == 0) return;
            waiting.erase({score[a], tie[a], a});
            waiting.insert({score[a] += by, tie[a], a});
            steps_ += 128;
        };
        const auto resize = [&](Index a, Index by) {
            size[a] += by;
            if (rule == Rule::weight) change(a, by);
        };
        while (!waiting.empty()) {
            const Index i = std::get<2>(*waiting.begin());
            waiting.erase(waiting.begin());
            order.push_back(i);
            if (is_too_much(size[i], near[i].size(), most)) return {};
            const std::vector<Index> around(near[i].begin(), near[i].end());
            for (const Index a : around) {
                near[a].erase(i);
                resize(a, -bits_[i]);
            }
            // After i is removed, the number of missing pairs around a is smaller by one for each
            // of a's neighbours that is not a neighbour of i.
            if (rule == Rule::fill)
                for (const Index a : around) {
                    Index strangers = 0;
                    if (near[a].size() < around.size())
                        for (const Index b : near[a]) strangers += near[i].count(b) == 0;
                    else {
                        strangers = static_cast<Index>(near[a].size());
                        for (const Index b : around)
                            strangers -= static_cast<Index>(near[a].count(b));
                    }
                    change(a, -strangers);
                }
            near[i].clear();
            // A new edge is no longer missing around the common neighbours of its ends, and each
            // end gains the neighbours of the other as missing pairs.
            for (std::size_t x = 0; x < around.size(); ++x)
                for (std::size_t y = x + 1; y < around.size(); ++y) {
                    const Index a = around[x], b = around[y];
                    steps_ += 64;
                    if (near[a].count(b)) continue;
                    if (rule == Rule::fill) {
                        shared(near, a, b, stale);
                        for (const Index c : stale) change(c, -1);
                        const auto both = static_cast<Index>(stale.size());
                        change(a, static_cast<Index>(near[a].size()) - both);
                        change(b, static_cast<Index>(near[b].size()) - both);
                    }
                    near[a].insert(b);
                    near[b].insert(a);
                    resize(a, bits_[b]);
                    resize(b, bits_[a]);
                }
            poll_();
        }
        return order;
    }

    // Eliminate along a frontier that begins at one variable: the next variable is the one that
    // adds the fewest new variables to the frontier or, with `in_turn`, the one that has been in it
    // longest.
    std::vector<Index> sweep(Index start, bool in_turn, double most) {
        total_ = 0;
        widest_ = 0;
        state_.assign(near_.size(), 0);
        fresh_.assign(near_.size(), 0);
        for (Index i = 0; i < n_; ++i)
            for (const Index a : near_[i]) fresh_[i] += bits_[a];
        std::vector<Index> order, frontier;
        Index size = 0, other = 0;
        const auto enter = [&](Index i) {
            state_[i] = 1;
            frontier.push_back(i);
            size += bits_[i];
            for (const Index a : near_[i]) fresh_[a] -= bits_[i];
        };
        while (static_cast<Index>(order.size()) < n_) {
            if (frontier.empty()) {
                while (state_[start] != 0) start = other++;
                enter(start);
            }
            auto next = frontier.begin();
            if (!in_turn) {
                for (auto at = next; at != frontier.end(); ++at)
                    if (fresh_[*at] < fresh_[*next]) next = at;
                steps_ += static_cast<double>(frontier.size());
            }
            const Index i = *next;
            frontier.erase(next);
            state_[i] = 2;
            order.push_back(i);
            for (const Index a : near_[i])
                if (state_[a] == 0) enter(a);
            steps_ += 8 + 2 * static_cast<double>(near_[i].size());
            if (is_too_much(size, frontier.size(), most)) return {};
            size -= bits_[i];
        }
        return order;
    }

    // Eliminate the parts that a level of a breadth-first search separates before that level.
    std::vector<Index> dissection(double most) {
        state_.assign(near_.size(), 0);
        fresh_.assign(near_.size(), 0);
        std::vector<Index> order;
        std::vector<std::vector<Index>> parts(1);
        for (Index i = 0; i < n_; ++i) parts[0].push_back(i);
        for (Index name = 1; !parts.empty(); ++name) {
            const std::vector<Index> part = std::move(parts.back());
            parts.pop_back();
            for (const Index i : part) state_[i] = name;
            // Levels from a variable that is far from another one.
            std::vector<Index> reached;
            for (int twice = 0; twice < 2; ++twice) {
                const Index first = twice ? reached.back() : part[0];
                for (const Index i : part) fresh_[i] = -1;
                reached.assign(1, first);
                fresh_[first] = 0;
                for (std::size_t k = 0; k < reached.size(); ++k)
                    for (const Index a : near_[reached[k]])
                        if (state_[a] == name && fresh_[a] < 0) {
                            fresh_[a] = fresh_[reached[k]] + 1;
                            reached.push_back(a);
                        }
                steps_ += 16.0 * static_cast<double>(part.size());
            }
            if (steps_ > most_steps) return {};
            const Index middle = fresh_[reached[reached.size() / 2]];
            const bool whole = reached.size() == part.size();
            std::vector<Index> before, after;
            for (const Index i : part)
                if (!whole)
                    (fresh_[i] >= 0 ? before : after).push_back(i);
                else if (fresh_[i] == middle)
                    order.push_back(i);  // the order is built from its end
                else
                    (fresh_[i] < middle ? before : after).push_back(i);
            if (!before.empty()) parts.push_back(std::move(before));
            if (!after.empty()) parts.push_back(std::move(after));
            poll_();
        }
        std::reverse(order.begin(), order.end());
        return measured(std::move(order), most);
    }

    // Return an order after counting its tables, or an empty order if they have too many cells.
    std::vector<Index> measured(std::vector<Index> order, double most) {
        total_ = 0;
        widest_ = 0;
        std::vector<Index> place(near_.size());
        for (Index k = 0; k < n_; ++k) place[order[k]] = k;
        std::vector<std::vector<Index>> later(near_.size());
        for (const Index i : order) {
            auto& mine = later[i];
            for (const Index a : near_[i])
                if (place[a] > place[i]) mine.push_back(a);
            std::sort(mine.begin(), mine.end());
            mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
            Index size = bits_[i], next = -1;
            for (const Index a : mine) {
                size += bits_[a];
                if (next < 0 || place[a] < place[next]) next = a;
            }
            if (is_too_much(size, mine.size(), most)) return {};
            for (const Index a : mine)
                if (a != next) later[next].push_back(a);
            steps_ += 16.0 * static_cast<double>(mine.size());
            std::vector<Index>().swap(mine);
        }
        return order;
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
    std::vector<Index> fill_of(const std::vector<std::set<Index>>& near) const {
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
            poll_();
        }
        return fill;
    }

    const std::vector<std::vector<Index>>& near_;
    Index n_;
    Poll poll_;
    std::vector<Index> bits_;                       // logarithms of the numbers of labels
    std::vector<Index> state_, fresh_;
    Index largest_ = 0, widest_ = 0, refused_ = 0;  // logarithms of cells
    Index refused_width_ = 0;
    double total_ = 0, steps_ = 0;
};

}  // namespace setwise

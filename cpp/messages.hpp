// Messages in a factor graph: a dual bound that only rises, and max-product.
//
// A message is what a factor has given to a variable. Subtracted from the factor and added to the
// variable's unaries it changes no energy, so the minima of all parts add up to a bound on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "count_factor.hpp"
#include "cycle_factor.hpp"
#include "factor_graph.hpp"
#include "release.hpp"
#include "robust_factor.hpp"

namespace setwise {

class Messages {
  public:
    // shares: for each sweep (forward, backward) and variable, the part of its unaries that each pair
    // ahead gets. The bound rises if no variable gives away more than it has; shares of 1 make the
    // sweeps those of max-product, which bounds nothing. damping: the part of an old message kept.
    Messages(const FactorGraph& graph, std::vector<double> forward, std::vector<double> backward,
             double damping)
        : g_(graph),
          shares_{std::move(backward), std::move(forward)},
          damping_(damping),
          pair_(graph.pairs() * 2 * graph.labels, 0.0),
          count_(graph.count_variables.size(), 0.0),
          robust_(graph.robust_variables.size() * graph.labels, 0.0),
          gathered_(graph.n * graph.labels, 0.0),
          total_(graph.labels),
          given_(graph.labels) {
        if (damping > 0) kept_ = pair_;
        table_ = graph.table;
        if (graph.forbids)
            for (Index e = 0; e < graph.pairs(); ++e)
                for (int side = 0; side < 2; ++side) forbid(e, side);
    }

    // One sweep over the variables: each collects the messages of the pairs behind it, and gives to
    // those ahead. `labels` is decoded on the way: the best label given those behind it.
    template <class Poll>
    void sweep(bool forward, std::vector<Index>& labels, Poll poll) {
        labels.resize(g_.n);
        for (Index k = 0; k < g_.n; ++k) {
            if ((k & 63) == 63) poll();
            visit(forward ? k : g_.n - 1 - k, forward, labels);
        }
    }

    // Every count factor and robust region collects all that its variables hold and gives back what
    // it can; a count factor over all variables proposes its minimiser to offer(labels).
    template <class Offer, class Poll>
    void update_factors(bool forward, Offer offer, Poll poll) {
        update_cycles(forward, poll);
        if (g_.only_pairs()) return;
        reparametrize(totals_);
        for (Index k = 0; k < g_.counts(); ++k) {
            poll();
            update_count(forward ? k : g_.counts() - 1 - k, offer, poll);
        }
        for (Index k = 0; k < g_.robusts(); ++k) {
            poll();
            update_robust(forward ? k : g_.robusts() - 1 - k, poll);
        }
        gather();
    }

    // Cycles of pairs as further factors, which take from their pairs and give back to them: with
    // them the bound can pass that of the relaxation in which pairs agree on single variables only.
    // Cycle c has the variables [starts[c], starts[c + 1]); false if two neighbours are no pair.
    bool add_cycles(const std::vector<Index>& starts, const std::vector<Index>& variables) {
        cycle_starts_ = starts;
        cycle_pairs_.resize(variables.size());
        for (std::size_t c = 0; c + 1 < starts.size(); ++c)
            for (Index k = starts[c]; k < starts[c + 1]; ++k) {
                const Index i = variables[k];
                const Index j = variables[k + 1 < starts[c + 1] ? k + 1 : starts[c]];
                const auto first = g_.high.begin() + g_.first_pair[std::min(i, j)];
                const auto last = g_.high.begin() + g_.first_pair[std::min(i, j) + 1];
                const auto found = std::find(first, last, std::max(i, j));
                if (found == last) return false;
                cycle_pairs_[k] = {static_cast<Index>(found - g_.high.begin()), i > j};
            }
        const Index square = g_.labels * g_.labels;
        cycle_.assign(variables.size() * square, 0.0);
        // Pairs in cycles need tables of their own.
        plain_ = g_.tables;
        for (const auto& [e, turned] : cycle_pairs_) {
            if (table_[e] >= 0) continue;
            table_[e] = static_cast<Index>(plain_.size()) / square;
            for (Index x = 0; x < g_.labels; ++x)
                for (Index y = 0; y < g_.labels; ++y)
                    plain_.push_back(g_.pair_energy(e, x, y));
        }
        tables_ = plain_;
        return true;
    }

    // Every cycle collects all that its pairs hold and gives back what it can.
    template <class Poll>
    void update_cycles(bool forward, Poll poll) {
        const Index count = static_cast<Index>(cycle_starts_.size()) - 1;
        for (Index k = 0; k < count; ++k) {
            if ((k & 15) == 15) poll();
            update_cycle(forward ? k : count - 1 - k, poll);
        }
        gather_cycles();
    }

    // A step along a supergradient of the bound: messages move from the labels that factors choose
    // to those that variables choose (for cycles, that their pairs choose). Coordinate ascent can end
    // below the highest bound; such a step leads out, and may lower the bound at first. Its length
    // is that which would raise the bound by `rise`, were it linear (Polyak).
    template <class Poll>
    void step(double rise, Poll poll) {
        choose_all(poll);
        double size = 0;
        each_disagreement([&](double&, double change) { size += change * change; });
        if (size == 0) return;
        each_disagreement([&](double& held, double change) { held += rise / size * change; });
        gather();
        gather_cycles();
    }

    // The messages of count factors and robust regions, added up: (n, labels).
    const std::vector<double>& gathered() const { return gathered_; }

    // sum_i min_x (unary plus messages) + sum of the minima of what stays in the factors, from the
    // messages alone: what rounding did on the way to them does not matter. Where messages are so
    // large that rounding in these sums could matter, its size is taken off.
    template <class Poll>
    double bound(Poll poll) {
        gather();
        gather_cycles();
        ExactSum sum(g_.constant);
        for (Index i = 0; i < g_.n; ++i) {
            if ((i & 63) == 63) poll();
            reparametrize(i, total_.data());
            sum.add(*std::min_element(total_.begin(), total_.end()));
        }
        for (Index e = 0; e < g_.pairs(); ++e) {
            if ((e & 63) == 63) poll();
            sum.add(pair_minimum(e));
        }
        for (Index f = 0; f < g_.counts(); ++f) {
            poll();
            collect_count(f, nullptr);
            sum.add(count_solver_.minimize(costs_));
        }
        for (Index r = 0; r < g_.robusts(); ++r) {
            poll();
            collect_robust(r, nullptr);
            sum.add(robust_solver_.minimize(costs_));
        }
        for (std::size_t c = 0; c + 1 < cycle_starts_.size(); ++c) {
            if ((c & 15) == 15) poll();
            collect_cycle(static_cast<Index>(c), false);
            sum.add(cycle_solver_.minimize(costs_));
        }
        const double rounding = 8 * std::numeric_limits<double>::epsilon() * magnitude();
        const double total = sum.value();
        return rounding <= 1e-10 * std::max(1.0, std::abs(total)) ? total : total - rounding;
    }

  private:
    const double* table_of(Index e) const {
        const std::vector<double>& tables = tables_.empty() ? g_.tables : tables_;
        return tables.data() + table_[e] * g_.labels * g_.labels;
    }
    // A pair's energy with what cycles have given to it.
    double held_energy(Index e, Index x, Index y) const {
        if (table_[e] < 0) return x == y ? 0 : g_.weight[e];
        return table_of(e)[x * g_.labels + y];
    }
    double* message(Index e, int side) { return pair_.data() + (2 * e + side) * g_.labels; }
    bool is_max_product() const { return damping_ > 0; }

    // A pair never takes a forbidden label: its variable has given it +inf.
    void forbid(Index e, int side) {
        const Index i = side ? g_.high[e] : g_.low[e];
        double* const out = message(e, side);
        for (Index x = 0; x < g_.labels; ++x)
            if (!g_.allowed(i, x)) out[x] = -unbounded;
    }

    // Everything the pair has for one side: min over the other label, in O(L) for Potts.
    void pull(Index e, int side) {
        const Index L = g_.labels;
        const double* const from = message(e, 1 - side);
        double* const out = message(e, side);
        if (table_[e] < 0) {
            const double largest = *std::max_element(from, from + L);
            const double differ = g_.weight[e] - largest;
            for (Index y = 0; y < L; ++y) out[y] = std::min(-from[y], differ);
        } else {
            const double* const rows = table_of(e);
            if (side == 1) {
                std::fill(out, out + L, unbounded);
                for (Index x = 0; x < L; ++x)
                    for (Index y = 0; y < L; ++y)
                        out[y] = std::min(out[y], rows[x * L + y] - from[x]);
            } else {
                for (Index x = 0; x < L; ++x) {
                    double least = unbounded;
                    for (Index y = 0; y < L; ++y)
                        least = std::min(least, rows[x * L + y] - from[y]);
                    out[x] = least;
                }
            }
        }
        // The constant stays behind, so that messages do not grow along the sweep.
        if (g_.forbids) forbid(e, side);
        double least = unbounded;
        for (Index x = 0; x < L; ++x)
            if (out[x] > -unbounded) least = std::min(least, out[x]);
        for (Index x = 0; x < L; ++x) out[x] -= least;
        if (is_max_product()) {
            double* const kept = kept_.data() + (2 * e + side) * L;
            for (Index x = 0; x < L; ++x)
                if (out[x] > -unbounded)
                    kept[x] = out[x] = (1 - damping_) * out[x] + damping_ * kept[x];
        }
    }

    void visit(Index i, bool forward, std::vector<Index>& labels) {
        const Index L = g_.labels;
        const double* const own = g_.unary_of(i);
        double* const total = total_.data();     // unary plus all messages
        double* const given = given_.data();     // with the labels behind in place of their messages
        for (Index x = 0; x < L; ++x) total[x] = given[x] = own[x] + gathered_[i * L + x];
        const int side = forward ? 1 : 0;        // of i in the pairs behind it
        each_pair(i, side, [&](Index e) {
            pull(e, side);
            const double* const in = message(e, side);
            const Index y = labels[forward ? g_.low[e] : g_.high[e]];
            for (Index x = 0; x < L; ++x) {
                total[x] += in[x];
                given[x] += forward ? held_energy(e, y, x) : held_energy(e, x, y);
            }
        });
        each_pair(i, 1 - side, [&](Index e) {
            const double* const in = message(e, 1 - side);
            for (Index x = 0; x < L; ++x) {
                total[x] += in[x];
                given[x] += in[x];
            }
        });
        if (g_.forbids)
            for (Index x = 0; x < L; ++x)
                if (!g_.allowed(i, x)) total[x] = given[x] = unbounded;
        labels[i] = std::min_element(given, given + L) - given;
        const double least = *std::min_element(total, total + L);
        const double share = shares_[forward][i];
        for (Index x = 0; x < L; ++x) total[x] = share * (total[x] - least);
        each_pair(i, 1 - side, [&](Index e) {
            double* const out = message(e, 1 - side);
            for (Index x = 0; x < L; ++x) out[x] -= total[x];
        });
    }

    template <class Visit>
    void each_pair(Index i, int side, Visit visit_pair) const {
        if (side == 0)
            for (Index e = g_.first_pair[i]; e < g_.first_pair[i + 1]; ++e) visit_pair(e);
        else
            for (Index k = g_.high_starts[i]; k < g_.high_starts[i + 1]; ++k)
                visit_pair(g_.high_pairs[k]);
    }

    double pair_minimum(Index e) {
        const Index L = g_.labels;
        const double *const low = message(e, 0), *const high = message(e, 1);
        double least = unbounded;
        if (table_[e] < 0) {
            double most_low = -unbounded, most_high = -unbounded;
            for (Index x = 0; x < L; ++x) {
                least = std::min(least, -low[x] - high[x]);
                most_low = std::max(most_low, low[x]);
                most_high = std::max(most_high, high[x]);
            }
            return std::min(least, g_.weight[e] - most_low - most_high);
        }
        const double* const rows = table_of(e);
        for (Index x = 0; x < L; ++x)
            for (Index y = 0; y < L; ++y)
                least = std::min(least, rows[x * L + y] - low[x] - high[y]);
        return least;
    }

    // The sum of the largest finite sizes, over labels, of all unaries and messages.
    double magnitude() const {
        double sum = std::abs(g_.constant);
        const auto add = [&](const std::vector<double>& values, Index labels) {
            for (std::size_t k = 0; k < values.size(); k += static_cast<std::size_t>(labels)) {
                double most = 0;
                for (Index x = 0; x < labels; ++x)
                    if (std::abs(values[k + x]) < unbounded)
                        most = std::max(most, std::abs(values[k + x]));
                sum += most;
            }
        };
        add(g_.unary, g_.labels);
        add(pair_, g_.labels);
        add(count_, 1);
        add(robust_, g_.labels);
        add(cycle_, g_.labels * g_.labels);
        return sum;
    }

    // The unaries plus all messages.
    void reparametrize(Index i, double* total) {
        const Index L = g_.labels;
        for (Index x = 0; x < L; ++x) total[x] = g_.unary_of(i)[x] + gathered_[i * L + x];
        for (int side = 0; side < 2; ++side)
            each_pair(i, side, [&](Index e) {
                const double* const in = message(e, side);
                for (Index x = 0; x < L; ++x) total[x] += in[x];
            });
        if (g_.forbids)
            for (Index x = 0; x < L; ++x)
                if (!g_.allowed(i, x)) total[x] = unbounded;
    }
    void reparametrize(std::vector<double>& totals) {
        totals.resize(g_.n * g_.labels);
        for (Index i = 0; i < g_.n; ++i) reparametrize(i, totals.data() + i * g_.labels);
    }

    void gather() {
        const Index L = g_.labels;
        std::fill(gathered_.begin(), gathered_.end(), 0.0);
        for (std::size_t m = 0; m < count_.size(); ++m)
            for (Index x = 0; x < L; ++x)
                if (g_.pattern_of(m)[x]) gathered_[g_.count_variables[m] * L + x] += count_[m];
        for (std::size_t m = 0; m < g_.robust_variables.size(); ++m)
            for (Index x = 0; x < L; ++x)
                gathered_[g_.robust_variables[m] * L + x] += robust_[m * L + x];
    }

    // Costs of the members with a choice, in the factor: minus their messages, and with `totals` also
    // what their variables hold, which is then all that the variables have.
    void collect_count(Index f, const double* totals) {
        costs_.clear();
        members_.clear();
        Index forced = 0;
        for (Index m = g_.count_starts[f]; m < g_.count_starts[f + 1]; ++m) {
            forced += g_.sides[m] == FactorGraph::always;
            if (g_.sides[m] != FactorGraph::free) continue;
            members_.push_back(m);
            costs_.push_back(-count_[m]);
            if (!totals) continue;
            const double* const total = totals + g_.count_variables[m] * g_.labels;
            double least[2] = {unbounded, unbounded};
            for (Index x = 0; x < g_.labels; ++x) {
                double& side = least[g_.pattern_of(m)[x] != 0];
                side = std::min(side, total[x]);
            }
            costs_.back() += least[1] - least[0];
        }
        count_solver_.reset(g_.count_values.data() + g_.count_tables[f] + forced);
    }

    template <class Offer, class Poll>
    void update_count(Index f, Offer offer, Poll poll) {
        collect_count(f, totals_.data());
        if (g_.count_starts[f + 1] - g_.count_starts[f] == g_.n) propose(f, offer);
        held_ = costs_;
        if (is_max_product())
            count_solver_.min_marginals(costs_, released_);
        else
            release(count_solver_, costs_, released_, rounds, space_, poll);
        for (std::size_t k = 0; k < members_.size(); ++k) {
            const Index m = members_[k];
            double now = released_[k] - held_[k];
            if (is_max_product()) now = (1 - damping_) * now + damping_ * count_[m];
            double* const total = totals_.data() + g_.count_variables[m] * g_.labels;
            for (Index x = 0; x < g_.labels; ++x)
                if (g_.pattern_of(m)[x]) total[x] += now - count_[m];
            count_[m] = now;
        }
    }

    template <class Offer>
    void propose(Index f, Offer offer) {
        count_solver_.minimize(costs_);
        side_.assign(g_.count_starts[f + 1] - g_.count_starts[f], 0);
        for (std::size_t m = 0; m < side_.size(); ++m)
            side_[m] = g_.sides[g_.count_starts[f] + m] == FactorGraph::always;
        count_solver_.each_chosen(
            [&](std::size_t k) { side_[members_[k] - g_.count_starts[f]] = 1; });
        proposal_.resize(g_.n);
        for (std::size_t k = 0; k < side_.size(); ++k) {
            const Index m = g_.count_starts[f] + static_cast<Index>(k), i = g_.count_variables[m];
            double least = unbounded;
            for (Index x = 0; x < g_.labels; ++x)
                if ((g_.pattern_of(m)[x] != 0) == (side_[k] != 0) &&
                    totals_[i * g_.labels + x] < least) {
                    least = totals_[i * g_.labels + x];
                    proposal_[i] = x;
                }
        }
        offer(proposal_);
    }

    void collect_robust(Index r, const double* totals) {
        const Index L = g_.labels;
        costs_.clear();
        for (Index m = g_.robust_starts[r]; m < g_.robust_starts[r + 1]; ++m)
            for (Index x = 0; x < L; ++x) {
                const Index i = g_.robust_variables[m];
                costs_.push_back(g_.allowed(i, x) ? (totals ? totals[i * L + x] : 0.0) -
                                                        robust_[m * L + x]
                                                  : unbounded);
            }
        robust_solver_.reset(static_cast<std::size_t>(L), g_.robust_weights[r],
                             g_.robust_truncations[r]);
    }

    template <class Poll>
    void update_robust(Index r, Poll poll) {
        const Index L = g_.labels, start = g_.robust_starts[r];
        collect_robust(r, totals_.data());
        held_ = costs_;
        if (is_max_product())
            robust_solver_.min_marginals(costs_, released_);
        else
            release(robust_solver_, costs_, released_, rounds, space_, poll);
        for (std::size_t k = 0; k < costs_.size(); ++k) {
            if (held_[k] == unbounded) continue;
            double& old = robust_[start * L + static_cast<Index>(k)];
            double now = released_[k] - held_[k];
            if (is_max_product()) now = (1 - damping_) * now + damping_ * old;
            const Index m = start + static_cast<Index>(k) / L, x = static_cast<Index>(k) % L;
            totals_[g_.robust_variables[m] * L + x] += now - old;
            old = now;
        }
    }

    // The tables of the pairs with the messages of all cycles.
    void gather_cycles() {
        if (cycle_pairs_.empty()) return;
        const Index L = g_.labels;
        tables_ = plain_;
        for (std::size_t k = 0; k < cycle_pairs_.size(); ++k)
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y)
                    tables_[cell(k, x, y)] += cycle_[(static_cast<Index>(k) * L + x) * L + y];
    }

    // Where labels x, y of step k of a cycle lie in the tables.
    std::size_t cell(std::size_t k, Index x, Index y) const {
        const auto& [e, turned] = cycle_pairs_[k];
        const Index L = g_.labels;
        return static_cast<std::size_t>((table_[e] * L + (turned ? y : x)) * L + (turned ? x : y));
    }

    // Costs in the cycle: minus its messages, and with `take` also all that its pairs hold.
    void collect_cycle(Index c, bool take) {
        const Index L = g_.labels;
        costs_.clear();
        for (Index k = cycle_starts_[c]; k < cycle_starts_[c + 1]; ++k) {
            const auto& [e, turned] = cycle_pairs_[k];
            const double *const from = message(e, turned), *const to = message(e, !turned);
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y) {
                    double cost = -cycle_[(k * L + x) * L + y];
                    if (take) cost += tables_[cell(k, x, y)] - from[x] - to[y];
                    const bool may = from[x] > -unbounded && to[y] > -unbounded;
                    costs_.push_back(may ? cost : unbounded);
                }
        }
        cycle_solver_.reset(static_cast<std::size_t>(cycle_starts_[c + 1] - cycle_starts_[c]),
                            static_cast<std::size_t>(L));
    }

    template <class Poll>
    void update_cycle(Index c, Poll poll) {
        const Index L = g_.labels;
        collect_cycle(c, true);
        held_ = costs_;
        release(cycle_solver_, costs_, released_, rounds, space_, poll);
        std::size_t place = 0;
        for (Index k = cycle_starts_[c]; k < cycle_starts_[c + 1]; ++k)
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y, ++place) {
                    if (held_[place] == unbounded) continue;
                    double& old = cycle_[(k * L + x) * L + y];
                    const double now = released_[place] - held_[place];
                    tables_[cell(k, x, y)] += now - old;
                    old = now;
                }
    }

    // The labels at which every part has its minimum.
    template <class Poll>
    void choose_all(Poll poll) {
        const Index L = g_.labels;
        gather();
        gather_cycles();
        chosen_.resize(g_.n);
        for (Index i = 0; i < g_.n; ++i) {
            reparametrize(i, total_.data());
            chosen_[i] = std::min_element(total_.begin(), total_.end()) - total_.begin();
        }
        pair_chosen_.resize(g_.pairs());
        for (Index e = 0; e < g_.pairs(); ++e) {
            if ((e & 63) == 63) poll();
            const double *const low = message(e, 0), *const high = message(e, 1);
            double least = unbounded;
            for (Index x = 0; x < L; ++x)
                for (Index y = 0; y < L; ++y)
                    if (held_energy(e, x, y) - low[x] - high[y] < least) {
                        least = held_energy(e, x, y) - low[x] - high[y];
                        pair_chosen_[e] = {x, y};
                    }
        }
        side_.assign(count_.size(), 0);
        for (Index f = 0; f < g_.counts(); ++f) {
            poll();
            collect_count(f, nullptr);
            count_solver_.minimize(costs_);
            count_solver_.each_chosen([&](std::size_t k) { side_[members_[k]] = 1; });
        }
        robust_chosen_.clear();
        for (Index r = 0; r < g_.robusts(); ++r) {
            collect_robust(r, nullptr);
            robust_solver_.minimize(costs_);
            for (const auto x : robust_solver_.chosen()) robust_chosen_.push_back(x);
        }
        cycle_chosen_.clear();
        for (std::size_t c = 0; c + 1 < cycle_starts_.size(); ++c) {
            if ((c & 15) == 15) poll();
            collect_cycle(static_cast<Index>(c), false);
            cycle_solver_.minimize(costs_);
            const auto& way = cycle_solver_.chosen();
            for (std::size_t t = 0; t + 1 < way.size(); ++t)
                cycle_chosen_.push_back(static_cast<Index>(way[t]) * L +
                                        static_cast<Index>(way[t + 1]));
        }
    }

    // visit(message, its supergradient) wherever that is not zero.
    template <class Visit>
    void each_disagreement(Visit visit_one) {
        const Index L = g_.labels;
        const auto differ = [&](double* held, Index rise, Index fall) {
            if (rise == fall) return;
            visit_one(held[rise], 1.0);
            visit_one(held[fall], -1.0);
        };
        for (Index e = 0; e < g_.pairs(); ++e) {
            differ(message(e, 0), chosen_[g_.low[e]], pair_chosen_[e].first);
            differ(message(e, 1), chosen_[g_.high[e]], pair_chosen_[e].second);
        }
        for (std::size_t m = 0; m < count_.size(); ++m) {
            if (g_.sides[m] != FactorGraph::free) continue;
            const int in = g_.pattern_of(m)[chosen_[g_.count_variables[m]]] != 0;
            if (in != side_[m]) visit_one(count_[m], in - side_[m]);
        }
        for (std::size_t m = 0; m < robust_chosen_.size(); ++m)
            differ(robust_.data() + m * L, chosen_[g_.robust_variables[m]],
                   static_cast<Index>(robust_chosen_[m]));
        for (std::size_t k = 0; k < cycle_pairs_.size(); ++k) {
            const auto [x, y] = pair_chosen_[cycle_pairs_[k].pair];
            differ(cycle_.data() + k * L * L, cycle_pairs_[k].turned ? y * L + x : x * L + y,
                   cycle_chosen_[k]);
        }
    }

    struct CyclePair {
        Index pair;
        bool turned;  // the cycle goes from its high end to its low end
    };

    static constexpr int rounds = 2;

    const FactorGraph& g_;
    std::vector<double> shares_[2];
    double damping_;
    std::vector<double> pair_;    // (pairs, 2, labels)
    std::vector<double> count_;   // (members,): a cost of the labels in the pattern
    std::vector<double> robust_;  // (members, labels)
    std::vector<double> kept_, gathered_, totals_;
    std::vector<Index> cycle_starts_{0};
    std::vector<CyclePair> cycle_pairs_;
    std::vector<double> cycle_;  // (steps of all cycles, labels, labels)
    std::vector<Index> table_;   // of the pairs, as in the graph, and more once there are cycles
    std::vector<double> tables_, plain_;  // with and without the messages of cycles
    std::vector<double> total_, given_, costs_, held_, released_;
    std::vector<Index> members_, proposal_;
    std::vector<std::uint8_t> side_;
    std::vector<Index> chosen_, cycle_chosen_;  // minimisers, for a supergradient
    std::vector<std::pair<Index, Index>> pair_chosen_;
    std::vector<std::size_t> robust_chosen_;
    CountFactor count_solver_;
    RobustFactor robust_solver_;
    CycleFactor cycle_solver_;
    ReleaseSpace space_;
};

}  // namespace setwise

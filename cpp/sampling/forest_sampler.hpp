// Blocked Gibbs sampling. The components of a forest are drawn one after the other from their exact
// distributions, given all other variables: messages go up from the leaves, labels are drawn from
// the root down. If a forest has all edges of a field without other terms, this gives independent,
// exact samples.
//
// Terms of many variables enter a component by the amount that each of its variables alone would
// add. The draw is then a proposal, which a Metropolis step accepts or rejects. Proposals of single
// variables are exact.
//
// Energies are divided by the temperature before they are passed here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "fields/pair_energies.hpp"
#include "marginals/tree_loops.hpp"
#include "numeric/poll.hpp"
#include "numeric/threads.hpp"
#include "sampling/sampled_terms.hpp"

namespace setwise {

// Random numbers in [0, 1) that depend only on a key and a position (the mixing function of
// Splitmix64).
class PlacedNumbers {
  public:
    PlacedNumbers(std::uint64_t seed, std::uint64_t chain, std::uint64_t sweep)
        : key_(mix(mix(mix(seed) ^ (chain * golden + 1)) ^ (sweep * golden + 2))) {}
    double at(std::uint64_t place) const {
        return static_cast<double>(mix(key_ + (place + 1) * golden) >> 11) * 0x1p-53;
    }

  private:
    static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;  // of Splitmix64
    static std::uint64_t mix(std::uint64_t z) {
        z += golden;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t key_;
};

class ForestSampler {
  public:
    using Index = std::int64_t;

    // logs (N, L): minus the unaries.
    ForestSampler(const double* logs, Index n, Index n_labels)
        : n_(n), n_labels_(n_labels), logs_(logs, logs + n * n_labels), pairs_(n, n_labels) {}
    ForestSampler(const ForestSampler&) = delete;
    ForestSampler& operator=(const ForestSampler&) = delete;

    Index n() const { return n_; }
    Index n_labels() const { return n_labels_; }
    PairEnergies& pairs() { return pairs_; }
    void add_term(std::unique_ptr<SampledTerm> term) { terms_.push_back(std::move(term)); }
    void close() {
        pairs_.close();
        change_.clear();
        for (Index e = 0; e < pairs_.edges(); ++e)
            change_.push_back(pairs_.is_table(2 * e) ? 1.0 : std::exp(-pairs_.weight(2 * e)));
        tame_ = terms_.empty() && pairs_.tables() == 0;
        for (Index i = 0; i < n_ && tame_; ++i) tame_ = range(i) < steep;
        if (!tame_) return;
        weights_ = logs_;
        for (Index i = 0; i < n_; ++i) {
            double* const own = weights_.data() + i * n_labels_;
            const double top = *std::max_element(own, own + n_labels_);
            for (Index j = 0; j < n_labels_; ++j) own[j] = std::exp(own[j] - top);
        }
        boost_.clear();
        for (Index e = 0; e < pairs_.edges(); ++e) boost_.push_back(std::exp(pairs_.weight(2 * e)));
    }
    Index forests() const { return static_cast<Index>(forests_.size()); }

    // Add a forest by its edges (E,): each component must have all edges among its variables.
    void add_forest(const std::uint8_t* kept) {
        std::vector<Index> up(static_cast<std::size_t>(n_), -1), order;
        std::vector<bool> seen(static_cast<std::size_t>(n_));
        Index edges = 0, joined = 0;
        for (Index e = 0; e < pairs_.edges(); ++e) edges += kept[e];
        for (Index top = 0; top < n_; ++top) {
            if (seen[top]) continue;
            seen[top] = true;
            const std::size_t start = order.size();
            order.push_back(top);
            for (std::size_t k = start; k < order.size(); ++k)
                for (const Index* arc = pairs_.begin(order[k]); arc != pairs_.end(order[k]);
                     ++arc) {
                    const Index j = pairs_.head(*arc);
                    if (!kept[*arc >> 1] || seen[j]) continue;
                    seen[j] = true;
                    up[j] = *arc ^ 1;
                    order.push_back(j);
                    ++joined;
                }
        }
        if (joined != edges) throw std::invalid_argument("kept must be a forest");
        forests_.push_back({std::move(up), {}, {}, {}});
        forests_.back().divide(*this, order, [](Index) { return false; });
    }

    struct Tally {
        double proposed = 0, accepted = 0;  // counts of variables in components of more than one
    };

    // Run sweeps of several chains, labels (C, N), over one forest after the other. Each edge of a
    // forest is left out of a sweep with probability `cut`, so that components have about 1 / cut
    // variables.
    void sweep(Index* labels, Index chains, std::uint64_t seed, Index first, Index count,
               double cut, Tally* tallies, int n_threads, Poll poll) const {
        each_long_task(chains, n_threads, poll, [&](Index c, Poll poll_chain) {
            Chain chain(*this, labels + c * n_);
            for (Index s = first; s < first + count; ++s)
                chain.sweep(forests_[s % forests()],
                            PlacedNumbers(seed, static_cast<std::uint64_t>(c),
                                          static_cast<std::uint64_t>(s)),
                            cut, tallies[c], poll_chain);
            std::copy(chain.labels.begin(), chain.labels.end(), labels + c * n_);
        });
    }

  private:
    static constexpr double steep = 600.0;  // exp(-steep) is still a normal number

    // A forest as components, each in order from its root down.
    struct Forest {
        std::vector<Index> up;  // (N,): the arc to the parent, -1 at the root
        std::vector<Index> part, order, starts;

        // Write the components without the edges that are cut; every variable comes after its
        // parent.
        template <class Cut>
        void divide(const ForestSampler& field, const std::vector<Index>& down, const Cut& cut) {
            starts.assign(1, 0);
            part.resize(down.size());
            order.resize(down.size());
            for (const Index i : down) {
                const bool joined = up[i] >= 0 && !cut(i);
                part[i] =
                    joined ? part[field.pairs_.head(up[i])] : static_cast<Index>(starts.size()) - 1;
                if (!joined) starts.push_back(0);
                ++starts[part[i] + 1];
            }
            for (std::size_t c = 1; c < starts.size(); ++c) starts[c] += starts[c - 1];
            std::vector<Index> next(starts.begin(), starts.end() - 1);
            for (const Index i : down) order[next[part[i]]++] = i;
        }
    };

    // Return a bound on the differences between the logarithms of the weights of a variable's
    // labels.
    double range(Index i) const {
        const double* const own = logs_.data() + i * n_labels_;
        const double top = *std::max_element(own, own + n_labels_);
        double sum = 0;
        for (Index j = 0; j < n_labels_; ++j)
            if (own[j] > -std::numeric_limits<double>::infinity())
                sum = std::max(sum, top - own[j]);
        for (const Index* arc = pairs_.begin(i); arc != pairs_.end(i); ++arc)
            sum += pairs_.weight(*arc);
        return sum;
    }

    struct Chain {
        const ForestSampler& field;
        const Forest* forest = nullptr;
        Forest cut_forest;
        std::vector<Index> labels, old;
        std::vector<std::unique_ptr<SampledTerm>> terms;
        std::vector<double> b, mass, sum, work, message, zero, slope;

        Chain(const ForestSampler& of, const Index* given)
            : field(of),
              labels(given, given + of.n_),
              b(of.tame_ ? 0 : of.logs_.size()),
              mass(of.logs_.size()),
              sum(labels.size()),
              work(static_cast<std::size_t>(of.n_labels_)),
              message(work),
              zero(work) {
            for (const auto& term : of.terms_) terms.push_back(term->copy());
            for (auto& term : terms) {
                term->clear();
                for (Index i = 0; i < of.n_; ++i) term->insert(i, labels[i], labels.data());
            }
        }

        void sweep(const Forest& whole, const PlacedNumbers& numbers, double cut, Tally& tally,
                   Poll poll) {
            forest = &whole;
            if (cut > 0) {
                const auto n = static_cast<std::uint64_t>(field.n_);
                cut_forest.up = whole.up;
                cut_forest.divide(field, whole.order, [&](Index i) {
                    return numbers.at(2 * n + static_cast<std::uint64_t>(i)) < cut;
                });
                forest = &cut_forest;
            }
            const std::vector<Index>& starts = forest->starts;
            Index done = 0;
            for (std::size_t c = 0; c + 1 < starts.size(); ++c) {
                if (field.tame_)
                    update_tame(starts[c], starts[c + 1], numbers);
                else
                    update(starts[c], starts[c + 1], numbers, tally);
                done += starts[c + 1] - starts[c];
                if (done > 256) {
                    poll();
                    done = 0;
                }
            }
        }

        // Return the arc to the parent, -1 at the root of a component.
        Index above(Index i) const {
            const Index arc = forest->up[i];
            const bool joined = arc >= 0 && forest->part[field.pairs_.head(arc)] == forest->part[i];
            return joined ? arc : -1;
        }

        // Update with Potts terms alone, whose weights stay within the range of numbers: products
        // without exponentials and logarithms.
        void update_tame(Index first, Index last, const PlacedNumbers& numbers) {
            const Index L = field.n_labels_;
            const PairEnergies& pairs = field.pairs_;
            const std::vector<Index>&order = forest->order, &part = forest->part;
            for (Index k = first; k < last; ++k) {
                const Index i = order[k];
                double* const own = mass.data() + i * L;
                std::copy(field.weights_.begin() + i * L, field.weights_.begin() + (i + 1) * L,
                          own);
                for (const Index* arc = pairs.begin(i); arc != pairs.end(i); ++arc) {
                    const Index j = pairs.head(*arc);
                    if (part[j] != part[i]) own[labels[j]] *= field.boost_[*arc >> 1];
                }
            }
            for (Index k = last; k-- > first;) {
                const Index i = order[k], arc = above(i);
                const double* const own = mass.data() + i * L;
                double total = 0;
                for (Index x = 0; x < L; ++x) total += own[x];
                sum[i] = total;
                if (arc < 0) continue;
                const double change = field.change_[arc >> 1], kept = (1 - change) / total;
                double* const upper = mass.data() + pairs.head(arc) * L;
                for (Index y = 0; y < L; ++y) upper[y] *= change + kept * own[y];
            }
            for (Index k = first; k < last; ++k) {
                const Index i = order[k], arc = above(i);
                const double* const own = mass.data() + i * L;
                const double u = numbers.at(static_cast<std::uint64_t>(i));
                if (arc < 0) {
                    labels[i] = chosen(own, u * sum[i], labels[i], -1);
                    continue;
                }
                // draw first whether it takes the parent's label, then which of the others
                const Index y = labels[pairs.head(arc)];
                const double change = field.change_[arc >> 1];
                const double left = u * (change * (sum[i] - own[y]) + own[y]) - own[y];
                labels[i] = left < 0 ? y : chosen(own, left / change, y, y);
            }
        }

        void update(Index first, Index last, const PlacedNumbers& numbers, Tally& tally) {
            const Index L = field.n_labels_;
            const std::vector<Index>& order = forest->order;
            const bool proposal = !terms.empty() && last - first > 1;
            if (!terms.empty()) take_out(first, last);
            old.clear();
            slope.assign(proposal ? static_cast<std::size_t>((last - first) * L) : 0, 0.0);
            for (Index k = first; k < last; ++k) {
                const Index i = order[k];
                old.push_back(labels[i]);
                given_others(i);
                double* const own = b.data() + i * L;
                for (const auto& term : terms)
                    for (Index j = 0; j < L; ++j) {
                        const double rise = term->rise(i, j, labels.data());
                        own[j] -= rise;
                        if (proposal) slope[(k - first) * L + j] += rise;
                    }
            }
            double before = 0;
            if (proposal) {
                before = put_in(first, last);
                take_out(first, last);
            }
            for (Index k = last; k-- > first;) {
                const Index i = order[k], arc = above(i);
                double* const own = mass.data() + i * L;
                const double top = masses(b.data() + i * L, zero.data(), L, own);
                sum[i] = sum_of(own, L);
                if (arc < 0 || !(top > -std::numeric_limits<double>::infinity())) continue;
                send(arc, b.data() + i * L, own, sum[i], top);
                add_scaled(1.0, message.data(), L, b.data() + field.pairs_.head(arc) * L);
            }
            for (Index k = first; k < last; ++k) {
                const Index i = order[k];
                labels[i] = draw(above(i), i, numbers.at(static_cast<std::uint64_t>(i)));
            }
            if (terms.empty()) return;
            const double after = put_in(first, last);
            if (!proposal) return;
            tally.proposed += static_cast<double>(last - first);
            const double u = numbers.at(static_cast<std::uint64_t>(field.n_ + order[first]));
            if (u < std::exp(std::min(0.0, before - after))) {
                tally.accepted += static_cast<double>(last - first);
                return;
            }
            take_out(first, last);
            for (Index k = first; k < last; ++k) labels[order[k]] = old[k - first];
            for (Index k = first; k < last; ++k)
                for (auto& term : terms) term->insert(order[k], labels[order[k]], labels.data());
        }

        void take_out(Index first, Index last) {
            const std::vector<Index>& order = forest->order;
            for (Index k = first; k < last; ++k)
                for (auto& term : terms) term->erase(order[k], labels[order[k]], labels.data());
        }

        // Return the cost of the terms for the whole component, minus the cost that the proposal
        // assumed.
        double put_in(Index first, Index last) {
            const Index L = field.n_labels_;
            const std::vector<Index>& order = forest->order;
            double energy = 0;
            for (Index k = first; k < last; ++k) {
                const Index i = order[k];
                for (auto& term : terms) {
                    if (!slope.empty()) energy += term->rise(i, labels[i], labels.data());
                    term->insert(i, labels[i], labels.data());
                }
                if (!slope.empty()) energy -= slope[(k - first) * L + labels[i]];
            }
            return energy;
        }

        // Set b = minus the energy of each label, given the labels of other components.
        void given_others(Index i) {
            const Index L = field.n_labels_;
            const PairEnergies& pairs = field.pairs_;
            double* const own = b.data() + i * L;
            std::copy(field.logs_.begin() + i * L, field.logs_.begin() + (i + 1) * L, own);
            for (const Index* arc = pairs.begin(i); arc != pairs.end(i); ++arc) {
                const Index j = pairs.head(*arc);
                if (forest->part[j] == forest->part[i]) continue;
                if (!pairs.is_table(*arc))
                    own[labels[j]] += pairs.weight(*arc);
                else
                    for (Index a = 0; a < L; ++a) own[a] -= pairs.at(*arc, a, labels[j]);
            }
        }

        // message(y) = log sum_x exp(b(x) - theta(x, y)), x at the tail of the arc.
        void send(Index arc, const double* logs, const double* own, double total, double top) {
            const Index L = field.n_labels_;
            const PairEnergies& pairs = field.pairs_;
            if (!pairs.is_table(arc)) {
                const double weight = pairs.weight(arc);
                if (weight < steep) {
                    potts_logs(own, total, field.change_[arc >> 1], 0.0, L, message.data());
                    return;
                }
                // the label's own term is not subtracted, because times exp(-weight) it is
                // negligible
                const double others = std::log(total) - weight;
                for (Index y = 0; y < L; ++y) {
                    const double alone = logs[y] - top, high = std::max(alone, others);
                    message[y] = high + std::log1p(std::exp(std::min(alone, others) - high));
                }
                return;
            }
            for (Index y = 0; y < L; ++y) {
                for (Index x = 0; x < L; ++x) work[x] = logs[x] - pairs.at(arc, x, y);
                const double high = *std::max_element(work.begin(), work.end());
                double all = 0;
                if (high > -std::numeric_limits<double>::infinity())
                    for (Index x = 0; x < L; ++x) all += exponential_above(700.0, work[x] - high);
                message[y] = all > 0 ? std::log(all) + (high - top)
                                     : -std::numeric_limits<double>::infinity();
            }
        }

        // Draw a label of i, given that of its parent. If none is possible, the label stays as it
        // was.
        Index draw(Index arc, Index i, double u) {
            const Index L = field.n_labels_;
            const double* p = mass.data() + i * L;
            if (arc < 0) return chosen(p, u * sum[i], labels[i], -1);
            const PairEnergies& pairs = field.pairs_;
            const Index y = labels[pairs.head(arc)];
            const double change = field.change_[arc >> 1];
            if (!pairs.is_table(arc) && change * (sum[i] - p[y]) + p[y] > tiny_mass) {
                for (Index x = 0; x < L; ++x) work[x] = x == y ? p[x] : change * p[x];
                return chosen(work.data(), u * sum_of(work.data(), L), labels[i], -1);
            }
            for (Index x = 0; x < L; ++x) {
                const double price =
                    pairs.is_table(arc) ? pairs.at(arc, x, y) : (x == y ? 0.0 : pairs.weight(arc));
                message[x] = b[i * L + x] - price;
            }
            masses(message.data(), zero.data(), L, work.data());
            return chosen(work.data(), u * sum_of(work.data(), L), labels[i], -1);
        }

        // Return the label at which the cumulative sum of p, without the label `but`, passes
        // `left`; if there is none, the last possible label.
        Index chosen(const double* p, double left, Index otherwise, Index but) const {
            const Index L = field.n_labels_;
            Index last = otherwise;
            for (Index x = 0; x < L; ++x) {
                if (x == but || !(p[x] > 0)) continue;
                last = x;
                if (left < p[x]) return x;
                left -= p[x];
            }
            return last;
        }
    };

    Index n_, n_labels_;
    std::vector<double> logs_, change_;
    bool tame_ = false;
    std::vector<double> weights_, boost_;  // exp(logs) and exp(w), if all terms are Potts
    PairEnergies pairs_;
    std::vector<std::unique_ptr<SampledTerm>> terms_;
    std::vector<Forest> forests_;
};

}  // namespace setwise

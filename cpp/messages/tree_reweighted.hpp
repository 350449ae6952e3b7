// Sequential tree-reweighted message passing (Kolmogorov, 2006), for the bound alone.
//
// The dual of messages.hpp on unaries and pairs, without labellings, larger factors and steps: one
// message a pair, towards the variable that the next sweep visits later, and loops over the labels
// that run in vector instructions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "messages/release.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/poll.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

namespace lanes {

constexpr std::int64_t width = 4;  // rows of labels are padded to a multiple of this

SETWISE_INLINED double least(const double* __restrict x, std::int64_t stride) {
    double low[width];
    for (std::int64_t k = 0; k < width; ++k) low[k] = x[k];
    for (std::int64_t at = width; at < stride; at += width)
        for (std::int64_t k = 0; k < width; ++k) low[k] = x[at + k] < low[k] ? x[at + k] : low[k];
    const double a = low[0] < low[1] ? low[0] : low[1], b = low[2] < low[3] ? low[2] : low[3];
    return a < b ? a : b;
}

}  // namespace lanes

// Energies of unaries and pairs, as the sweeps read them. Rows of labels have `stride` entries, of which
// those beyond the labels are as if forbidden.
struct PaddedPairs {
    std::int64_t n = 0, labels = 0, stride = 0;
    std::vector<double> unary;                    // (n, stride), +inf where forbidden
    std::vector<std::int64_t> low, high;          // pairs, sorted by low
    std::vector<std::int64_t> first_pair;         // (n + 1,): pairs by their low end
    std::vector<std::int64_t> high_starts, high_pairs;  // and by their high end
    std::vector<double> weight;                   // Potts, where table is -1
    std::vector<std::int64_t> table;              // the place of a pair's table, in tables
    std::vector<double> to_low, to_high;          // (T, labels, stride): rows by the other end's label
    std::vector<double> share;                    // (n,): what each pair ahead gets

    // Everything from the pairs, their tables (T, labels, labels) and the unaries (n, labels).
    void fill(const double* costs, const std::vector<double>& given);

    const double* tables(bool towards_high, std::int64_t e) const {
        const std::vector<double>& rows = towards_high || to_low.empty() ? to_high : to_low;
        return rows.data() + table[e] * labels * stride;
    }
    double energy(std::int64_t e, std::int64_t x, std::int64_t y) const {
        if (table[e] < 0) return x == y ? 0 : weight[e];
        return to_high[(table[e] * labels + x) * stride + y];
    }
};

inline void PaddedPairs::fill(const double* costs, const std::vector<double>& given) {
    stride = (labels + lanes::width - 1) / lanes::width * lanes::width;
    unary.assign(static_cast<std::size_t>(n * stride), unbounded);
    for (std::int64_t i = 0; i < n; ++i)
        std::copy(costs + i * labels, costs + (i + 1) * labels, unary.begin() + i * stride);
    const std::size_t pairs = low.size();
    first_pair.assign(static_cast<std::size_t>(n + 1), 0);
    high_starts = first_pair;
    for (std::size_t e = 0; e < pairs; ++e) {
        ++first_pair[low[e] + 1];
        ++high_starts[high[e] + 1];
    }
    share.resize(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t ahead = first_pair[i + 1], behind = high_starts[i + 1];
        share[i] = 1.0 / static_cast<double>(std::max<std::int64_t>({ahead, behind, 1}));
        first_pair[i + 1] += first_pair[i];
        high_starts[i + 1] += high_starts[i];
    }
    high_pairs.resize(pairs);
    std::vector<std::int64_t> next(high_starts);
    for (std::size_t e = 0; e < pairs; ++e)
        high_pairs[next[high[e]]++] = static_cast<std::int64_t>(e);
    const std::int64_t square = labels * labels;
    const std::int64_t count = static_cast<std::int64_t>(given.size()) / square;
    bool symmetric = true;
    for (std::int64_t t = 0; t < count && symmetric; ++t)
        for (std::int64_t x = 0; x < labels && symmetric; ++x)
            for (std::int64_t y = 0; y < x; ++y)
                symmetric &= given[t * square + x * labels + y] == given[t * square + y * labels + x];
    // An entry beyond the labels is the largest: no least value is there.
    const auto lay = [&](std::vector<double>& rows, bool turned) {
        rows.resize(static_cast<std::size_t>(count * labels * stride));
        for (std::int64_t t = 0; t < count; ++t) {
            const double* const from = given.data() + t * square;
            double* const to = rows.data() + t * labels * stride;
            std::fill(to, to + labels * stride, *std::max_element(from, from + square));
            for (std::int64_t x = 0; x < labels; ++x)
                for (std::int64_t y = 0; y < labels; ++y)
                    to[x * stride + y] = turned ? from[y * labels + x] : from[x * labels + y];
        }
    };
    lay(to_high, false);
    if (!symmetric) lay(to_low, true);
}

namespace lanes {

// What a sweep works on; `given` is where the pairs' other messages go, or null.
struct Sweep {
    const PaddedPairs* energies;
    double *message, *given, *total, *held;
    double bound, lost;
};

SETWISE_INLINED void add(Sweep& sweep, double x) {
    const double sum = sweep.bound + x, second = sum - sweep.bound;
    sweep.lost += (sweep.bound - (sum - second)) + (x - second);
    sweep.bound = sum;
}

// min over the label of the other end of held + energy, its least value taken out and returned.
SETWISE_INLINED double send(const PaddedPairs& g, std::int64_t e, bool forward,
                            const double* __restrict held, double* __restrict out) {
    const std::int64_t stride = g.stride;
    if (g.table[e] < 0) {
        const double low = least(held, stride), weight = g.weight[e];
        for (std::int64_t x = 0; x < stride; ++x) {
            const double value = held[x] - low;
            out[x] = value < weight ? value : weight;
        }
        return low;
    }
    const double* __restrict rows = g.tables(forward, e);
    for (std::int64_t at = 0; at < stride; at += width) {
        double low[width];
        for (std::int64_t k = 0; k < width; ++k) low[k] = held[0] + rows[at + k];
        for (std::int64_t y = 1; y < g.labels; ++y)
            for (std::int64_t k = 0; k < width; ++k) {
                const double value = held[y] + rows[y * stride + at + k];
                low[k] = value < low[k] ? value : low[k];
            }
        for (std::int64_t k = 0; k < width; ++k) out[at + k] = low[k];
    }
    const double low = least(out, stride);
    for (std::int64_t x = 0; x < stride; ++x) out[x] -= low;
    return low;
}

SETWISE_INLINED void gather(const PaddedPairs& g, std::int64_t i, const double* message,
                            double* __restrict total) {
    const std::int64_t stride = g.stride;
    const double* __restrict own = g.unary.data() + i * stride;
    for (std::int64_t x = 0; x < stride; ++x) total[x] = own[x];
    for (std::int64_t e = g.first_pair[i]; e < g.first_pair[i + 1]; ++e) {
        const double* __restrict in = message + e * stride;
        for (std::int64_t x = 0; x < stride; ++x) total[x] += in[x];
    }
    for (std::int64_t k = g.high_starts[i]; k < g.high_starts[i + 1]; ++k) {
        const double* __restrict in = message + g.high_pairs[k] * stride;
        for (std::int64_t x = 0; x < stride; ++x) total[x] += in[x];
    }
}

SETWISE_INLINED void give(Sweep& sweep, std::int64_t e, bool forward, double share) {
    const std::int64_t stride = sweep.energies->stride;
    double* __restrict message = sweep.message + e * stride;
    const double* __restrict total = sweep.total;
    double* __restrict held = sweep.held;
    for (std::int64_t x = 0; x < stride; ++x) held[x] = share * total[x] - message[x];
    if (sweep.given) {
        double* __restrict given = sweep.given + e * stride;
        for (std::int64_t x = 0; x < stride; ++x) given[x] = -held[x];
    }
    add(sweep, send(*sweep.energies, e, forward, held, message));
}

SETWISE_INLINED void visit(Sweep& sweep, std::int64_t i, bool forward) {
    const PaddedPairs& g = *sweep.energies;
    gather(g, i, sweep.message, sweep.total);
    const double low = least(sweep.total, g.stride), share = g.share[i];
    add(sweep, low);
    for (std::int64_t x = 0; x < g.stride; ++x) sweep.total[x] -= low;
    if (forward)
        for (std::int64_t e = g.first_pair[i]; e < g.first_pair[i + 1]; ++e)
            give(sweep, e, true, share);
    else
        for (std::int64_t k = g.high_starts[i]; k < g.high_starts[i + 1]; ++k)
            give(sweep, g.high_pairs[k], false, share);
}

SETWISE_VECTORIZED inline void visit_all(Sweep& sweep, std::int64_t begin, std::int64_t end,
                                         bool forward) {
    if (forward)
        for (std::int64_t i = begin; i < end; ++i) visit(sweep, i, true);
    else
        for (std::int64_t i = end; i-- > begin;) visit(sweep, i, false);
}

}  // namespace lanes

class TreeReweighted {
  public:
    explicit TreeReweighted(PaddedPairs energies)
        : g_(std::move(energies)),
          message_(g_.low.size() * static_cast<std::size_t>(g_.stride), 0.0),
          total_(static_cast<std::size_t>(g_.stride)),
          held_(total_.size()) {}

    const PaddedPairs& energies() const { return g_; }

    // A sweep forward and one back; returns the bound, to rounding. It does not fall but by rounding.
    template <class Poll>
    double pass(Poll poll) {
        sweep(true, nullptr, poll);
        return sweep(false, nullptr, poll);
    }

    // A pass whose messages are all kept, and the bound that they prove: the sum over the variables of
    // the least of unary plus messages, and over the pairs of the least of what stays there, computed
    // from the messages alone. Where these are so large that rounding could matter it is taken off.
    template <class Poll>
    double prove(Poll poll) {
        std::vector<double> given(message_.size());
        sweep(true, nullptr, poll);
        sweep(false, given.data(), poll);
        CompensatedSum<double, 2> sum;
        magnitude_ = 0;
        for (std::int64_t i = 0; i < g_.n; ++i) {
            if ((i & 63) == 63) poll();
            sum.add(variable_minimum(i, given.data()));
        }
        for (std::size_t e = 0; e < g_.low.size(); ++e) {
            if ((e & 63) == 63) poll();
            sum.add(pair_minimum(static_cast<std::int64_t>(e), given.data() + e * g_.stride));
        }
        const double rounding = 8 * std::numeric_limits<double>::epsilon() * magnitude_;
        const double total = sum.value();
        return rounding <= 1e-12 * std::abs(total) ? total : total - rounding;
    }

    // After prove: the sum of the largest finite sizes, over labels, of all unaries and messages.
    double magnitude() const { return magnitude_; }

    // After a pass: each variable in turn takes its best label given those before it and the messages
    // of those after it.
    template <class Poll>
    void decode(std::int64_t* labels, Poll poll) {
        for (std::int64_t i = 0; i < g_.n; ++i) {
            if ((i & 63) == 63) poll();
            const double* const own = g_.unary.data() + i * g_.stride;
            std::copy(own, own + g_.labels, total_.begin());
            for (std::int64_t e = g_.first_pair[i]; e < g_.first_pair[i + 1]; ++e)
                for (std::int64_t x = 0; x < g_.labels; ++x)
                    total_[x] += message_[e * g_.stride + x];
            for (std::int64_t k = g_.high_starts[i]; k < g_.high_starts[i + 1]; ++k) {
                const std::int64_t e = g_.high_pairs[k], y = labels[g_.low[e]];
                for (std::int64_t x = 0; x < g_.labels; ++x) total_[x] += g_.energy(e, y, x);
            }
            labels[i] = std::min_element(total_.begin(), total_.begin() + g_.labels) - total_.begin();
        }
    }

  private:
    template <class Poll>
    double sweep(bool forward, double* given, Poll poll) {
        constexpr std::int64_t chunk = 256;
        lanes::Sweep work{&g_, message_.data(), given, total_.data(), held_.data(), 0.0, 0.0};
        for (std::int64_t done = 0; done < g_.n; done += chunk) {
            poll();
            const std::int64_t size = std::min(chunk, g_.n - done);
            const std::int64_t begin = forward ? done : g_.n - done - size;
            lanes::visit_all(work, begin, begin + size, forward);
        }
        return work.bound + work.lost;
    }

    double variable_minimum(std::int64_t i, const double* given) {
        const double* const own = g_.unary.data() + i * g_.stride;
        std::copy(own, own + g_.labels, total_.begin());
        note(own);
        for (std::int64_t e = g_.first_pair[i]; e < g_.first_pair[i + 1]; ++e)
            for (std::int64_t x = 0; x < g_.labels; ++x) total_[x] += message_[e * g_.stride + x];
        for (std::int64_t k = g_.high_starts[i]; k < g_.high_starts[i + 1]; ++k)
            for (std::int64_t x = 0; x < g_.labels; ++x)
                total_[x] += given[g_.high_pairs[k] * g_.stride + x];
        double low = unbounded;
        for (std::int64_t x = 0; x < g_.labels; ++x)
            if (std::isfinite(own[x])) low = std::min(low, total_[x]);
        return low;
    }

    double pair_minimum(std::int64_t e, const double* given) {
        const double* const message = message_.data() + e * g_.stride;
        note(message);
        note(given);
        double low = unbounded;
        if (g_.table[e] < 0) {
            double most = -low, most_given = -low;
            for (std::int64_t x = 0; x < g_.labels; ++x) {
                low = std::min(low, -message[x] - given[x]);
                most = std::max(most, message[x]);
                most_given = std::max(most_given, given[x]);
            }
            return std::min(low, g_.weight[e] - most - most_given);
        }
        for (std::int64_t x = 0; x < g_.labels; ++x)
            for (std::int64_t y = 0; y < g_.labels; ++y)
                low = std::min(low, g_.energy(e, x, y) - message[x] - given[y]);
        return low;
    }

    void note(const double* row) {
        double most = 0;
        for (std::int64_t x = 0; x < g_.labels; ++x)
            if (std::isfinite(row[x])) most = std::max(most, std::abs(row[x]));
        magnitude_ += most;
    }

    PaddedPairs g_;
    std::vector<double> message_;  // (pairs, stride)
    std::vector<double> total_, held_;
    double magnitude_ = 0;
};

}  // namespace setwise

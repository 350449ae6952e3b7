// Sequential tree-reweighted message passing (Kolmogorov, 2006), for the bound alone.
//
// This is the dual of messages.hpp on unaries and pairs, without larger factors and steps. There is
// one message per pair, towards the end that the next sweep visits first, and the loops over the
// labels use vector instructions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "factors/release.hpp"
#include "messages/padded_pairs.hpp"
#include "numeric/poll.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

namespace lanes {

constexpr std::int64_t width = padding;

SETWISE_INLINED double least_of(const double* x, std::int64_t stride) {
    Four low, next;
    load(x, low);
    for (std::int64_t at = width; at < stride; at += width) {
        load(x + at, next);
        lower(next, low);
    }
    return least(low);
}

// The data of a sweep, and the sum of the minima that it subtracts.
struct Sweep {
    const PaddedPairs* energies;
    double *message, *total, *held;
    double bound, lost;
};

SETWISE_INLINED void add(Sweep& sweep, double x) {
    const double sum = sweep.bound + x, second = sum - sweep.bound;
    sweep.lost += (sweep.bound - (sum - second)) + (x - second);
    sweep.bound = sum;
}

// out[x] = min over y of held[y] + weight * rows[y, x], for columns that stay in registers.
template <std::int64_t fours>
SETWISE_INLINED void convolve(const double* held, double weight, const double* rows,
                              std::int64_t labels, std::int64_t stride, double* out) {
    Four low[fours], own, row, factor;
    spread(weight, factor);
    for (std::int64_t k = 0; k < fours; ++k) spread(unbounded, low[k]);
    for (std::int64_t y = 0; y < labels; ++y) {
        spread(held[y], own);
        for (std::int64_t k = 0; k < fours; ++k) {
            load(rows + y * stride + k * width, row);
            lower(own + factor * row, low[k]);
        }
    }
    for (std::int64_t k = 0; k < fours; ++k) store(low[k], out + k * width);
}

// Compute the min over the label of the other end of held + energy; subtract and return its least
// value.
SETWISE_INLINED double send(const PaddedPairs& g, std::int64_t e, bool forward, const double* held,
                            double* out) {
    const std::int64_t stride = g.stride;
    Four next, first, most;
    if (g.table[e] < 0) {
        const double low = least_of(held, stride);
        spread(low, first);
        spread(g.weight[e], most);
        for (std::int64_t at = 0; at < stride; at += width) {
            load(held + at, next);
            next = next - first;
            lower(most, next);
            store(next, out + at);
        }
        return low;
    }
    const double* const rows = g.tables(forward, e);
    const double weight = g.weight[e];
    std::int64_t at = 0;
    for (; at + 4 * width <= stride; at += 4 * width)
        convolve<4>(held, weight, rows + at, g.labels, stride, out + at);
    for (; at < stride; at += width)
        convolve<1>(held, weight, rows + at, g.labels, stride, out + at);
    const double low = least_of(out, stride);
    spread(low, first);
    for (at = 0; at < stride; at += width) {
        load(out + at, next);
        store(next - first, out + at);
    }
    return low;
}

SETWISE_INLINED void add_row(const double* row, std::int64_t stride, double* total) {
    Four sum, next;
    for (std::int64_t at = 0; at < stride; at += width) {
        load(total + at, sum);
        load(row + at, next);
        store(sum + next, total + at);
    }
}

SETWISE_INLINED void gather(const PaddedPairs& g, std::int64_t i, const double* message,
                            double* total) {
    const std::int64_t stride = g.stride;
    std::copy(g.unary.data() + i * stride, g.unary.data() + (i + 1) * stride, total);
    for (std::int64_t e = g.first_pair[i]; e < g.first_pair[i + 1]; ++e)
        add_row(message + e * stride, stride, total);
    for (std::int64_t k = g.high_starts[i]; k < g.high_starts[i + 1]; ++k)
        add_row(message + g.high_pairs[k] * stride, stride, total);
}

SETWISE_INLINED void give(Sweep& sweep, std::int64_t e, bool forward, double share) {
    const std::int64_t stride = sweep.energies->stride;
    double* const message = sweep.message + e * stride;
    Four factor, total, old;
    spread(share, factor);
    for (std::int64_t at = 0; at < stride; at += width) {
        load(sweep.total + at, total);
        load(message + at, old);
        store(factor * total - old, sweep.held + at);
    }
    add(sweep, send(*sweep.energies, e, forward, sweep.held, message));
}

SETWISE_INLINED void visit(Sweep& sweep, std::int64_t i, bool forward) {
    const PaddedPairs& g = *sweep.energies;
    gather(g, i, sweep.message, sweep.total);
    const double low = least_of(sweep.total, g.stride), share = g.share[i];
    add(sweep, low);
    Four first, next;
    spread(low, first);
    for (std::int64_t at = 0; at < g.stride; at += width) {
        load(sweep.total + at, next);
        store(next - first, sweep.total + at);
    }
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

// Every variable collects the messages of all its pairs and keeps their least value for the bound.
// It gives 1 / max(pairs ahead, pairs behind) of the rest to each pair ahead, which passes on what
// its energy allows and keeps the least value of that. The messages that a sweep computes and the
// shares that it gives are a reparametrisation of the energy, whose minima are the values kept. So
// their sum is a bound after either sweep, and it decreases only by rounding errors.
class TreeReweighted {
  public:
    TreeReweighted(PaddedPairs energies, double constant)
        : g_(std::move(energies)),
          constant_(constant),
          magnitude_(sum_of_sizes()),
          rounding_(static_cast<double>(most_pairs() + 22) / 2 *
                    std::numeric_limits<double>::epsilon() * magnitude_),
          message_(g_.low.size() * static_cast<std::size_t>(g_.stride), 0.0),
          total_(static_cast<std::size_t>(g_.stride)),
          held_(total_.size()) {}

    const PaddedPairs& energies() const { return g_; }

    // The messages, (pairs, stride). Those of similar energies are a warm start that saves passes.
    // Any messages are a reparametrisation; their sizes are limited to those for which the rounding
    // error of the bound is counted.
    const std::vector<double>& messages() const { return message_; }
    void start_from(const std::vector<double>& messages) {
        for (std::size_t k = 0; k < message_.size(); ++k) {
            const std::size_t e = k / static_cast<std::size_t>(g_.stride);
            message_[k] = g_.table[e] < 0 ? std::clamp(messages[k], 0.0, g_.weight[e]) : 0.0;
        }
    }

    // Run a sweep forward and one back, and return the bound. If energies are so large that
    // rounding could matter, a bound on the rounding error is subtracted.
    template <class Poll>
    double pass(Poll poll) {
        sweep(true, poll);
        const double bound = sweep(false, poll);
        return rounding_ <= 1e-12 * std::abs(bound) ? bound : bound - rounding_;
    }

    // The sum of the largest absolute values, over labels, of the sum at each variable.
    double magnitude() const { return magnitude_; }

    // After a pass: let each variable in turn take its best label given those before it and the
    // messages of those after it.
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
                if (g_.table[e] < 0)  // the same for all other labels
                    total_[y] -= g_.weight[e];
                else
                    for (std::int64_t x = 0; x < g_.labels; ++x) total_[x] += g_.energy(e, y, x);
            }
            labels[i] =
                std::min_element(total_.begin(), total_.begin() + g_.labels) - total_.begin();
        }
    }

  private:
    template <class Poll>
    double sweep(bool forward, Poll poll) {
        // The number of variables between two checks for an interruption; not tuned.
        constexpr std::int64_t chunk = 256;
        lanes::Sweep work{&g_, message_.data(), total_.data(), held_.data(), constant_, 0.0};
        for (std::int64_t done = 0; done < g_.n; done += chunk) {
            poll();
            const std::int64_t size = std::min(chunk, g_.n - done);
            const std::int64_t begin = forward ? done : g_.n - done - size;
            lanes::visit_all(work, begin, begin + size, forward);
        }
        return work.bound + work.lost;
    }

    // A message with its least value subtracted is at most as large as the range of its pair's
    // energies. Let S be the largest unary of a variable plus the ranges of its pairs. Then S
    // bounds what the variable adds up, and twice S bounds what it gives. Each addition has a
    // rounding error of at most half an epsilon of that: one addition for each pair in the sum, 9
    // in what the variable keeps and gives, 12 in what its pairs pass on. The product of a weight
    // and a table counts as one more. So the minima can exceed what the messages prove by (pairs +
    // 22) / 2 epsilon S, summed over the variables.
    double sum_of_sizes() const {
        double sum = std::abs(constant_);
        std::vector<double> spreads(g_.to_high.size() /
                                    static_cast<std::size_t>(g_.labels * g_.stride));
        for (std::size_t t = 0; t < spreads.size(); ++t) {
            const double* const first = g_.to_high.data() + t * g_.labels * g_.stride;
            const auto ends = std::minmax_element(first, first + g_.labels * g_.stride);
            spreads[t] = std::max({*ends.second, -*ends.first, *ends.second - *ends.first});
        }
        for (std::size_t e = 0; e < g_.low.size(); ++e)
            sum += 2 * std::abs(g_.weight[e]) * (g_.table[e] < 0 ? 1.0 : spreads[g_.table[e]]);
        for (std::int64_t i = 0; i < g_.n; ++i) {
            double largest = 0;
            for (std::int64_t x = 0; x < g_.labels; ++x)
                if (g_.unary[i * g_.stride + x] < unbounded)
                    largest = std::max(largest, std::abs(g_.unary[i * g_.stride + x]));
            sum += largest;
        }
        return sum;
    }

    std::int64_t most_pairs() const {
        std::int64_t most = 0;
        for (std::int64_t i = 0; i < g_.n; ++i)
            most = std::max(most, g_.first_pair[i + 1] - g_.first_pair[i] + g_.high_starts[i + 1] -
                                      g_.high_starts[i]);
        return most;
    }

    PaddedPairs g_;
    double constant_, magnitude_, rounding_;
    std::vector<double> message_;  // (pairs, stride)
    std::vector<double> total_, held_;
};

}  // namespace setwise

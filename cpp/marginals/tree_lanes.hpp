// The loops of tree_loops.hpp for eight edges, or variables, at once: with few labels, a loop over
// them fills no vector. Rows (8, L) are input and output; unused rows may contain any numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "marginals/tree_loops.hpp"
#include "numeric/exponentials.hpp"
#include "numeric/vector_of_eight.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

// With at most this number of rows the loops over labels are faster; chosen by hand, no measurement
// is on record.
constexpr int few_rows = 2;
constexpr double least_mass = 1e-290;  // quotients of smaller masses are not formed

namespace loops {

SETWISE_INLINED Eight positive(Eight x) { return higher_of(x, all_eight(tiny_mass)); }

// Return the entries of one label.
SETWISE_INLINED Eight column(const double* rows, std::int64_t n, std::int64_t a) {
    Eight x;
    for (int k = 0; k < eight; ++k) x[k] = rows[k * n + a];
    return x;
}
SETWISE_INLINED void put_column(Eight x, std::int64_t n, std::int64_t a, double* rows) {
    for (int k = 0; k < eight; ++k) rows[k * n + a] = x[k];
}

// Replace columns (L,) by exp(columns - top), and return their sum.
SETWISE_INLINED Eight masses_of(Eight* columns, std::int64_t n, Eight& top) {
    top = columns[0];
    for (std::int64_t a = 1; a < n; ++a) top = higher_of(top, columns[a]);
    Eight sum = all_eight(0.0);
    for (std::int64_t a = 0; a < n; ++a) {
        columns[a] = exponential_above(700.0, columns[a] - top);
        sum = sum + columns[a];
    }
    return sum;
}

SETWISE_INLINED Eight sum_of(const Eight* columns, std::int64_t n) {
    Eight sum = all_eight(0.0);
    for (std::int64_t a = 0; a < n; ++a) sum = sum + columns[a];
    return sum;
}

// Return part log(part / apart), 0 where part is 0.
SETWISE_INLINED Eight relative(Eight part, Eight apart) {
    return part * logarithm(positive(positive(part) / positive(apart)));
}

}  // namespace loops

// Write the messages of eight Potts edges to `out` and the numbers that were subtracted from its
// rows to `level`, given x = b - back. `work` has L entries.
SETWISE_VECTORIZED inline void potts_messages(const double* x, const double* changes,
                                              std::int64_t n, Eight* work, double* out,
                                              double* level) {
    const Eight change = load_eight(changes);
    if (n == 2) {
        const Eight first = loops::column(x, 2, 0), second = loops::column(x, 2, 1);
        const Eight top = higher_of(first, second);
        const Eight other = exponential_above(700.0, lower_of(first, second) - top);
        const Eight taken = logarithm(change * other + 1.0);
        const Eight sent = logarithm(loops::positive(change + other)) - taken;
        loops::put_column(where_below(first, second, sent, all_eight(0.0)), 2, 0, out);
        loops::put_column(where_below(first, second, all_eight(0.0), sent), 2, 1, out);
        store_eight(top + taken, level);
        return;
    }
    Eight top;
    for (std::int64_t a = 0; a < n; ++a) work[a] = loops::column(x, n, a);
    const Eight sum = loops::masses_of(work, n, top);
    const Eight taken = logarithm(change * (sum - 1.0) + 1.0);
    for (std::int64_t a = 0; a < n; ++a)
        loops::put_column(logarithm(loops::positive(change * (sum - work[a]) + work[a])) - taken, n,
                          a, out);
    store_eight(top + taken, level);
}

// Replace b by b - log sum exp b, row by row.
SETWISE_VECTORIZED inline void normalize_rows(double* b, std::int64_t n, Eight* work) {
    Eight top;
    for (std::int64_t a = 0; a < n; ++a) work[a] = loops::column(b, n, a);
    const Eight sum = loops::masses_of(work, n, top), level = top + logarithm(sum);
    for (int k = 0; k < eight; ++k)
        for (std::int64_t a = 0; a < n; ++a) b[k * n + a] -= level[k];
}

// Compute what eight variables send along Potts edges, from b: mass = exp(b - top), message =
// log(change (sum - mass) + mass), with its largest entry, the level, subtracted. For three rows
// (8, L); mass may be b.
SETWISE_VECTORIZED inline void send_rows(const double* b, const double* changes, std::int64_t n,
                                         Eight* work, double* mass, double* message, double* tops,
                                         double* levels) {
    const Eight change = load_eight(changes);
    Eight top;
    for (std::int64_t a = 0; a < n; ++a) work[a] = loops::column(b, n, a);
    const Eight sum = loops::masses_of(work, n, top);
    Eight level = all_eight(-700.0);
    for (std::int64_t a = 0; a < n; ++a) {
        loops::put_column(work[a], n, a, mass);
        work[a] = logarithm(loops::positive(change * (sum - work[a]) + work[a]));
        level = higher_of(level, work[a]);
    }
    for (std::int64_t a = 0; a < n; ++a) loops::put_column(work[a] - level, n, a, message);
    store_eight(top, tops);
    store_eight(level, levels);
}

// Compute the distributions of eight variables, given the distributions q of the variables that
// they sent messages to: mass times the sums of K q / (K' mass), normalised to the sum 1. For three
// rows (8, L).
SETWISE_VECTORIZED inline void receive_rows(const double* mass, const double* q,
                                            const double* changes, std::int64_t n, Eight* work,
                                            double* fresh) {
    const Eight change = load_eight(changes), stay = 1.0 - change;
    Eight sum = all_eight(0.0), all = sum, whole = sum;
    for (std::int64_t a = 0; a < n; ++a) sum = sum + loops::column(mass, n, a);
    for (std::int64_t a = 0; a < n; ++a) {
        const Eight own = loops::column(mass, n, a);
        work[a] = loops::column(q, n, a) / loops::positive(change * (sum - own) + own);
        all = all + work[a];
    }
    for (std::int64_t a = 0; a < n; ++a) {
        work[a] = loops::column(mass, n, a) * (change * all + stay * work[a]);
        whole = whole + work[a];
    }
    const Eight scale = 1.0 / loops::positive(whole);
    for (std::int64_t a = 0; a < n; ++a) loops::put_column(work[a] * scale, n, a, fresh);
}

// Eight Potts edges of a dual (tree_dual.hpp): rows (8, L) of log mu at the tail and at the head,
// and of the message to the head; the results of the edges.
struct PairRows {
    explicit PairRows(std::int64_t n_labels)
        : tail(static_cast<std::size_t>(eight * n_labels)),
          head(tail),
          message(tail),
          work(8 * n_labels) {
        std::fill(share, share + eight, 1.0);
    }
    std::vector<double> tail, head, message;
    Eights work;
    std::int64_t edge[eight];
    double change[eight] = {}, weight[eight] = {}, share[eight];
    double information[eight], energy[eight];
    int count = 0;
};

// Like binary_pair.
SETWISE_VECTORIZED inline void binary_pairs(PairRows& rows) {
    const double* const tail = rows.tail.data();
    const double* const head = rows.head.data();
    const Eight p0 = exponential_above(700.0, loops::column(tail, 2, 0));
    const Eight p1 = exponential_above(700.0, loops::column(tail, 2, 1));
    const Eight q0 = exponential_above(700.0, loops::column(head, 2, 0));
    const Eight q1 = exponential_above(700.0, loops::column(head, 2, 1));
    const Eight change = load_eight(rows.change), squared = change * change;
    const Eight half = squared + (1.0 - squared) * (p1 + q1);
    Eight root = higher_of(half * half - 4.0 * (1.0 - squared) * p1 * q1, all_eight(0.0));
    for (int k = 0; k < eight; ++k) root[k] = std::sqrt(root[k]);
    const Eight most = lower_of(p1, q1), solution = 2.0 * p1 * q1 / loops::positive(half + root);
    const Eight both = lower_of(solution, most);
    const Eight first = p1 - both, second = lower_of(q1 - both, p0), none = p0 - second;
    store_eight(loops::relative(both, p1 * q1) + loops::relative(first, p1 * q0) +
                    loops::relative(second, p0 * q1) + loops::relative(none, p0 * q0),
                rows.information);
    store_eight(load_eight(rows.weight) * (first + second), rows.energy);
}

namespace loops {

// sums = change * (sum of values) + (1 - change) * values
SETWISE_INLINED void apply(Eight change, const Eight* values, std::int64_t n, Eight* sums) {
    const Eight level = change * sum_of(values, n), slope = 1.0 - change;
    for (std::int64_t a = 0; a < n; ++a) sums[a] = level + slope * values[a];
}

// Return part log(part / (whole mass)), also if the product underflows.
SETWISE_INLINED Eight rest_of(Eight part, Eight whole, Eight mass) {
    const Eight product = whole * mass, limit = all_eight(least_mass);
    const Eight ratio = positive(part) / positive(where_below(limit, product, product, mass));
    const Eight off = where_below(limit, product, all_eight(0.0), logarithm(positive(whole)));
    return part * (logarithm(positive(ratio)) - off);
}

}  // namespace loops

// Like pair_value, for Potts edges.
SETWISE_VECTORIZED inline void potts_pairs(PairRows& rows, std::int64_t n) {
    Eight* const p = rows.work.data();
    Eight* const q = p + n;
    Eight* const a = q + n;
    Eight* const b = a + n;
    Eight* const scale_a = b + n;
    Eight* const scale_b = scale_a + n;
    Eight* const row = scale_b + n;
    Eight* const column = row + n;
    const Eight change = load_eight(rows.change), weight = load_eight(rows.weight);
    for (std::int64_t x = 0; x < n; ++x) {
        p[x] = exponential_above(700.0, loops::column(rows.tail.data(), n, x));
        const Eight head = loops::column(rows.head.data(), n, x);
        q[x] = exponential_above(700.0, head);
        b[x] = head - loops::column(rows.message.data(), n, x);
    }
    Eight top;
    loops::masses_of(b, n, top);
    for (int round = 0; round < 2; ++round) {
        loops::apply(change, b, n, row);
        for (std::int64_t x = 0; x < n; ++x) {
            scale_a[x] = 1.0 / loops::positive(row[x]);
            a[x] = p[x] * scale_a[x];
        }
        loops::apply(change, a, n, column);
        for (std::int64_t x = 0; x < n; ++x) {
            scale_b[x] = 1.0 / loops::positive(column[x]);
            b[x] = q[x] * scale_b[x];
        }
    }
    loops::apply(change, b, n, row);
    for (std::int64_t x = 0; x < n; ++x) {
        const Eight sum = a[x] * row[x];
        const Eight fall = where_below(p[x], sum, p[x] / loops::positive(sum), all_eight(1.0));
        scale_a[x] = scale_a[x] * fall;
        a[x] = a[x] * fall;
        row[x] = lower_of(sum, p[x]);
    }
    loops::apply(change, a, n, column);
    const Eight none = all_eight(0.0);
    Eight mass = none, same = none, information = none, lacking_tail = none, lacking_head = none;
    for (std::int64_t x = 0; x < n; ++x) {
        column[x] = lower_of(b[x] * column[x], q[x]);
        mass = mass + row[x];
        same = same + a[x] * b[x];
        information = information + row[x] * logarithm(loops::positive(scale_a[x])) +
                      column[x] * logarithm(loops::positive(scale_b[x]));
        row[x] = p[x] - row[x];
        column[x] = q[x] - column[x];
        lacking_tail = lacking_tail + row[x];
        lacking_head = lacking_head + column[x];
    }
    const Eight energy = weight * higher_of(mass - same, none);
    information = information - mass * logarithm(loops::positive(mass));
    information = information - energy / load_eight(rows.share);
    // the remainder, if both ends have one
    const Eight least = all_eight(least_mass), lacking = lower_of(lacking_tail, lacking_head);
    const Eight lacks = where_below(least, lacking, all_eight(1.0), none);
    const Eight scale = lacks * lacking_tail / loops::positive(lacking_head);
    Eight outer = none;
    for (std::int64_t x = 0; x < n; ++x) {
        information = information + lacks * loops::rest_of(row[x], lacking_tail, p[x]) +
                      scale * loops::rest_of(column[x], lacking_head, q[x]);
        outer = outer + row[x] * (lacking_head - column[x]);
    }
    store_eight(information, rows.information);
    store_eight(energy + lacks * weight * outer / loops::positive(lacking_head), rows.energy);
}

}  // namespace setwise

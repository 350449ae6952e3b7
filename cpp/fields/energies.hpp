// Energies of labellings: one row of labels after another, with no intermediate array larger than a
// row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numeric/branch_free.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// Return whether all entries lie in [0, bound).
inline bool all_below(const std::int64_t* x, std::int64_t size, std::int64_t bound) {
    std::uint64_t highest = 0;  // as an unsigned number, a negative entry exceeds every bound
    for (std::int64_t i = 0; i < size; ++i)
        highest = std::max(highest, static_cast<std::uint64_t>(x[i]));
    return size == 0 || highest < static_cast<std::uint64_t>(bound);
}

// `rows` labellings of n variables, labels in [0, n_labels).
struct Labelings {
    const std::int64_t* labels;
    std::int64_t rows, n, n_labels;
};

// energies[r] = energy(labels of row r).
template <class Energy>
void each_labeling(const Labelings& x, double* energies, Poll poll, Energy energy) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
        energies[r] = energy(x.labels + r * x.n);
        poll();
    }
}

// sum_i unary[i, x_i], unary of shape (n, n_labels).
inline void unary_energies(const Labelings& x, const double* unary, double* energies, Poll poll) {
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        double sum = 0;
        for (std::int64_t i = 0; i < x.n; ++i) sum += unary[i * x.n_labels + labels[i]];
        return sum;
    });
}

// Pairs (edges[2 e], edges[2 e + 1]) of variables.
struct FieldEdges {
    const std::int64_t* ends;
    std::int64_t size;
};

// sum_e weights[e] [x_i != x_j].
inline void potts_energies(const Labelings& x, const FieldEdges& edges, const double* weights,
                           double* energies, Poll poll) {
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        double sum = 0;
        for (std::int64_t e = 0; e < edges.size; ++e)
            sum +=
                choose(labels[edges.ends[2 * e]] != labels[edges.ends[2 * e + 1]], weights[e], 0.0);
        return sum;
    });
}

// sum_e weights[e] times the entry (x_i, x_j) of table e, or of the one table that all edges share.
inline void table_energies(const Labelings& x, const FieldEdges& edges, const double* tables,
                           bool shared, const double* weights, double* energies, Poll poll) {
    const std::int64_t stride = shared ? 0 : x.n_labels * x.n_labels;
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        double sum = 0;
        for (std::int64_t e = 0; e < edges.size; ++e) {
            const std::int64_t a = labels[edges.ends[2 * e]], b = labels[edges.ends[2 * e + 1]];
            sum += weights[e] * tables[e * stride + a * x.n_labels + b];
        }
        return sum;
    });
}

// Variables by region: those of region r are members[offsets[r]] to members[offsets[r + 1] - 1].
struct Regions {
    const std::int64_t* members;
    const std::int64_t* offsets;
    std::int64_t size;
};

// Energies sum_r sum_j h_r(n_rj), with n_rj the number of variables of region r with label j.
// h_r(0) is 0, and h_r(k) is table[offsets[r] + r + k].
inline void count_energies(const Labelings& x, const Regions& regions, const double* table,
                           double* energies, Poll poll) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(x.n_labels), 0);
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        double sum = 0;
        for (std::int64_t r = 0; r < regions.size; ++r) {
            const std::int64_t begin = regions.offsets[r], end = regions.offsets[r + 1];
            for (std::int64_t k = begin; k < end; ++k)
                ++counts[static_cast<std::size_t>(labels[regions.members[k]])];
            // Visit only the labels that occur in the region, each once: its count is then reset to
            // 0.
            for (std::int64_t k = begin; k < end; ++k) {
                std::int64_t& count = counts[static_cast<std::size_t>(labels[regions.members[k]])];
                if (count == 0) continue;
                sum += table[begin + r + count];
                count = 0;
            }
        }
        return sum;
    });
}

// sum_r weights[r] min(1, (variables of region r outside its commonest label) / truncation[r]).
inline void robust_energies(const Labelings& x, const Regions& regions, const double* weights,
                            const double* truncation, double* energies, Poll poll) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(x.n_labels), 0);
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        double sum = 0;
        for (std::int64_t r = 0; r < regions.size; ++r) {
            const std::int64_t begin = regions.offsets[r], end = regions.offsets[r + 1];
            std::int64_t most = 0;
            for (std::int64_t k = begin; k < end; ++k)
                most =
                    std::max(most, ++counts[static_cast<std::size_t>(labels[regions.members[k]])]);
            for (std::int64_t k = begin; k < end; ++k)
                counts[static_cast<std::size_t>(labels[regions.members[k]])] = 0;
            sum +=
                weights[r] * std::min(1.0, static_cast<double>(end - begin - most) / truncation[r]);
        }
        return sum;
    });
}

// used[r, j] = 1 where row r takes label j; used comes in as zeros.
inline void used_labels(const Labelings& x, std::uint8_t* used, Poll poll) {
    for (std::int64_t r = 0; r < x.rows; ++r) {
        for (std::int64_t i = 0; i < x.n; ++i) used[r * x.n_labels + x.labels[r * x.n + i]] = 1;
        poll();
    }
}

// sum over a < b of costs[a, b] heights[n_ab], with n_ab the number of edges joining the labels a
// and b.
inline void transition_energies(const Labelings& x, const FieldEdges& edges, const double* costs,
                                const double* heights, double* energies, Poll poll) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(x.n_labels * x.n_labels));
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        std::fill(counts.begin(), counts.end(), 0);
        for (std::int64_t e = 0; e < edges.size; ++e) {
            const std::int64_t a = labels[edges.ends[2 * e]], b = labels[edges.ends[2 * e + 1]];
            ++counts[static_cast<std::size_t>(std::min(a, b) * x.n_labels + std::max(a, b))];
        }
        double sum = 0;
        for (std::int64_t a = 0; a < x.n_labels; ++a)
            for (std::int64_t b = a + 1; b < x.n_labels; ++b) {
                const std::int64_t pair = a * x.n_labels + b;
                sum += costs[pair] * heights[counts[static_cast<std::size_t>(pair)]];
            }
        return sum;
    });
}

// energies[r] = table[variables of row r with x_i != center_i].
inline void cardinality_energies(const Labelings& x, const std::int64_t* center,
                                 const double* table, double* energies, Poll poll) {
    each_labeling(x, energies, poll, [&](const std::int64_t* labels) {
        std::int64_t count = 0;
        for (std::int64_t i = 0; i < x.n; ++i) count += labels[i] != center[i];
        return table[count];
    });
}

}  // namespace setwise

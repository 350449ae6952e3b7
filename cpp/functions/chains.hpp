// Marginal gains along a chain of sets, for set functions stored as sparse rows.
//
// A chain grows by one element at a time, in the order o_0, o_1, ...; gains[k] is F({o_0, ...,
// o_k}) - F({o_0, ..., o_{k-1}}). Each kernel reads the row of every element of the order once, so
// a pass costs O(n + entries of these rows). It uses one byte of scratch memory per element (or per
// item).
//
// Row i is entries indptr[i] to indptr[i + 1] - 1. Indices are checked as they are met: a kernel
// returns false at the first that is out of range, and has read and written nothing out of bounds.
// `poll` is called now and then, and may throw; apart from it only std::bad_alloc can be thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

// The rows of a sparse matrix: n rows, `entries` column indices.
struct SparseRows {
    const std::int64_t* indptr;
    std::int64_t n;
    const std::int64_t* columns;
    std::int64_t entries;

    bool has(std::int64_t i) const {
        return 0 <= i && i < n && 0 <= indptr[i] && indptr[i] <= indptr[i + 1] &&
               indptr[i + 1] <= entries;
    }
};

// A mark for each of n things, all unset at first.
class Marks {
  public:
    explicit Marks(std::int64_t n) : marks_(static_cast<std::size_t>(n), 0) {}

    bool has(std::int64_t i) const { return 0 <= i && static_cast<std::size_t>(i) < marks_.size(); }
    unsigned char& operator[](std::int64_t i) { return marks_[static_cast<std::size_t>(i)]; }

  private:
    std::vector<unsigned char> marks_;
};

// F(A) = the weight of the arcs that leave A.
//
// Row u lists the neighbours v of u, with leaving = weight of u -> v and entering = weight of
// v -> u. For undirected edges, pass one array as both.
template <class Poll>
bool cut_gains(const SparseRows& neighbors, const double* leaving, const double* entering,
               const std::int64_t* order, std::int64_t m, double* gains, Poll poll) {
    Marks inside(neighbors.n);
    for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t u = order[k];
        if (!neighbors.has(u)) return false;
        // Arcs that begin to leave the set and arcs that no longer leave it because u was added are
        // summed separately, because sums of terms of one sign do not cancel.
        double opened = 0.0;
        double closed = 0.0;
        for (std::int64_t e = neighbors.indptr[u]; e < neighbors.indptr[u + 1]; ++e) {
            const std::int64_t v = neighbors.columns[e];
            if (!inside.has(v)) return false;
            if (inside[v]) {
                closed += entering[e];
            } else {
                opened += leaving[e];
            }
        }
        gains[k] = opened - closed;
        inside[u] = 1;
        if (k % 1024 == 1023) poll();
    }
    return true;
}

// F(A) = the weight of the items that the elements of A cover together.
//
// Row i lists the items that element i covers; an item listed twice counts once.
template <class Poll>
bool coverage_gains(const SparseRows& sets, const double* weights, std::int64_t n_items,
                    const std::int64_t* order, std::int64_t m, double* gains, Poll poll) {
    Marks covered(n_items);
    for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t i = order[k];
        if (!sets.has(i)) return false;
        double added = 0.0;
        for (std::int64_t e = sets.indptr[i]; e < sets.indptr[i + 1]; ++e) {
            const std::int64_t item = sets.columns[e];
            if (!covered.has(item)) return false;
            if (!covered[item]) {
                covered[item] = 1;
                added += weights[item];
            }
        }
        gains[k] = added;
        if (k % 1024 == 1023) poll();
    }
    return true;
}

}  // namespace setwise

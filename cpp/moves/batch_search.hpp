// The best labels of each field of a batch: by one cut for two labels, otherwise by expansion
// moves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "flows/field_cut.hpp"
#include "moves/expansion_move.hpp"
#include "moves/field_batch.hpp"
#include "moves/swap_move.hpp"
#include "numeric/poll.hpp"

namespace setwise {

// Run expansions in the order of the labels, until none has lowered the energy since the last one
// that did. z is the start, and receives the answer.
inline void expand_all(const FieldOfBatch& field, std::int64_t* z, Poll poll) {
    FieldOfBatch::Terms terms;
    field.write(terms);
    MoveField moves(field.n, field.labels, terms.unary.data());
    field.add_to(moves, terms);
    moves.start(z);
    ExpansionMove move(moves);
    for (LabelIndex failed = 0, a = 0; failed < field.labels; a = (a + 1) % field.labels) {
        failed = move.expand(a, poll) < 0 ? 1 : failed + 1;
        poll();
    }
    std::copy(moves.present().begin(), moves.present().end(), z);
}

// Solve two labels with functions of counts by one swap, which is then the whole problem. Return
// the proved gap, an upper bound on the amount by which another answer is better.
inline double swap_both(const FieldOfBatch& field, std::int64_t* z, Poll poll) {
    FieldOfBatch::Terms terms;
    field.write(terms);
    MoveField moves(field.n, field.labels, terms.unary.data());
    field.add_to(moves, terms);
    moves.start(z);
    SwapMove move(moves);
    move.offer(0, 1);
    while (!move.round(poll)) {
    }
    const double gap = move.gap(), change = move.change();
    const double made = move.commit();
    std::copy(moves.present().begin(), moves.present().end(), z);
    return gap + (made - change);  // a gain that is only rounding is not taken
}

// The cuts of a graph whose capacities change and whose edges do not.
class KeptCut {
  public:
    explicit KeptCut(const FieldOfBatch& field)
        : flow_(std::make_shared<const CsrTopology>(field.n, edges_of(field))) {}

    // Solve like `swap_both`. Of all best answers this finds the one with the fewest ones, unless
    // the numbers differ so much in size that they have no common unit.
    double cut(const FieldOfBatch& field, std::int64_t* z, Poll poll) {
        const FieldCut found =
            cut_edges(flow_, edges_of(field), field.unary, field.weight, z, poll);
        return found.lost == 0.0 ? 0.0 : swap_both(field, z, poll);
    }

  private:
    static EdgeList<std::int64_t> edges_of(const FieldOfBatch& field) {
        return {field.edges.data(), field.n_edges};
    }
    MaxFlow<CsrTopology, std::int64_t> flow_;
};

}  // namespace setwise

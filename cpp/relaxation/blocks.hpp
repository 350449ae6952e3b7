// The blocks of the relaxation in relaxation.hpp: each kind, its best entries and its gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "relaxation/convex_count.hpp"
#include "relaxation/projection.hpp"

namespace setwise {

enum class BlockKind { chain, count, simplex, convex };

// Blocks over disjoint variables. A slot is the part that one projection updates: the pairs
// (variable, label) with the label in the slot's set, or with the variable's own label.
template <class Scalar>
struct Group {
    using Index = std::int64_t;

    BlockKind kind;
    std::vector<Index> variables;  // (P,), block after block
    std::vector<Index> starts;     // (B + 1,): starts of the blocks
    std::vector<Scalar>
        parameters;                // chain: weight to the next; count, convex: gains; simplex: (K,)
    std::vector<Index> slot_starts;   // (K + 1,): starts of the slots' labels
    std::vector<Index> slot_labels;
    std::vector<Index> own;           // (P,) with a single slot of own labels, else empty

    std::vector<Scalar> s, previous;  // (P K): block after block, slot after slot
    std::vector<Index> slot_of;       // (L,) if every slot is a single label, otherwise empty
    std::vector<Index> tasks;         // runs of blocks

    Index slots() const { return own.empty() ? static_cast<Index>(slot_starts.size()) - 1 : 1; }
    Index size(Index block) const { return starts[block + 1] - starts[block]; }
    Index offset(Index block, Index slot) const {
        return starts[block] * slots() + slot * size(block);
    }
    bool contains(Index slot, Index position, Index label) const {
        if (!own.empty()) return own[position] == label;
        return std::binary_search(slot_labels.begin() + slot_starts[slot],
                                  slot_labels.begin() + slot_starts[slot + 1], label);
    }

    // Write the best entries of the slot: z is s + t logit p.
    void project(Index block, Index slot, const Scalar* z, double t, Scalar* out,
                 ProjectionWork<Scalar>& work) const {
        const Index n = size(block);
        if (kind == BlockKind::chain)
            project_chain(z, parameters.data() + starts[block], n, out, work);
        else if (kind == BlockKind::count)
            project_count(z, parameters.data() + starts[block], n, out, work);
        else if (kind == BlockKind::simplex)
            project_simplex(z, parameters[slot], n, out, work);
        else
            std::fill(
                out, out + n,
                static_cast<Scalar>(balance_count(z, parameters.data() + starts[block], n, t)));
    }

    // Return what the blocks add to the objective apart from s, and subtract from the bound.
    double offset_of_blocks() const {
        double sum = 0;
        if (kind != BlockKind::convex) return sum;
        for (Index block = 0; block + 1 < static_cast<Index>(starts.size()); ++block)
            sum += conjugate_of_slopes(parameters.data() + starts[block], size(block),
                                       static_cast<double>(s[offset(block, 0)]));
        return sum;
    }

    // Return the block's Lovász extension at p (n,), minus <s, p>; for a convex count g(sum of p)
    // and its offset.
    double gap(Index block, Index slot, const Scalar* p, ProjectionWork<Scalar>& work) const {
        const Index n = size(block);
        const Scalar* const at = s.data() + offset(block, slot);
        double value = 0;
        for (Index i = 0; i < n; ++i) value -= static_cast<double>(at[i]) * p[i];
        if (kind == BlockKind::chain) {
            const Scalar* const w = parameters.data() + starts[block];
            for (Index i = 0; i + 1 < n; ++i)
                value += std::abs(static_cast<double>(p[i]) - p[i + 1]) * w[i];
        } else if (kind == BlockKind::simplex) {
            value += static_cast<double>(parameters[slot]) * *std::max_element(p, p + n);
        } else if (kind == BlockKind::convex) {
            double sum = 0;
            for (Index i = 0; i < n; ++i) sum += static_cast<double>(p[i]);
            const Scalar* const slopes = parameters.data() + starts[block];
            value += sum_of_slopes(slopes, n, sum) +
                     conjugate_of_slopes(slopes, n, static_cast<double>(at[0]));
        } else {
            sort_decreasing(p, n, work.order);
            const Scalar* const gains = parameters.data() + starts[block];
            for (Index k = 0; k < n; ++k)
                value += static_cast<double>(p[work.order.index[k]]) * gains[k];
        }
        return value;
    }
};

}  // namespace setwise

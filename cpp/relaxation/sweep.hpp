// The sweep of one block, slot after slot: each step is exact with everything else fixed
// (relaxation.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "relaxation/blocks.hpp"
#include "relaxation/label_loops.hpp"

namespace setwise {

// The work space of a thread that sweeps a block.
template <class Scalar>
struct SweepWork {
    ProjectionWork<Scalar> projection;
    std::vector<Scalar> total, suffix, prefix, first, second, base, alpha, beta, z, out;
    std::vector<LabelOf<Scalar>> lowest;

    void reserve(std::int64_t n, std::int64_t n_labels) {
        const auto size = static_cast<std::size_t>(n);
        if (total.size() < size * static_cast<std::size_t>(n_labels)) {
            total.resize(size * static_cast<std::size_t>(n_labels));
            suffix.resize(total.size());
        }
        if (z.size() >= size) return;
        for (auto* const array : {&prefix, &first, &second, &base, &alpha, &beta, &z, &out})
            array->resize(size);
        lowest.resize(size);
    }
};

// Return exp(x), or 0 if the result is below about 1e-304.
inline double decay(double x) { return x < -700 ? 0 : std::exp(x); }

// Copy the block's rows of the total, label after label.
template <class Scalar>
void gather(const Group<Scalar>& group, std::int64_t block, const Scalar* total,
            std::int64_t n_labels, SweepWork<Scalar>& work) {
    const std::int64_t n = group.size(block), begin = group.starts[block];
    work.reserve(n, n_labels);
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar* const row = total + group.variables[begin + i] * n_labels;
        for (std::int64_t j = 0; j < n_labels; ++j) work.total[j * n + i] = row[j];
    }
}

template <class Scalar>
void scatter(const Group<Scalar>& group, std::int64_t block, const SweepWork<Scalar>& work,
             Scalar* total, std::int64_t n_labels) {
    const std::int64_t n = group.size(block), begin = group.starts[block];
    for (std::int64_t i = 0; i < n; ++i) {
        Scalar* const row = total + group.variables[begin + i] * n_labels;
        for (std::int64_t j = 0; j < n_labels; ++j) row[j] = work.total[j * n + i];
    }
}

// Set the slot's entries to the best ones for work.z, and update the total.
template <class Scalar>
void step(Group<Scalar>& group, std::int64_t block, std::int64_t slot, double t,
          std::int64_t n_labels, SweepWork<Scalar>& work) {
    const std::int64_t n = group.size(block);
    group.project(block, slot, work.z.data(), t, work.out.data(), work.projection);
    Scalar* const s = group.s.data() + group.offset(block, slot);
    const Scalar* const out = work.out.data();
    if (!group.slot_of.empty()) {
        Scalar* const label = work.total.data() + group.slot_labels[slot] * n;
        for (std::int64_t i = 0; i < n; ++i) label[i] += out[i] - s[i];
    } else {
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n_labels; ++j)
                if (group.contains(slot, group.starts[block] + i, j))
                    work.total[j * n + i] += out[i] - s[i];
    }
    std::copy(out, out + n, s);
}

// Sweep one label after the other. t logit p_j = -s_j - t log sum_{k != j} exp(-s_k / t), and that
// sum is never computed as a difference: it is the sum over the labels done so far (prefix) plus
// that over the labels that follow (suffix), scaled by the second lowest s. The lowest label,
// `lowest`, is treated separately (alpha), so that nothing underflows.
template <class Scalar>
void sweep_labels(Group<Scalar>& group, std::int64_t block, double t, std::int64_t n_labels,
                  SweepWork<Scalar>& work) {
    using Label = LabelOf<Scalar>;
    const std::int64_t n = group.size(block);
    const double inverse = 1.0 / t;
    Scalar* const total = work.total.data();
    const VariableState<Scalar> state{work.lowest.data(), work.first.data(), work.second.data(),
                                      work.base.data(),   work.alpha.data(), work.beta.data(),
                                      work.prefix.data()};
    std::copy(total, total + n, state.first);
    std::fill(state.second, state.second + n, std::numeric_limits<Scalar>::infinity());
    std::fill(state.lowest, state.lowest + n, Label(0));
    std::fill(state.prefix, state.prefix + n, Scalar(0));
    for (std::int64_t j = 1; j < n_labels; ++j)
        rank_label(total + j * n, static_cast<Label>(j), n, state.first, state.second,
                   state.lowest);
    refer(inverse, n, state);
    std::fill(work.z.begin(), work.z.begin() + n, Scalar(0));
    for (std::int64_t j = n_labels - 1; j >= 0; --j) {
        std::copy(work.z.begin(), work.z.begin() + n, work.suffix.begin() + j * n);
        add_mass(total + j * n, static_cast<Label>(j), inverse, n, state.second, state.lowest,
                 work.z.data());
    }
    for (std::int64_t j = 0; j < n_labels; ++j) {
        const std::int64_t slot = group.slot_of[j];
        const Scalar* const label = total + j * n;
        if (slot >= 0) {
            logits(label, group.s.data() + group.offset(block, slot), work.suffix.data() + j * n,
                   static_cast<Label>(j), t, n, state, work.z.data());
            step(group, block, slot, t, n_labels, work);
        }
        pass_label(label, static_cast<Label>(j), inverse, n, state);
    }
}

// Sweep slots of several labels, or of a separate label for each variable. The sums over the labels
// in the slot and outside it are recomputed for each slot.
template <class Scalar>
void sweep_slots(Group<Scalar>& group, std::int64_t block, double temperature,
                 std::int64_t n_labels, SweepWork<Scalar>& work) {
    const std::int64_t n = group.size(block), begin = group.starts[block];
    for (std::int64_t slot = 0; slot < group.slots(); ++slot) {
        const Scalar* const s = group.s.data() + group.offset(block, slot);
        for (std::int64_t i = 0; i < n; ++i) {
            double least[2], sum[2] = {0, 0};
            least[0] = least[1] = std::numeric_limits<double>::infinity();
            for (std::int64_t j = 0; j < n_labels; ++j) {
                double& side = least[group.contains(slot, begin + i, j)];
                side = std::min(side, static_cast<double>(work.total[j * n + i]));
            }
            for (std::int64_t j = 0; j < n_labels; ++j) {
                const bool inside = group.contains(slot, begin + i, j);
                sum[inside] += decay((least[inside] - static_cast<double>(work.total[j * n + i])) /
                                     temperature);
            }
            const double logit = least[0] - least[1] + temperature * std::log(sum[1] / sum[0]);
            work.z[i] = static_cast<Scalar>(static_cast<double>(s[i]) + logit);
        }
        step(group, block, slot, temperature, n_labels, work);
    }
}

// Sweep the block; `total` is s (N, L), of which the rows of the block's variables change.
template <class Scalar>
void sweep_block(Group<Scalar>& group, std::int64_t block, double temperature, Scalar* total,
                 std::int64_t n_labels, SweepWork<Scalar>& work) {
    gather(group, block, total, n_labels, work);
    if (!group.slot_of.empty())
        sweep_labels(group, block, temperature, n_labels, work);
    else
        sweep_slots(group, block, temperature, n_labels, work);
    scatter(group, block, work, total, n_labels);
}

}  // namespace setwise

// One block swept, slot after slot: each step is exact with all else fixed (relaxation.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "blocks.hpp"

namespace setwise {

// What one thread needs to sweep a block.
template <class Scalar>
struct SweepWork {
    ProjectionWork<Scalar> projection;
    std::vector<Scalar> total, suffix, prefix, second, base, alpha, beta, z, out;
    std::vector<std::int64_t> lowest;

    void reserve(std::int64_t n, std::int64_t n_labels) {
        const auto size = static_cast<std::size_t>(n);
        if (total.size() < size * static_cast<std::size_t>(n_labels)) {
            total.resize(size * static_cast<std::size_t>(n_labels));
            suffix.resize(total.size());
        }
        if (z.size() >= size) return;
        for (auto* const array : {&prefix, &second, &base, &alpha, &beta, &z, &out})
            array->resize(size);
        lowest.resize(size);
    }
};

// exp(x) where a result below about 1e-304 is 0.
inline double decay(double x) { return x < -700 ? 0 : std::exp(x); }

// Two factors exp of this, and L of them summed, still fit.
template <class Scalar>
constexpr Scalar largest_exponent = std::numeric_limits<Scalar>::max_exponent * Scalar(0.3);

// Copies the block's rows of the total, label after label.
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

// Sets the slot's entries to the best ones for work.z, and the total with them.
template <class Scalar>
void step(Group<Scalar>& group, std::int64_t block, std::int64_t slot, double t,
          std::int64_t n_labels, SweepWork<Scalar>& work) {
    const std::int64_t n = group.size(block);
    group.project(block, slot, work.z.data(), t, work.out.data(), work.projection);
    Scalar* const s = group.s.data() + group.offset(block, slot);
    for (std::int64_t i = 0; i < n; ++i) {
        const Scalar change = work.out[i] - s[i];
        s[i] = work.out[i];
        if (!group.slot_of.empty()) {
            work.total[group.slot_labels[slot] * n + i] += change;
            continue;
        }
        for (std::int64_t j = 0; j < n_labels; ++j)
            if (group.contains(slot, group.starts[block] + i, j)) work.total[j * n + i] += change;
    }
}

// One label after the other. t logit p_j = -s_j - t log sum_{k != j} exp(-s_k / t), and that sum
// is never a difference: labels done so far (prefix) plus labels to come (suffix), scaled by the
// second lowest s; the lowest label, `lowest`, stands apart (alpha), so that nothing underflows.
template <class Scalar>
void sweep_labels(Group<Scalar>& group, std::int64_t block, double temperature,
                  std::int64_t n_labels, SweepWork<Scalar>& work) {
    const std::int64_t n = group.size(block);
    const auto t = static_cast<Scalar>(temperature), inverse = Scalar(1) / t;
    Scalar* const total = work.total.data();
    const auto mass = [&](Scalar difference) {  // a label may rise in a sweep: no overflow
        const Scalar x = difference * inverse;
        return x < -largest_exponent<Scalar> ? Scalar(0) : std::exp(std::min(x, largest_exponent<Scalar>));
    };
    const auto refer = [&](std::int64_t i, Scalar lowest) {
        const Scalar base = std::min(lowest, work.second[i]);
        work.base[i] = base;
        work.alpha[i] = mass(base - lowest);
        work.beta[i] = mass(base - work.second[i]);
    };
    for (std::int64_t i = 0; i < n; ++i) {
        std::int64_t lowest = 0;
        Scalar first = total[i], second = std::numeric_limits<Scalar>::infinity();
        for (std::int64_t j = 1; j < n_labels; ++j) {
            const Scalar value = total[j * n + i];
            if (value < first) {
                second = first;
                first = value;
                lowest = j;
            } else if (value < second) {
                second = value;
            }
        }
        work.lowest[i] = lowest;
        work.second[i] = second;
        work.prefix[i] = 0;
        refer(i, first);
    }
    std::fill(work.z.begin(), work.z.begin() + n, Scalar(0));
    for (std::int64_t j = n_labels - 1; j >= 0; --j)
        for (std::int64_t i = 0; i < n; ++i) {
            work.suffix[j * n + i] = work.z[i];
            if (work.lowest[i] != j) work.z[i] += mass(work.second[i] - total[j * n + i]);
        }
    constexpr Scalar tiny = std::numeric_limits<Scalar>::min();
    for (std::int64_t j = 0; j < n_labels; ++j) {
        const std::int64_t slot = group.slot_of[j];
        Scalar* const label = total + j * n;
        if (slot >= 0) {
            const Scalar* const s = group.s.data() + group.offset(block, slot);
            const Scalar* const suffix = work.suffix.data() + j * n;
            for (std::int64_t i = 0; i < n; ++i) {
                const bool own = work.lowest[i] == j;
                const Scalar others = work.prefix[i] + suffix[i];
                const Scalar sum = own ? others : work.alpha[i] + work.beta[i] * others;
                const Scalar base = own ? work.second[i] : work.base[i];
                work.z[i] = s[i] + (base - t * std::log(std::max(sum, tiny)) - label[i]);
            }
            step(group, block, slot, temperature, n_labels, work);
        }
        for (std::int64_t i = 0; i < n; ++i) {
            if (work.lowest[i] == j)
                refer(i, label[i]);
            else
                work.prefix[i] += mass(work.second[i] - label[i]);
        }
    }
}

// Slots of several labels, or of a label of each variable's own: the sums over the labels in the
// slot and outside it, afresh for each slot.
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
                sum[inside] +=
                    decay((least[inside] - static_cast<double>(work.total[j * n + i])) / temperature);
            }
            const double logit = least[0] - least[1] + temperature * std::log(sum[1] / sum[0]);
            work.z[i] = static_cast<Scalar>(static_cast<double>(s[i]) + logit);
        }
        step(group, block, slot, temperature, n_labels, work);
    }
}

// Sweeps the block; `total` is s (N, L), of which it changes the rows of the block's variables.
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

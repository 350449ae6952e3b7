// The forward recursion for a supermodular part on a grid of counts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "numeric/poll.hpp"

namespace setwise {

// Raise g (rows x columns, zero or a first guess) to the largest lower bound at each count in turn:
// second differences in n, in q and mixed are at least the positive parts of those of l. Every
// constraint bounds its largest count by smaller ones, so one pass satisfies all constraints.
inline void supermodular_grid(const double* l, std::int64_t rows, std::int64_t columns, double* g,
                              Poll poll) {
    for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t q = 0; q < columns; ++q) {
            const std::int64_t here = n * columns + q;
            double bound = n + q < 2 && n * q == 0 ? 0.0 : g[here];
            auto raise = [&](std::int64_t left, std::int64_t right, std::int64_t bottom) {
                const double bend = l[here] - l[left] - l[right] + l[bottom];
                bound = std::max(bound, g[left] + g[right] - g[bottom] + std::max(bend, 0.0));
            };
            if (n >= 2) raise(here - columns, here - columns, here - 2 * columns);
            if (q >= 2) raise(here - 1, here - 1, here - 2);
            if (n >= 1 && q >= 1) raise(here - columns, here - 1, here - columns - 1);
            g[here] = bound;
        }
        poll();
    }
}

}  // namespace setwise

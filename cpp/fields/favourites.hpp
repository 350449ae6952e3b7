// The label of least unary of every variable.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace setwise {

// Write the least entry of each row and the first label that has it. Return the largest difference
// between a finite entry and the least of its row.
inline double favourites(const double* unary, std::int64_t rows, std::int64_t labels, double* least,
                         std::int64_t* places) {
    constexpr double forbidden = std::numeric_limits<double>::infinity();
    double largest = 0.0;
    for (std::int64_t i = 0; i < rows; ++i) {
        const double* const row = unary + i * labels;
        double low = row[0], high = -forbidden;
        for (std::int64_t k = 0; k < labels; ++k) {
            low = std::min(low, row[k]);
            high = std::max(high, row[k] < forbidden ? row[k] : -forbidden);
        }
        std::int64_t at = 0;
        while (at + 1 < labels && row[at] != low) ++at;
        least[i] = low;
        places[i] = at;
        largest = std::max(largest, high - low);
    }
    return largest;
}

}  // namespace setwise

// What every variable would choose alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace setwise {

// Of each row the least entry and the first label that has it. Returns the largest that an entry
// which is not +inf is above the least of its row.
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

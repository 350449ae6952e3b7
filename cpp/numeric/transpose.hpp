// The transpose of a matrix.
#pragma once

#include <algorithm>
#include <cstdint>

namespace setwise {

// Copy (rows, columns) to (columns, rows), some rows at a time: their cache lines are read once,
// and each column writes cache lines of its own.
template <class T>
inline void transpose(const T* from, std::int64_t rows, std::int64_t columns, T* to) {
    // The number of rows whose cache lines fit into the L1 cache; not tuned.
    constexpr std::int64_t some = 64;
    for (std::int64_t begin = 0; begin < rows; begin += some) {
        const std::int64_t end = std::min(begin + some, rows);
        for (std::int64_t k = 0; k < columns; ++k)
            for (std::int64_t i = begin; i < end; ++i) to[k * rows + i] = from[i * columns + k];
    }
}

}  // namespace setwise

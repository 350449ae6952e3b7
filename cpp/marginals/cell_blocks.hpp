// The cells of a table over a few variables, block by block, and where smaller tables lie in them.
//
// A block has the cells of the last axes, which change fastest. Within a block a smaller table is
// read in a simple loop: contiguously, constant except along the last axis, or through a list of
// offsets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numeric/exponentials.hpp"
#include "numeric/vectorized.hpp"

namespace setwise {

using TableIndex = std::int64_t;

// Where a smaller table lies in a larger one.
struct TablePlace {
    enum class Kind { contiguous, by_last, gathered };
    Kind kind;
    std::vector<TableIndex> outer;    // strides of the axes outside a block
    std::vector<std::int32_t> inner;  // offsets of the cells of a block
};

class CellBlocks {
  public:
    using Index = TableIndex;

    // The scope's last variable is the fastest. The outermost axes that `tasks` marks, as long as
    // they have at most `most_tasks` labellings, number the tasks.
    CellBlocks(const std::vector<Index>& scope, const std::vector<Index>& cards,
               const std::vector<std::uint8_t>& tasks)
        : scope_(scope), cards_(cards) {
        split_ = scope.size();
        while (split_ > 0 && inner_cells * cards[split_ - 1] <= most_cells)
            inner_cells *= cards[--split_];
        if (split_ == scope.size()) inner_cells = cards[--split_];  // a block has at least one axis
        for (std::size_t k = 0; k < split_; ++k) {
            const bool free = tasks[k] && n_tasks * cards[k] <= most_tasks;
            if (free) n_tasks *= cards[k];
            (free ? task_axes_ : axes_).push_back(k);
        }
        for (const std::size_t k : axes_) n_blocks *= cards[k];
    }

    Index inner_cells = 1, n_tasks = 1, n_blocks = 1;  // cells of a block, blocks of a task

    // Return whether a table over these variables depends on axes of a block only.
    bool is_inside(const std::vector<Index>& variables) const {
        return std::all_of(variables.begin(), variables.end(), [&](Index i) {
            return std::find(scope_.begin() + static_cast<std::ptrdiff_t>(split_), scope_.end(),
                             i) != scope_.end();
        });
    }

    // Find a table over some variables of the scope, with the given numbers of labels.
    TablePlace place(const std::vector<Index>& variables) const {
        std::vector<Index> stride(scope_.size(), 0);
        Index step = 1;
        for (std::size_t k = variables.size(); k-- > 0;) {
            const auto at = std::find(scope_.begin(), scope_.end(), variables[k]) - scope_.begin();
            stride[static_cast<std::size_t>(at)] = step;
            step *= cards_[static_cast<std::size_t>(at)];
        }
        TablePlace found{TablePlace::Kind::gathered, {}, {}};
        found.outer.assign(stride.begin(), stride.begin() + static_cast<std::ptrdiff_t>(split_));
        std::vector<std::int32_t>& inner = found.inner;
        inner.reserve(static_cast<std::size_t>(inner_cells));
        inner.push_back(0);
        bool by_last = true;
        for (std::size_t k = scope_.size(); k-- > split_;) {
            const std::size_t size = inner.size();
            for (Index a = 1; a < cards_[k]; ++a)
                for (std::size_t c = 0; c < size; ++c)
                    inner.push_back(inner[c] + static_cast<std::int32_t>(a * stride[k]));
            by_last = by_last && (k + 1 == scope_.size() || stride[k] == 0);
        }
        bool contiguous = true;
        for (std::size_t c = 0; c < inner.size(); ++c)
            contiguous = contiguous && inner[c] == static_cast<std::int32_t>(c);
        if (contiguous && inner.size() > 1)
            found.kind = TablePlace::Kind::contiguous;
        else if (by_last)
            found.kind = TablePlace::Kind::by_last;
        return found;
    }

    // Call body(offsets, number) for the blocks of a task: the offset of the block in each place.
    template <class Body>
    void each(Index task, const std::vector<TablePlace>& places, const Body& body) const {
        std::vector<Index> offsets(places.size(), 0), at(axes_.size(), 0);
        for (std::size_t x = task_axes_.size(); x-- > 0;) {
            const std::size_t k = task_axes_[x];
            for (std::size_t p = 0; p < places.size(); ++p)
                offsets[p] += task % cards_[k] * places[p].outer[k];
            task /= cards_[k];
        }
        for (Index block = 0;; ++block) {
            body(offsets.data(), block);
            std::size_t x = axes_.size();
            while (x-- > 0) {
                const std::size_t k = axes_[x];
                const bool wraps = ++at[x] == cards_[k];
                const Index by = wraps ? 1 - cards_[k] : 1;
                for (std::size_t p = 0; p < places.size(); ++p)
                    offsets[p] += by * places[p].outer[k];
                if (!wraps) break;
                at[x] = 0;
                if (x == 0) return;
            }
            if (axes_.empty()) return;
        }
    }

  private:
    // A block of most_cells fits into the fastest cache together with its inputs. The number of
    // tasks does not depend on the number of threads, so sums do not either. Not tuned.
    static constexpr Index most_cells = 512, most_tasks = 16;

    std::vector<Index> scope_, cards_;
    std::size_t split_;
    std::vector<std::size_t> task_axes_, axes_;
};

// cells += values
SETWISE_VECTORIZED inline void add_cells(double* __restrict cells, const double* __restrict values,
                                         TableIndex n) {
    for (TableIndex c = 0; c < n; ++c) cells[c] += values[c];
}
// cells[c] += values[places[c]]
SETWISE_VECTORIZED inline void gather_cells(double* __restrict cells,
                                            const double* __restrict values,
                                            const std::int32_t* __restrict places, TableIndex n) {
    for (TableIndex c = 0; c < n; ++c) cells[c] += values[places[c]];
}
// Add a row to each row of cells.
SETWISE_VECTORIZED inline void add_to_rows(double* __restrict cells, const double* __restrict row,
                                           TableIndex count, TableIndex n_rows) {
    if (count == 2) {
        const double x = row[0], y = row[1];
        for (TableIndex k = 0; k < n_rows; ++k) {
            cells[2 * k] += x;
            cells[2 * k + 1] += y;
        }
        return;
    }
    for (TableIndex k = 0; k < n_rows; ++k, cells += count)
        for (TableIndex a = 0; a < count; ++a) cells[a] += row[a];
}
// Write the largest entry of each row.
SETWISE_VECTORIZED inline void largest_of_rows(const double* __restrict cells, TableIndex count,
                                               TableIndex n_rows, double* __restrict out) {
    if (count == 2) {
        for (TableIndex k = 0; k < n_rows; ++k) {
            const double x = cells[2 * k], y = cells[2 * k + 1];
            out[k] = x > y ? x : y;
        }
        return;
    }
    for (TableIndex k = 0; k < n_rows; ++k, cells += count) {
        double top = cells[0];
        for (TableIndex a = 1; a < count; ++a) top = cells[a] > top ? cells[a] : top;
        out[k] = top;
    }
}
// Write the logarithm of the sum of exponentials of each row; minus infinity if all entries are.
SETWISE_VECTORIZED inline void log_sums_of_rows(const double* __restrict cells, TableIndex count,
                                                TableIndex n_rows, double* __restrict out) {
    constexpr double far = -1e300;  // smaller logarithms count as minus infinity
    if (count == 2) {
        for (TableIndex k = 0; k < n_rows; ++k) {
            const double x = cells[2 * k], y = cells[2 * k + 1];
            const double top = x > y ? x : y, low = x > y ? y : x;
            const double apart = low < far ? far : low - top;
            out[k] = top + logarithm(1.0 + exponential_above(700.0, apart));
        }
        return;
    }
    for (TableIndex k = 0; k < n_rows; ++k, cells += count) {
        double top = cells[0], sum = 0;
        for (TableIndex a = 1; a < count; ++a) top = cells[a] > top ? cells[a] : top;
        for (TableIndex a = 0; a < count; ++a)
            sum += exponential_above(700.0, cells[a] < far ? far : cells[a] - top);
        out[k] = top + logarithm(sum > 1.0 ? sum : 1.0);  // the largest entry alone contributes 1
    }
}
// Replace each row by its mass times its shares: exp(cells - log_sums), 0 where the mass is 0.
SETWISE_VECTORIZED inline void masses_of_rows(double* __restrict cells, TableIndex count,
                                              TableIndex n_rows, const double* __restrict log_sums,
                                              const double* __restrict masses) {
    constexpr double far = -1e300;  // smaller logarithms count as minus infinity
    if (count == 2) {
        for (TableIndex k = 0; k < n_rows; ++k) {
            const double level = log_sums[k] < far ? 0.0 : log_sums[k];
            const double x = cells[2 * k] - level, y = cells[2 * k + 1] - level;
            cells[2 * k] = masses[k] * exponential_above(700.0, x < 1.0 ? x : 1.0);
            cells[2 * k + 1] = masses[k] * exponential_above(700.0, y < 1.0 ? y : 1.0);
        }
        return;
    }
    for (TableIndex k = 0; k < n_rows; ++k, cells += count) {
        const double level = log_sums[k] < far ? 0.0 : log_sums[k];
        for (TableIndex a = 0; a < count; ++a) {
            const double x = cells[a] - level;
            cells[a] = masses[k] * exponential_above(700.0, x < 1.0 ? x : 1.0);
        }
    }
}

}  // namespace setwise

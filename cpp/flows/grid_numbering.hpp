// The edges of a grid of pixels: direction after direction, and in each direction in the order of
// their first pixel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace setwise {

class GridNumbering {
  public:
    struct Direction {
        std::vector<std::int64_t> step;
        std::int64_t offset;  // the neighbour's number minus the pixel's
        std::int64_t first;   // number of the first edge
        std::int64_t slot;    // index of the distance |offset|
    };

    GridNumbering() = default;

    // `steps` has a row of `dimensions` for each of `directions`; no two are equal or opposite. The
    // grid has fewer than 2^31 pixels. Directions that lead out of the grid from every pixel have
    // no edges.
    GridNumbering(const std::int64_t* sides, std::int64_t dimensions, const std::int64_t* steps,
                  std::int64_t directions)
        : sides_(sides, sides + dimensions) {
        for (const std::int64_t side : sides_) pixels_ *= side;
        for (std::int64_t k = 0; k < directions; ++k) {
            const std::int64_t* const row = steps + k * dimensions;
            Direction d{{row, row + dimensions}, 0, count_, 0};
            std::int64_t edges = 1, stride = 1;
            for (std::size_t i = sides_.size(); i-- > 0; stride *= sides_[i]) {
                const std::int64_t inside =
                    std::max<std::int64_t>(sides_[i] - std::abs(d.step[i]), 0);
                edges *= inside;
                if (inside > 0) d.offset += d.step[i] * stride;
            }
            if (edges > 0) {
                const std::int64_t distance = std::abs(d.offset);
                const auto known = std::find(distances_.begin(), distances_.end(), distance);
                d.slot = known - distances_.begin();
                if (known == distances_.end()) distances_.push_back(distance);
            }
            count_ += edges;
            directions_.push_back(std::move(d));
        }
    }

    std::int64_t pixels() const { return pixels_; }
    std::int64_t count() const { return count_; }
    const std::vector<std::int64_t>& sides() const { return sides_; }
    const std::vector<Direction>& directions() const { return directions_; }

    // The distances that occur. Pixels of one distance may lie in several directions, as in a grid
    // of side 2, but no two of them from the same pixel.
    const std::vector<std::int64_t>& distances() const { return distances_; }

    // Call visit(direction, coordinates of the first pixel, its number, first edge, edges) for
    // every run of edges along the last axis: pixel row after pixel row, or in the order of the
    // edges.
    template <class Visit>
    void for_runs(Visit visit) const {
        walk(0, directions_.size(), 0, rows(), visit);
    }
    template <class Visit>
    void for_runs_in_order(Visit visit) const {
        for (std::size_t k = 0; k < directions_.size(); ++k) walk(k, k + 1, 0, rows(), visit);
    }
    // Visit the runs that begin in some of the pixel rows.
    template <class Visit>
    void for_runs_of(std::int64_t first_row, std::int64_t last_row, Visit visit) const {
        walk(0, directions_.size(), first_row, last_row, visit);
    }
    std::int64_t row() const { return sides_.back(); }  // number of pixels
    std::int64_t rows() const { return pixels_ / row(); }

    // Return the direction and the first pixel of an edge.
    std::pair<std::size_t, std::int64_t> find(std::int64_t e) const {
        std::size_t k = directions_.size() - 1;
        while (directions_[k].first > e) --k;
        const Direction& d = directions_[k];
        std::int64_t rest = e - d.first, pixel = 0, stride = 1;
        for (std::size_t i = sides_.size(); i-- > 0; stride *= sides_[i]) {
            const std::int64_t inside = sides_[i] - std::abs(d.step[i]);
            pixel += (rest % inside + std::max<std::int64_t>(-d.step[i], 0)) * stride;
            rest /= inside;
        }
        return {k, pixel};
    }

    // Return the number of the edge from a pixel in a direction, or -1 if it would leave the grid.
    std::int64_t edge(std::size_t direction, const std::vector<std::int64_t>& pixel) const {
        const Direction& d = directions_[direction];
        std::int64_t e = 0;
        for (std::size_t i = 0; i < sides_.size(); ++i) {
            const std::int64_t to = pixel[i] + d.step[i];
            if (to < 0 || to >= sides_[i]) return -1;
            e = e * (sides_[i] - std::abs(d.step[i])) + std::min(pixel[i], to);
        }
        return d.first + e;
    }
    bool contains(const std::vector<std::int64_t>& pixel) const {
        for (std::size_t i = 0; i < sides_.size(); ++i)
            if (pixel[i] < 0 || pixel[i] >= sides_[i]) return false;
        return true;
    }
    // Write the coordinates of a pixel.
    void locate(std::int64_t number, std::vector<std::int64_t>& pixel) const {
        for (std::size_t i = sides_.size(); i-- > 0; number /= sides_[i])
            pixel[i] = number % sides_[i];
    }

  private:
    // Return the number of runs of a direction in the rows before the one with these coordinates.
    std::int64_t runs_before(const Direction& d, const std::vector<std::int64_t>& at) const {
        // share is 1 if rows with these first coordinates have runs, else 0
        std::int64_t runs = 0, share = 1;
        for (std::size_t i = 0; i + 1 < sides_.size(); ++i) {
            const std::int64_t low = std::max<std::int64_t>(-d.step[i], 0);
            const std::int64_t high = sides_[i] - std::max<std::int64_t>(d.step[i], 0);
            const std::int64_t inside = std::max<std::int64_t>(high - low, 0);
            runs = runs * inside + share * std::clamp<std::int64_t>(at[i] - low, 0, inside);
            if (at[i] < low || at[i] >= high) share = 0;
        }
        return runs;
    }

    template <class Visit>
    void walk(std::size_t begin, std::size_t end, std::int64_t first_row, std::int64_t last_row,
              Visit visit) const {
        if (count_ == 0) return;
        const std::size_t last = sides_.size() - 1;
        std::vector<std::int64_t> at(sides_.size(), 0), next;
        std::int64_t rest = first_row;
        for (std::size_t i = last; i-- > 0; rest /= sides_[i]) at[i] = rest % sides_[i];
        for (const Direction& d : directions_)
            next.push_back(d.first + runs_before(d, at) *
                                         std::max<std::int64_t>(row() - std::abs(d.step[last]), 0));
        for (std::int64_t pixel = first_row * row(); pixel < last_row * row(); pixel += row()) {
            for (std::size_t k = begin; k < end; ++k) {
                const Direction& d = directions_[k];
                const std::int64_t run = row() - std::abs(d.step[last]);
                bool inside = run > 0;
                for (std::size_t i = 0; i < last && inside; ++i)
                    inside = at[i] + d.step[i] >= 0 && at[i] + d.step[i] < sides_[i];
                if (!inside) continue;
                at[last] = std::max<std::int64_t>(-d.step[last], 0);
                visit(k, at, pixel + at[last], next[k], run);
                next[k] += run;
            }
            for (std::size_t i = last; i-- > 0 && ++at[i] == sides_[i];) at[i] = 0;
        }
    }

    std::vector<std::int64_t> sides_, distances_;
    std::vector<Direction> directions_;
    std::int64_t pixels_ = 1, count_ = 0;
};

// A number for each direction and pixel, in an array of any layout; strides of 0 repeat an entry.
template <class T>
struct GridWeights {
    const T* data;
    std::vector<std::int64_t> strides;  // first for the directions, then for the axes

    const T* at(std::size_t direction, const std::vector<std::int64_t>& pixel) const {
        const T* place = data + static_cast<std::ptrdiff_t>(direction) * strides[0];
        for (std::size_t i = 0; i < pixel.size(); ++i) place += pixel[i] * strides[i + 1];
        return place;
    }
    std::ptrdiff_t step() const { return strides.back(); }

    bool operator==(const GridWeights& other) const {
        return data == other.data && strides == other.strides;
    }
};

}  // namespace setwise

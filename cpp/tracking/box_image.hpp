// Features of boxes of an image: means over the cells of a grid in each box.
//
// The integral image of a channel gives the sum over any rectangle from its four corners.
// Interpolation gives it between pixels as well, because the image is constant on each pixel.
// Outside the image, the pixels at its border are repeated. A frame is integrated once, for any
// number of boxes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "numeric/vectorized.hpp"

namespace setwise {

struct Box {
    double x, y, width, height;
};

class BoxImage {
  public:
    // The grids of pixels and of histograms, and the directions of a histogram. Nine directions are
    // usual for such histograms; the grids are not tuned.
    static constexpr int pixel_cells = 16, hog_cells = 4, directions = 9;
    static constexpr int pixels = pixel_cells * pixel_cells;
    static constexpr int blocks = hog_cells - 1, hog = blocks * blocks * 4 * directions;

    // Grey values in 0..255, row by row.
    BoxImage(const double* grey, std::int64_t height, std::int64_t width)
        : height_(height), width_(width), grey_(sums(1)), votes_(sums(lanes)) {
        for (std::int64_t y = 0; y < height; ++y) {
            double sum = 0;
            for (std::int64_t x = 0; x < width; ++x) {
                sum += grey[y * width + x];
                grey_[at(y + 1, x + 1)] = grey_[at(y, x + 1)] + sum;
            }
        }
        for (std::int64_t y = 0; y < height; ++y) vote(grey, y);
    }

    std::int64_t height() const { return height_; }
    std::int64_t width() const { return width_; }

    // Write grey values of 16 x 16 cells, rounded.
    SETWISE_VECTORIZED void describe_pixels(const Box& box, std::uint8_t* out) const {
        constexpr int n = pixel_cells + 1;
        const Ticks<pixel_cells> rows(box.y, box.height, height_),
            columns(box.x, box.width, width_);
        const double share = pixels / (box.width * box.height);
        std::array<double, n> above{}, here;
        for (int i = 0; i < n; ++i) {
            const double* const upper = grey_.data() + rows.index[i] * (width_ + 1);
            const double* const lower = upper + width_ + 1;
            const double down = rows.share[i];
            for (int j = 0; j < n; ++j) {
                const std::int64_t k = columns.index[j];
                const double right = columns.share[j];
                const double left = upper[k] + (lower[k] - upper[k]) * down;
                here[j] =
                    left + (upper[k + 1] + (lower[k + 1] - upper[k + 1]) * down - left) * right;
            }
            if (i > 0)
                for (int j = 0; j < pixel_cells; ++j)
                    *out++ = rounded((here[j + 1] - here[j] - above[j + 1] + above[j]) * share);
            above = here;
        }
    }

    // Write histograms of oriented gradients in 4 x 4 cells. Blocks of 2 x 2 cells are divided by
    // their length, multiplied by 255 and rounded. The order is by block, then by cell, then by
    // direction.
    SETWISE_VECTORIZED void describe_gradients(const Box& box, std::uint8_t* out) const {
        constexpr int n = hog_cells + 1;
        const Ticks<hog_cells> rows(box.y, box.height, height_), columns(box.x, box.width, width_);
        std::array<Sums, n * n> corners;
        for (int i = 0; i < n; ++i) {
            const double* const upper = votes_.data() + rows.index[i] * (width_ + 1) * lanes;
            const double* const lower = upper + (width_ + 1) * lanes;
            for (int j = 0; j < n; ++j) {
                const double down = rows.share[i], right = columns.share[j];
                const double *a = upper + columns.index[j] * lanes, *b = a + lanes;
                const double *c = lower + columns.index[j] * lanes, *d = c + lanes;
                Sums& corner = corners[static_cast<std::size_t>(i * n + j)];
                for (int o = 0; o < lanes; ++o) {
                    const double left = a[o] + (c[o] - a[o]) * down;
                    corner[o] = left + (b[o] + (d[o] - b[o]) * down - left) * right;
                }
            }
        }
        const double share = hog_cells * hog_cells / (box.width * box.height);
        std::array<Sums, hog_cells * hog_cells> cells;
        std::array<double, hog_cells * hog_cells> squares;
        for (int i = 0; i < hog_cells; ++i)
            for (int j = 0; j < hog_cells; ++j) {
                const Sums &a = corners[i * n + j], &b = corners[i * n + j + 1];
                const Sums &c = corners[(i + 1) * n + j], &d = corners[(i + 1) * n + j + 1];
                Sums& cell = cells[static_cast<std::size_t>(i * hog_cells + j)];
                double square = 0;
                for (int o = 0; o < directions; ++o) {
                    cell[o] = (d[o] - c[o] - b[o] + a[o]) * share;
                    square += cell[o] * cell[o];
                }
                squares[static_cast<std::size_t>(i * hog_cells + j)] = square;
            }
        for (int i = 0; i < blocks; ++i)
            for (int j = 0; j < blocks; ++j) {
                const int first = i * hog_cells + j;
                const std::array<int, 4> block{first, first + 1, first + hog_cells,
                                               first + hog_cells + 1};
                double square = 0;
                for (const int cell : block) square += squares[static_cast<std::size_t>(cell)];
                const double scale = square > least_square ? 255.0 / std::sqrt(square) : 0.0;
                for (const int cell : block)
                    for (int o = 0; o < directions; ++o)
                        *out++ = rounded(cells[static_cast<std::size_t>(cell)][o] * scale);
            }
    }

  private:
    static constexpr int lanes = 12;  // the directions, padded with zeros to fill registers
    // blocks with a smaller squared length have no direction; above rounding errors, not tuned
    static constexpr double least_square = 1e-12;
    using Sums = std::array<double, lanes>;

    // The lines of a grid: the pixel in which each lies (beyond the border the outermost one), and
    // its distance from where that pixel begins.
    template <int cells>
    struct Ticks {
        std::array<std::int64_t, cells + 1> index;
        std::array<double, cells + 1> share;

        Ticks(double begin, double length, std::int64_t size) {
            for (int k = 0; k <= cells; ++k) {
                const double place = begin + length * (static_cast<double>(k) / cells);
                const double inside = std::clamp(place, 0.0, static_cast<double>(size - 1));
                index[static_cast<std::size_t>(k)] = static_cast<std::int64_t>(inside);
                share[static_cast<std::size_t>(k)] =
                    place - static_cast<double>(index[static_cast<std::size_t>(k)]);
            }
        }
    };

    static std::uint8_t rounded(double value) {
        return static_cast<std::uint8_t>(std::nearbyint(std::clamp(value, 0.0, 255.0)));
    }

    std::vector<double> sums(int channels) const {
        return std::vector<double>(
            static_cast<std::size_t>((height_ + 1) * (width_ + 1) * channels));
    }
    std::size_t at(std::int64_t y, std::int64_t x) const {
        return static_cast<std::size_t>(y * (width_ + 1) + x);
    }

    // Compute one row of gradients: each is divided between the two nearest directions. Differences
    // span two pixels, at the border one.
    void vote(const double* grey, std::int64_t y) {
        const std::int64_t up = std::max<std::int64_t>(y - 1, 0);
        const std::int64_t low = std::min(y + 1, height_ - 1);
        const double tall = low > up ? static_cast<double>(low - up) : 1.0;
        Sums sum{};
        for (std::int64_t x = 0; x < width_; ++x) {
            const std::int64_t left = std::max<std::int64_t>(x - 1, 0);
            const std::int64_t right = std::min(x + 1, width_ - 1);
            const double wide = right > left ? static_cast<double>(right - left) : 1.0;
            const double across = (grey[y * width_ + right] - grey[y * width_ + left]) / wide;
            const double down = (grey[low * width_ + x] - grey[up * width_ + x]) / tall;
            const double length = std::sqrt(across * across + down * down);
            if (length > 0) {
                double angle = std::atan2(down, across);
                if (angle < 0) angle += pi;
                const double turn = angle * (directions / pi);
                const int first = static_cast<int>(turn);
                const double share = turn - first;
                sum[static_cast<std::size_t>(first % directions)] += length * (1 - share);
                sum[static_cast<std::size_t>((first + 1) % directions)] += length * share;
            }
            const double* const above = votes_.data() + at(y, x + 1) * lanes;
            double* const here = votes_.data() + at(y + 1, x + 1) * lanes;
            for (int o = 0; o < lanes; ++o) here[o] = above[o] + sum[static_cast<std::size_t>(o)];
        }
    }

    static constexpr double pi = 3.141592653589793;

    std::int64_t height_, width_;
    std::vector<double> grey_, votes_;  // integral images, with a row and a column of zeros first
};

}  // namespace setwise

// The dual of a sum of convex risks of sets over planes that were found below them, some for each
// set:
//        risk_i(g) >= offset_k + <slope_k, g>   for the scores g of its elements,
//        maximise  sum_i scale_i <share_i, offset_i> - 1/2 |W|^2
// over the shares, one simplex per set, where the elements of set i have the coefficients v_i =
// -scale_i sum_k share_k slope_k of their features in W.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "dual_blocks/features.hpp"
#include "dual_blocks/shuffle.hpp"
#include "numeric/poll.hpp"

namespace setwise {

class KeptPlanes {
  public:
    // Each set begins with the plane 0, which remains its first plane.
    KeptPlanes(const std::int64_t* offsets, const double* scales, std::int64_t n, std::int64_t most)
        : offsets_(offsets, offsets + n + 1),
          scales_(scales, scales + n),
          most_(most),
          counts_(static_cast<std::size_t>(n), 1),
          slopes_(static_cast<std::size_t>(offsets[n] * most)),
          heights_(static_cast<std::size_t>(n * most)),
          shares_(static_cast<std::size_t>(n * most)),
          idle_(static_cast<std::size_t>(n * most)),
          products_(static_cast<std::size_t>(n * most * most)) {
        for (std::int64_t i = 0; i < n; ++i) shares_[i * most_] = 1;
    }

    std::int64_t n() const { return static_cast<std::int64_t>(scales_.size()); }
    std::int64_t begin(std::int64_t i) const { return offsets_[i]; }
    std::int64_t size(std::int64_t i) const { return offsets_[i + 1] - offsets_[i]; }
    std::int64_t elements() const { return offsets_.back(); }
    std::int64_t count(std::int64_t i) const { return counts_[i]; }
    double scale(std::int64_t i) const { return scales_[i]; }
    double* shares(std::int64_t i) { return shares_.data() + i * most_; }
    const double* shares(std::int64_t i) const { return shares_.data() + i * most_; }
    const double* products(std::int64_t i) const { return products_.data() + i * most_ * most_; }
    std::int64_t most() const { return most_; }
    const double* slope(std::int64_t i, std::int64_t k) const {
        return slopes_.data() + begin(i) * most_ + k * size(i);
    }

    // Write the height of each plane of set i at its scores.
    void heights(std::int64_t i, const double* scores, double* out) const {
        for (std::int64_t k = 0; k < counts_[i]; ++k)
            out[k] = heights_[i * most_ + k] + dot(slope(i, k), scores, size(i));
    }

    // Add a plane for set i, without a share. If the memory is full, remove the plane that has had
    // no share for the longest time; if all have shares, merge the planes of the two smallest
    // shares.
    void add(std::int64_t i, const double* slope, double offset) {
        if (counts_[i] < most_) {
            put(i, counts_[i]++, slope, offset);
            return;
        }
        double* const shares = this->shares(i);
        std::int64_t oldest = -1, least = -1, next = -1;
        for (std::int64_t k = 1; k < most_; ++k) {
            if (shares[k] == 0 && (oldest < 0 || idle_[i * most_ + k] > idle_[i * most_ + oldest]))
                oldest = k;
            if (least < 0 || shares[k] < shares[least]) {
                next = least;
                least = k;
            } else if (next < 0 || shares[k] < shares[next]) {
                next = k;
            }
        }
        if (oldest >= 0) {
            put(i, oldest, slope, offset);
            return;
        }
        const double sum = shares[least] + shares[next], part = shares[least] / sum;
        std::vector<double> both(static_cast<std::size_t>(size(i)));
        for (std::int64_t j = 0; j < size(i); ++j)
            both[j] = part * this->slope(i, least)[j] + (1 - part) * this->slope(i, next)[j];
        const double height =
            part * heights_[i * most_ + least] + (1 - part) * heights_[i * most_ + next];
        put(i, next, both.data(), height);
        shares[next] = sum;
        put(i, least, slope, offset);
    }

    // Copy the shares of all planes, set after set, `most` per set.
    void copy_shares(double* out) const { std::copy(shares_.begin(), shares_.end(), out); }
    // Replace the shares: none below 0, and the sum 1 in each set.
    void put_shares(const double* from) {
        for (std::int64_t i = 0; i < n(); ++i) {
            double sum = 0;
            for (std::int64_t k = 0; k < counts_[i]; ++k) sum += std::max(from[i * most_ + k], 0.0);
            for (std::int64_t k = 0; sum > 0 && k < counts_[i]; ++k)
                shares(i)[k] = std::max(from[i * most_ + k], 0.0) / sum;
        }
    }

    // Write how many planes of each set have a share.
    void count_used(std::int64_t* out) const {
        for (std::int64_t i = 0; i < n(); ++i)
            out[i] =
                std::count_if(shares(i), shares(i) + counts_[i], [](double x) { return x > 0; });
    }
    // Copy those planes, one after the other, for another start.
    void copy_used(double* shares, double* heights, double* slopes) const {
        for (std::int64_t i = 0; i < n(); ++i)
            for (std::int64_t k = 0; k < counts_[i]; ++k) {
                if (!(this->shares(i)[k] > 0)) continue;
                *shares++ = this->shares(i)[k];
                *heights++ = heights_[i * most_ + k];
                slopes = std::copy(slope(i, k), slope(i, k) + size(i), slopes);
            }
    }

    // Set planes with shares; the plane 0 has the rest.
    void begin_with(std::int64_t i, std::int64_t count, const double* shares, const double* heights,
                    const double* slopes) {
        double rest = 1;
        for (std::int64_t k = 0; k < std::min(count, most_ - 1); ++k) {
            put(i, counts_[i]++, slopes + k * size(i), heights[k]);
            this->shares(i)[k + 1] = std::min(shares[k], rest);
            rest -= this->shares(i)[k + 1];
        }
        this->shares(i)[0] = std::max(rest, 0.0);
    }

    // Multiply the scales of all sets by `price` and their shares by `part`; the plane 0 has the rest.
    void raise(double price, double part) {
        for (std::int64_t i = 0; i < n(); ++i) {
            scales_[i] *= price;
            double rest = 1;
            for (std::int64_t k = 1; k < counts_[i]; ++k) rest -= shares(i)[k] *= part;
            shares(i)[0] = std::max(rest, 0.0);
        }
    }

    void has_been_used(std::int64_t i) {
        for (std::int64_t k = 0; k < counts_[i]; ++k)
            idle_[i * most_ + k] = shares(i)[k] > 0 ? 0 : idle_[i * most_ + k] + 1;
    }

    // Write v of all elements and return sum_i scale_i <share_i, offset_i>. Shares are normalised
    // to the sum 1.
    double dual(double* v) {
        double total = 0;
        for (std::int64_t i = 0; i < n(); ++i) {
            double* const shares = this->shares(i);
            double sum = 0, height = 0;
            for (std::int64_t k = 0; k < counts_[i]; ++k) sum += shares[k];
            double* const out = v + begin(i);
            std::fill(out, out + size(i), 0.0);
            for (std::int64_t k = 0; k < counts_[i]; ++k) {
                if (shares[k] == 0) continue;
                shares[k] /= sum;
                height += shares[k] * heights_[i * most_ + k];
                add_multiple(-scales_[i] * shares[k], slope(i, k), out, size(i));
            }
            total += scales_[i] * height;
        }
        return total;
    }

  private:
    void put(std::int64_t i, std::int64_t k, const double* slope, double offset) {
        const std::int64_t p = size(i);
        double* const to = slopes_.data() + begin(i) * most_ + k * p;
        std::copy(slope, slope + p, to);
        heights_[i * most_ + k] = offset;
        shares(i)[k] = 0;
        idle_[i * most_ + k] = 0;
        double* const products = products_.data() + i * most_ * most_;
        for (std::int64_t l = 0; l < counts_[i]; ++l)
            products[k * most_ + l] = products[l * most_ + k] = dot(to, this->slope(i, l), p);
    }

    std::vector<std::int64_t> offsets_;
    std::vector<double> scales_;
    std::int64_t most_;
    std::vector<std::int64_t> counts_;
    std::vector<double> slopes_, heights_, shares_;
    std::vector<std::int32_t> idle_;
    std::vector<double> products_;
};

// Add a plane for each set whose risk lies above all its planes, from the risks and subgradients at
// the scores. Return the gap, the sum of the distances of the risks from the mixtures of planes.
inline double add_planes(KeptPlanes& planes, const double* scores, const double* values,
                         const double* slopes) {
    // A plane is new only if the risk exceeds all planes by more than this, relative to the risk,
    // which is above rounding errors. Not tuned.
    constexpr double least = 1e-12;
    std::vector<double> heights(static_cast<std::size_t>(planes.most()));
    double gap = 0;
    for (std::int64_t i = 0; i < planes.n(); ++i) {
        const std::int64_t at = planes.begin(i);
        planes.heights(i, scores + at, heights.data());
        double mixed = 0, highest = 0;
        for (std::int64_t k = 0; k < planes.count(i); ++k) {
            mixed += planes.shares(i)[k] * heights[k];
            highest = std::max(highest, heights[k]);
        }
        gap += planes.scale(i) * std::max(values[i] - mixed, 0.0);
        planes.has_been_used(i);
        if (values[i] - highest > least * std::abs(values[i]))
            planes.add(i, slopes + at, values[i] - dot(slopes + at, scores + at, planes.size(i)));
    }
    return gap;
}

// Compute the best shares of one set for the given heights of its planes, which fall by `bend`
// times their products with the changes of the shares. Shares move from the lowest plane in use to
// the highest, as far as the dual increases, until the two heights are nearly equal.
inline void move_shares(const double* products, std::int64_t most, std::int64_t count, double bend,
                        double* heights, double* shares) {
    // Heights count as equal at this distance, relative to the initial distance. Not tuned.
    constexpr double near = 0.02;
    double first = -1;
    for (std::int64_t step = 0; step < 8 * count; ++step) {
        std::int64_t high = 0, low = -1;
        for (std::int64_t k = 0; k < count; ++k) {
            if (heights[k] > heights[high]) high = k;
            if (shares[k] > 0 && (low < 0 || heights[k] < heights[low])) low = k;
        }
        const double apart = heights[high] - heights[low];
        if (first < 0) first = apart;
        if (high == low || apart <= near * first || apart <= 0) break;
        const double* const up = products + high * most;
        const double* const down = products + low * most;
        const double curved = bend * (up[high] - 2 * up[low] + down[low]);
        const double available = shares[low];
        const double moved =
            curved * available <= apart ? available : std::min(apart / curved, available);
        shares[high] += moved;
        shares[low] = moved == available ? 0.0 : available - moved;
        for (std::int64_t k = 0; k < count; ++k) heights[k] -= bend * moved * (up[k] - down[k]);
    }
}

struct PlaneState {
    double* weights;          // the state of the features
    const double* curvature;  // curvature of each set
    double gain;              // share of each step that the weights take
};

// Write the scores of all sets, one after the other.
template <class Features>
void plane_scores(const Features& features, const KeptPlanes& planes, const double* weights,
                  double* out, Poll poll) {
    for (std::int64_t i = 0; i < planes.n(); ++i) {
        features.scores(i, weights, planes.size(i), out + planes.begin(i));
        if ((i & 63) == 63) poll();
    }
}

// Optimise the shares of one set after the other, in a random order. A set consists of the labels
// of one example: its curvature is |x_i|^2 in every direction.
template <class Features>
void plane_pass(const Features& features, KeptPlanes& planes, std::int64_t number,
                const PlaneState& state, Poll poll) {
    const std::int64_t n = planes.n();
    std::vector<std::int32_t> order(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>(i);
    Shuffle{static_cast<std::uint64_t>(number)}(order.data(), n);
    const auto most = static_cast<std::size_t>(planes.most());
    const auto p_most = static_cast<std::size_t>(n > 0 ? planes.size(0) : 0);
    std::vector<double> heights(most), before(most), scores(p_most), step(p_most);
    std::int64_t visits = 0;
    for (const std::int32_t i : order) {
        const std::int64_t count = planes.count(i), p = planes.size(i);
        if (count == 1) continue;
        features.scores(i, state.weights, p, scores.data());
        planes.heights(i, scores.data(), heights.data());
        double* const shares = planes.shares(i);
        std::copy(shares, shares + count, before.begin());
        move_shares(planes.products(i), planes.most(), count, state.curvature[i] * planes.scale(i),
                    heights.data(), shares);
        std::fill(step.begin(), step.end(), 0.0);
        for (std::int64_t k = 0; k < count; ++k)
            if (shares[k] != before[k])
                add_multiple(-state.gain * planes.scale(i) * (shares[k] - before[k]),
                             planes.slope(i, k), step.data(), p);
        features.add(i, step.data(), state.weights, p);
        if ((++visits & 63) == 0) poll();
    }
}

}  // namespace setwise

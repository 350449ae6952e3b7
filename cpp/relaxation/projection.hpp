// Euclidean projections onto the base polytopes of three families of submodular functions:
//      a chain of cuts     F(A) = sum_k w_k [one of k, k + 1 is in A]
//      a concave count     F(A) = h(|A|) - h(0)
//      a scaled simplex    F(A) = cost [A is not empty]
// A projection onto B(F) minimises sum_i phi(s_i - z_i) for every symmetric convex phi at once.
// Therefore it is the exact block step of the relaxation in relaxation.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "numeric/sort_decreasing.hpp"

namespace setwise {

// The work space of the projections; it grows and is never cleared.
template <class Scalar>
struct ProjectionWork {
    struct Segment {
        double length, rise;  // its slope is rise / length
    };
    struct Pool {
        double count, sum;
    };
    std::vector<Segment> upper, lower;
    std::vector<Pool> pools;
    DecreasingOrder order;
    std::vector<Scalar> active;

    void reserve(std::int64_t n) {
        const auto size = static_cast<std::size_t>(n);
        if (upper.size() >= size) return;
        upper.resize(size);
        lower.resize(size);
        pools.resize(size);
        active.resize(size);
    }
};

// Return whether the slope of x is below that of y. It compares products, because a division costs
// as much as everything else.
template <class Segment>
bool is_flatter(const Segment& x, const Segment& y) {
    return x.rise * y.length < y.rise * x.length;
}

// One side of the funnel of project_chain: the hull of the tube's wall as seen from the apex.
// Segments store their own rise instead of absolute heights, so that long chains lose no digits.
template <class Segment>
struct Hull {
    Segment* segments;
    std::int64_t first = 0, last = -1;

    bool is_single() const { return first == last; }
    const Segment& front() const { return segments[first]; }

    // `rising`: slopes increase away from the apex (the upper wall), otherwise they decrease.
    template <bool rising>
    void append(double rise) {
        Segment segment{1, rise};
        while (last >= first && (rising ? !is_flatter(segments[last], segment)
                                        : !is_flatter(segment, segments[last]))) {
            segment.length += segments[last].length;
            segment.rise += segments[last].rise;
            --last;
        }
        segments[++last] = segment;
    }
    // Move the apex to a vertex of the other wall, by `step`; this wall becomes a single segment.
    void shorten(const Segment& step) {
        segments[first].length -= step.length;
        segments[first].rise -= step.rise;
    }
};

// Project z (n,) onto B of a chain of cuts with weights w (n - 1,), w >= 0. O(n). B = {y_k -
// y_(k-1): |y_k| <= w_k, y_0 = y_n = 0}. The cumulative sums of z - s are the shortest string
// through the tube of half-width w around those of z, whose slopes are the total-variation prox of
// z.
template <class Scalar>
void project_chain(const Scalar* z, const Scalar* w, std::int64_t n, Scalar* s,
                   ProjectionWork<Scalar>& work) {
    if (n == 0) return;
    work.reserve(n);
    using Segment = typename ProjectionWork<Scalar>::Segment;
    Hull<Segment> upper{work.upper.data()}, lower{work.lower.data()};
    std::int64_t position = 0;
    double y = 0;  // the dual variable of the edge before `position`
    const auto wall = [&](std::int64_t k) { return k + 1 < n ? w[k] : Scalar(0); };
    // The string follows `segment`, at whose end it touches the wall where y = side * w.
    const auto follow = [&](const Segment& segment, double side) {
        const std::int64_t last = position + static_cast<std::int64_t>(segment.length) - 1;
        const auto slope = static_cast<Scalar>(segment.rise / segment.length);
        for (; position < last; ++position) {
            s[position] = z[position] - slope;
            y += static_cast<double>(s[position]);
        }
        // the last entry leads exactly to the wall, so that rounding does not accumulate along the
        // chain
        const double end = side * static_cast<double>(wall(last));
        s[position++] = static_cast<Scalar>(end - y);
        y = end;
    };
    double before = 0;
    for (std::int64_t k = 0; k < n; ++k) {
        const double width = wall(k), value = z[k];
        upper.template append<true>(value + (width - before));
        lower.template append<false>(value - (width - before));
        before = width;
        while (is_flatter(upper.front(), lower.front())) {
            if (upper.is_single() && !lower.is_single()) {
                const Segment step = lower.front();
                follow(step, 1.0);
                upper.shorten(step);
                ++lower.first;
            } else if (lower.is_single() && !upper.is_single()) {
                const Segment step = upper.front();
                follow(step, -1.0);
                lower.shorten(step);
                ++upper.first;
            } else {
                break;  // both walls end at the same point, up to rounding
            }
        }
    }
    for (std::int64_t k = lower.first; k <= lower.last; ++k) follow(work.lower[k], 1.0);
}

// Project z (n,) onto B of a concave count with gains[k] = h(k + 1) - h(k), which do not increase.
// O(n log n): sort, then pool adjacent violators on z_(k) - gains[k]; the pools' means are z - s.
template <class Scalar>
void project_count(const Scalar* z, const Scalar* gains, std::int64_t n, Scalar* s,
                   ProjectionWork<Scalar>& work) {
    using Pool = typename ProjectionWork<Scalar>::Pool;
    work.reserve(n);
    sort_decreasing(z, n, work.order);
    const std::uint32_t* const order = work.order.index.data();
    Pool* const pools = work.pools.data();
    std::int64_t top = -1;
    for (std::int64_t k = 0; k < n; ++k) {
        const Scalar value = z[order[k]];
        Pool pool{1, static_cast<double>(value) - static_cast<double>(gains[k])};
        // means must not increase; products are compared, so that each pool needs only one division
        while (top >= 0 && pool.sum * pools[top].count >= pools[top].sum * pool.count) {
            pool.sum += pools[top].sum;
            pool.count += pools[top].count;
            --top;
        }
        pools[++top] = pool;
    }
    std::int64_t k = 0;
    for (std::int64_t pool = 0; pool <= top; ++pool) {
        const double mean = pools[pool].sum / pools[pool].count;
        for (const std::int64_t end = k + static_cast<std::int64_t>(pools[pool].count); k < end;
             ++k) {
            const std::uint32_t i = order[k];
            s[i] = static_cast<Scalar>(static_cast<double>(z[i]) - mean);
        }
    }
}

// Project z (n,) onto {s >= 0, sum of s = cost}: s = max(z - level, 0). About O(n): the level
// starts at that of all elements and rises while elements below it are removed (Michelot).
template <class Scalar>
void project_simplex(const Scalar* z, Scalar cost, std::int64_t n, Scalar* s,
                     ProjectionWork<Scalar>& work) {
    if (n == 0) return;
    work.reserve(n);
    Scalar* const active = work.active.data();
    std::copy(z, z + n, active);
    std::int64_t count = n;
    double level = 0;
    for (;;) {
        double sum = 0;
        for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(active[i]);
        level = (sum - static_cast<double>(cost)) / static_cast<double>(count);
        std::int64_t kept = 0;
        for (std::int64_t i = 0; i < count; ++i)
            if (static_cast<double>(active[i]) > level) active[kept++] = active[i];
        if (kept == count || kept == 0) break;
        count = kept;
    }
    for (std::int64_t i = 0; i < n; ++i)
        s[i] = static_cast<Scalar>(std::max(static_cast<double>(z[i]) - level, 0.0));
}

}  // namespace setwise

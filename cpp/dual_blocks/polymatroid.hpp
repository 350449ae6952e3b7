// Projections onto the polymatroid of an increasing submodular function F of one set,
//        P(F) = {b >= 0, b(A) <= F(A) for all A},
// for functions of the number of elements, and of the two counts of positives and negatives. With t
// the minimiser of 1/2 |t - z|^2 + (the Lovász extension of F at t), b = z - max(t, 0); an element
// with z <= 0 has b = 0. The level sets of t are prefixes of the sorted z: of all elements, or of
// the positives and of the negatives.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "functions/families.hpp"
#include "relaxation/label_loops.hpp"

namespace setwise {

struct PolymatroidWork {
    struct Item {
        double z;
        std::uint32_t index;
    };
    struct Pool {
        double sum, count;
    };
    struct Segment {
        std::int64_t a0, a1, q0, q1;
        double excess;  // excess of z over F, summed
    };
    std::vector<Item> items;
    std::vector<Pool> pools;
    std::vector<Segment> segments;
    std::vector<double> positives, negatives;  // sums of the largest a, of the largest q
    std::vector<std::uint32_t> where[2];       // the elements that they belong to
    std::vector<double> reciprocals;           // 1 / k

    // Return the reciprocals of all numbers up to n.
    const double* reciprocals_to(std::int64_t n) {
        for (auto k = static_cast<std::int64_t>(reciprocals.size()); k <= n; ++k)
            reciprocals.push_back(k > 0 ? 1.0 / static_cast<double>(k) : 0.0);
        return reciprocals.data();
    }
};

// Jaccard's loss (a + q) / (m + q) of a set with m > 0 positives, without a division.
struct JaccardCounts {
    const double* reciprocals;
    std::int64_t m;

    double value(std::int64_t a, std::int64_t q) const {
        return static_cast<double>(a + q) * reciprocals[m + q];
    }
    struct Chain {
        const double* reciprocals;
        std::int64_t m, below;
        double step(bool positive) {
            const double now = reciprocals[below];
            const double gain =
                positive ? now : static_cast<double>(m) * now * reciprocals[below + 1];
            m -= positive;
            below += !positive;
            return gain;
        }
    };
    Chain chain() const { return {reciprocals, m, m}; }
};

// At most few_items numbers are sorted by their ranks. The rank of a number is the number of those
// before it, counted without a branch. Chosen by hand; no measurement is on record.
constexpr std::int64_t few_items = 40;

// Return whether no two numbers are equal; otherwise the ranks are invalid.
SETWISE_VECTORIZED inline bool count_ranks(const double* __restrict z, std::int64_t n,
                                           std::int64_t* __restrict ranks) {
    const std::int64_t padded = (n + 7) & ~std::int64_t{7};
    for (std::int64_t first = 0; first < padded; first += 8) {
        std::int64_t counts[8] = {};
        for (std::int64_t j = 0; j < n; ++j)
            for (int i = 0; i < 8; ++i) counts[i] += z[j] > z[first + i] ? 1 : 0;
        for (int i = 0; i < 8; ++i) ranks[first + i] = counts[i];
    }
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += ranks[i];
    return 2 * sum == n * (n - 1);
}

// Sort the elements with z > 0 by decreasing z, equal ones by their index.
inline void sort_above_zero(const double* z, std::int64_t p, PolymatroidWork& work) {
    auto& items = work.items;
    items.clear();
    if (p <= few_items) {
        double above[few_items] = {};
        std::int64_t ranks[few_items];
        std::uint32_t index[few_items];
        std::int64_t n = 0;
        for (std::int64_t i = 0; i < p; ++i) {
            above[n] = z[i];
            index[n] = static_cast<std::uint32_t>(i);
            n += z[i] > 0;
        }
        if (count_ranks(above, n, ranks)) {
            items.resize(static_cast<std::size_t>(n));
            for (std::int64_t i = 0; i < n; ++i) items[ranks[i]] = {above[i], index[i]};
            return;
        }
    }
    for (std::int64_t i = 0; i < p; ++i)
        if (z[i] > 0) items.push_back({z[i], static_cast<std::uint32_t>(i)});
    using Item = PolymatroidWork::Item;
    std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
        return x.z > y.z || (x.z == y.z && x.index < y.index);
    });
}

// Lower the large steps of the sorted z. As no b is larger than `largest`, a higher step has the
// same effect as one of that height. Numbers far above F would leave only their own rounding errors
// in b.
inline void lower_steps(double largest, PolymatroidWork& work) {
    double before = 0, now = 0;
    for (auto item = work.items.rbegin(); item != work.items.rend(); ++item) {
        now += std::min(item->z - before, largest);
        before = std::exchange(item->z, now);
    }
}

// Project for F(A) = scale table[|A|] with table[0] = 0: sort, then pool adjacent violators. O(p
// log p).
inline void project_sizes(const double* z, std::int64_t p, const double* table, double scale,
                          double* b, PolymatroidWork& work) {
    std::fill(b, b + p, 0.0);
    if (p == 0 || !(table[1] > table[0])) return;
    sort_above_zero(z, p, work);
    lower_steps(scale * (table[1] - table[0]), work);
    auto& pools = work.pools;
    pools.clear();
    for (std::size_t k = 0; k < work.items.size(); ++k) {
        PolymatroidWork::Pool pool{work.items[k].z - scale * (table[k + 1] - table[k]), 1};
        while (!pools.empty() && pool.sum * pools.back().count >= pools.back().sum * pool.count) {
            pool.sum += pools.back().sum;
            pool.count += pools.back().count;
            pools.pop_back();
        }
        pools.push_back(pool);
    }
    std::size_t k = 0;
    for (const auto& pool : pools) {
        const double level = std::max(pool.sum / pool.count, 0.0);
        for (const std::size_t end = k + static_cast<std::size_t>(pool.count); k < end; ++k)
            b[work.items[k].index] = std::max(work.items[k].z - level, 0.0);
    }
}

// The counts (a, q) within a segment that minimise
//        F(a, q) - z(the a largest positives and the q largest negatives) + level (a + q),
// and the distance of this minimum from the value at the segment's beginning.
struct CountsMinimum {
    std::int64_t a, q;
    double value;
};

// Search the whole grid, for a general function of two counts.
template <class Counts>
CountsMinimum least_counts(const Counts& F, double scale, const PolymatroidWork::Segment& s,
                           double level, const PolymatroidWork& work) {
    CountsMinimum best{s.a0, s.q0, 0};
    const double start = F.value(s.a0, s.q0);
    for (std::int64_t q = s.q0; q <= s.q1; ++q)
        for (std::int64_t a = s.a0; a <= s.a1; ++a) {
            const double value = scale * (F.value(a, q) - start) -
                                 (work.positives[a] - work.positives[s.a0]) -
                                 (work.negatives[q] - work.negatives[s.q0]) +
                                 level * static_cast<double>(a - s.a0 + q - s.q0);
            if (value < best.value) best = {a, q, value};
        }
    return best;
}

// Jaccard is linear in the positives, with a slope 1 / (m + q) that falls with the negatives. So
// the search for the best a for each q can start from that of q - 1. O(p).
inline CountsMinimum least_counts(const JaccardCounts& F, double scale,
                                  const PolymatroidWork::Segment& s, double level,
                                  const PolymatroidWork& work) {
    const double* const sums = work.positives.data();
    const double* const others = work.negatives.data();
    const double start = scale * F.value(s.a0, s.q0) - sums[s.a0] - others[s.q0] +
                         level * static_cast<double>(s.a0 + s.q0);
    CountsMinimum best{s.a0, s.q0, start};
    std::int64_t a = s.a0;
    for (std::int64_t q = s.q0; q <= s.q1; ++q) {
        const double step = scale * F.reciprocals[F.m + q];
        while (a < s.a1 && sums[a + 1] - sums[a] - level > step) ++a;
        const double value = (step + level) * static_cast<double>(a + q) - sums[a] - others[q];
        if (value < best.value) best = {a, q, value};
    }
    best.value -= start;
    return best;
}

// Return the largest (sum of b over a set) / (scale F of the set), or 1 if that is less, with sums
// as part_by_label writes them.
template <class Counts>
double largest_share(const Counts& F, double scale, std::int64_t A, std::int64_t Q,
                     const PolymatroidWork& work) {
    double most = 1.0;
    for (std::int64_t q = 0; q <= Q; ++q)
        for (std::int64_t a = 0; a <= A; ++a) {
            const double sum = work.positives[a] + work.negatives[q];
            const double limit = scale * (F.value(a, q) - F.value(0, 0));
            if (a + q > 0 && sum > most * limit) most = sum / limit;
        }
    return most;
}

// The share increases to that of a set that exceeds it, until no set does. Each step searches a
// minimum in O(p).
inline double largest_share(const JaccardCounts& F, double scale, std::int64_t A, std::int64_t Q,
                            const PolymatroidWork& work) {
    double most = 1.0;
    while (true) {
        const CountsMinimum beyond = least_counts(F, most * scale, {0, A, 0, Q, 0.0}, 0.0, work);
        if (!(beyond.value < 0)) return most;
        const double sum = work.positives[beyond.a] + work.negatives[beyond.q];
        const double share = sum / (scale * F.value(beyond.a, beyond.q));
        if (!(share > most)) return most;
        // a set that exceeds it by rounding only does not count
        most = share * (1 + 4 * std::numeric_limits<double>::epsilon());
    }
}

// Split the elements above 0 into positives and negatives, with the sums of the largest of them.
// Return their numbers.
inline std::pair<std::int64_t, std::int64_t> part_by_label(const std::uint8_t* positive,
                                                           PolymatroidWork& work) {
    const std::size_t most = work.items.size();
    for (auto* sums : {&work.positives, &work.negatives}) sums->resize(most + 1);
    for (auto& where : work.where) where.resize(most);
    double* const sums[2] = {work.negatives.data(), work.positives.data()};
    std::uint32_t* const where[2] = {work.where[0].data(), work.where[1].data()};
    std::int64_t counts[2] = {0, 0};
    sums[0][0] = sums[1][0] = 0.0;
    for (const auto& item : work.items) {
        const int kind = positive[item.index] != 0;
        const std::int64_t k = counts[kind]++;
        where[kind][k] = item.index;
        sums[kind][k + 1] = sums[kind][k] + item.z;
    }
    return {counts[1], counts[0]};
}

// Find segments of the elements up to (A, Q), each with a lower level than the one before. Elements
// are taken one after the other, of the two kinds the one with the higher level, and pooled where
// levels rise. Return whether each segment has a single level, so that no segment has a lower
// minimum inside. Then the segments are correct.
template <class Counts>
bool greedy_segments(const Counts& F, double scale, std::int64_t A, std::int64_t Q, double rounding,
                     PolymatroidWork& work) {
    constexpr double none = -std::numeric_limits<double>::infinity();
    const double* const sums = work.positives.data();
    const double* const others = work.negatives.data();
    auto& segments = work.segments;
    segments.clear();
    std::int64_t a = 0, q = 0;
    double now = scale * F.value(0, 0);
    while (a < A || q < Q) {
        const double with_a = a < A ? scale * F.value(a + 1, q) : 0.0;
        const double with_q = q < Q ? scale * F.value(a, q + 1) : 0.0;
        const double of_a = a < A ? sums[a + 1] - sums[a] - (with_a - now) : none;
        const double of_q = q < Q ? others[q + 1] - others[q] - (with_q - now) : none;
        const bool takes_a = of_a >= of_q;
        PolymatroidWork::Segment next{a, a + takes_a, q, q + !takes_a, takes_a ? of_a : of_q};
        a = next.a1;
        q = next.q1;
        now = takes_a ? with_a : with_q;
        while (!segments.empty()) {
            const auto& last = segments.back();
            const auto count = static_cast<double>(next.a1 - next.a0 + next.q1 - next.q0);
            const auto before = static_cast<double>(last.a1 - last.a0 + last.q1 - last.q0);
            if (next.excess * before < last.excess * count) break;
            next = {last.a0, next.a1, last.q0, next.q1, last.excess + next.excess};
            segments.pop_back();
        }
        segments.push_back(next);
    }
    for (const auto& s : segments) {
        const std::int64_t count = s.a1 - s.a0 + s.q1 - s.q0;
        if (count == 1) continue;
        const double level = s.excess / static_cast<double>(count);
        if (least_counts(F, scale, s, level, work).value < -rounding) return false;
    }
    return true;
}

// Find the segments in every case: a segment of the sorted elements has one level, or is cut where
// a lower minimum shows that it does not.
template <class Counts>
void cut_segments(const Counts& F, double scale, std::int64_t A, std::int64_t Q, double rounding,
                  PolymatroidWork& work) {
    const double* const sums = work.positives.data();
    const double* const others = work.negatives.data();
    auto& segments = work.segments;
    segments.assign(1, {0, A, 0, Q, 0.0});
    for (std::size_t k = 0; k < segments.size();) {
        auto& s = segments[k];
        const std::int64_t count = s.a1 - s.a0 + s.q1 - s.q0;
        s.excess = sums[s.a1] - sums[s.a0] + others[s.q1] - others[s.q0] -
                   scale * (F.value(s.a1, s.q1) - F.value(s.a0, s.q0));
        if (count > 1) {
            const double level = s.excess / static_cast<double>(count);
            const CountsMinimum cut = least_counts(F, scale, s, level, work);
            const std::int64_t inside = cut.a - s.a0 + cut.q - s.q0;
            if (cut.value < -rounding && inside > 0 && inside < count) {
                const PolymatroidWork::Segment rest{cut.a, s.a1, cut.q, s.q1, 0.0};
                s.a1 = cut.a;
                s.q1 = cut.q;
                segments.push_back(rest);
                continue;
            }
        }
        ++k;
    }
}

// Project for F(A) = scale times a function of two counts, 0 at (0, 0). For Jaccard usually O(p),
// and O(p) per cut.
template <class Counts>
void project_counts(const double* z, const std::uint8_t* positive, std::int64_t p, std::int64_t m,
                    const Counts& F, double scale, double* b, PolymatroidWork& work) {
    constexpr double eps = std::numeric_limits<double>::epsilon();
    std::fill(b, b + p, 0.0);
    const double single[2] = {m < p ? F.value(0, 1) - F.value(0, 0) : 0.0,
                              m > 0 ? F.value(1, 0) - F.value(0, 0) : 0.0};
    sort_above_zero(z, p, work);
    // If single elements cost nothing, all of them together cost nothing.
    if (!(single[0] > 0) || !(single[1] > 0)) {
        auto& items = work.items;
        items.erase(std::remove_if(
                        items.begin(), items.end(),
                        [&](const auto& item) { return !(single[positive[item.index] != 0] > 0); }),
                    items.end());
    }
    if (work.items.empty()) return;
    lower_steps(scale * std::max(single[0], single[1]), work);
    const auto [A, Q] = part_by_label(positive, work);
    for (const auto& item : work.items) b[item.index] = item.z;
    const double rounding =
        8 * eps * (work.positives[A] + work.negatives[Q] + scale * F.value(A, Q));
    // Only elements above the level 0 matter: those below have b = z already.
    const CountsMinimum above = least_counts(F, scale, {0, A, 0, Q, 0.0}, 0.0, work);
    if (!greedy_segments(F, scale, above.a, above.q, rounding, work))
        cut_segments(F, scale, above.a, above.q, rounding, work);
    for (const auto& s : work.segments) {
        const std::int64_t count = s.a1 - s.a0 + s.q1 - s.q0;
        if (count == 0) continue;
        const double lower = std::max(s.excess / static_cast<double>(count), 0.0);
        for (std::int64_t a = s.a0; a < s.a1; ++a) {
            double& value = b[work.where[1][a]];
            value = std::max(value - lower, 0.0);
        }
        for (std::int64_t q = s.q0; q < s.q1; ++q) {
            double& value = b[work.where[0][q]];
            value = std::max(value - lower, 0.0);
        }
    }
}

// The functions of the sets of a batch: Jaccard, one table per set of |A| or of the two counts, or
// weights that are summed, whose polymatroid is a box.
struct SetFamilies {
    enum Kind : int { jaccard = 0, sizes = 1, counts = 2, modular = 3 };
    int kind;
    const double* tables;
    const std::int64_t* starts;
};

// One set: its function times a scale, with the operations that a block step needs.
struct Polymatroid {
    const SetFamilies& families;
    std::int64_t set;
    const std::uint8_t* positive;
    std::int64_t p, m;
    double scale;

    Polymatroid(const SetFamilies& families_, std::int64_t set_, const std::uint8_t* positive_,
                std::int64_t p_, double scale_)
        : families(families_), set(set_), positive(positive_), p(p_), m(0), scale(scale_) {
        for (std::int64_t i = 0; i < p; ++i) m += positive[i] != 0;
    }

    // Call body(function of counts) or body(table, of sizes).
    template <class OfCounts, class OfSizes>
    auto visit(PolymatroidWork& work, OfCounts of_counts, OfSizes of_sizes) const {
        static constexpr double any[2] = {0.0, 1.0};
        if (families.kind == SetFamilies::sizes)
            return of_sizes(families.tables + families.starts[set]);
        if (families.kind == SetFamilies::counts)
            return of_counts(CountsTable{families.tables + families.starts[set], p - m + 1});
        if (m > 0) return of_counts(JaccardCounts{work.reciprocals_to(p + 1), m});
        return of_sizes(any);  // min(1, |A|), whose table ends early
    }

    void project(const double* z, double* b, PolymatroidWork& work) const {
        if (families.kind == SetFamilies::modular) {
            const double* const weights = families.tables + families.starts[set];
            for (std::int64_t j = 0; j < p; ++j)
                b[j] = std::min(std::max(z[j], 0.0), scale * weights[j]);
            return;
        }
        visit(
            work, [&](const auto& F) { project_counts(z, positive, p, m, F, scale, b, work); },
            [&](const double* table) {
                if (is_any())
                    project_any(z, b, work);
                else
                    project_sizes(z, p, table, scale, b, work);
            });
    }

    // Return the largest <b, s> over P(F): the Lovász hinge at the slacks s.
    double support(const double* s, PolymatroidWork& work) const {
        if (families.kind == SetFamilies::modular) {
            const double* const weights = families.tables + families.starts[set];
            double sum = 0;
            for (std::int64_t j = 0; j < p; ++j) sum += scale * weights[j] * std::max(s[j], 0.0);
            return sum;
        }
        sort_above_zero(s, p, work);
        if (work.items.empty()) return 0.0;
        if (is_any()) return scale * work.items.front().z;
        const auto along = [&](auto chain) {
            double value = 0;
            for (const auto& item : work.items)
                value += item.z * chain.step(positive[item.index] != 0);
            return scale * value;
        };
        return visit(
            work, [&](const auto& F) { return along(F.chain()); },
            [&](const double* table) { return along(CardinalityTable{table}.chain()); });
    }

    // Return the factor by which b must shrink to lie in P(F), which is 1 up to rounding.
    double excess(const double* b, PolymatroidWork& work) const {
        if (families.kind == SetFamilies::modular) return 1.0;
        sort_above_zero(b, p, work);
        if (work.items.empty()) return 1.0;
        const auto [A, Q] = part_by_label(positive, work);
        return visit(
            work, [&, a = A, q = Q](const auto& F) { return largest_share(F, scale, a, q, work); },
            [&](const double* table) {
                double most = 1.0, sum = 0;
                for (std::size_t k = 0; k < work.items.size(); ++k) {
                    sum += work.items[k].z;
                    const double limit = scale * (is_any() ? 1.0 : table[k + 1] - table[0]);
                    if (sum > most * limit) most = sum / limit;
                }
                return most;
            });
    }

  private:
    bool is_any() const { return families.kind == SetFamilies::jaccard && m == 0; }

    // Project for F(A) = scale [A is not empty]: b >= 0 with a sum of at most scale.
    void project_any(const double* z, double* b, PolymatroidWork& work) const {
        std::fill(b, b + p, 0.0);
        sort_above_zero(z, p, work);
        lower_steps(scale, work);
        double sum = 0, level = 0;
        for (std::size_t k = 0; k < work.items.size(); ++k) {
            sum += work.items[k].z;
            const double next = (sum - scale) / static_cast<double>(k + 1);
            if (k > 0 && next >= work.items[k].z) break;
            level = next;
        }
        level = std::max(level, 0.0);
        for (const auto& item : work.items) b[item.index] = std::max(item.z - level, 0.0);
    }
};

}  // namespace setwise

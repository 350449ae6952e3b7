// The terms of a field that are functions of counts: the number of variables of a region that take
// a label of a group. In a move each is a concave function of the number of its movable members
// that switch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace setwise {

// The cost of a region in a layer for a count n of a group:
//     concave  h_r(n), a table of concave values;
//     cost     cost_g [n > 0];
//     robust   weight min(1, min_j (size - n_j) / truncation), once for all the labels of a region.
enum class Charge { concave, cost, robust };

// Regions that do not overlap, and groups of labels that do not overlap.
struct Layer {
    Charge charge;
    const std::int64_t* regions;       // (N,), -1 for none; nullptr: one region, the whole field
    std::vector<std::int64_t> sizes;   // (R,)
    std::vector<std::int32_t> groups;  // (L,), -1 for none
    std::int32_t n_groups;
    const std::int64_t* starts;        // starts of the tables of the regions
    const double* table;
    std::vector<double> costs;         // costs of the groups
    const double *weights, *truncation;
    std::vector<std::int64_t> counts;  // (R, n_groups): counts of the present labelling
    std::int32_t first;                // the number of its first (region, group) among all layers

    std::int64_t region(std::int32_t i) const { return regions ? regions[i] : 0; }
    std::size_t place(std::int64_t r, std::int32_t g) const {
        return static_cast<std::size_t>(r) * static_cast<std::size_t>(n_groups) +
               static_cast<std::size_t>(g);
    }
};

// One function of a move: of k, the number of its `members` movable members that switch.
struct CountFunction {
    const Layer* layer;
    std::int64_t region;
    std::int32_t group;
    bool rises;                // whether a switch increases the count or decreases it
    std::int64_t members = 0;
    std::int64_t present = 0;  // k at the present labelling
    std::int64_t fixed;        // the count of the group outside the members
    // For robust terms: the count of the second label, and the largest of the other counts.
    std::int64_t other_fixed = 0, rest = 0;
    std::vector<std::int64_t> breaks;  // the interior breakpoints, increasing
    std::int32_t first_hat = 0;        // node of the first hat in the move's graph
    double tilt = 0.0;                 // the slope of the linear part of the function there
    std::int64_t answer = 0;           // k at the cut's answer

    // At the present labelling all the region's variables are counted as fixed.
    CountFunction(const Layer& l, std::int64_t r, std::int32_t g, std::int32_t other,
                  bool does_rise)
        : layer(&l), region(r), group(g), rises(does_rise), fixed(l.counts[l.place(r, g)]) {
        if (l.charge != Charge::robust) return;
        other_fixed = l.counts[l.place(r, other)];
        for (std::int32_t j = 0; j < l.n_groups; ++j)
            if (j != g && j != other) rest = std::max(rest, l.counts[l.place(r, j)]);
    }
    void add_member(bool is_switched) {
        ++members;
        present += is_switched;
        fixed -= is_switched == rises;
        other_fixed -= is_switched;
    }
    // Set the number of members, none of them switched.
    void set_members(std::int64_t count) {
        members = count;
        if (!rises) fixed -= count;
    }
    // Remove a member that is not switched.
    void drop_member() {
        --members;
        fixed += !rises;
    }

    double operator()(std::int64_t k) const {
        const std::int64_t n = fixed + (rises ? k : members - k);
        switch (layer->charge) {
            case Charge::concave: return layer->table[layer->starts[region] + n];
            case Charge::cost: return n > 0 ? layer->costs[static_cast<std::size_t>(group)] : 0.0;
            case Charge::robust: break;
        }
        const std::int64_t most = std::max({n, other_fixed + k, rest});
        const auto r = static_cast<std::size_t>(region);
        const auto missing = static_cast<double>(layer->sizes[r] - most);
        return layer->weights[r] * std::min(1.0, missing / layer->truncation[r]);
    }

    // Return the least cost of one more switch, when all other members switch too.
    double last_slope() const { return (*this)(members) - (*this)(members - 1); }
    double slope() const { return chord(0, members); }
    // Return the slope between two numbers of switches.
    double chord(std::int64_t low, std::int64_t high) const {
        return ((*this)(high) - (*this)(low)) / static_cast<double>(high - low);
    }

    // Return the value at k of the interpolation between the breakpoints, which is never above this
    // concave function.
    double interpolated(std::int64_t k) const {
        const auto above = std::lower_bound(breaks.begin(), breaks.end(), k);
        if (above != breaks.end() && *above == k) return (*this)(k);
        const std::int64_t high = above == breaks.end() ? members : *above;
        const std::int64_t low = above == breaks.begin() ? 0 : *(above - 1);
        if (k == low || k == high) return (*this)(k);
        const double share = static_cast<double>(k - low) / static_cast<double>(high - low);
        return (*this)(low) + share * ((*this)(high) - (*this)(low));
    }

    // Add a breakpoint. Return whether k was not one before.
    bool add_break(std::int64_t k) {
        if (k <= 0 || k >= members) return false;
        const auto place = std::lower_bound(breaks.begin(), breaks.end(), k);
        if (place != breaks.end() && *place == k) return false;
        breaks.insert(place, k);
        return true;
    }

    // Start with all kinks if they are few, so that the interpolation is the function itself;
    // otherwise with the present count.
    void start_breaks() {
        // The number of kinks, each of which takes an auxiliary node; not tuned.
        constexpr std::size_t few = 4;
        breaks.clear();
        double before = members > 0 ? (*this)(1) - (*this)(0) : 0.0;
        for (std::int64_t k = 1; k < members && breaks.size() <= few; ++k) {
            const double after = (*this)(k + 1) - (*this)(k);
            const double scale = std::abs(before) + std::abs(after) + 0.1 * std::abs((*this)(k));
            if (before - after > 1e-13 * scale) breaks.push_back(k);
            before = after;
        }
        if (breaks.size() <= few) return;
        breaks.clear();
        add_break(present);
    }

    // Return the decrease of the slope at the t-th interior breakpoint.
    double fall(std::size_t t) const {
        const std::int64_t low = t == 0 ? 0 : breaks[t - 1], here = breaks[t];
        const std::int64_t high = t + 1 == breaks.size() ? members : breaks[t + 1];
        const double middle = (*this)(here);
        return std::max(0.0, (middle - (*this)(low)) / static_cast<double>(here - low) -
                                 ((*this)(high)-middle) / static_cast<double>(high - here));
    }
};

}  // namespace setwise

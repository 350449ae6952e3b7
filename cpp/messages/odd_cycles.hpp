// Violated odd-cycle inequalities of a fractional cut, by shortest paths.
//
// Two copies of the graph: an edge has length y within a copy and 1 - y between the copies. A path
// from a node to its own copy crosses an odd number of times; if it is shorter than 1, its edges
// violate an inequality, in which those that cross are counted as 1 - y.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "numeric/poll.hpp"

namespace setwise {

class OddCycles {
  public:
    using Index = std::int64_t;

    OddCycles(const Index* edges, Index n_edges, Index n)
        : n_(n), starts_(static_cast<std::size_t>(n) + 1) {
        for (Index k = 0; k < 2 * n_edges; ++k) ++starts_[edges[k] + 1];
        for (Index i = 0; i < n; ++i) starts_[i + 1] += starts_[i];
        std::vector<Index> next(starts_.begin(), starts_.end() - 1);
        arcs_.resize(static_cast<std::size_t>(2 * n_edges));
        for (Index e = 0; e < n_edges; ++e) {
            const Index i = edges[2 * e], j = edges[2 * e + 1];
            arcs_[next[i]++] = {j, e};
            arcs_[next[j]++] = {i, e};
        }
        const auto size = static_cast<std::size_t>(2 * n);
        length_.assign(size, far);
        from_.assign(size, -1);
        by_.assign(size, -1);
    }

    // Find a shortest odd closed walk through each node, below `most`, and write the cycle in it as
    // numbers 2 e + (e is in F). Its size is 0 where there is none. Return the sum of the
    // sizes.
    Index operator()(const double* y, double most, Index* sizes, Index* walks, Poll poll) {
        Index total = 0;
        for (Index source = 0; source < n_; ++source) {
            sizes[source] = 0;
            if (source % 16 == 0) poll();
            if (!shortest(source, y, most)) continue;
            make_cycle(source);
            for (const Step& step : cycle_) walks[total++] = step.by;
            sizes[source] = static_cast<Index>(cycle_.size());
        }
        return total;
    }

  private:
    static constexpr double far = std::numeric_limits<double>::infinity();
    struct Arc {
        Index to, edge;
    };
    struct Step {
        Index node, by;  // a node, and 2 e + (e crosses) of the edge to the next one
    };

    Index copy_of(Index node) const { return node < n_ ? node + n_ : node - n_; }

    // Search from a node for its copy. By symmetry, a path from u to the copy of the source
    // corresponds to a path from the source to the copy of u, so a search of half the length
    // suffices.
    bool shortest(Index source, const double* y, double most) {
        for (const Index node : touched_) length_[node] = far;
        touched_.assign(1, source);
        heap_.clear();
        best_ = most;
        meeting_ = {-1, -1, -1};
        length_[source] = 0;
        heap_.push_back({0.0, source});
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            const auto [length, node] = heap_.back();
            heap_.pop_back();
            if (2 * length >= best_) break;
            if (length > length_[node]) continue;
            const Index base = node % n_, here = node - base;
            for (Index a = starts_[base]; a < starts_[base + 1]; ++a) {
                const Arc arc = arcs_[a];
                const double within = y[arc.edge];
                reach(arc.to + here, node, 2 * arc.edge, length + within);
                reach(arc.to + n_ - here, node, 2 * arc.edge + 1, length + (1 - within));
            }
        }
        return meeting_.first >= 0;
    }

    void reach(Index node, Index from, Index by, double length) {
        const double whole = length + length_[copy_of(node)];
        if (whole < best_) {
            best_ = whole;
            meeting_ = {from, copy_of(node), by};
        }
        if (!(2 * length < best_) || !(length < length_[node])) return;
        if (length_[node] == far) touched_.push_back(node);
        length_[node] = length;
        from_[node] = from;
        by_[node] = by;
        heap_.push_back({length, node});
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }

    // Make the shortest odd cycle within the walk that was found.
    void make_cycle(Index source) {
        walk_.clear();
        for (Index node = meeting_.first; node != source; node = from_[node])
            walk_.push_back({from_[node] % n_, by_[node]});
        std::reverse(walk_.begin(), walk_.end());
        walk_.push_back({meeting_.first % n_, meeting_.by});
        for (Index node = meeting_.second; node != source; node = from_[node])
            walk_.push_back({node % n_, by_[node]});
        // If the walk returns to a node after an even number of crossings, the part in between is
        // left out. If it returns after an odd number, this part is an odd cycle, and the shortest
        // one is kept.
        cycle_.clear();
        std::vector<Index> places;  // for each kept step: twice the node, plus the crossings so far
        std::vector<Step> kept;
        Index crossings = 0, begin = -1, end = -1;
        for (std::size_t k = 0; k <= walk_.size(); ++k) {
            const Index node = k < walk_.size() ? walk_[k].node : source;
            const Index place = 2 * node + crossings;
            for (Index back = static_cast<Index>(places.size()); back-- > 0;) {
                if (places[back] == place) {
                    places.resize(static_cast<std::size_t>(back));
                    kept.resize(static_cast<std::size_t>(back));
                    break;
                }
                if (places[back] == (place ^ 1)) {
                    begin = back;
                    end = static_cast<Index>(places.size());
                    break;
                }
            }
            if (begin >= 0) break;
            if (k == walk_.size()) break;
            places.push_back(place);
            kept.push_back(walk_[k]);
            crossings ^= walk_[k].by & 1;
        }
        if (begin >= 0) cycle_.assign(kept.begin() + begin, kept.begin() + end);
    }

    struct Meeting {
        Index first, second, by;  // the ends of the two halves, and the edge between them
    };

    Index n_;
    std::vector<Index> starts_;
    std::vector<Arc> arcs_;
    std::vector<double> length_;
    std::vector<Index> from_, by_, touched_;
    std::vector<std::pair<double, Index>> heap_;
    double best_ = 0;
    Meeting meeting_{-1, -1, -1};
    std::vector<Step> walk_, cycle_;
};

}  // namespace setwise

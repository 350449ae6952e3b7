// Ranges of consecutive nodes that threads read and write separately.
#pragma once

#include <algorithm>
#include <cstdint>

#include "flows/flow_topology.hpp"

namespace setwise {

// The number of slabs depends on the graph and not on the number of threads. If arcs are at most
// `margin` long, those between slabs begin and end so near to a border that no node is near to two
// borders. If the length is unknown (0), there is one slab. Borders lie between rows of `row`
// nodes.
class Slabs {
  public:
    static constexpr std::int64_t least_nodes = std::int64_t(1) << 16;

    Slabs(std::int64_t n, std::int64_t margin, std::int64_t row = 1,
          std::int64_t least = least_nodes)
        : n_(n), row_(row), rows_(n / row), margin_(margin), count_(margin > 0 ? 16 : 1) {
        while (count_ > 1 && rows_ / count_ * row_ < std::max(least, 2 * margin)) count_ /= 2;
    }

    std::int64_t count() const { return count_; }
    std::int64_t first_row(std::int64_t slab) const { return rows_ * slab / count_; }
    FlowNode first(std::int64_t slab) const {
        return static_cast<FlowNode>(slab == count_ ? n_ : row_ * first_row(slab));
    }
    // Return the nodes of a slab that may have arcs over its border to the slab before.
    FlowNode before(std::int64_t slab) const {
        return first(slab) - static_cast<FlowNode>(margin_);
    }
    FlowNode after(std::int64_t slab) const { return first(slab) + static_cast<FlowNode>(margin_); }

  private:
    std::int64_t n_, row_, rows_, margin_, count_;
};

}  // namespace setwise

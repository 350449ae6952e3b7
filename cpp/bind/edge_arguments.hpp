// Edges as rows of two nodes, and their check.
#pragma once

#include "bind/bind.hpp"

namespace setwise::bind {

template <class T>
using Pairs = nb::ndarray<const T, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

// The place of the first pair that is no edge of a graph of n nodes, or -1.
template <class Vertex>
Index first_not_edge(Pairs<Vertex> edges, Index n) {
    const Vertex* const ends = edges.data();
    for (Index e = 0; e < static_cast<Index>(edges.shape(0)); ++e) {
        const Vertex u = ends[2 * e], v = ends[2 * e + 1];
        if (u < 0 || v < 0 || u >= n || v >= n || u == v) return e;
    }
    return -1;
}

}  // namespace setwise::bind

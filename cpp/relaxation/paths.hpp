// Partition of edges into few classes of vertex-disjoint paths, each of which can be projected at
// once.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace setwise {

// A growing forest of paths, which tells whether it can take one more edge.
class PathForest {
  public:
    explicit PathForest(std::int64_t n)
        : degree_(static_cast<std::size_t>(n)), root_(degree_.size()) {
        std::iota(root_.begin(), root_.end(), std::int64_t(0));
    }
    // Add the edge unless a vertex would have three edges or a cycle would close. Return whether it
    // was added.
    bool take(std::int64_t i, std::int64_t j) {
        if (degree_[i] == 2 || degree_[j] == 2) return false;
        const std::int64_t a = find(i), b = find(j);
        if (a == b) return false;
        root_[a] = b;
        ++degree_[i];
        ++degree_[j];
        return true;
    }
    // Reset this vertex to one without edges; call this for each vertex of the edges taken.
    void forget(std::int64_t i) {
        degree_[i] = 0;
        root_[i] = i;
    }

  private:
    std::int64_t find(std::int64_t i) {
        while (root_[i] != i) i = root_[i] = root_[root_[i]];
        return i;
    }
    std::vector<std::int8_t> degree_;
    std::vector<std::int64_t> root_;
};

// Write the class of each edge, by first fit, class after class; no edge may be a loop. Return the
// number of classes, at most the sum of two neighbouring vertices' degrees. O(E classes) time, O(n
// + E) memory.
inline std::int64_t path_classes(std::int64_t n, const std::int64_t* edges, std::int64_t n_edges,
                                 std::int64_t* classes, void (*poll)()) {
    PathForest forest(n);
    std::vector<std::int64_t> left(static_cast<std::size_t>(n_edges)), taken;
    std::iota(left.begin(), left.end(), std::int64_t(0));
    std::int64_t count = 0;
    for (; !left.empty(); ++count) {
        std::size_t kept = 0;
        for (const std::int64_t e : left) {
            if (forest.take(edges[2 * e], edges[2 * e + 1])) {
                classes[e] = count;
                taken.push_back(e);
            } else {
                left[kept++] = e;
            }
        }
        left.resize(kept);
        for (const std::int64_t e : taken)
            for (int side = 0; side < 2; ++side) forest.forget(edges[2 * e + side]);
        taken.clear();
        poll();
    }
    return count;
}

// Walk the paths that the edges form, each from its end of smaller index. Write `vertices` in the
// order of the walk, `starts` of the paths among them, and `weights` of the edge from each vertex
// to the next (0 at a path's end). Return false if the edges are not vertex-disjoint paths.
inline bool walk_paths(std::int64_t n, const std::int64_t* edges, const double* edge_weights,
                       std::int64_t n_edges, std::vector<std::int64_t>& vertices,
                       std::vector<std::int64_t>& starts, std::vector<double>& weights) {
    std::vector<std::int64_t> at(2 * static_cast<std::size_t>(n), -1);  // edges at each vertex
    for (std::int64_t e = 0; e < n_edges; ++e)
        for (int side = 0; side < 2; ++side) {
            std::int64_t* const slots = at.data() + 2 * edges[2 * e + side];
            if (slots[1] >= 0) return false;
            slots[slots[0] >= 0] = e;
        }
    starts.assign(1, 0);
    std::int64_t walked = 0;
    for (std::int64_t first = 0; first < n; ++first) {
        if (at[2 * first] < 0 || at[2 * first + 1] >= 0) continue;  // the path does not end here
        std::int64_t vertex = first, edge = at[2 * first];
        while (true) {
            vertices.push_back(vertex);
            if (edge < 0) break;
            weights.push_back(edge_weights[edge]);
            ++walked;
            vertex = edges[2 * edge] == vertex ? edges[2 * edge + 1] : edges[2 * edge];
            std::int64_t* const slots = at.data() + 2 * vertex;
            const std::int64_t next = slots[0] == edge ? slots[1] : slots[0];
            slots[0] = slots[1] = edge;  // walked, so no longer the end of a path
            edge = next;
        }
        weights.push_back(0);
        starts.push_back(static_cast<std::int64_t>(vertices.size()));
    }
    return walked == n_edges;
}

}  // namespace setwise

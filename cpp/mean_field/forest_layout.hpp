// The order in which the trees of a forest over a graph are summed. Components of one colour have
// no edges between them. A task is some components of one colour, with their variables by depth,
// the roots first: a run has no edges inside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fields/pair_energies.hpp"

namespace setwise {

struct ForestLayout {
    using Index = std::int64_t;

    ForestLayout() = default;
    // The edges (E,) that are kept must form a forest.
    ForestLayout(const PairEnergies& pairs, const std::vector<std::uint8_t>& kept, Index count,
                 Index variables_a_task) {
        const auto n = static_cast<std::size_t>(count);
        std::vector<Index> by_component, starts(1, 0), depth(n, -1), component(n);
        std::vector<Index> arcs(n, -1);  // arc to the parent of each variable
        for (Index top = 0; top < count; ++top) {
            if (depth[top] >= 0) continue;
            depth[top] = 0;
            by_component.push_back(top);
            for (Index k = starts.back(); k < static_cast<Index>(by_component.size()); ++k) {
                const Index i = by_component[k];
                component[i] = static_cast<Index>(starts.size()) - 1;
                for (const Index* arc = pairs.begin(i); arc != pairs.end(i); ++arc) {
                    const Index j = pairs.head(*arc);
                    if (!kept[*arc >> 1] || depth[j] >= 0) continue;
                    depth[j] = depth[i] + 1;
                    arcs[j] = *arc ^ 1;
                    by_component.push_back(j);
                }
            }
            starts.push_back(static_cast<Index>(by_component.size()));
        }
        const std::vector<Index> color = colors(pairs, by_component, starts, component);
        const Index most = color.empty() ? -1 : *std::max_element(color.begin(), color.end());
        std::vector<std::vector<Index>> of_color(static_cast<std::size_t>(most + 1));
        for (std::size_t c = 0; c < color.size(); ++c)
            of_color[color[c]].push_back(static_cast<Index>(c));
        std::vector<std::vector<Index>> by_depth;
        const auto end_task = [&] {
            if (by_depth.empty()) return;
            for (const auto& run : by_depth) {
                order.insert(order.end(), run.begin(), run.end());
                run_starts.push_back(static_cast<Index>(order.size()));
            }
            by_depth.clear();
            task_starts.push_back(static_cast<Index>(order.size()));
            task_runs.push_back(static_cast<Index>(run_starts.size()) - 1);
        };
        for (const auto& components : of_color) {
            Index size = 0;
            for (const Index c : components) {
                for (Index k = starts[c]; k < starts[c + 1]; ++k) {
                    const auto at = static_cast<std::size_t>(depth[by_component[k]]);
                    if (at == by_depth.size()) by_depth.emplace_back();
                    by_depth[at].push_back(by_component[k]);
                }
                size += starts[c + 1] - starts[c];
                if (size < variables_a_task) continue;
                end_task();
                size = 0;
            }
            end_task();
            color_starts.push_back(static_cast<Index>(task_starts.size()) - 1);
        }
        std::vector<Index> position(n);
        for (Index k = 0; k < count; ++k) position[order[k]] = k;
        up.resize(n);
        above.resize(n);
        for (Index k = 0; k < count; ++k) {
            up[k] = arcs[order[k]];
            above[k] = up[k] < 0 ? -1 : position[pairs.head(up[k])];
        }
    }

    std::vector<Index> order;  // variables by colour, task and depth
    std::vector<Index> up,
        above;          // the arc to the parent and the parent's place, in this order; -1 for roots
    std::vector<Index> task_starts{0},
        run_starts{0};  // starts of tasks and of runs, among the variables
    std::vector<Index> color_starts{0}, task_runs{0};  // tasks of a colour, runs of a task

  private:
    // Return (C,): for each component the first colour that no neighbour has yet.
    static std::vector<Index> colors(const PairEnergies& pairs, const std::vector<Index>& variables,
                                     const std::vector<Index>& starts,
                                     const std::vector<Index>& component) {
        std::vector<Index> color(starts.size() - 1, -1);
        // for each colour, the last component that found it at a neighbour
        std::vector<Index> taken;
        for (Index c = 0; c < static_cast<Index>(color.size()); ++c) {
            for (Index k = starts[c]; k < starts[c + 1]; ++k)
                for (const Index* arc = pairs.begin(variables[k]); arc != pairs.end(variables[k]);
                     ++arc) {
                    const Index near = color[component[pairs.head(*arc)]];
                    if (near >= 0) taken[near] = c;
                }
            Index free = 0;
            while (free < static_cast<Index>(taken.size()) && taken[free] == c) ++free;
            if (free == static_cast<Index>(taken.size())) taken.push_back(-1);
            color[c] = free;
        }
        return color;
    }
};

}  // namespace setwise

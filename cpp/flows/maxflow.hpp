// Maximum flow and minimum cut by incremental breadth-first search.
//
// See Goldberg, Hed, Kaplan, Tarjan, Werneck, "Maximum flows by incremental breadth-first search"
// (ESA 2011), and, for pseudoflows and the second solution, Goldberg, Hed, Kaplan, Kohli, Tarjan,
// Werneck, "Faster and more dynamic maximum flow by incremental breadth-first search" (ESA 2015).
//
// A state is a pseudoflow: residual capacities of the arcs and a signed excess of every node (the
// flow that the source can still send there minus the flow that it can still send to the sink). A
// cut (A, B) is closed if no residual arc leads from A to B. It is minimum if in addition A has no
// deficit and B no excess.
//     1. In A, trees of arcs that lead to deficits grow level by level and take the excess that they
//        meet. When they cannot grow, their nodes move to B.
//     2. In B, in the same way, trees that come from excesses grow and meet deficits. When they cannot
//        grow, their nodes move to A.
// Each step keeps the cut closed, so the two steps solve the problem from any closed cut. Their
// cost depends on the errors of that cut and not on the size of the graph. A deep search is
// continued from both ends: the excesses or deficits that trees would meet grow trees of their own,
// and the step ends when one kind of tree cannot grow.
//
// Labels are distances in the tree. An orphan, whose arc to its parent was saturated, looks for a
// parent of the same label, then for the least label; otherwise it leaves the tree. When no node of
// some distance is left, all nodes beyond it leave (a gap), so that no label rises step by step.
// Every augmentation makes a residual capacity or an excess exactly zero, also in floating point:
// no tolerance is used.
//
// The flow sent is an exact sum, but residual capacities and excesses are rounded. `lost` is the
// sum of these rounding errors. The state is a pseudoflow for arcs and terminals that are changed
// by at most `lost` in total, so its minimum cut exceeds the least cut by at most `lost`. The
// rounding of an excess that stays large, as that of a hard seed, does not matter and is not
// counted. An excess that results from a change does not stay large, so rounding errors of such
// excesses, up to `lent`, are counted in full.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "flows/flow_topology.hpp"
#include "numeric/compensated_sum.hpp"
#include "numeric/large_array.hpp"
#include "numeric/poll.hpp"
#include "numeric/prefetch.hpp"
#include "numeric/relaxed.hpp"

namespace setwise {

// Capacity: std::int64_t (the sum of all capacities and excesses must fit) or double, where an
// excess may be infinite. A solver may be copied; a copy shares the topology.
template <class Topology, class Capacity>
class MaxFlow {
  public:
    using Rows = typename Topology::Rows;

    explicit MaxFlow(std::shared_ptr<const Topology> topology)
        : topology_(std::move(topology)),
          nodes_(static_cast<std::size_t>(topology_->nodes() + 2 * topology_->margin())),
          residual_(static_cast<std::size_t>(topology_->arcs())) {}

    // Make a solver for the nodes [low, high) of another solver, working on that one's state. No
    // residual arc may lead into these nodes or out of them; then solvers of disjoint nodes may
    // work at once.
    MaxFlow(MaxFlow& whole, FlowNode low, FlowNode high)
        : topology_(whole.topology_),
          first_(whole.nodes_.data() + topology_->margin()),
          arcs_(whole.residual_.data()),
          low_(low),
          high_(high) {}

    // Allocate memory for a topology that was built anew; the caller must then write the state.
    void fit() {
        const auto nodes = static_cast<std::size_t>(topology_->nodes() + 2 * topology_->margin()),
                   arcs = static_cast<std::size_t>(topology_->arcs());
        if (nodes_.size() < nodes) nodes_ = ZeroedArray<Node>(std::max(nodes, 2 * nodes_.size()));
        if (residual_.size() < arcs)
            residual_ = ZeroedArray<Capacity>(std::max(arcs, 2 * residual_.size()));
    }

    // Write the capacities of an edge whose arcs are a and b. At once, send the excess of one end
    // to a deficit of the other. Much of the flow passes over a single edge, and here it needs no
    // search and no branch.
    void join(FlowNode tail, FlowNode head, FlowArc a, FlowArc b, Capacity there, Capacity back) {
        static_assert(std::is_integral_v<Capacity>, "the rounding is not counted here");
        Capacity &x = excess(tail), &y = excess(head);
        const Capacity flow = std::max<Capacity>(0, std::min(std::min(x, -y), there)) -
                              std::max<Capacity>(0, std::min(std::min(-x, y), back));
        residual(a) = there - flow;
        residual(b) = back + flow;
        x -= flow;
        y += flow;
    }
    // Write the arcs of the nodes beside the graph as arcs without capacity.
    void clear_margin() {
        const Rows g = topology_->rows();
        Capacity* const arcs = residual_.data();
        std::fill(arcs, arcs + g.begin(0), Capacity(0));
        std::fill(arcs + g.begin(topology_->nodes()), arcs + topology_->arcs(), Capacity(0));
    }

    const Topology& topology() const { return *topology_; }

    // The state: write it before a call of solve, read it after the call.
    Capacity& residual(FlowArc a) { return residual_[static_cast<std::size_t>(a)]; }
    Capacity residual(FlowArc a) const { return residual_[static_cast<std::size_t>(a)]; }
    Capacity& excess(FlowNode v) { return nodes_[place(v)].excess; }
    Capacity excess(FlowNode v) const { return nodes_[place(v)].excess; }

    void prefetch_node(FlowNode v) const {
        prefetch(nodes_.data() + place(v));
        prefetch(residual_.data() + topology_->rows().begin(v));
    }

    // Return the side of a node in the minimum cut that was found.
    bool source_side(FlowNode v) const { return nodes_[place(v)].label == on_source_side; }

    void forget_least_side() { sink_side_is_least_ = false; }

    // Move the nodes that reach no deficit to the source side. Of all minimum cuts, this is the one
    // with the smallest sink side. If the search is interrupted, the cut stays as it was.
    void make_sink_side_least(Poll poll) {
        if (sink_side_is_least_) return;
        begin(poll);
        const Rows g = topology_->rows();
        constexpr Label either = 3;
        const auto settle = [&](Label side) {
            for (Node& v : here())
                if (v.label == either) v.label = side;
        };
        roots_.clear();
        for (FlowNode v = low_; v < high_; ++v) {
            Node& x = node(v);
            if (x.label == on_source_side) continue;
            if (x.excess < 0)
                roots_.push_back(v);
            else
                x.label = either;
        }
        try {
            while (!roots_.empty()) {
                if ((++steps_ & 4095) == 0) poll_();
                const FlowNode u = roots_.back();
                roots_.pop_back();
                for (FlowArc a = g.begin(u); a < g.end(u); ++a) {
                    const FlowNode v = g.head(u, a);
                    if (node(v).label != either || arcs_[g.sister(u, a)] == 0) continue;
                    node(v).label = on_sink_side;
                    roots_.push_back(v);
                }
            }
        } catch (...) {
            settle(on_sink_side);
            throw;
        }
        settle(on_source_side);
        sink_side_is_least_ = true;
    }

    // Return the rounding error since the state was last written as a whole.
    Capacity lost() const { return lost_; }
    void lose(Capacity amount) { lost_ += amount; }
    void forget_lost() { lost_ = lent_ = 0; }

    // The largest excess or deficit that remained when arcs or terminals with flow changed. Such
    // flow is sent back, and smaller excesses would be lost in its rounding errors.
    static constexpr Capacity most_lent = std::numeric_limits<Capacity>::max() / 64;
    Capacity lent() const { return lent_; }
    void lend(Capacity amount) { lent_ = std::max(lent_, std::min(amount, most_lent)); }

    using Sum = CompensatedSum<Capacity>;

    // Abandon a search whose trees grow deeper. The flow is then valid, but the cut is not.
    void give_up_beyond(std::int32_t depth) { deepest_ = depth; }
    bool gave_up() const { return gave_up_; }

    // Return whether there are so few excesses and deficits that nearly all nodes lie far from
    // both.
    bool has_few_roots() {
        begin(nullptr);
        const auto [excesses, deficits] = count_roots();
        return few(excesses, deficits);
    }

    // Solve from scratch. Return the flow from excesses to deficits.
    Sum solve(Poll poll) {
        begin(poll);
        const auto [excesses, deficits] = count_roots();
        const bool seeds = few(excesses, deficits);
        flow_ = {};
        send_nearby();
        // Trees grow from the side with fewer roots.
        if (deficits <= excesses)
            search_all<true, on_source_side>(seeds);
        else
            search_all<false, on_sink_side>(seeds);
        return flow_;
    }

    // Solve from scratch after all edges were written by `join`, which has sent the flow over
    // single edges. Trees grow from deficits, so that the cut mostly has the smallest sink side at
    // once.
    Sum solve_joined(Poll poll) {
        begin(poll);
        const auto [excesses, deficits] = count_roots();
        flow_ = {};
        search_all<true, on_source_side>(few(excesses, deficits));
        return flow_;
    }

    // Solve again after changes, from the cut of the last call. `changed` are the nodes whose
    // excess was written since. No residual arc from the source side to the sink side may have
    // appeared (saturate such arcs, which changes the excess of their ends).
    Sum solve_again(const std::vector<FlowNode>& changed, Poll poll) {
        begin(poll);
        flow_ = {};
        roots_.clear();
        for (const FlowNode v : changed)
            if (node(v).label == on_source_side && node(v).excess < 0) roots_.push_back(v);
        search_from_roots<true, on_source_side>();
        roots_.clear();
        for (const FlowNode v : changed)
            if (node(v).label == on_sink_side && node(v).excess > 0) roots_.push_back(v);
        search_from_roots<false, on_sink_side>();
        sink_side_is_least_ = false;
        return flow_;
    }

    // Within one side, send the surplus of nodes to nodes that lack flow, without changing the cut.
    // A surplus on the source side is written as an excess and a lack on the sink side as a
    // deficit; the nodes that can balance it have the opposite sign.
    void balance(bool source, Poll poll) {
        begin(poll);
        const Label side = source ? on_source_side : on_sink_side;
        roots_.clear();
        for (FlowNode v = low_; v < high_; ++v)
            if (node(v).label == side && (source ? node(v).excess > 0 : node(v).excess < 0))
                roots_.push_back(v);
        if (source)
            search_from_roots<false, on_source_side>();
        else
            search_from_roots<true, on_sink_side>();
    }

  private:
    // Twice the distance from the root, plus 1 in the trees that lead to deficits. Outside the
    // trees, the side of the node in place of a distance.
    using Label = std::int32_t;
    static constexpr Label on_source_side = 0, on_sink_side = 1;
    static constexpr FlowArc root = -1, orphan = -2;
    static constexpr FlowNode nobody = -1;
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    // After one_sided visits per node a search continues from both ends. Not tuned.
    static constexpr std::size_t one_sided = 3;
    // If there are many_nodes nodes per root, the search runs from both ends from the start. Not
    // tuned.
    static constexpr std::size_t many_nodes = 64;
    // Nodes with more than most_nearby arcs send nothing before trees are grown. Not tuned.
    static constexpr std::size_t most_nearby = 32;

    // A solver of neighbouring nodes may read labels and parents at any time. The value does not
    // matter, because no flow can pass between the two.
    struct Node {  // begins as zeros: without excess, on the source side
        Capacity excess;
        Relaxed<Label> label;
        Relaxed<FlowArc> parent;  // the arc to the parent, for a node in a tree
        FlowArc current;          // arcs before it lead to no parent of this label
        FlowNode next;            // next node in the list of the orphans of this label
    };

    // Trees of one kind: those with `sink` lead to deficits, the others come from excesses. The two
    // kinds are mirror images: all arcs reversed and all signs changed.
    struct Trees {
        Label depth = 0;                          // largest label, apart from those of next_level
        std::vector<FlowNode> level, next_level;  // nodes of the present label and of the next one
        std::vector<FlowNode> orphans;            // for each distance, the first orphan of its list
        std::vector<FlowNode> sizes;              // for each distance, the number of nodes
        std::size_t lowest = none, highest = 0;   // range of the distances of orphans
        bool growing = false;
        std::size_t work = 0;                     // number of nodes visited in this search

        std::size_t after_a_level() const { return work + level.size(); }
        void forget_orphans() {  // orphans are left only if a search was abandoned
            for (; lowest <= highest; ++lowest) orphans[lowest] = nobody;
            lowest = none;
            highest = 0;
        }
        void restart() {
            depth = 1;
            work = 0;
            level.clear();
            sizes.assign(16, 0);
        }
        FlowNode& size(Label label) { return sizes[static_cast<std::size_t>(label / 2)]; }
    };

    std::size_t place(FlowNode v) const {
        return static_cast<std::size_t>(v + topology_->margin());
    }
    Node& node(FlowNode v) { return first_[v]; }

    struct Nodes {
        Node *first, *last;
        Node* begin() const { return first; }
        Node* end() const { return last; }
    };
    Nodes here() const { return {first_ + low_, first_ + high_}; }

    void begin(Poll poll) {
        poll_ = poll;
        gave_up_ = false;
        if (nodes_.empty()) return;  // the memory of another solver is used
        first_ = nodes_.data() + topology_->margin();
        arcs_ = residual_.data();
        low_ = 0;
        high_ = topology_->nodes();
    }

    template <bool sink>
    static constexpr Label label_of(Label distance) {
        return 2 * distance + sink;
    }
    template <bool sink>
    static bool in_tree(Label label) {
        return label > 1 && (label & 1) == sink;
    }
    // Return what the trees can take from a node.
    template <bool sink>
    static Capacity supply(const Node& v) {
        return sink ? v.excess : -v.excess;
    }
    // Return the residual capacity between node v and its parent, to which arc a leads, in the
    // tree's direction.
    template <bool sink>
    Capacity& residual_along(const Rows& g, FlowNode v, FlowArc a) {
        return arcs_[sink ? a : g.sister(v, a)];
    }
    template <bool sink>
    void pass(const Rows& g, FlowNode v, FlowArc a, Capacity amount) {
        Capacity &there = residual_along<sink>(g, v, a), &back = residual_along<!sink>(g, v, a);
        const Capacity less = there - amount, more = back + amount;
        if constexpr (std::is_floating_point_v<Capacity>)
            lost_ += std::abs((there - less) - amount) + std::abs(lost_in_sum(back, amount, more));
        there = less;
        back = more;
    }

    // A guard that dissolves the trees, also those of an abandoned search: their nodes then belong
    // to the side of their roots.
    struct Settle {
        MaxFlow& solver;
        ~Settle() {
            for (Trees& trees : solver.trees_) trees.forget_orphans();
            if (solver.everywhere_) {
                for (Node& v : solver.here()) v.label = v.label & 1;
            } else {
                for (const FlowNode v : solver.touched_)
                    solver.node(v).label = solver.node(v).label & 1;
            }
        }
    };

    // Send excesses to deficits one arc away, and two arcs away through a node without either. Much
    // of the flow takes such short paths, and this is one sequential pass over memory, without
    // trees.
    void send_nearby() {
        const Rows g = topology_->rows();
        std::array<FlowArc, most_nearby> givers, takers;
        for (FlowNode v = low_; v < high_; ++v) {
            if ((++steps_ & 65535) == 0) poll_();
            Node& x = node(v);
            if (x.excess < 0) continue;
            const FlowArc begin = g.begin(v), end = g.end(v);
            if (x.excess > 0) {
                for (FlowArc a = begin; a < end; ++a) {
                    const Capacity passage = arcs_[a];
                    if (passage == 0)
                        // This check comes first, because the node may belong to another solver.
                        continue;
                    Node& y = node(g.head(v, a));
                    if (!(y.excess < 0)) continue;
                    const Capacity amount = std::min({x.excess, -y.excess, passage});
                    pass<true>(g, v, a, amount);
                    use<true>(x, -amount);
                    use<true>(y, amount);
                    flow_.add(amount);
                    if (x.excess == 0) break;
                }
                continue;
            }
            if (end - begin > static_cast<FlowArc>(most_nearby)) continue;
            std::size_t n_givers = 0, n_takers = 0;
            for (FlowArc a = begin; a < end; ++a) {
                const bool out = arcs_[a] > 0, in = arcs_[g.sister(v, a)] > 0;
                if (!out && !in) continue;
                const Capacity excess = node(g.head(v, a)).excess;
                givers[n_givers] = takers[n_takers] = a;
                n_givers += in && excess > 0;
                n_takers += out && excess < 0;
            }
            for (std::size_t i = 0, j = 0; i < n_givers && j < n_takers;) {
                const FlowArc a = givers[i], b = takers[j];
                Node &from = node(g.head(v, a)), &to = node(g.head(v, b));
                const Capacity in = arcs_[g.sister(v, a)], out = arcs_[b];
                const Capacity amount = std::min({from.excess, in, -to.excess, out});
                pass<false>(g, v, a, amount);
                pass<true>(g, v, b, amount);
                use<true>(from, -amount);
                use<true>(to, amount);
                flow_.add(amount);
                const bool emptied = from.excess == 0 || in == amount;
                j += to.excess == 0 || out == amount;
                i += emptied;
            }
        }
    }

    std::pair<std::size_t, std::size_t> count_roots() {
        std::size_t excesses = 0, deficits = 0;
        for (const Node& v : here()) {
            excesses += v.excess > 0;
            deficits += v.excess < 0;
        }
        return {excesses, deficits};
    }
    bool few(std::size_t excesses, std::size_t deficits) const {
        return many_nodes * std::max(excesses, deficits) < static_cast<std::size_t>(high_ - low_);
    }

    // Grow trees over all nodes, from all roots.
    template <bool sink, Label free>
    void search_all(bool seeds) {
        const Settle settle{*this};
        everywhere_ = true;
        Trees& trees = trees_[sink];
        trees.restart();
        for (FlowNode v = low_; v < high_; ++v) {
            if (supply<sink>(node(v)) < 0)
                plant<sink>(trees, v);
            else
                node(v).label = free;
        }
        search<sink, free>(seeds);
    }

    // Grow trees over the nodes of label `free` from the roots in roots_.
    template <bool sink, Label free>
    void search_from_roots() {
        touched_.clear();
        const Settle settle{*this};
        everywhere_ = false;
        Trees& trees = trees_[sink];
        trees.restart();
        for (const FlowNode v : roots_) {
            if (node(v).label != free) continue;  // this root was listed twice
            plant<sink>(trees, v);
            touched_.push_back(v);
        }
        search<sink, free>(false);
    }

    template <bool sink>
    void plant(Trees& trees, FlowNode v) {
        node(v).label = label_of<sink>(1);
        node(v).parent = root;
        trees.level.push_back(v);
        ++trees.size(label_of<sink>(1));
    }

    // With few roots both kinds of trees grow from the start, because a cut beside the roots of one
    // kind would repeatedly make orphans of much of its trees.
    template <bool sink, Label free>
    void search(bool seeds) {
        Trees &ours = trees_[sink], &theirs = trees_[!sink];
        bool both = false;
        sink_side_is_least_ = sink;
        while (!ours.level.empty()) {
            if (std::max(ours.depth, both ? theirs.depth : 0) > deepest_) {
                gave_up_ = true;
                break;
            }
            if (both && !seeds && theirs.level.empty()) {
                sink_side_is_least_ = !sink;
                // The other trees cannot grow, so all nodes that they have not reached are on this
                // side.
                for (Node& v : here())
                    if (v.label == free) v.label = sink ? on_sink_side : on_source_side;
                break;
            }
            if (both && !theirs.level.empty() && theirs.after_a_level() < ours.after_a_level()) {
                grow<!sink, free>();
                continue;
            }
            if (!both && (seeds || ours.after_a_level() >
                                       one_sided * static_cast<std::size_t>(high_ - low_))) {
                both = everywhere_ = true;
                theirs.restart();
                for (FlowNode v = low_; v < high_; ++v)
                    if (node(v).label == free && supply<sink>(node(v)) > 0) plant<!sink>(theirs, v);
                continue;
            }
            grow<sink, free>();
        }
    }

    // Add a level to the trees, and augment wherever they meet supply or the other trees.
    template <bool sink, Label free>
    void grow() {
        const Rows g = topology_->rows();
        Trees& trees = trees_[sink];
        const Label here = label_of<sink>(trees.depth);
        trees.next_level.clear();
        if (trees.sizes.size() < static_cast<std::size_t>(trees.depth) + 2)
            trees.sizes.resize(2 * trees.sizes.size(), 0);
        trees.growing = true;
        trees.work += trees.level.size();
        for (std::size_t k = 0; k < trees.level.size(); ++k) {
            if ((++steps_ & 4095) == 0) poll_();
            if (k + 8 < trees.level.size()) prefetch_place(g, trees.level[k + 8]);
            const FlowNode u = trees.level[k];
            if (node(u).label != here) continue;
            const FlowArc end = g.end(u);
            for (FlowArc b = g.begin(u); b < end; ++b) {
                const FlowNode v = g.head(u, b);
                Node& y = node(v);
                const Label label = y.label;
                if (label != free && !in_tree<!sink>(label)) continue;
                const FlowArc a = g.sister(u, b);
                const Capacity& passage = residual_along<sink>(g, v, a);
                if (passage == 0) continue;
                while (passage > 0 && node(u).label == here) {
                    const bool met = y.label != free;
                    if (!met && supply<sink>(y) == 0) break;
                    augment<sink>(g, v, a, u, met);
                    if (trees.lowest != none) adopt<sink, free>();
                    if (met && trees_[!sink].lowest != none) adopt<!sink, free>();
                }
                if (node(u).label != here) break;
                if (passage == 0 || y.label != free) continue;
                y.label = here + 2;
                y.parent = y.current = a;
                ++trees.size(here + 2);
                trees.next_level.push_back(v);
                if (!everywhere_) touched_.push_back(v);
            }
        }
        trees.growing = false;
        trees.level.swap(trees.next_level);
        ++trees.depth;
    }

    void prefetch_place(const Rows& g, FlowNode v) const {
        prefetch(first_ + v);
        prefetch(arcs_ + g.begin(v));
    }

    // Move an excess or a deficit towards zero. Rounding errors do not matter if much of it is
    // left.
    template <bool sink>
    void use(Node& v, Capacity amount) {
        const Capacity before = v.excess, change = sink ? amount : -amount;
        v.excess += change;
        if constexpr (std::is_floating_point_v<Capacity>)
            if (std::abs(v.excess) <= 16 * std::max(std::abs(change), lent_))
                lost_ += std::abs((before - v.excess) + change);
    }

    // Send what is possible down the tree of u, over arc a from v: from the root of v's tree if v
    // is in one, otherwise from v itself.
    template <bool sink>
    void augment(const Rows& g, FlowNode v, FlowArc a, FlowNode u, bool met) {
        Capacity amount = std::min(residual_along<sink>(g, v, a), bottleneck<sink>(g, u));
        amount = std::min(amount, met ? bottleneck<!sink>(g, v) : supply<sink>(node(v)));
        pass<sink>(g, v, a, amount);
        send<sink>(g, u, amount);
        if (met)
            send<!sink>(g, v, amount);
        else
            use<sink>(node(v), -amount);
        flow_.add(amount);
    }

    // Return the flow that the path from v to its root and the root can take.
    template <bool sink>
    Capacity bottleneck(const Rows& g, FlowNode v) {
        Capacity amount = std::numeric_limits<Capacity>::max();
        for (FlowArc a; (a = node(v).parent) != root; v = g.head(v, a))
            amount = std::min(amount, residual_along<sink>(g, v, a));
        return std::min(amount, -supply<sink>(node(v)));
    }

    template <bool sink>
    void send(const Rows& g, FlowNode v, Capacity amount) {
        for (FlowArc a; (a = node(v).parent) != root;) {
            const FlowNode parent = g.head(v, a);
            pass<sink>(g, v, a, amount);
            if (residual_along<sink>(g, v, a) == 0) disown<sink>(v);
            v = parent;
        }
        use<sink>(node(v), amount);
        if (node(v).excess == 0) disown<sink>(v);
    }

    template <bool sink>
    void disown(FlowNode v) {
        Trees& trees = trees_[sink];
        Node& x = node(v);
        x.parent = orphan;
        const auto distance = static_cast<std::size_t>(x.label / 2);
        if (trees.orphans.size() <= distance) trees.orphans.resize(2 * distance + 16, nobody);
        x.next = trees.orphans[distance];
        trees.orphans[distance] = v;
        trees.lowest = std::min(trees.lowest, distance);
        trees.highest = std::max(trees.highest, distance);
    }

    // Find parents for the orphans, those of small label first.
    template <bool sink, Label free>
    void adopt() {
        const Rows g = topology_->rows();
        Trees& trees = trees_[sink];
        const Label here = label_of<sink>(trees.depth), most = here + (trees.growing ? 2 : 0);
        bool gap =
            // whether some distance has no node left, so that no orphan has a path to a root
            false;
        for (; trees.lowest <= trees.highest; ++trees.lowest) {
            while (trees.orphans[trees.lowest] != nobody) {
                const FlowNode v = trees.orphans[trees.lowest];
                Node& x = node(v);
                trees.orphans[trees.lowest] = x.next;
                ++trees.work;
                if ((++steps_ & 4095) == 0)
                    poll_();  // a single path may change the parents of much of a tree, many times
                if (!gap && find_parent<sink>(g, v, x)) continue;
                const FlowArc end = g.end(v);
                const Label beyond = x.label + 2;
                Label least = gap ? 0 : most;
                FlowArc best = orphan;
                for (FlowArc a = g.begin(v); a < end; ++a) {
                    const FlowNode w = g.head(v, a);
                    const Node& y = node(w);
                    const Label label = y.label;
                    if (!in_tree<sink>(label)) continue;
                    if (label == beyond && y.parent == g.sister(v, a)) disown<sink>(w);
                    if (label < least && residual_along<sink>(g, v, a) > 0) {
                        least = label;
                        best = a;
                    }
                }
                // A path to a root passes through nodes of every distance below that of its first
                // node.
                gap |= --trees.size(x.label) == 0 && least >= x.label;
                if (gap || best == orphan) {
                    x.label = free;
                    continue;
                }
                least += 2;
                x.label = least;
                x.parent = x.current = best;
                ++trees.size(least);
                if (least == here)
                    trees.level.push_back(v);
                else if (least > here)
                    trees.next_level.push_back(v);
            }
        }
        trees.lowest = none;
        trees.highest = 0;
    }

    template <bool sink>
    bool find_parent(const Rows& g, FlowNode v, Node& x) {
        const Label nearer = x.label - 2;
        if (nearer < 2) return false;  // v was a root, which has no parent
        const FlowArc end = g.end(v);
        for (FlowArc a = x.current; a < end; ++a)
            if (node(g.head(v, a)).label == nearer && residual_along<sink>(g, v, a) > 0) {
                x.parent = x.current = a;
                return true;
            }
        return false;
    }

    std::shared_ptr<const Topology> topology_;
    ZeroedArray<Node> nodes_;
    ZeroedArray<Capacity> residual_;
    std::array<Trees, 2> trees_;
    std::vector<FlowNode> roots_, touched_;
    Sum flow_;
    Capacity lost_ = 0, lent_ = 0;
    bool sink_side_is_least_ = false;
    // whether trees may be anywhere; otherwise touched_ lists their nodes
    bool everywhere_ = false;
    bool gave_up_ = false;
    Label deepest_ = std::numeric_limits<Label>::max();
    Node* first_ = nullptr;        // the place of node 0
    Capacity* arcs_ = nullptr;     // residual capacities
    FlowNode low_ = 0, high_ = 0;  // the nodes solved for
    std::size_t steps_ = 0;
    Poll poll_ = nullptr;
};

// Return the amount by which a node's excess exceeds the capacity of its terminals, or its deficit.
template <class Capacity>
Capacity beyond_terminals(Capacity excess, Capacity net) {
    return std::abs(excess) - std::max<Capacity>(excess > 0 ? net : -net, 0);
}

// Return the rounding error of a flow that sent `sent`; 0 if it is within a few units in the last
// place.
template <class Flow>
double unproved(const Flow& flow, double sent) {
    return flow.lost() > 64 * std::numeric_limits<double>::epsilon() * sent ? flow.lost() : 0.0;
}

}  // namespace setwise

// The Python bindings of the message passing kernels.
#include <algorithm>
#include <vector>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "messages/message_search.hpp"
#include "messages/odd_cycles.hpp"
#include "messages/tree_reweighted.hpp"

namespace {

using namespace setwise::bind;
using Ints = In<Index>;
using Doubles = In<double>;
using Bytes = In<Byte>;

void require_below(const std::vector<Index>& values, Index end, const char* what) {
    for (const Index value : values) require(0 <= value && value < end, what);
}

// Require that starts[f]..starts[f + 1] cover exactly `size` members.
void require_starts(const std::vector<Index>& starts, std::size_t size, const char* what) {
    require(!starts.empty() && starts.front() == 0 && starts.back() == static_cast<Index>(size),
            what);
    for (std::size_t f = 0; f + 1 < starts.size(); ++f) require(starts[f] <= starts[f + 1], what);
}

void check_pairs(const std::vector<Index>& low, const std::vector<Index>& high,
                 const std::vector<Index>& table, const std::vector<double>& weight, Index n,
                 Index tables) {
    const std::size_t pairs = low.size();
    require(high.size() == pairs && table.size() == pairs && weight.size() == pairs,
            "pairs must have two ends, a table and a weight each");
    require_below(low, n, "low must hold variables");
    require_below(high, n, "high must hold variables");
    for (std::size_t e = 0; e < pairs; ++e)
        require(low[e] < high[e] && (e == 0 || low[e - 1] <= low[e]),
                "pairs must be sorted by their lower end");
    for (const Index place : table)
        require(-1 <= place && place < tables, "table must hold -1 or positions in tables");
}

void check(const setwise::FactorGraph& g) {
    require(g.labels >= 1 && static_cast<Index>(g.unary.size()) == g.n * g.labels,
            "unary must have n * labels entries");
    check_pairs(g.low, g.high, g.table, g.weight, g.n,
                static_cast<Index>(g.tables.size()) / (g.labels * g.labels));
    require_starts(g.count_starts, g.count_variables.size(), "count_starts must cover the members");
    require_below(g.count_variables, g.n, "count_variables must hold variables");
    require(g.count_patterns.size() == g.count_variables.size() &&
                g.count_tables.size() + 1 == g.count_starts.size(),
            "count factors must have a table each, their members a pattern each");
    require_below(g.count_patterns, static_cast<Index>(g.patterns.size()) / g.labels,
                  "count_patterns must hold positions in patterns");
    for (std::size_t f = 0; f < g.count_tables.size(); ++f) {
        const Index size = g.count_starts[f + 1] - g.count_starts[f] + 1, at = g.count_tables[f];
        require(0 <= at && at <= static_cast<Index>(g.count_values.size()) - size,
                "count_tables must lie inside count_values");
    }
    require_starts(g.robust_starts, g.robust_variables.size(),
                   "robust_starts must cover the members");
    require_below(g.robust_variables, g.n, "robust_variables must hold variables");
    require(g.robust_weights.size() + 1 == g.robust_starts.size() &&
                g.robust_truncations.size() == g.robust_weights.size(),
            "robust regions must have a weight and a truncation each");
    require_starts(g.clique_starts, g.clique_variables.size(),
                   "clique_starts must cover the members");
    require_below(g.clique_variables, g.n, "clique_variables must hold variables");
    require(g.clique_tables.size() + 1 == g.clique_starts.size(), "cliques must have a table each");
    for (std::size_t c = 0; c < g.clique_tables.size(); ++c) {
        Index cells = 1;
        for (Index m = g.clique_starts[c]; m < g.clique_starts[c + 1]; ++m) {
            require(cells < most / g.labels, "tables must have fewer than 2**31 cells");
            cells *= g.labels;
        }
        const Index at = g.clique_tables[c];
        require(0 <= at && at <= static_cast<Index>(g.clique_values.size()) - cells,
                "clique_tables must lie inside clique_values");
    }
}

std::vector<Index> labels_of(const setwise::MessageSearch& search, const Ints& labels) {
    std::vector<Index> copied = copy(labels);
    require(static_cast<Index>(copied.size()) == search.graph().n, "labels must have n entries");
    require_below(copied, search.graph().labels, "labels must lie below the number of labels");
    return copied;
}

void make(setwise::MessageSearch* self, Index n, Index labels, double constant, Doubles unary,
          Ints low, Ints high, Ints table, Doubles weight, Doubles tables, Ints count_starts,
          Ints count_variables, Ints count_patterns, Ints count_tables, Doubles count_values,
          Bytes patterns, Ints robust_starts, Ints robust_variables, Doubles robust_weights,
          Doubles robust_truncations, Ints clique_starts, Ints clique_variables, Ints clique_tables,
          Doubles clique_values, Doubles forward, Doubles backward, double damping) {
    setwise::FactorGraph g;
    g.n = n;
    g.labels = labels;
    g.constant = constant;
    g.unary = copy(unary);
    g.low = copy(low);
    g.high = copy(high);
    g.table = copy(table);
    g.weight = copy(weight);
    g.tables = copy(tables);
    g.count_starts = copy(count_starts);
    g.count_variables = copy(count_variables);
    g.count_patterns = copy(count_patterns);
    g.count_tables = copy(count_tables);
    g.count_values = copy(count_values);
    g.patterns = copy(patterns);
    g.robust_starts = copy(robust_starts);
    g.robust_variables = copy(robust_variables);
    g.robust_weights = copy(robust_weights);
    g.robust_truncations = copy(robust_truncations);
    g.clique_starts = copy(clique_starts);
    g.clique_variables = copy(clique_variables);
    g.clique_tables = copy(clique_tables);
    g.clique_values = copy(clique_values);
    check(g);
    require(static_cast<Index>(forward.size()) == n && static_cast<Index>(backward.size()) == n,
            "shares must have an entry for each variable");
    require(0 < damping && damping < 1, "damping must lie between 0 and 1");
    g.index();
    new (self) setwise::MessageSearch(std::move(g), copy(forward), copy(backward), damping);
}

void make_sweeps(setwise::TreeReweighted* self, Index n, Index labels, double constant,
                 Doubles unary, Ints low, Ints high, Doubles weight, Ints table, Doubles tables) {
    setwise::PaddedPairs g;
    g.n = n;
    g.labels = labels;
    g.low = copy(low);
    g.high = copy(high);
    g.weight = copy(weight);
    g.table = copy(table);
    require(labels >= 1 && n >= 0 && static_cast<Index>(unary.size()) == n * labels,
            "unary must have n * labels entries");
    check_pairs(g.low, g.high, g.table, g.weight, n,
                static_cast<Index>(tables.size()) / (labels * labels));
    g.fill(unary.data(), copy(tables));
    new (self) setwise::TreeReweighted(std::move(g), constant);
}

}  // namespace

void bind_messages(nb::module_& m) {
    using setwise::MessageSearch;
    nb::class_<MessageSearch>(m, "MessageSearch")
        .def("__init__", &make, "n"_a, "labels"_a, "constant"_a, "unary"_a.noconvert(),
             "low"_a.noconvert(), "high"_a.noconvert(), "table"_a.noconvert(),
             "weight"_a.noconvert(), "tables"_a.noconvert(), "count_starts"_a.noconvert(),
             "count_variables"_a.noconvert(), "count_patterns"_a.noconvert(),
             "count_tables"_a.noconvert(), "count_values"_a.noconvert(), "patterns"_a.noconvert(),
             "robust_starts"_a.noconvert(), "robust_variables"_a.noconvert(),
             "robust_weights"_a.noconvert(), "robust_truncations"_a.noconvert(),
             "clique_starts"_a.noconvert(), "clique_variables"_a.noconvert(),
             "clique_tables"_a.noconvert(), "clique_values"_a.noconvert(), "forward"_a.noconvert(),
             "backward"_a.noconvert(), "damping"_a, Unlocked())
        .def(
            "dual_pass", [](MessageSearch& s) { s.pass(true, poll_signals); }, Unlocked())
        .def(
            "max_product_pass", [](MessageSearch& s) { s.pass(false, poll_signals); }, Unlocked())
        .def(
            "bound", [](MessageSearch& s) { return s.bound(poll_signals); }, Unlocked())
        .def("magnitude", &MessageSearch::magnitude, Unlocked())
        .def(
            "add_cycles",
            [](MessageSearch& s, Ints starts, Ints variables) {
                const std::vector<Index> from = copy(starts), cycles = copy(variables);
                require_starts(from, cycles.size(), "starts must cover the variables");
                require_below(cycles, s.graph().n, "variables must be those of the graph");
                for (std::size_t c = 0; c + 1 < from.size(); ++c)
                    require(from[c + 1] - from[c] >= 3,
                            "a cycle must have three variables at least");
                require(s.add_cycles(from, cycles),
                        "neighbours in a cycle must be pairs, and cycles are added once");
            },
            "starts"_a.noconvert(), "variables"_a.noconvert(), Unlocked())
        .def(
            "step", [](MessageSearch& s, double rise) { s.step(rise, poll_signals); }, "rise"_a,
            Unlocked())
        .def(
            "offer",
            [](MessageSearch& s, Ints labels) { s.offer(labels_of(s, labels), poll_signals); },
            "labels"_a.noconvert(), Unlocked())
        .def(
            "move_tree",
            [](MessageSearch& s, bool anew, Ints order, Doubles noise) {
                const std::vector<Index> visits = copy(order);
                require(!s.best().empty(), "a walk starts from a labelling");
                require(static_cast<Index>(visits.size()) == s.graph().n,
                        "order must hold every variable");
                require_below(visits, s.graph().n, "order must hold variables");
                require(static_cast<Index>(noise.size()) == s.graph().n * s.graph().labels,
                        "noise must have n * labels entries");
                s.move_tree(anew, visits, copy(noise), poll_signals);
            },
            "anew"_a, "order"_a.noconvert(), "noise"_a.noconvert(), Unlocked())
        .def(
            "best",
            [](const MessageSearch& s, Out<Index> labels) {
                require(labels.size() == s.best().size(), "labels must have n entries");
                std::copy(s.best().begin(), s.best().end(), labels.data());
                return s.value();
            },
            "labels"_a.noconvert(), Unlocked());
    using setwise::TreeReweighted;
    nb::class_<TreeReweighted>(m, "TreeReweighted")
        .def("__init__", &make_sweeps, "n"_a, "labels"_a, "constant"_a, "unary"_a.noconvert(),
             "low"_a.noconvert(), "high"_a.noconvert(), "weight"_a.noconvert(),
             "table"_a.noconvert(), "tables"_a.noconvert(), Unlocked())
        .def(
            "dual_pass", [](TreeReweighted& s) { return s.pass(poll_signals); }, Unlocked())
        .def("magnitude", &TreeReweighted::magnitude, Unlocked())
        .def(
            "decode",
            [](TreeReweighted& s, Out<Index> labels) {
                require(static_cast<Index>(labels.size()) == s.energies().n,
                        "labels must have n entries");
                s.decode(labels.data(), poll_signals);
            },
            "labels"_a.noconvert(), Unlocked());
    m.def(
        "odd_cycles",
        [](In2<Index> edges, Index n, Doubles y, double most, Out<Index> sizes, Out<Index> walks) {
            require(edges.shape(1) == 2 && edges.shape(0) == y.size(),
                    "y must have an entry an edge");
            for (std::size_t k = 0; k < edges.size(); ++k)
                require(0 <= edges.data()[k] && edges.data()[k] < n, "edges must join nodes");
            for (std::size_t e = 0; e < y.size(); ++e)
                require(0 <= y.data()[e] && y.data()[e] <= 1, "y must be between 0 and 1");
            require(n >= 0 && static_cast<Index>(sizes.size()) == n &&
                        static_cast<Index>(walks.size()) == n * n,
                    "sizes and walks must have an entry, and n, a node");
            setwise::OddCycles search(edges.data(), static_cast<Index>(edges.shape(0)), n);
            return search(y.data(), most, sizes.data(), walks.data(), poll_signals);
        },
        "edges"_a.noconvert(), "n"_a, "y"_a.noconvert(), "most"_a, "sizes"_a.noconvert(),
        "walks"_a.noconvert(), Unlocked());
    m.def(
        "count_min_marginals",
        [](Doubles table, Doubles costs, Out<double> differences) {
            require(table.size() == costs.size() + 1 && differences.size() == costs.size(),
                    "table must have an entry more than costs, differences as many");
            setwise::CountFactor factor;
            factor.reset(table.data());
            std::vector<double> answer;
            const double best = factor.min_marginals(copy(costs), answer);
            std::copy(answer.begin(), answer.end(), differences.data());
            return best;
        },
        "table"_a.noconvert(), "costs"_a.noconvert(), "differences"_a.noconvert(), Unlocked());
}

// The Python bindings of branch and bound.
#include <vector>

#include "bind/arguments.hpp"
#include "bind/bind.hpp"
#include "branching/branch_and_bound.hpp"

namespace {

using namespace setwise::bind;
using setwise::BranchAndBound;

struct Search {
    Search(In2<double> unary)
        : n(static_cast<Index>(unary.shape(0))),
          labels(static_cast<Index>(unary.shape(1))),
          tree(n, labels, {unary.data(), unary.data() + unary.size()}) {}

    void require_begun(bool begun) const {
        require(is_begun == begun, begun ? "begin comes first" : "begin comes last");
    }

    Index n, labels;
    BranchAndBound tree;
    bool is_begun = false;
};

void require_scopes(const Search& s, const In2<Index>& scopes) {
    require(scopes.shape(1) > 0, "scopes must hold variables");
    for (std::size_t f = 0; f < scopes.shape(0); ++f) {
        const Index* const scope = scopes.data() + f * scopes.shape(1);
        for (std::size_t k = 0; k < scopes.shape(1); ++k) {
            require(scope[k] >= 0 && scope[k] < s.n, "scopes must hold variables");
            for (std::size_t other = 0; other < k; ++other)
                require(scope[other] != scope[k], "scopes must hold distinct variables");
        }
    }
}

}  // namespace

void bind_branching(nb::module_& m) {
    nb::class_<Search>(m, "BranchAndBound")
        .def(
            "__init__",
            [](Search* self, In2<double> unary) {
                require_unary(unary);
                new (self) Search(unary);
            },
            "unary"_a.noconvert(), Unlocked())
        .def(
            "add_potts",
            [](Search& s, In2<Index> edges, In<double> weights) {
                s.require_begun(false);
                require_scopes(s, edges);
                require(edges.shape(1) == 2 && edges.shape(0) == weights.size(),
                        "edges must have shape (E, 2)");
                s.tree.network().add_potts({edges.data(), edges.data() + edges.size()},
                                           copy(weights));
            },
            "edges"_a.noconvert(), "weights"_a.noconvert(), Unlocked())
        .def(
            "add_tables",
            [](Search& s, In2<Index> scopes, In<Index> sides, In2<double> tables) {
                s.require_begun(false);
                require_scopes(s, scopes);
                require(sides.size() == scopes.shape(1), "sides must have an entry a variable");
                std::size_t cells = 1;
                for (std::size_t k = 0; k < sides.size(); ++k) {
                    require(0 < sides.data()[k] && sides.data()[k] <= s.labels &&
                                cells <= tables.shape(1),
                            "tables must have an entry a labelling");
                    cells *= static_cast<std::size_t>(sides.data()[k]);
                }
                require(cells == tables.shape(1) &&
                            (tables.shape(0) == scopes.shape(0) || tables.shape(0) == 1),
                        "tables must have an entry a labelling");
                s.tree.network().add_tables({scopes.data(), scopes.data() + scopes.size()},
                                            copy(sides),
                                            {tables.data(), tables.data() + tables.size()});
            },
            "scopes"_a.noconvert(), "sides"_a.noconvert(), "tables"_a.noconvert(), Unlocked())
        .def(
            "begin",
            [](Search& s, double gain) {
                s.require_begun(false);
                s.is_begun = true;
                s.tree.begin(gain);
            },
            "gain"_a, Unlocked())
        .def(
            "offer",
            [](Search& s, In<Index> labels) {
                s.require_begun(true);
                const std::vector<Index> copied = copy(labels);
                require(static_cast<Index>(copied.size()) == s.n, "labels must have n entries");
                for (const Index x : copied)
                    require(0 <= x && x < s.labels, "labels must lie below the number of labels");
                return s.tree.offer(copied);
            },
            "labels"_a.noconvert(), Unlocked())
        .def(
            "settle_root",
            [](Search& s, Index passes) {
                s.require_begun(true);
                return s.tree.settle_root(passes, poll_signals);
            },
            "passes"_a, Unlocked())
        .def(
            "fix",
            [](Search& s, In<Index> labels) {
                s.require_begun(true);
                require(static_cast<Index>(labels.size()) == s.n, "labels must have n entries");
                for (std::size_t i = 0; i < labels.size(); ++i)
                    require(-1 <= labels.data()[i] && labels.data()[i] < s.labels,
                            "labels must lie below the number of labels");
                return s.tree.fix(copy(labels));
            },
            "labels"_a.noconvert(), Unlocked())
        .def(
            "decode",
            [](const Search& s, Out<Index> labels) {
                require(s.is_begun && !s.tree.done(), "the search must be open");
                require(static_cast<Index>(labels.size()) == s.n, "labels must have n entries");
                s.tree.network().decode(labels.data());
            },
            "labels"_a.noconvert(), Unlocked())
        .def(
            "sizes",
            [](const Search& s, Out<Index> sizes) {
                require(s.is_begun, "begin comes first");
                require(static_cast<Index>(sizes.size()) == s.n, "sizes must have n entries");
                for (Index i = 0; i < s.n; ++i) sizes.data()[i] = s.tree.network().size(i);
            },
            "sizes"_a.noconvert(), Unlocked())
        .def(
            "pays",
            [](const Search& s, Out<Index> labels, Out<double> paid) {
                require(s.is_begun && !s.tree.done(), "the search must be open");
                require(static_cast<Index>(labels.size()) == s.n && labels.size() == paid.size(),
                        "labels and paid must have n entries");
                for (std::size_t i = 0; i < labels.size(); ++i)
                    require(0 <= labels.data()[i] && labels.data()[i] < s.labels,
                            "labels must lie below the number of labels");
                s.tree.network().pays(labels.data(), paid.data());
            },
            "labels"_a.noconvert(), "paid"_a.noconvert(), Unlocked())
        .def(
            "push",
            [](Search& s, In<Byte> inside) {
                require(s.is_begun && s.tree.network().level() == 0, "push comes before search");
                require(static_cast<Index>(inside.size()) == s.n, "inside must have n entries");
                return s.tree.push(inside.data(), poll_signals);
            },
            "inside"_a.noconvert(), Unlocked())
        .def(
            "window",
            [](const Search& s, In<Byte> inside, Out2<double> costs) {
                require(s.is_begun && s.tree.network().level() == 0, "window comes before search");
                require(static_cast<Index>(inside.size()) == s.n &&
                            static_cast<Index>(costs.shape(0)) == s.n &&
                            static_cast<Index>(costs.shape(1)) == s.labels,
                        "inside must have n entries, costs the shape of the unaries");
                return s.tree.network().window(inside.data(), costs.data());
            },
            "inside"_a.noconvert(), "costs"_a.noconvert(), Unlocked())
        .def(
            "search",
            [](Search& s, Index work) {
                s.require_begun(true);
                return s.tree.search(work, poll_signals);
            },
            "work"_a, Unlocked())
        .def(
            "bound", [](const Search& s) { return s.tree.bound(); }, Unlocked())
        .def_prop_ro("rounded", [](const Search& s) { return s.tree.rounded(); })
        .def_prop_ro("nodes", [](const Search& s) { return s.tree.nodes(); })
        .def_prop_ro("work", [](const Search& s) { return s.tree.work(); })
        .def(
            "best",
            [](const Search& s, Out<Index> labels) {
                require(static_cast<Index>(labels.size()) == s.n, "labels must have n entries");
                if (!s.tree.found()) return false;
                std::copy(s.tree.best().begin(), s.tree.best().end(), labels.data());
                return true;
            },
            "labels"_a.noconvert(), Unlocked());
}

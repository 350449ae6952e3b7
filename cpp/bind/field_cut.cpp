// Fields of two labels by one cut, for Python.
#include <algorithm>
#include <array>

#include "bind/bind.hpp"
#include "bind/edge_arguments.hpp"
#include "flows/changing_cut.hpp"
#include "flows/field_cut.hpp"

namespace {

using namespace setwise::bind;

// answer: what the labels pay by unaries and by edges, the same less the least unaries, what flows,
// and what rounding took from that.
void write_answer(const setwise::FieldCut& cut, const Out<double>& answer) {
    require(answer.size() == 5, "answer must have 5 entries");
    const std::array<double, 5> numbers{cut.unary, cut.edges, cut.paid, cut.sent, cut.lost};
    std::copy(numbers.begin(), numbers.end(), answer.data());
}

Index require_field(const In2<double>& unary, const Out<Index>& labels) {
    require(unary.shape(1) == 2 && labels.size() == unary.shape(0),
            "unary must have shape (n, 2), and labels n entries");
    return static_cast<Index>(unary.shape(0));
}

// Whether the grid's edges have few distances, as those of most grids do: else nothing is done.
bool cut_grid(In2<double> unary, In<Index> sides, In2<Index> steps, In<double> weights,
              Out<Index> labels, Out<double> answer, int threads, bool small_slabs) {
    const Index n = require_field(unary, labels);
    Index pixels = 1;
    for (std::size_t i = 0; i < sides.size(); ++i) {
        require(sides.data()[i] >= 1 && pixels <= n / sides.data()[i], "sides must span the nodes");
        pixels *= sides.data()[i];
    }
    require(sides.size() >= 1 && pixels == n && steps.shape(1) == sides.size(),
            "sides must span the nodes, and steps have a column for each");
    const setwise::GridNumbering grid(sides.data(), static_cast<Index>(sides.size()), steps.data(),
                                      static_cast<Index>(steps.shape(0)));
    require(grid.count() == static_cast<Index>(weights.size()), "weights must have E entries");
    setwise::FieldCut cut;
    const auto offer = [&](auto solve) {
        return solve(grid, n, unary.data(), weights.data(), labels.data(), cut, poll_signals,
                     threads, small_slabs ? 1 : setwise::Slabs::least_nodes);
    };
    if (!offer(setwise::cut_grid<1>) && !offer(setwise::cut_grid<2>) &&
        !offer(setwise::cut_grid<3>) && !offer(setwise::cut_grid<4>))
        return false;
    write_answer(cut, answer);
    return true;
}

void cut_edges(In2<double> unary, Pairs<Index> edges, In<double> weights, Out<Index> labels,
               Out<double> answer, int threads) {
    const Index n = require_field(unary, labels), count = static_cast<Index>(edges.shape(0));
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    require(count == static_cast<Index>(weights.size()), "weights must have E entries");
    write_answer(setwise::cut_edges({edges.data(), count}, n, unary.data(), weights.data(),
                                    labels.data(), poll_signals, threads),
                 answer);
}

setwise::ChangingCut* make_changing_cut(In<double> costs, Pairs<Index> edges, In<double> there,
                                        In<double> back) {
    const Index n = static_cast<Index>(costs.size()), count = static_cast<Index>(edges.shape(0));
    require(first_not_edge(edges, n) < 0, "edges must join different nodes of the graph");
    require(count == static_cast<Index>(there.size()) && there.size() == back.size(),
            "there and back must have E entries");
    return setwise::make_changing_cut(n, {edges.data(), count}, costs.data(), there.data(),
                                      back.data())
        .release();
}

// answer: the value without the tilt, what is paid with it, and what rounding took.
void solve_changed(setwise::ChangingCut& cut, In<double> tilt, double share, bool apart,
                   Out<bool> inside, Out<double> answer, int threads) {
    require(tilt.size() == inside.size() && static_cast<Index>(tilt.size()) <= cut.nodes(),
            "tilt and inside must have an entry for each of the first nodes");
    require(answer.size() == 3 && threads >= 1, "answer must have 3 entries");
    const setwise::ChangedCut found = cut.solve(tilt.data(), static_cast<Index>(tilt.size()), share,
                                                apart, inside.data(), poll_signals, threads);
    const std::array<double, 3> numbers{found.value, found.paid, found.lost};
    std::copy(numbers.begin(), numbers.end(), answer.data());
}

}  // namespace

void bind_field_cut(nb::module_& m) {
    nb::class_<setwise::ChangingCut>(m, "ChangingCut")
        .def("solve", &solve_changed, "tilt"_a.noconvert(), "share"_a, "apart"_a,
             "inside"_a.noconvert(), "answer"_a.noconvert(), "threads"_a, Unlocked());
    m.def("make_changing_cut", &make_changing_cut, "costs"_a.noconvert(), "edges"_a.noconvert(),
          "there"_a.noconvert(), "back"_a.noconvert(), nb::rv_policy::take_ownership, Unlocked());
    m.def("cut_grid", &cut_grid, "unary"_a.noconvert(), "sides"_a.noconvert(),
          "steps"_a.noconvert(), "weights"_a.noconvert(), "labels"_a.noconvert(),
          "answer"_a.noconvert(), "threads"_a, "small_slabs"_a = false, Unlocked());
    m.def("cut_edges", &cut_edges, "unary"_a.noconvert(), "edges"_a.noconvert(),
          "weights"_a.noconvert(), "labels"_a.noconvert(), "answer"_a.noconvert(), "threads"_a,
          Unlocked());
}

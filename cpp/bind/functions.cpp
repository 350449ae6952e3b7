// The Python face of gains along chains of sets, and of supermodular parts.
#include <vector>

#include "bind/bind.hpp"
#include "functions/chains.hpp"
#include "functions/supermodular_grid.hpp"
#include "surrogates/prefix.hpp"

namespace {

using namespace setwise::bind;

// [chains[i], chains[i + 1]) must lie in an array of `size` entries.
void check_chains(const In<Index>& chains, std::size_t size) {
    require(chains.size() >= 1 && chains.data()[0] == 0, "chains must start with 0");
    for (std::size_t i = 0; i + 1 < chains.size(); ++i)
        require(chains.data()[i] <= chains.data()[i + 1], "chains must not decrease");
    require(chains.data()[chains.size() - 1] == static_cast<Index>(size),
            "chains must end with the number of steps");
}

void chain_sums(In<double> steps, In<Index> chains, Out<double> sums) {
    check_chains(chains, steps.size());
    require(sums.size() == steps.size(), "sums must be as long as steps");
    for (std::size_t i = 0; i + 1 < chains.size(); ++i) {
        double sum = 0;
        for (Index k = chains.data()[i]; k < chains.data()[i + 1]; ++k)
            sums.data()[k] = sum += steps.data()[k];
    }
}

void prefix_gains(In<double> weights, In<double> caps, In<Index> order, In<Index> chains,
                  Out<double> gains) {
    check_chains(chains, order.size());
    require(weights.size() == caps.size() && gains.size() == order.size(),
            "caps must be as long as weights, gains as long as order");
    std::vector<double> room;
    for (std::size_t i = 0; i + 1 < chains.size(); ++i) {
        const Index begin = chains.data()[i], end = chains.data()[i + 1];
        require(setwise::prefix_gains(weights.data(), caps.data(),
                                      static_cast<Index>(weights.size()), order.data() + begin,
                                      end - begin, gains.data() + begin, room),
                "order must hold elements of the ground set");
        poll_now_and_then(static_cast<Index>(i));
    }
}

setwise::SparseRows sparse_rows(const In<Index>& indptr, const In<Index>& columns) {
    require(indptr.size() >= 1, "indptr must have n + 1 entries");
    return {indptr.data(), static_cast<Index>(indptr.size()) - 1, columns.data(),
            static_cast<Index>(columns.size())};
}

void cut_gains(In<Index> indptr, In<Index> neighbors, In<double> leaving, In<double> entering,
               In<Index> order, Out<double> gains) {
    require(leaving.size() == neighbors.size() && entering.size() == neighbors.size() &&
                gains.size() == order.size(),
            "weights must be as long as neighbors, gains as long as order");
    require(setwise::cut_gains(sparse_rows(indptr, neighbors), leaving.data(), entering.data(),
                               order.data(), static_cast<Index>(order.size()), gains.data(),
                               poll_signals),
            "order and neighbors must hold elements of the ground set");
}

void coverage_gains(In<Index> indptr, In<Index> items, In<double> weights, In<Index> order,
                    Out<double> gains) {
    require(gains.size() == order.size(), "gains must be as long as order");
    require(setwise::coverage_gains(sparse_rows(indptr, items), weights.data(),
                                    static_cast<Index>(weights.size()), order.data(),
                                    static_cast<Index>(order.size()), gains.data(), poll_signals),
            "order must hold elements and items must have weights");
}

using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using OutMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void supermodular_grid(Matrix values, OutMatrix g) {
    require(values.shape(0) == g.shape(0) && values.shape(1) == g.shape(1),
            "g must have the shape of values");
    setwise::supermodular_grid(values.data(), static_cast<Index>(values.shape(0)),
                               static_cast<Index>(values.shape(1)), g.data(), poll_signals);
}

}  // namespace

void bind_functions(nb::module_& m) {
    m.def("chain_sums", &chain_sums, "steps"_a.noconvert(), "chains"_a.noconvert(),
          "sums"_a.noconvert(), Unlocked());
    m.def("prefix_gains", &prefix_gains, "weights"_a.noconvert(), "caps"_a.noconvert(),
          "order"_a.noconvert(), "chains"_a.noconvert(), "gains"_a.noconvert(), Unlocked());
    m.def("cut_gains", &cut_gains, "indptr"_a.noconvert(), "neighbors"_a.noconvert(),
          "leaving"_a.noconvert(), "entering"_a.noconvert(), "order"_a.noconvert(),
          "gains"_a.noconvert(), Unlocked());
    m.def("coverage_gains", &coverage_gains, "indptr"_a.noconvert(), "items"_a.noconvert(),
          "weights"_a.noconvert(), "order"_a.noconvert(), "gains"_a.noconvert(), Unlocked());
    m.def("supermodular_grid", &supermodular_grid, "values"_a.noconvert(), "g"_a.noconvert(),
          Unlocked());
}

// The Python face of the master problem of cutting planes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bind.hpp"
#include "plane_program.hpp"

namespace {

using namespace setwise::bind;

Index minimize_planes(In2<double> vectors, Index planes, In<double> g, Out<double> x,
                      Out<double> sum) {
    const auto count = static_cast<Index>(vectors.shape(0));
    const auto rank = static_cast<Index>(vectors.shape(1));
    require(1 <= planes && planes <= count, "planes must lie between 1 and the number of vectors");
    require(static_cast<Index>(g.size()) == count, "g must have one entry a vector");
    require(static_cast<Index>(x.size()) == count, "x must have one entry a vector");
    require(static_cast<Index>(sum.size()) == rank, "sum must have the length of a vector");
    return setwise::PlaneProgram(vectors.data(), count, planes, rank)
        .solve(g.data(), x.data(), sum.data());
}

}  // namespace

void bind_planes(nb::module_& m) {
    m.def("minimize_planes", &minimize_planes, "vectors"_a.noconvert(), "planes"_a,
          "g"_a.noconvert(), "x"_a.noconvert(), "sum"_a.noconvert(), Unlocked());
}

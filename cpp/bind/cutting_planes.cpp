// The Python face of the master problem of cutting planes.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "bind/bind.hpp"
#include "cutting_planes/plane_program.hpp"

namespace {

using namespace setwise::bind;
using setwise::PlaneProgram;

bool solve(PlaneProgram& program, In2<double> vectors, Index cone, In<double> g, Out<double> x,
           Out<double> sum) {
    const auto count = static_cast<Index>(vectors.shape(0));
    const auto rank = static_cast<Index>(vectors.shape(1));
    require(0 <= cone && cone < count, "cone must lie below the number of vectors");
    require(program.count() <= count, "vectors must begin with those of the last call");
    require(static_cast<Index>(g.size()) == count, "g must have one entry a vector");
    require(static_cast<Index>(x.size()) == count, "x must have one entry a vector");
    require(static_cast<Index>(sum.size()) == rank, "sum must have the length of a vector");
    return program.solve(vectors.data(), count, cone, rank, g.data(), x.data(), sum.data());
}

void keep(PlaneProgram& program, In<Index> kept) {
    for (std::size_t i = 0; i < kept.size(); ++i)
        require((i == 0 ? -1 : kept.data()[i - 1]) < kept.data()[i], "kept must rise from 0 on");
    program.keep(kept.data(), static_cast<Index>(kept.size()));
}

}  // namespace

void bind_cutting_planes(nb::module_& m) {
    nb::class_<PlaneProgram>(m, "PlaneProgram")
        .def(nb::init<>())
        .def("solve", &solve, "vectors"_a.noconvert(), "cone"_a, "g"_a.noconvert(),
             "x"_a.noconvert(), "sum"_a.noconvert(), Unlocked())
        .def("keep", &keep, "kept"_a.noconvert())
        .def("forget", &PlaneProgram::forget);
}

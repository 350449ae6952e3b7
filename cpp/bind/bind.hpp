// Declarations that the files of this folder share. Only these files use nanobind. Every array
// argument is noconvert(), so nothing is copied silently; outputs are arrays that the caller made.
// Sizes are checked here, so that no call from Python can read or write out of bounds.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

namespace setwise::bind {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Index = std::int64_t;
using Byte = std::uint8_t;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Check for Ctrl-C and time limits a few times per second, from code that runs without the
// interpreter's lock.
void poll_signals();

// Reading the clock costs as much as processing a short row, so it is read at some rows only.
inline void poll_now_and_then(Index row) {
    if ((row & 31) == 31) poll_signals();
}

}  // namespace setwise::bind

// One function for each other file of this folder; module.cpp builds the module from them.
void bind_boosting(nanobind::module_& m);
void bind_branching(nanobind::module_& m);
void bind_buckets(nanobind::module_& m);
void bind_decisions(nanobind::module_& m);
void bind_fields(nanobind::module_& m);
void bind_flows(nanobind::module_& m);
void bind_learners(nanobind::module_& m);
void bind_marginals(nanobind::module_& m);
void bind_mean_field(nanobind::module_& m);
void bind_messages(nanobind::module_& m);
void bind_moves(nanobind::module_& m);
void bind_relaxation(nanobind::module_& m);
void bind_sampling(nanobind::module_& m);
void bind_surrogates(nanobind::module_& m);
void bind_tracking(nanobind::module_& m);
void bind_tree_bound(nanobind::module_& m);

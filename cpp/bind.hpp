// What the files that bind kernels share: array arguments, checks of sizes, and Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>

namespace setwise::bind {

namespace nb = nanobind;

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Index = std::int64_t;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Lets Ctrl-C through a few times a second, from code that runs without the interpreter's lock.
inline void poll_signals() {
    using Clock = std::chrono::steady_clock;
    static thread_local Clock::time_point last = Clock::now();
    const auto now = Clock::now();
    if (now - last < std::chrono::milliseconds(200)) return;
    last = now;
    nb::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace setwise::bind

// Arguments that the bindings of inference share: arrays over a field's variables and labels.
#pragma once

#include <vector>

#include "bind/bind.hpp"

namespace setwise::bind {

constexpr Index most = Index(1) << 31;  // of an array's entries: products of two sizes then fit

template <class T>
std::vector<T> copy(const In<T>& array) {
    return {array.data(), array.data() + array.size()};
}

inline void require_unary(const In2<double>& unary) {
    require(unary.shape(1) >= 1 && static_cast<Index>(unary.shape(0)) < most &&
                static_cast<Index>(unary.shape(1)) < most,
            "unary must have shape (N, L), L at least 1");
}

template <class State, class Array>
void require_field(const State& state, const Array& array) {
    require(static_cast<Index>(array.shape(0)) == state.n() &&
                static_cast<Index>(array.shape(1)) == state.n_labels(),
            "the array must have shape (N, L)");
}

inline void require_temperature(double temperature) {
    require(temperature > 0, "temperature must be positive");
}

inline int threads(Index n_threads) {
    require(n_threads >= 1 && n_threads <= 1024, "n_threads must lie between 1 and 1024");
    return static_cast<int>(n_threads);
}

}  // namespace setwise::bind

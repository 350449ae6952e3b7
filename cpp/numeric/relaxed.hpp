// A number that threads may read while another thread writes it, with relaxed memory order.
#pragma once

#include <atomic>

namespace setwise {

template <class Number>
class Relaxed {
  public:
    Relaxed() = default;
    Relaxed(Number x) : value_(x) {}
    Relaxed(const Relaxed& other) : value_(Number(other)) {}
    Relaxed& operator=(Number x) {
        value_.store(x, std::memory_order_relaxed);
        return *this;
    }
    Relaxed& operator=(const Relaxed& other) { return *this = Number(other); }
    operator Number() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<Number> value_;
};

}  // namespace setwise

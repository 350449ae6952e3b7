// Sums of floats as if in two or three times their precision; plain sums of integers.
#pragma once

#include <cmath>
#include <type_traits>

namespace setwise {

// What x + y lost when it was rounded to `sum`, exactly, its sign included (Knuth).
template <class Real>
Real lost_in_sum(Real x, Real y, Real sum) {
    const Real second = sum - x;
    return (x - (sum - second)) + (y - second);
}

// The rounding of each sum is summed, and with three levels so is the rounding of that: then terms of
// 1e20 that cancel leave what stood beside them.
template <class Number, int levels = 3>
class CompensatedSum {
  public:
    void add(Number x) {
        if constexpr (!std::is_floating_point_v<Number>) {
            sum_ += x;
        } else if constexpr (levels == 2) {
            lost_ += accumulate(sum_, x);
        } else {
            x = accumulate(sum_, x);
            rest_ += accumulate(lost_, x);
        }
    }
    template <int others>
    void add(const CompensatedSum<Number, others>& other) {
        add(other.sum_);
        if constexpr (std::is_floating_point_v<Number>) add(other.lost_);
        if constexpr (std::is_floating_point_v<Number> && others > 2) add(other.rest_);
    }
    template <int others>
    void subtract(const CompensatedSum<Number, others>& other) {
        add(-other.sum_);
        if constexpr (std::is_floating_point_v<Number>) add(-other.lost_);
        if constexpr (std::is_floating_point_v<Number> && others > 2) add(-other.rest_);
    }
    bool is_zero() const { return sum_ == 0 && lost_ == 0 && rest_ == 0; }
    Number value() const {
        if constexpr (levels == 2) return sum_ + lost_;
        Number sum = sum_;  // which what was lost may cancel
        const Number lost = accumulate(sum, lost_);
        return sum + (lost + rest_);
    }

  private:
    template <class, int>
    friend class CompensatedSum;

    // Returns what was lost.
    static Number accumulate(Number& sum, Number x) {
        const Number before = sum;
        sum += x;
        return std::is_floating_point_v<Number> ? lost_in_sum(before, x, sum) : Number(0);
    }

    Number sum_ = 0, lost_ = 0, rest_ = 0;
};

}  // namespace setwise

// Sums of floats as if in two or three times their precision; sums of integers modulo 2^64.
#pragma once

#include <cmath>
#include <type_traits>

namespace setwise {

// Return the rounding error of `sum` = x + y, exactly and with its sign (Knuth).
template <class Real>
Real lost_in_sum(Real x, Real y, Real sum) {
    const Real second = sum - x;
    return (x - (sum - second)) + (y - second);
}

// A sum that also adds up the rounding errors of its additions, and with three levels the rounding
// errors of that second sum. Then terms of 1e20 that cancel leave the smaller terms intact.
template <class Number, int levels = 3>
class CompensatedSum {
  public:
    void add(Number x) {
        if constexpr (!std::is_floating_point_v<Number>) {
            using Unsigned = std::make_unsigned_t<Number>;
            sum_ = static_cast<Number>(static_cast<Unsigned>(sum_) + static_cast<Unsigned>(x));
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
        Number sum = sum_;  // the correction may cancel it
        const Number lost = accumulate(sum, lost_);
        return sum + (lost + rest_);
    }

  private:
    template <class, int>
    friend class CompensatedSum;

    // Add x to sum and return the rounding error.
    static Number accumulate(Number& sum, Number x) {
        const Number before = sum;
        sum += x;
        return std::is_floating_point_v<Number> ? lost_in_sum(before, x, sum) : Number(0);
    }

    Number sum_ = 0, lost_ = 0, rest_ = 0;
};

// A sum of many numbers that is nearly as fast as a plain one. Blocks of `size` numbers are summed
// plainly and their sums are compensated, so the rounding error is that of a plain sum of `size`
// numbers. Not tuned.
class SumOfBlocks {
  public:
    static constexpr int size = 8;

    void add(double x) {
        part_ += x;
        if (++count_ % size != 0) return;
        sum_.add(part_);
        part_ = 0;
    }
    CompensatedSum<double, 2> sum() const {
        CompensatedSum<double, 2> sum = sum_;
        sum.add(part_);
        return sum;
    }

  private:
    CompensatedSum<double, 2> sum_;
    double part_ = 0;
    unsigned count_ = 0;
};

}  // namespace setwise

// The common base of factors whose minimiser gives each of their variables a label.
#pragma once

#include <cstddef>
#include <vector>

namespace setwise {

class LabeledFactor {
  public:
    // The labels of the last minimiser, in order.
    const std::vector<std::size_t>& chosen() const { return chosen_; }

    double least(const std::vector<double>&) const { return 0; }
    double at_minimizer(const std::vector<double>& steps) const {
        double sum = 0;
        for (std::size_t i = 0; i < count_; ++i) sum += steps[i * labels_ + chosen_[i]];
        return sum;
    }
    double size() const { return static_cast<double>(count_); }

  protected:
    std::size_t labels_ = 0, count_ = 0;
    std::vector<std::size_t> chosen_;
};

}  // namespace setwise

// A random order that depends only on a seed.
#pragma once

#include <cstdint>
#include <utility>

namespace setwise {

// Splitmix64: https://prng.di.unimi.it/splitmix64.c
class Shuffle {
  public:
    explicit Shuffle(std::uint64_t seed) : state_(seed) {}

    void operator()(std::int32_t* items, std::int64_t n) {
        for (std::int64_t i = n - 1; i > 0; --i) {
            const auto j = static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(i + 1));
            std::swap(items[i], items[j]);
        }
    }

  private:
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

}  // namespace setwise

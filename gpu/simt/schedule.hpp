// The seeded order in which blocks and threads run: Philox, so that a seed means the same order on every machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "reference/random/philox.hpp"

namespace draftproof::simt {

class Schedule {
 public:
  Schedule(std::uint64_t seed, std::uint32_t block) : seed_(seed), block_(block) {}

  // In [0, count). The bias of 32 bits is of no consequence here: any order is valid.
  std::uint32_t below(std::uint32_t count) {
    if (next_ == 4) {
      words_ = philox_block(seed_, drawn_++, block_, 0, 0x51a7);
      next_ = 0;
    }
    return static_cast<std::uint32_t>((std::uint64_t{words_.word[next_++]} * count) >> 32);
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (auto left = static_cast<std::uint32_t>(items.size()); left > 1; --left) {
      std::swap(items[left - 1], items[below(left)]);
    }
  }

 private:
  std::uint64_t seed_;
  std::uint32_t block_;
  std::uint32_t drawn_ = 0;
  std::uint32_t next_ = 4;
  RandomBlock words_{};
};

}  // namespace draftproof::simt

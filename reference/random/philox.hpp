// Philox4x32-10 (Salmon et al., SC'11) by Random123, the production source of random bits.
#pragma once

#include <Random123/philox.h>

#include <cstdint>

#include "reference/numerics/host_device.hpp"
#include "reference/random/address.hpp"

namespace draftproof {

struct RandomBlock {
  std::uint32_t word[4];
};

// The two 64-bit halves of a block: words 0 and 1, words 2 and 3, the first of each pair being the more significant.
DRAFTPROOF_HD inline std::uint64_t high_half(const RandomBlock& b) {
  return (static_cast<std::uint64_t>(b.word[0]) << 32) | b.word[1];
}
DRAFTPROOF_HD inline std::uint64_t low_half(const RandomBlock& b) {
  return (static_cast<std::uint64_t>(b.word[2]) << 32) | b.word[3];
}

DRAFTPROOF_HD inline RandomBlock philox_block(std::uint64_t key, std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                              std::uint32_t c3) {
  const r123::Philox4x32::ctr_type counter = {{c0, c1, c2, c3}};
  const r123::Philox4x32::key_type words = {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)}};
  const r123::Philox4x32::ctr_type out = r123::Philox4x32()(counter, words);
  return {{out[0], out[1], out[2], out[3]}};
}

// A source of addressed blocks: anything with `RandomBlock block(std::uint64_t seed, const Address&)`. This is the one
// that production uses; audit.hpp and injected.hpp hold the others.
struct PhiloxSource {
  RandomBlock block(std::uint64_t seed, const Address& a) const {
    return philox_block(seed, a.index, a.row, a.step, static_cast<std::uint32_t>(a.purpose));
  }
};

// The seed of request `request` in a run with seed `run_seed`.
DRAFTPROOF_HD inline std::uint64_t derive_seed(std::uint64_t run_seed, std::uint64_t request) {
  return high_half(philox_block(run_seed, static_cast<std::uint32_t>(request),
                                static_cast<std::uint32_t>(request >> 32), 0,
                                static_cast<std::uint32_t>(Purpose::seed_derivation)));
}

}  // namespace draftproof

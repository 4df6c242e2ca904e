// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11), the production
// source of random bits.
//
// Written out here because Random123's header takes most of a second to read and every decision includes this one;
// tests/reference/random holds it to that library and to the published answers, bit for bit.
#pragma once

#include <cstdint>

#include "base/host_device.hpp"
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

// One of the ten rounds: two 32 x 32 -> 64 bit products, whose halves change places and meet the key. On four words and
// not on a block: the sanitizers check every index of an array, which took six times as long.
DRAFTPROOF_HD inline void philox_round(std::uint32_t& w0, std::uint32_t& w1, std::uint32_t& w2, std::uint32_t& w3,
                                       std::uint32_t key0, std::uint32_t key1) {
  const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * w0;
  const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * w2;
  w0 = static_cast<std::uint32_t>(product1 >> 32) ^ w1 ^ key0;
  w1 = static_cast<std::uint32_t>(product1);
  w2 = static_cast<std::uint32_t>(product0 >> 32) ^ w3 ^ key1;
  w3 = static_cast<std::uint32_t>(product0);
}

DRAFTPROOF_HD inline RandomBlock philox_block(std::uint64_t key, std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                              std::uint32_t c3) {
  // Weyl sequences: the golden ratio and sqrt(3) - 1, in 32 bits.
  constexpr std::uint32_t kStep0 = 0x9E3779B9u;
  constexpr std::uint32_t kStep1 = 0xBB67AE85u;
  const auto key0 = static_cast<std::uint32_t>(key);
  const auto key1 = static_cast<std::uint32_t>(key >> 32);
  // Written out: at -O2 g++ 12 keeps a loop of ten rounds.
  philox_round(c0, c1, c2, c3, key0, key1);
  philox_round(c0, c1, c2, c3, key0 + kStep0, key1 + kStep1);
  philox_round(c0, c1, c2, c3, key0 + 2u * kStep0, key1 + 2u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 3u * kStep0, key1 + 3u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 4u * kStep0, key1 + 4u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 5u * kStep0, key1 + 5u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 6u * kStep0, key1 + 6u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 7u * kStep0, key1 + 7u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 8u * kStep0, key1 + 8u * kStep1);
  philox_round(c0, c1, c2, c3, key0 + 9u * kStep0, key1 + 9u * kStep1);
  return {{c0, c1, c2, c3}};
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

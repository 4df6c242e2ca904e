#include "reference/random/philox.hpp"

#include <Random123/philox.h>

#include "tests/support/test.hpp"

namespace {

std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t> words(const RandomBlock& block) {
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

}  // namespace

TEST_CASE("Philox is Random123's, bit for bit") {
  // Keys and counters from a multiplicative walk, so that all bits of all words take both values.
  std::uint64_t state = 1;
  const auto next = [&] { return static_cast<std::uint32_t>((state *= 0x9E3779B97F4A7C15u | 1u) >> 32); };
  for (int i = 0; i < 10'000; ++i) {
    const std::uint32_t c0 = next(), c1 = next(), c2 = next(), c3 = next(), k0 = next(), k1 = next();
    const auto theirs = r123::Philox4x32()({{c0, c1, c2, c3}}, {{k0, k1}});
    const std::uint64_t key = (std::uint64_t{k1} << 32) | k0;
    REQUIRE(words(philox_block(key, c0, c1, c2, c3)) == std::tuple{theirs[0], theirs[1], theirs[2], theirs[3]});
  }
}

TEST_CASE("The halves of a block take their first word as the more significant one") {
  const RandomBlock block{{1, 2, 3, 4}};
  CHECK(high_half(block) == 0x0000000100000002u);
  CHECK(low_half(block) == 0x0000000300000004u);
}

TEST_CASE("A block depends on every part of its address and on nothing else") {
  const PhiloxSource source;
  const Address base{1, 2, 3, Purpose::accept};
  const RandomBlock block = source.block(7, base);
  CHECK(words(block) == words(PhiloxSource().block(7, base)));
  std::set seen{words(block)};
  seen.insert(words(source.block(8, base)));
  seen.insert(words(source.block(7 + (std::uint64_t{1} << 32), base)));
  for (const Address& other : {Address{2, 2, 3, Purpose::accept}, Address{1, 3, 3, Purpose::accept},
                               Address{1, 2, 4, Purpose::accept}, Address{1, 2, 3, Purpose::residual}})
    seen.insert(words(source.block(7, other)));
  CHECK(seen.size() == 7);
}

TEST_CASE("Derived seeds are a block's high half under their own purpose and differ between requests and runs") {
  CHECK(derive_seed(5, 9) == high_half(PhiloxSource().block(5, {9, 0, 0, Purpose::seed_derivation})));
  std::set<std::uint64_t> seeds;
  for (std::uint64_t run = 0; run < 40; ++run) {
    for (std::uint64_t request = 0; request < 40; ++request) {
      seeds.insert(derive_seed(run, request));
      seeds.insert(derive_seed(run, (request + 1) << 32));
    }
  }
  CHECK(seeds.size() == 3200);
}

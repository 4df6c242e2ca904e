#include "reference/random/philox.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <tuple>

using namespace draftproof;

namespace {

std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t> words(const RandomBlock& block) {
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

}  // namespace

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

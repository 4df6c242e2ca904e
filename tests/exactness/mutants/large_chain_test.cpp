#include "reference/exactness/mutants/large_chain.hpp"

#include <catch2/catch.hpp>

#include "reference/exactness/mutants/hunting.hpp"

using namespace draftproof;

TEST_CASE("The large chain without a fault draws from the distribution that was requested") {
  const LargeSampler sampler = large_chain_sampler(sound_large_chain());
  CHECK_FALSE(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 18).caught);
}

TEST_CASE("The large chain draws another distribution where one of its parts is wrong") {
  LargeChain chain = sound_large_chain();
  chain.residual = chain.target;
  const LargeSampler sampler = large_chain_sampler(chain);
  CHECK(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 18).caught);
}

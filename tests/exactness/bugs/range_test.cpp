#include "exactness/bugs/range/family.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "exactness/bugs/engine_numbers.hpp"
#include "exactness/bugs/hunting.hpp"
#include "reference/random/uniform.hpp"

using namespace draftproof;

// Our noise falls as its word rises, so it is given the complement.
TEST_CASE("The large race over our noise draws from its distribution though it leaves most tokens unscored") {
  const LargeSampler sampler =
      large_race_sampler([](std::uint32_t word) { return static_cast<float>(gumbel_noise(~word)); });
  CHECK_FALSE(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 15).caught);
}

TEST_CASE("The large race over noise of half the width draws another distribution") {
  const LargeSampler sampler =
      large_race_sampler([](std::uint32_t word) { return 0.5f * static_cast<float>(gumbel_noise(~word)); });
  CHECK(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 15).caught);
}

TEST_CASE("The binary32 logarithm has infinities at its ends and NaN below 0") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(log_f32(0.0f) == -infinity);
  CHECK(log_f32(-0.0f) == -infinity);
  CHECK(log_f32(infinity) == infinity);
  CHECK(std::isnan(log_f32(-1.0f)));
  CHECK(log_f32(1.0f) == 0.0f);
}

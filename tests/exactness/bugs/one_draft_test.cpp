#include "exactness/bugs/one_draft.hpp"

#include <catch2/catch.hpp>

#include "exactness/bugs/hunting.hpp"

using namespace draftproof;

TEST_CASE("One draft without a fault draws from the distribution that was requested") {
  const LargeSampler sampler = one_draft_sampler(sound_draft(*FixedRows::usual()));
  CHECK_FALSE(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 18).caught);
}

TEST_CASE("One draft draws another distribution where one of its parts is wrong") {
  OneDraft draft = sound_draft(*FixedRows::usual());
  draft.residual = draft.target;
  const LargeSampler sampler = one_draft_sampler(draft);
  CHECK(find_wrong_draws(sampler.distribution, sampler.draw, 1 << 18).caught);
}

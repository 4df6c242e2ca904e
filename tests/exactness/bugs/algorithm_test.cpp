#include "exactness/bugs/algorithm/family.hpp"

#include <catch2/catch.hpp>

using namespace draftproof;

TEST_CASE("A chain step with the right distributions is exact over two steps") {
  CHECK_FALSE(find_wrong_distribution({.draft_len = 2, .steps = 2}, chain_step_with({})).caught);
}

TEST_CASE(
    "A chain step that is told another distribution than it drafts from is caught whichever distribution is wrong") {
  const DistributionOf other = [](const ExactMasses& p, const ExactMasses& q) {
    ExactMasses mean;
    for (std::size_t i = 0; i < p.size(); ++i) mean.push_back(Rational((p[i] + 2 * q[i]) / 3));
    return mean;
  };
  CHECK(find_wrong_distribution({}, chain_step_with({.drafted = other})).caught);
  CHECK(find_wrong_distribution({}, chain_step_with({.target = other})).caught);
  CHECK(find_wrong_distribution({}, chain_step_with({.proposal = other})).caught);
  // Wrong for both together, q is a distribution of drafts like any other.
  CHECK_FALSE(find_wrong_distribution({}, chain_step_with({.drafted = other, .proposal = other})).caught);
}

TEST_CASE("One draft after verification has the distribution of the target") {
  const Finding finding = find_wrong_token_distribution(plain_target(), [](ExactChance& chance) {
    ExactRows target{{plain_target(), plain_target()}};
    ExactRows proposal{{plain_draft()}};
    return verify_one_draft(plain_draft(), target, proposal, chance);
  });
  CHECK_FALSE(finding.caught);
  CHECK(finding.cases > 3);
}

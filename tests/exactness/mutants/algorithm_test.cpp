#include "reference/exactness/mutants/algorithm/family.hpp"

#include <catch2/catch.hpp>

using namespace draftproof;

TEST_CASE("A chain step with the right laws is exact over two steps") {
  CHECK_FALSE(find_wrong_law({.draft_len = 2, .steps = 2}, chain_step_with({})).caught);
}

TEST_CASE("A chain step that is told another law than it drafts from is caught whichever law is wrong") {
  const RowLawOf other = [](const ExactMasses& p, const ExactMasses& q) {
    ExactMasses mean;
    for (std::size_t i = 0; i < p.size(); ++i) mean.push_back(Rational((p[i] + 2 * q[i]) / 3));
    return mean;
  };
  CHECK(find_wrong_law({}, chain_step_with({.drafted = other})).caught);
  CHECK(find_wrong_law({}, chain_step_with({.target = other})).caught);
  CHECK(find_wrong_law({}, chain_step_with({.proposal = other})).caught);
  // Wrong for both together, q is a law of drafts like any other.
  CHECK_FALSE(find_wrong_law({}, chain_step_with({.drafted = other, .proposal = other})).caught);
}

TEST_CASE("One draft after verification has the law of the target") {
  const Finding finding = find_wrong_token_law(plain_target(), [](ExactChance& chance) {
    ExactRows target{{plain_target(), plain_target()}};
    ExactRows proposal{{plain_draft()}};
    return verify_one_draft(plain_draft(), target, proposal, chance);
  });
  CHECK_FALSE(finding.caught);
  CHECK(finding.cases > 3);
}

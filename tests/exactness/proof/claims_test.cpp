#include "exactness/proof/claims.hpp"

#include "tests/support/test.hpp"

TEST_CASE("Verifiers owe to one another and to theory what the specification says") {
  for (const Claim& claim : claims()) {
    const ClaimResult result = check(claim, 3, 1, 0);
    INFO(result.text << ": " << result.refutation.value_or(""));
    CHECK_FALSE(result.refutation);
    CHECK(result.instances >= 1);
  }
}

TEST_CASE("A claim that is false is refuted on the first models that show it") {
  const auto chain_is_one = [](const Models& models) -> std::optional<std::string> {
    if (chain_path_sum(models, {}, 1) == 1) return std::nullopt;
    return "a draft may be rejected";
  };
  const ClaimResult result = check(
      {ClaimKind::ordering, "every draft stands", chain_is_one, {ModelKind::equal, ModelKind::disjoint}}, 3, 2, 0);
  CHECK(result.instances == 3);
  REQUIRE(result.refutation);
  CHECK(result.refutation->find("a draft may be rejected on models disjoint") == 0);
}

TEST_CASE("Claims are counted by kind") {
  const std::vector<ClaimResult> results = {{ClaimKind::ordering, "a", 1, std::nullopt},
                                            {ClaimKind::golden_number, "b", 1, "it is 2"},
                                            {ClaimKind::golden_number, "c", 1, std::nullopt}};
  const std::vector<ClaimTally> tallies = tally_of(results);
  REQUIRE(tallies.size() == 3);
  CHECK(tallies[0].sentence() == "equivalences: 0 of 0 hold");
  CHECK(tallies[1].sentence() == "orderings: 1 of 1 hold");
  CHECK(tallies[2].sentence() == "golden numbers: 1 of 2 hold");
}

TEST_CASE("Every golden number is asked once") {
  int golden = 0;
  for (const Claim& claim : claims()) golden += claim.kind == ClaimKind::golden_number;
  CHECK(golden == 39);
  CHECK(name_of(ClaimKind::equivalence) == "equivalence");
}

// prove, bugs and soak as scripts meet them.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "exactness/proof/prove.hpp"
#include "tests/support/run_verb.hpp"

namespace {

using namespace draftproof::testing;
using json = nlohmann::ordered_json;

}  // namespace

TEST_CASE("prove tells of one verifier in JSON") {
  const json document = json_of({"prove", "--verifier", "block", "--instances", "2"});
  REQUIRE(document.at("proofs").size() == 3);  // and with drafts of heads
  CHECK(document.at("proofs").at(1).at("verifier") == "block_d2t");
  const json& proof = document.at("proofs").at(0);
  CHECK(proof.at("verifier") == "block");
  CHECK(proof.at("exact") == true);
  CHECK(proof.at("instances") == 2);
  CHECK(proof.at("counterexample").is_null());
  CHECK(proof.at("acceptance_oracles") == 2);
  CHECK(proof.at("float_distance_max") < 1e-14);
  CHECK(document.at("claims").empty());
  CHECK(document.at("as_claimed") == true);
}

TEST_CASE("prove takes the names of the registry, which may have several cases") {
  const json document = json_of({"prove", "--verifier", "rrsw", "--instances", "1", "-k", "1"});
  REQUIRE(document.at("proofs").size() == 3);
  CHECK(document.at("proofs").at(0).at("verifier") == "tree_rrsw");
  CHECK(document.at("proofs").at(1).at("verifier") == "tree_rrsw_merged");
  CHECK(document.at("proofs").at(2).at("verifier") == "tree_rrsw_d2t");
}

TEST_CASE("prove refutes a lossy rule with a counterexample") {
  const json document = json_of({"prove", "--verifier", "typical_acceptance", "--instances", "1", "-k", "1"});
  const json& proof = document.at("proofs").at(0);
  CHECK(proof.at("exact") == false);
  const json& found = proof.at("counterexample");
  CHECK(found.at("probability_emitted") != found.at("probability_expected"));
  CHECK(found.at("p").size() == 3);
}

TEST_CASE("prove says why it fails where too small a model does not refute a lossy rule") {
  const ProgramResult result =
      run_draftproof({"prove", "--verifier", "top_k_resample", "--vocab", "2", "-k", "1", "--instances", "1"});
  CHECK(result.exit_code == 1);
  CHECK(result.out.find("a lossy rule that these models do not refute; try a larger --vocab") != std::string::npos);
}

TEST_CASE("prove tells what the top-k resample costs as a function of k") {
  const json document = json_of({"prove", "--verifier", "top_k_resample", "--instances", "1"});
  CHECK(document.at("top_k_resample").size() == 33);  // three rows at k = 1, 2, 4, ..., 1024
  for (const json& row : document.at("top_k_resample"))
    if (row.at("k") == 1024) CHECK(row.at("tv_argmax_drafts") == 0.0);
  const ProgramResult text = run_draftproof({"prove", "--verifier", "top_k_resample", "--instances", "1"});
  CHECK(text.out.find("drafts at T = 2") != std::string::npos);
}

TEST_CASE("prove checks equivalences and orderings and golden numbers with all verifiers") {
  const json document = json_of({"prove", "-k", "1", "--instances", "2"});
  CHECK(document.at("proofs").size() == draftproof::proof_cases().size());
  CHECK(document.at("claims").size() > 50);
  for (const json& claim : document.at("claims")) {
    INFO(claim.dump());
    CHECK(claim.at("holds") == true);
    CHECK(claim.at("refutation").is_null());
  }
}

TEST_CASE("bugs counts what was killed and shows the evidence of those that are asked for") {
  const json document = json_of({"bugs", "--only", "B01,C01"});
  CHECK(document.at("killed") == 1);
  CHECK(document.at("total") == 1);
  CHECK(document.at("controls_passed") == 1);
  CHECK(document.at("controls_total") == 1);
  const json& row = document.at("rows").at(0);
  CHECK(row.at("id") == "B01");
  CHECK(row.at("detector") == "K");
  CHECK(row.at("usual_tests").at("cosine_passes") == true);
  CHECK(row.at("hunts").size() == 2);
  const ProgramResult text = run_draftproof({"bugs", "--only", "B01"});
  CHECK(text.out.find("36/65") != std::string::npos);  // the distribution that a noise vector used twice has
}

TEST_CASE("soak tells its verdict and its rate") {
  // The level is that of one decision of the suite (statistics/battery.hpp).
  const json document = json_of({"soak", "--trials", "200000", "--alpha", "5e-9"});
  CHECK(document.at("verdict") == "consistent");
  CHECK(document.at("trials") == 200000);
  CHECK(document.at("trials_per_s") > 0.0);
  CHECK(document.at("tests").size() == 3);
  check_refused({"soak", "--models", "odd"}, {"--models is 'odd'; expected"});
}

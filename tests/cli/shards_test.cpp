// draftproof shards: rows over several devices from the command line.
#include "tests/support/test.hpp"

namespace {

using json = nlohmann::ordered_json;

TEST_CASE("shards draws what whole rows give and counts the bytes of its messages", "[shards]") {
  const json plain = json_of({"shards", "--rows", "3", "--vocab", "9000", "--devices", "4"});
  CHECK(plain.at("different") == 0);
  CHECK(plain.at("processes") == 1);
  CHECK(plain.at("bytes_of_a_gather") == 18000);
  // Three tiles, cuts inside each: N_t and faults, S_t, two shares of a tile and the token.
  CHECK(plain.at("bytes_per_row") <= 4 * 4 + 8 * 3 + 8 * 2 + 8);
  CHECK(plain.at("step_rows") == 384);
  CHECK(plain.at("messages_ms_per_step") > plain.at("gather_ms_per_step"));  // few bytes either way: latency decides
  const json both =
      json_of({"shards", "--rows", "3", "--vocab", "9000", "--top-k", "50", "--top-p", "9/10", "--sampler", "race"});
  CHECK(both.at("different") == 0);
  CHECK(both.at("bytes_per_row") > plain.at("bytes_per_row"));
}

TEST_CASE("three processes of mpirun draw what whole rows give, with real messages", "[shards]") {
  const auto run = run_with_mpi("3", {"shards", "--rows", "5", "--vocab", "20000", "--top-p", "0.9", "--json"});
  if (!run) return;
  INFO(run->err);
  REQUIRE(run->exit_code == 0);
  const json document = json::parse(run->out);
  CHECK(document.at("processes") == 3);
  CHECK(document.at("devices") == 3);
  CHECK(document.at("different") == 0);
  const json one = json_of({"shards", "--rows", "5", "--vocab", "20000", "--top-p", "0.9", "--devices", "3"});
  CHECK(document.at("bytes_per_row") == one.at("bytes_per_row"));
}

TEST_CASE("shards refuses more tokens than a row may have", "[shards]") {
  const ProgramResult result = run_draftproof({"shards", "--vocab", "524289"});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("--vocab") != std::string::npos);
}

}  // namespace

// `draftproof validate --replay` as its users meet it.
#include "tests/support/test.hpp"

namespace {

const std::string kRequest =
    "{\"prompt_token_ids\": [1, 2, 3, 4, 1, 2, 3], \"generated_token_ids\": [4, 1, 2, 3, 9, 5], "
    "\"acc_eagle\": {\"acc_len\": [1, 3, 1, 2, 1, 1]}, \"acc_ngram\": {\"acc_len\": [5, 4, 3, 2, 1, 1]}}\n";

}  // namespace

TEST_CASE("validate --replay has a row for every policy and batch, and the lookup beside them", "[cli]") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/toy.jsonl") << kRequest;
  const ordered_json document = json_of({"validate", "--replay", folder.path()});
  const ordered_json& toy = document.at("replay").at(0);
  CHECK(toy.at("dataset") == "toy");
  CHECK(toy.at("rows").size() == 4 * 3);
  for (const ordered_json& row : toy.at("rows")) {
    CHECK(row.at("published").is_null());
    CHECK(row.at("speedup").get<double>() > 0.3);
  }
  CHECK(toy.at("ngram").at("equal_share") == 1.0);
  CHECK(document.at("worst_error") == 0.0);
}

TEST_CASE("a published speedup that is missed is a failure", "[cli]") {
  const TemporaryFolder folder;
  // Not GSM8K, by any means: the published figures are for other requests.
  std::ofstream(folder.path() + "/gsm8k.jsonl") << kRequest;
  CHECK(json_of({"validate", "--replay", folder.path()}, 1).at("worst_error").get<double>() > 0.03);
}

TEST_CASE("validate takes a table or a folder of recordings, and says what is wrong with either", "[cli]") {
  const TemporaryFolder folder;
  check_refused({"validate", "--replay", folder.path() + "/no"}, {"cannot be read as a folder: No such file"});
  check_refused({"validate", "--replay", folder.path()}, {"holds no *.jsonl"});
  std::ofstream(folder.path() + "/bad.jsonl") << kRequest << "{\"acc_eagle\": {\"acc_len\": [0]}}\n";
  check_refused({"validate", "--replay", folder.path()}, {"bad.jsonl, line 2: acc_len has 0"});
}

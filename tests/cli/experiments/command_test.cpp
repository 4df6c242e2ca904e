#include "sim/serving/row_store.hpp"
#include "tests/support/test.hpp"

TEST_CASE("experiments writes rows, tables and claims of what it says") {
  const TemporaryFolder folder;
  const auto document = json_of({"experiments", "long_drafts", "--out", folder.file("out")});
  REQUIRE(document.at("experiments").size() == 1);
  const auto& experiment = document.at("experiments")[0];
  CHECK(experiment.at("consistent") == 2);
  CHECK(experiment.at("claims")[0].at("model")[0].get<double>() == Approx((1 - std::pow(0.5, 9)) / 0.5));
  const RowStore store(
      folder.file("out/rows.sqlite"), "experiments", "experiment_number",
      {"claim", "experiment", "x", "claimed_low", "claimed_high", "model_low", "model_high", "verdict", "why"});
  REQUIRE(store.rows().size() == 2);
  CHECK(store.rows()[0][1] == Cell("long_drafts"));
  CHECK_THAT(read_whole_file(folder.file("out/claims.md")),
             Contains("| `long_drafts` | Tokens per step of long drafts, K = 8 | 2 of 2 within 2 % |  |\n"));
  const std::string csv = read_whole_file(folder.file("out/long_drafts.csv"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 3);
  for (const auto& figure : document.at("files").at("figures"))
    CHECK(read_whole_file(figure.get<std::string>()).find("<svg") != std::string::npos);
}

TEST_CASE("an experiment that there is not, and a folder without any, is refused, and nothing is written") {
  check_refused({"experiments", "nothing"}, {"experiment: 'nothing' is not one of acceptance_by_drafter, "});
  const TemporaryFolder folder;
  check_refused({"experiments", "--folder", folder.path(), "--out", folder.file("out")},
                {"holds no experiments; expected folders with an experiment.toml"});
  CHECK(!std::filesystem::exists(folder.file("out")));
}

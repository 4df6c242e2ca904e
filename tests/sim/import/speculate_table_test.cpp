#include "sim/import/speculate_table.hpp"

#include "tests/support/test.hpp"

namespace {

nlohmann::json row(const std::string& drafter, int k, double temperature, int steps, const std::vector<double>& rates,
                   double error) {
  nlohmann::json json{{"work", "code"},           {"drafter", drafter},         {"k", k},
                      {"tree", nullptr},          {"temperature", temperature}, {"steps", steps},
                      {"drafts", steps * 9 / 10}, {"draft_tokens", k * steps},  {"accepted", steps}};
  json["acceptance_by_position"] = {{"unconditional", rates},
                                    {"unconditional_standard_error", std::vector<double>(rates.size(), error)}};
  return json;
}

nlohmann::json table(const std::vector<nlohmann::json>& rows) {
  return {{"rows", rows}, {"left_out", nlohmann::json::array()}};
}

}  // namespace

TEST_CASE("of speculate's table every drafter has its longest chains, over all kinds of work") {
  nlohmann::json tree = row("suffix", 3, 0.0, 10, {0.9}, 0.1);
  tree["tree"] = "2x2x1";
  const nlohmann::json document =
      table({row("suffix", 4, 0.0, 100, {0.9, 0.8}, 0.01), row("suffix", 8, 0.0, 100, {0.6, 0.3}, 0.03), tree,
             row("suffix", 8, 0.0, 300, {0.8, 0.5, 0.1}, 0.02), row("suffix", 8, 1.0, 50, {0.2}, 0.1),
             row("layer_skip:12", 4, 0.0, 60, {0.7, 0.6}, 0.05)});
  CHECK(is_speculate_table(document));
  const std::vector<DrafterAcceptance> found = acceptances_of_speculate(document, "result.json");
  REQUIRE(found.size() == 3);
  CHECK(found[0].drafter == "suffix, T = 0");
  CHECK(found[0].data.draft_len == 8);
  CHECK(found[0].data.drafts == 360);
  // (100 x 0.6 + 300 x 0.8) / 400, and so on; the third position was reached by one kind of work alone.
  // Nine steps of ten had a draft.
  CHECK(*found[0].data.draft_share == Approx(0.9));
  CHECK(found[0].data.survival[0] == Approx(0.75 / 0.9));
  CHECK(found[0].data.survival[1] == Approx(0.45 / 0.9));
  CHECK(found[0].data.survival[2] == Approx(0.075 / 0.9));
  CHECK(found[0].data.survival_error[0] == Approx(std::hypot(0.25 * 0.03, 0.75 * 0.02) / 0.9));
  CHECK(found[0].data.tokens_per_step() == Approx(1.0 + 0.75 + 0.45 + 0.075));
  CHECK(found[1].drafter == "suffix, T = 1");
  CHECK(found[2].drafter == "layer_skip:12, T = 0");
  CHECK(found[2].data.acceptance_length == Approx(1.0 + 1.3 / 0.9));
}

TEST_CASE("a table without chains, or with a row that is none, is refused by its row") {
  CHECK_FALSE(is_speculate_table(nlohmann::json{{"rows", 3}}));
  CHECK_THAT(error_of(ErrorKind::input, [] { acceptances_of_speculate(table({}), "t.json"); }),
             Contains("no row of a chain"));
  // The verb's name alone says nothing of the rows.
  for (const nlohmann::json& rows :
       {nlohmann::json(3), nlohmann::json{{"a", 1}}, nlohmann::json(), nlohmann::json("x")})
    CHECK(error_of(ErrorKind::input, [&] {
            acceptances_of_speculate({{"rows", rows}, {"left_out", nlohmann::json::array()}}, "t.json");
          }).find("t.json: is no table") != std::string::npos);
  CHECK_THAT(error_of(ErrorKind::input, [] { acceptances_of_speculate(nlohmann::json::object(), "t.json"); }),
             Contains("t.json: is no table"));
  nlohmann::json broken = row("suffix", 4, 0.0, 100, {0.9}, 0.01);
  broken.erase("steps");
  CHECK_THAT(error_of(ErrorKind::input, [&] { acceptances_of_speculate(table({broken}), "t.json"); }),
             Contains("t.json, row 1: is no row of speculate's table"));
  // Two of the last one would not have a sum.
  for (const nlohmann::json& count : {nlohmann::json("many"), nlohmann::json(-1), nlohmann::json(1e300),
                                      nlohmann::json(std::numeric_limits<std::int64_t>::max())}) {
    broken["steps"] = count;
    CHECK(error_of(ErrorKind::input, [&] {
            acceptances_of_speculate(table({broken, broken}), "t.json");
          }) == "t.json, row 1: 'steps' is " + count.dump() + "; expected an integer from 0 to 2^40");
  }
}

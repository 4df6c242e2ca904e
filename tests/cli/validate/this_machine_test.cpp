// The loop on this computer: from speculate's table to predictions, on the shipped model where it is; and what is
// refused without one. How near the predictions come is nobody's business here.
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {}  // namespace

TEST_CASE("this machine's timed passes predict every row of its own table of speculation") {
  if (!shipped_model_at_full_speed()) return;
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  json_of({"speculate", "--drafters", "suffix,layer_skip:5-24", "--trees", "2x1", "--temperatures", "0", "--per-work",
           "1", "--max-tokens", "3", "--out", out});
  const std::string table = out + "/result.json";
  const ordered_json result = json_of({"validate", "--this-machine", "--measured", table});
  CHECK(result.at("profile").at("timed_configurations").size() == 5);
  const ordered_json& rows = result.at("rows");
  const ordered_json measured = ordered_json::parse(read_whole_file(table)).at("rows");
  REQUIRE(rows.size() == measured.size());
  CHECK(rows.size() == 8);
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double predicted = rows[i].at("predicted");
    CHECK(rows[i].at("measured") == measured[i].at("speedup"));
    CHECK(predicted > 0.0);
    CHECK(rows[i].at("error").get<double>() == Approx(predicted / measured[i].at("speedup").get<double>() - 1.0));
    errors.push_back(std::abs(rows[i].at("error").get<double>()));
    // A drafter of a third of the model is more expensive than one that looks up.
    if (rows[i].at("drafter") != "suffix") CHECK(predicted < 1.5);
  }
  std::sort(errors.begin(), errors.end());
  CHECK(result.at("median").get<double>() == Approx(errors[4]));
  CHECK(result.at("p90").get<double>() == Approx(errors[6]));

  ordered_json elsewhere = ordered_json::parse(read_whole_file(table));
  elsewhere["settings"]["cpu"] = "another";
  write_whole_file(folder.file("elsewhere.json"), elsewhere.dump());
  check_refused({"validate", "--this-machine", "--measured", folder.file("elsewhere.json")},
                {"a table of this computer"});
  elsewhere["rows"][3].erase("requests");
  write_whole_file(folder.file("old.json"), elsewhere.dump());
  check_refused({"validate", "--this-machine", "--measured", folder.file("old.json")}, {"row 3 has no 'requests'"});

  // calibrate writes this machine's profile.
  const ordered_json profile =
      json_of({"calibrate", "--this-machine", "--out", folder.file("machine.toml")}).at("profile");
  CHECK(profile.at("model") == "smollm2");
  CHECK(read_whole_file(folder.file("machine.toml")).find("[machine]") != std::string::npos);
}

TEST_CASE("validate and calibrate refuse what they cannot start from, in one line") {
  const TemporaryFolder folder;
  check_refused({"validate"}, {"expected one of --data CSV, --replay DIR and --this-machine"});
  check_refused({"calibrate"}, {"expected --data CSV or --this-machine"});
  check_refused({"validate", "--this-machine", "--data", "x.csv"}, {"expected one of"});
  check_refused({"validate", "--this-machine", "--measured", folder.file("absent.json")},
                {"is not there; expected the result of draftproof speculate"});
  write_whole_file(folder.file("no.json"), "[1]");
  check_refused({"validate", "--this-machine", "--measured", folder.file("no.json")}, {"is no table"});
  write_whole_file(folder.file("text"), "a text of a few words");
  check_refused({"calibrate", "--this-machine", "--model", "ngram:2:" + folder.file("text")},
                {"computes no passes; expected a transformer"});
}

}  // namespace draftproof::testing

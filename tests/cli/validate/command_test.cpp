// draftproof validate as its users meet it: every figure of the document recomputed here from its rows.
#include "sim/cost/roofline.hpp"
#include "sim/cost/step_ratio.hpp"
#include "tests/support/test.hpp"

namespace {

const std::string kHeader =
    "source_id,hardware,gpu_count,engine,target_model,target_precision,draft_method,K,batch,tau,speedup\n";

ordered_json validate(const TemporaryFolder& folder, const std::string& rows, const std::string& header = kHeader) {
  const std::string path = folder.path() + "/speedups.csv";
  std::ofstream(path) << header << rows;
  return json_of({"validate", "--data", path});
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const double below = std::floor(at);
  const double low = values[static_cast<std::size_t>(below)];
  const double high = values[static_cast<std::size_t>(std::ceil(at))];
  return low + (at - below) * (high - low);
}

const std::string kRows =
    "unseen lab,A100 SXM 80GB,1,vLLM,Llama-3.1-8B,fp16,EAGLE-3,3,1,2.40,1.90\n"
    "unseen lab,A100 SXM 80GB,1,vLLM,Llama-3.1-8B,fp16,EAGLE-3,5,1,2.80,2.00\n"
    "unseen lab,A100 SXM 80GB,1,vLLM,Llama-3.1-8B,fp16,EAGLE-3,7,1,3.00,1.95\n"
    "another,H100,1,SGLang,Qwen3-30B-A3B,bf16,EAGLE-3,3,8,2.20,1.30\n"
    "another,H100,1,SGLang,Qwen3-8B,bf16,n-gram,4,1,1.90,1.60\n";

}  // namespace

TEST_CASE("Every figure of validate follows from its rows", "[cli]") {
  const TemporaryFolder folder;
  const ordered_json document = validate(folder, kRows);
  const ordered_json& rows = document["rows"];
  REQUIRE(rows.size() == 5);
  std::vector<double> absolute, errors, speedups, textbook;
  double covered = 0.0;
  for (const ordered_json& row : rows) {
    const double error = row["predicted"].get<double>() / row["step_ratio"].get<double>() - 1.0;
    errors.push_back(error);
    absolute.push_back(std::abs(error));
    speedups.push_back(std::abs(row["predicted_speedup"].get<double>() / row["speedup"].get<double>() - 1.0));
    textbook.push_back(std::abs(row["textbook"].get<double>() / row["step_ratio"].get<double>() - 1.0));
    covered += row["step_ratio"] >= row["low"] && row["step_ratio"] <= row["high"] ? 1.0 : 0.0;
    CHECK(row["constants"] == "shipped");
  }
  const ordered_json& overall = document["overall"];
  CHECK(overall["rows"] == 5);
  CHECK(overall["step_ratio_median"].get<double>() == Approx(quantile(absolute, 0.5)));
  CHECK(overall["step_ratio_p90"].get<double>() == Approx(quantile(absolute, 0.9)));
  CHECK(overall["bias"].get<double>() == Approx(quantile(errors, 0.5)));
  CHECK(overall["speedup_median"].get<double>() == Approx(quantile(speedups, 0.5)));
  CHECK(overall["speedup_p90"].get<double>() == Approx(quantile(speedups, 0.9)));
  CHECK(overall["textbook_median"].get<double>() == Approx(quantile(textbook, 0.5)));
  CHECK(overall["band80_coverage"].get<double>() == Approx(covered / 5.0));
  const std::map<std::string, int> sizes{{"complete", 3},        {"moe", 1},         {"head", 4},       {"dense", 3},
                                         {"dense_other", 1},     {"dense_eager", 0}, {"ngram", 1},      {"model", 0},
                                         {"dense_multi_gpu", 0}, {"closed_loop", 0}, {"unseen lab", 3}, {"another", 2}};
  for (const auto& [group, size] : sizes) CHECK(document["groups"][group]["rows"] == size);
  CHECK(document["groups"]["model"]["step_ratio_median"].is_null());
  // One choice: K of the first machine. The best measured one is K = 5.
  double best = 0.0, predicted_best = 0.0, taken = 0.0;
  for (std::size_t i = 0; i < 3; ++i) {
    best = std::max(best, rows[i]["speedup"].get<double>());
    if (rows[i]["predicted_speedup"].get<double>() <= predicted_best) continue;
    predicted_best = rows[i]["predicted_speedup"].get<double>();
    taken = rows[i]["speedup"].get<double>();
  }
  CHECK(overall["choices"] == 1);
  CHECK(overall["regret"].get<double>() == Approx(1.0 - taken / best));
  CHECK(document["worst"].size() == 5);
}

TEST_CASE("A source that nobody has seen, alone in its file, is predicted with the shipped constants", "[cli]") {
  using namespace draftproof;
  const TemporaryFolder folder;
  const ordered_json document =
      validate(folder, "unseen lab,A100 SXM 80GB,1,vLLM,Llama-3.1-8B,fp16,EAGLE-3,5,1,2.80,2.00\n");
  RooflineSetup setup;
  setup.model = find_model("Llama-3.1-8B");
  setup.gpu = find_gpu("A100 SXM 80GB");
  setup.engine = find_engine("vLLM");
  setup.drafter = find_drafter("EAGLE-3", setup.model);
  const double expected = step_ratio(Roofline(setup), {1, 1024, false}, {5, 5, false}, DraftingKind::head);
  CHECK(document["rows"][0]["predicted"].get<double>() == Approx(expected).epsilon(1e-4));
  CHECK(document["rows"][0]["step_ratio"].get<double>() == Approx(1.4));
}

TEST_CASE("Excluded rows are listed with line and reason, and counted", "[cli]") {
  const TemporaryFolder folder;
  const ordered_json document = validate(folder, kRows +
                                                     "x,Abacus,1,vLLM,Llama-3.1-8B,,EAGLE-3,3,1,2,1.5\n"
                                                     "x,H100,1,vLLM,Llama-3.1-8B,,EAGLE-3,3,1,2,fast\n"
                                                     "x,H100,1\n");
  REQUIRE(document["excluded"].size() == 3);
  std::map<std::string, int> lines;
  for (const ordered_json& reason : document["excluded"]) {
    CHECK(reason["count"] == 1);
    lines[reason["reason"]] = reason["rows"][0]["line"];
  }
  CHECK(lines.at("unknown hardware") == 7);
  CHECK(lines.at("speedup is not a number") == 8);
  CHECK(lines.at("another number of fields than the header") == 9);
  CHECK(document["overall"]["rows"] == 5);
}

TEST_CASE("A file of which no row can be used gives null figures and no crash", "[cli]") {
  const TemporaryFolder folder;
  const ordered_json document = validate(folder, "x,Abacus,1,vLLM,Llama-3.1-8B,,EAGLE-3,3,1,2,1.5\n");
  CHECK(document["overall"]["rows"] == 0);
  CHECK(document["overall"]["step_ratio_median"].is_null());
}

TEST_CASE("A file that is no table of speedups is refused in one line", "[cli]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/speedups.csv";
  std::ofstream(path) << "a,b\n1,2\n";
  check_refused({"validate", "--data", path}, {"it has no column hardware"});
}

TEST_CASE("What calibrate writes is an engine file that is read back", "[cli]") {
  const TemporaryFolder folder;
  const std::string data = folder.path() + "/speedups.csv";
  const std::string out = folder.path() + "/engines.toml";
  std::ofstream(data) << kHeader << kRows;
  const ordered_json document = json_of({"calibrate", "--data", data, "--out", out});
  CHECK(document["rows"] == 5);
  CHECK(document["sources"].size() == 2);
  CHECK(document["converged"] == true);
  for (const ordered_json& parameter : document["parameters"]) {
    CHECK(parameter["spread"].get<double>() <= 1.0001 * parameter["prior_spread"].get<double>());
    CHECK(parameter["determined"].get<double>() >= 0.0);
  }
  std::set<std::string> constants;
  for (std::size_t i = 0; i < draftproof::kEngineConstants; ++i)
    constants.insert(std::string(draftproof::name_of(static_cast<draftproof::EngineConstant>(i))));
  const draftproof::EngineProfile engine = draftproof::find_engine(out + ":SGLang");
  bool found = false;
  for (const ordered_json& entry : document["engines"]) {
    std::set<std::string> named;
    for (const auto& [name, value] : entry["constants"].items()) named.insert(name);
    CHECK(named == constants);
    if (entry["name"] == "SGLang") {
      found = true;
      CHECK(engine.value(draftproof::EngineConstant::step_floor_ms) ==
            Approx(entry["constants"]["step_floor_ms"]["value"].get<double>()).epsilon(1e-4));
    }
  }
  CHECK(found);
  check_refused({"calibrate", "--data", data, "--out", data}, {"speedups.csv"});
}

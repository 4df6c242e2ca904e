#include "sim/predict/engine_config.hpp"

#include "tests/support/test.hpp"

namespace {

PredictionInputs inputs_with(const std::string& acceptance, const std::string& drafter = "EAGLE-3", int batch = 8) {
  PredictionRequest request;
  request.model = "Llama-3.1-8B";
  request.gpu = "H100";
  request.drafter = drafter;
  request.acceptance = acceptance;
  request.batches = {batch};
  return inputs_of(request);
}

// The text between two marks.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  REQUIRE(from != std::string::npos);
  return text.substr(from, text.find(end, from) - from);
}

}  // namespace

TEST_CASE("a schedule covers every load that fits, changes only for a gain, and is off where a loss is too likely") {
  const PredictionInputs inputs = inputs_with("constant:0.6");
  const std::vector<DraftsByLoad> ranges = draft_schedule(inputs, 0.25);
  REQUIRE(ranges.size() >= 2);
  CHECK(ranges.front().loads.from == 1);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    CHECK(ranges[i].loads.from == ranges[i - 1].loads.to + 1);
    CHECK(ranges[i].drafts != ranges[i - 1].drafts);
  }
  const Prediction at_ends = prediction_at(inputs, {1});
  CHECK(ranges.back().loads.to == std::min<std::int64_t>(at_ends.batch_of_memory, 1024));
  for (const DraftsByLoad& range : ranges)
    for (const std::int64_t load : {range.loads.from, range.loads.to}) {
      const Prediction there = prediction_at(inputs, {load});
      const BatchPrediction& batch = there.batches[0];
      const PredictionRow& best = batch.rows[batch.best_chain];
      CAPTURE(load, range.drafts);
      if (range.drafts == 0) {
        CHECK((best.band().loss_probability() > 0.25 || !best.band().pays()));
      } else {
        const PredictionRow& row = batch.rows[static_cast<std::size_t>(range.drafts - 1)];
        CHECK(row.band().loss_probability() <= 0.25);
        CHECK(best.speedup < 1.04 * row.speedup);  // the loads between two that were looked at included
      }
    }
  // A threshold that no draft meets.
  for (const DraftsByLoad& range : draft_schedule(inputs_with("constant:0.2"), 0.0)) CHECK(range.drafts == 0);
}

// The rules are those that the engines' own parsers apply (engine_config.hpp), which took these texts: vLLM 0.33.0's
// validate_and_normalize_dynamic_sd_schedule, SGLang 0.5.23's AdaptiveSpeculativeParams.
TEST_CASE("vLLM reads the schedule as inclusive ranges") {
  const PredictionInputs inputs = inputs_with("constant:0.6");
  const std::string script = engine_config("vllm", inputs, 0.25);
  const auto config = nlohmann::json::parse(between(script, "--speculative-config '", "'"));
  CHECK(config.at("method") == "eagle3");
  const std::vector<DraftsByLoad> ranges = draft_schedule(inputs, 0.25);
  const auto& lines = config.at("num_speculative_tokens_per_batch_size");
  REQUIRE(lines.size() == ranges.size());
  int most = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    CHECK(lines[i] == nlohmann::json{ranges[i].loads.from, ranges[i].loads.to, ranges[i].drafts});
    most = std::max(most, static_cast<int>(ranges[i].drafts));
  }
  CHECK(config.at("num_speculative_tokens") == most);
  CHECK_THAT(script, Contains("#   1 to ") && Contains("times as fast, 80 % band") &&
                         Contains("\nvllm serve Llama-3.1-8B --speculative-config"));
  if (ranges.back().drafts == 0) CHECK_THAT(script, Contains(": off: K = "));
}

TEST_CASE("SGLang has a slot of one step for each range, and one of them is where it starts") {
  const PredictionInputs inputs = inputs_with("constant:0.6");
  const std::string script = engine_config("sglang", inputs, 0.25);
  CHECK_THAT(script, Contains("# Llama-3.1-8B stands for the checkpoint's path or its name at Hugging Face\n"));
  const auto slots = nlohmann::json::parse(between(script, "<<'END'\n", "\nEND\n"));
  const std::vector<DraftsByLoad> ranges = draft_schedule(inputs, 0.25);
  REQUIRE(slots.size() == ranges.size());
  for (const DraftsByLoad& range : ranges)
    CHECK(slots.at(std::to_string(range.loads.from)).at("candidate_steps") == nlohmann::json{range.drafts});
  const int steps = std::stoi(between(script, "--speculative-num-steps ", " "));
  CHECK_THAT(script, Contains("--speculative-num-draft-tokens " + std::to_string(steps + 1)));
  CHECK(std::ranges::any_of(ranges, [&](const DraftsByLoad& range) { return range.drafts == steps; }));
}

TEST_CASE("A tree that is advised is said not to be written, wherever the engine takes trees") {
  const auto script_of = [](const char* engine, const char* config, const std::vector<int>& trees) {
    PredictionRequest request;
    request.model = "Llama-3.1-8B";
    request.gpu = "H100";
    request.drafter = "EAGLE-3";
    request.engine = engine;
    request.acceptance = "constant:0.6";
    request.batches = {1};
    request.trees = trees;
    return std::pair(engine_config(config, inputs_of(request), 0.25), answer(request).prediction.advice);
  };
  const auto [script, advice] = script_of("SGLang", "sglang", {8, 16, 32, 60});
  REQUIRE_THAT(advice, Contains("with a tree of"));
  const std::string tree = between(advice, "with a tree of ", " at batch 1:");
  CHECK_THAT(script, Contains("# Trees are not written: at 1 the advice is a tree of " + tree + ", "));
  CHECK_THAT(script_of("TensorRT-LLM", "trtllm", {16}).first, Contains("# Trees are not written: at 1"));
  // No tree is looked at, or the engine takes none.
  CHECK_THAT(script_of("SGLang", "sglang", {}).first, !Contains("not written"));
  CHECK_THAT(script_of("vLLM", "sglang", {8, 16, 32, 60}).first, !Contains("not written"));
}

TEST_CASE("TensorRT-LLM's schedule means the same whether its keys are lower or upper ends") {
  const PredictionInputs inputs = inputs_with("constant:0.6");
  const std::string script = engine_config("trtllm", inputs, 0.25);
  std::istringstream yaml(between(script, "draft_len_schedule:\n", "END\n"));
  std::map<std::int64_t, int> schedule;
  std::string line;
  while (std::getline(yaml, line)) {
    const std::size_t colon = line.find(':');
    schedule[std::stoll(line)] = std::stoi(line.substr(colon + 1));
  }
  CHECK(schedule.at(1) == std::stoi(between(script, "max_draft_len: ", "\n")));
  for (const DraftsByLoad& range : draft_schedule(inputs, 0.25))
    for (std::int64_t load = range.loads.from; load <= range.loads.to; ++load) {
      const int by_lower = std::prev(schedule.upper_bound(load))->second;
      const auto upper = schedule.lower_bound(load);
      const int by_upper = upper == schedule.end() ? 0 : upper->second;
      REQUIRE(by_lower == range.drafts);
      REQUIRE(by_upper == range.drafts);
    }
}

TEST_CASE("llama.cpp has one number, that of the load that was asked for; an engine without the drafter is refused") {
  CHECK_THAT(engine_config("llama.cpp", inputs_with("constant:0.8", "Llama-3.2-1B", 1), 0.25),
             Contains("--parallel 1 --spec-type draft-simple --spec-draft-model DRAFTER.gguf --spec-draft-n-max "));
  CHECK_THAT(engine_config("vllm", inputs_with("constant:0.8", "n-gram"), 0.25),
             Contains("\"method\":\"ngram\"") && !Contains("DRAFTER"));
  // Nothing pays: the server starts without.
  const std::string off = engine_config("vllm", inputs_with("constant:0.05"), 0.25);
  CHECK_THAT(off, Catch::EndsWith("\nvllm serve Llama-3.1-8B\n"));
  CHECK(error_of(ErrorKind::usage, [] { engine_config("vllm", inputs_with("constant:0.8", "Medusa"), 0.25); }) ==
        "--write-config: is vllm, which has no drafter Medusa; expected EAGLE-3, MTP, n-gram, or a draft model");
}

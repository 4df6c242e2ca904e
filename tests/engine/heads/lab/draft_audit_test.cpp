// Recorded runs of heads beside what the head proposes: runs of ours, sound and with the faults of head_faults.hpp, and
// runs whose arithmetic rounds otherwise.
#include "engine/heads/lab/draft_audit.hpp"

#include "base/dtype.hpp"
#include "engine/heads/lab/acceptance_oracle.hpp"
#include "engine/heads/lab/recorded_replay.hpp"
#include "tests/engine/heads/lab/fault_runs.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

// A run of the schedule by a runner, as a file would hold it.
std::vector<DraftedRequest> recorded(FaultLab& lab, Drafter& runner, HeadDrafter& head, const HeadSchedule& schedule) {
  DraftRecorder recorder(runner, &head.head());
  const auto forward = head.on_row;  // of a fault
  head.on_row = [&](const HeadRow& row) {
    if (forward) forward(row);
    recorder.add(row);
  };
  const HeadRun run = run_schedule_of_heads(lab.target, &recorder, schedule);
  head.on_row = forward;
  std::vector<DraftedRequest> requests;
  for (std::size_t i = 0; i < run.texts.size(); ++i)
    requests.push_back(recorder.take(i, run.texts[i].size(),
                                     static_cast<double>(schedule.requests[i].options.parameters.temperature)));
  return requests;
}

std::vector<DraftedRequest> sound_run(const std::string& name, const HeadSchedule& schedule) {
  FaultLab& lab = fault_lab();
  HeadDrafter head(lab.heads.at(name).head.head(lab.target), std::nullopt);
  return recorded(lab, head, head, schedule);
}

std::vector<DraftedRequest> faulty_run(const PlantedHeadFault& planted) {
  FaultLab& lab = fault_lab();
  const HeadFault fault = fault_named(planted, lab.heads.at(planted.head).head.weights(), lab.target);
  HeadDrafter head(std::make_shared<DraftHead>(fault.weights, lab.target, "test head"), std::nullopt);
  const std::unique_ptr<FaultyDrafter> runner = fault.plant(head, lab.target);
  return recorded(lab, *runner, head, fault_schedule(0.0f, planted.shares_prefixes));
}

DraftAudit audited(const std::vector<DraftedRequest>& requests, const std::string& head,
                   const DraftAuditOptions& options = {}) {
  FaultLab& lab = fault_lab();
  return audit_drafts(requests, lab.heads.at(head).head.weights(), lab.target, options);
}

std::vector<DraftedRequest> without_probabilities(std::vector<DraftedRequest> requests) {
  for (DraftedRequest& request : requests)
    for (DraftedStep& step : request.steps) step.log_probs.clear();
  return requests;
}

// Written and read.
std::vector<DraftedRequest> through_a_file(const std::vector<DraftedRequest>& requests) {
  const TemporaryFolder folder;
  std::string lines;
  for (const DraftedRequest& request : requests) lines += recorded_line(request);
  write_whole_file(folder.file("run.jsonl"), lines);
  return read_recorded_run(folder.file("run.jsonl"), kFaultVocabSize);
}

// Chains, drawn chains, and trees with rejected first siblings.
std::vector<HeadSchedule> schedules() {
  std::vector<HeadSchedule> all{fault_schedule(0.0f, true), fault_schedule(0.8f, true), fault_schedule(0.8f, true),
                                fault_schedule(0.0f, true)};
  for (Request& request : all[2].requests) request.options.verify.verifier = parse_verifier("chain", "test");
  for (Request& request : all[3].requests) {
    request.options.verify.verifier = parse_verifier("target_only", "test");
    request.options.tree = branching_shape({3, 2, 1});
  }
  return all;
}

TEST_CASE("a recorded run of ours is the head's, draft for draft and probability for probability", "[release]") {
  for (const auto& [name, taught] : fault_lab().heads)
    for (const HeadSchedule& schedule : schedules()) {
      INFO(name << ", temperature " << schedule.requests[0].options.parameters.temperature);
      const std::vector<DraftedRequest> requests = through_a_file(sound_run(name, schedule));
      const DraftAudit audit = audited(requests, name);
      INFO(audit.sentence << (audit.first ? "; " + audit.first->text() : ""));
      CHECK(audit.verdict == DraftVerdict::consistent);
      CHECK(audit.accounting.empty());
      CHECK(audit.all.different == 0);
      CHECK(audit.all.near_ties == 0);
      CHECK(audit.all.drafts() > 400);
      CHECK(audit.probabilities == audit.all.drafts());
      CHECK(audit.largest_log_prob_difference < 1e-4);
      CHECK(audit.requests == 6);
      if (audit.recorded_length) CHECK(audit.recorded_length == audit.head_length);
      std::int64_t by_position = 0;
      for (const DraftAgreement& bin : audit.by_position) by_position += bin.drafts();
      CHECK(by_position == audit.all.drafts());
    }
}

TEST_CASE("a run that is shown again to a sound runner has the slow head's rows, bit for bit", "[release]") {
  FaultLab& lab = fault_lab();
  const std::vector<HeadSchedule> all = schedules();
  std::size_t next = 0;
  for (const auto& [name, taught] : lab.heads)
    for (int repetition = 0; repetition < 2; ++repetition) {
      const HeadSchedule& schedule = all[next++ % all.size()];
      INFO(name);
      const std::vector<DraftedRequest> requests = sound_run(name, schedule);
      CHECK(requests.back().cached_tokens == 32);
      CHECK(requests.back().prefill_chunks.size() > 1);
      HeadDrafter head(taught.head.head(lab.target), 1.0f);
      FaultyDrafter runner(head);
      AcceptanceOracle oracle(taught.head.weights(), lab.target, transformer_kernels());
      oracle.attach(runner);
      RecordedReplay replay(lab.target, requests);
      replay.add(runner, true);
      for (std::size_t i = 0; i < requests.size(); ++i) replay.run(i);
      oracle.compare();
      if (oracle.first()) FAIL(oracle.first()->text());
      std::int64_t drafts = 0;
      for (const DraftedRequest& request : requests)
        for (const DraftedStep& step : request.steps) drafts += step.drafts.size();
      CHECK(oracle.drafts_compared() == drafts);
    }
}

// The first explanation, "13 one rejected draft stays", or what the audit says without one.
std::string told(const DraftAudit& audit) {
  if (audit.explanations().empty()) return std::string(name_of(audit.verdict));
  const FaultLook& first = *audit.explanations().front();
  return std::to_string(first.number) + " " + first.name;
}

TEST_CASE("a planted fault is found by an engine's recorded drafts, and named first", "[release]") {
  // Faults that drafts alone do not show at the default tolerance: an epsilon moves no logit by 0.02, the scaling of
  // eight slow angles one draft of 808, which another epsilon explains as well.
  const std::map<std::string, std::string> not_told{{"15 epsilon 1e-06 for 1e-05", "consistent"}};
  for (std::size_t i = 0; i < kPlantedFaults.size(); i += kSanitized ? 4 : 1) {
    const PlantedHeadFault& planted = kPlantedFaults[i];
    const std::string name = std::to_string(planted.number) + " " + planted.name;
    INFO(name << ", " << planted.head);
    const std::vector<DraftedRequest> run = faulty_run(planted);
    DraftAuditOptions exact;  // of an engine with our arithmetic
    exact.tolerance = 1e-3;
    exact.replay_tokens_max = 330;  // three requests
    const DraftAudit by_probabilities = audited(run, planted.head, exact);
    INFO(by_probabilities.sentence);
    CHECK(by_probabilities.verdict == DraftVerdict::different);
    CHECK(by_probabilities.accounting.empty());
    CHECK(told(by_probabilities) == name);
    CHECK(by_probabilities.explanations().size() == 1);
    const DraftAudit by_tokens = audited(without_probabilities(run), planted.head);
    INFO(by_tokens.sentence);
    CHECK(by_tokens.probabilities == 0);
    CHECK(told(by_tokens) == (not_told.contains(name) ? not_told.at(name) : name));
    CHECK(by_tokens.faults.empty() == (by_tokens.verdict == DraftVerdict::consistent));
  }
}

TEST_CASE("faults that need chunks, shared prefixes or chains are not tried where the run has none") {
  std::vector<DraftedRequest> run = without_probabilities(faulty_run({1,
                                                                      "accepted drafts keep the states made while "
                                                                      "drafting",
                                                                      "eagle1"}));
  run.resize(1);
  for (DraftedRequest& request : run) request.prefill_chunks.clear();
  const DraftAudit audit = audited(run, "eagle1");
  std::set<int> not_tried;
  for (const FaultLook& look : audit.faults)
    if (!look.not_tried.empty()) not_tried.insert(look.number);
  // 5, 14 and 21 are no faults of this head: it drafts all tokens that it was taught, by pairs.
  CHECK(not_tried == std::set{2, 3, 11, 14, 21});
  CHECK(audit.faults.front().number == 1);
}

TEST_CASE("of drafts that none of the known faults makes the audit says so", "[release]") {
  std::vector<DraftedRequest> run = without_probabilities(sound_run("eagle3", fault_schedule(0.0f, true)));
  std::mt19937 random(3);
  const std::vector<Token>& tokens = fault_lab().heads.at("eagle3").head.tensors.description.draft_tokens;
  std::int64_t changed = 0;
  for (DraftedRequest& request : run)
    for (DraftedStep& step : request.steps)
      if (!step.drafts.empty() && step.num_accepted < step.drafts.size() && random() % 4 == 0) {
        step.drafts.tokens.back() = tokens[random() % tokens.size()];
        ++changed;
      }
  const DraftAudit audit = audited(run, "eagle3");
  CHECK(changed > 20);
  CHECK(audit.all.different > changed / 2);
  CHECK(audit.all.different <= changed);
  CHECK(audit.explanations().empty());
  CHECK_THAT(audit.sentence, Contains("none of the known faults explains it"));
}

// Drafts of an engine whose rows are rounded to bfloat16: chains of K along plain decoding's texts.
std::vector<DraftedRequest> rounded_run(const std::string& name, float step) {
  FaultLab& lab = fault_lab();
  constexpr std::int64_t kDrafts = 4;
  SlowHead slow(lab.heads.at(name).head.weights(), lab.target, transformer_kernels());
  std::vector<DraftedRequest> requests;
  const std::vector<std::vector<Token>> texts = lab.whole_texts();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    DraftedRequest& request = requests.emplace_back();
    request.where = "request " + std::to_string(i);
    request.tokens = texts[i];
    request.prompt_len = std::ssize(lab.schedule.requests[i].prompt);
    SlowHead::Text text;
    slow.read(text, request.tokens);
    for (std::int64_t position = request.prompt_len + 1; position < std::ssize(request.tokens);) {
      DraftedStep& recorded = request.steps.emplace_back();
      recorded.position = position;
      std::vector<Token> path;
      while (std::ssize(path) < kDrafts) {
        std::vector<float> row =
            slow.row(text, std::span(request.tokens).first(static_cast<std::size_t>(position)), path).logits;
        for (float& logit : row)
          logit = step > 0.0f ? std::round(logit / step) * step : bf16_to_f32(f32_to_bf16(logit));
        path.push_back(slow.token_of(std::ranges::max_element(row) - row.begin()));
      }
      recorded.drafts = DraftTree::chain(path);
      const auto rest = request.tokens.begin() + position;
      while (recorded.num_accepted < kDrafts && rest + recorded.num_accepted < request.tokens.end() &&
             path[static_cast<std::size_t>(recorded.num_accepted)] == rest[recorded.num_accepted])
        ++recorded.num_accepted;
      position += recorded.num_accepted + 1;
    }
  }
  return requests;
}

TEST_CASE("a run whose logits are rounded as bfloat16 would be is not accused, and one rounded to multiples of 4 is",
          "[release]") {
  std::int64_t near_ties = 0;
  for (const auto& [name, taught] : fault_lab().heads) {
    if (kSanitized && name != "eagle3") continue;
    INFO(name);
    const DraftAudit rounded = audited(rounded_run(name, 0.0f), name);
    INFO(rounded.sentence);
    CHECK(rounded.verdict == DraftVerdict::consistent);
    CHECK(rounded.all.drafts() > 400);
    CHECK(rounded.largest_margin < 0.1);
    near_ties += rounded.all.near_ties;
    DraftAuditOptions one_request;
    one_request.replay_tokens_max = 1;
    CHECK(audited(rounded_run(name, 4.0f), name, one_request).verdict == DraftVerdict::different);
  }
  CHECK(near_ties > (kSanitized ? 0 : 10));
}

TEST_CASE("with the tolerance that a sound run of other arithmetic needs, faults of such runs keep their names",
          "[release]") {
  // Int8 activations beside f32's rows. The last matrix of these heads is fitted, and enlarges rounding.
  FaultLab& lab = fault_lab();
  const std::unique_ptr<TransformerModel> f32 = lab.target.with_arithmetic(Arithmetic::f32);
  const auto weights = lab.heads.at("eagle1").head.weights();
  DraftAuditOptions options;
  options.tolerance = 10.0;
  const std::vector<DraftedRequest> sound = without_probabilities(sound_run("eagle1", fault_schedule(0.0f, true)));
  options.tolerance = audit_drafts(sound, weights, *f32, options).largest_margin;
  CHECK(options.tolerance > 0.0);
  CHECK(options.tolerance < 3.0);
  CHECK(audit_drafts(sound, weights, *f32, options).verdict == DraftVerdict::consistent);
  for (const PlantedHeadFault& planted : {kPlantedFaults[0], kPlantedFaults[7]}) {
    const DraftAudit audit = audit_drafts(without_probabilities(faulty_run(planted)), weights, *f32, options);
    INFO(audit.sentence);
    CHECK(told(audit) == std::to_string(planted.number) + " " + planted.name);
  }
}

TEST_CASE("accounts that do not add up are reported with the step and what would be right") {
  const std::vector<DraftedRequest> sound = sound_run("eagle3", fault_schedule(0.0f, true));
  const DraftedRequest& request = sound[2];
  CHECK_FALSE(accounting_fault(request));
  std::size_t s = 3;  // with one accepted draft, not at the end
  while (request.steps[s].num_accepted != 1) ++s;
  REQUIRE(s + 2 < request.steps.size());
  const auto text = [&](auto alter) {
    DraftedRequest altered = request;
    alter(altered);
    const auto fault = accounting_fault(altered);
    REQUIRE(fault);
    return fault->text;
  };
  const std::string step = "steps[" + std::to_string(s) + "].";
  CHECK_THAT(text([&](DraftedRequest& r) { r.steps[s].num_accepted = 0; }),
             Contains(step + "accepted is 0; expected 1, since the output has that many of the drafts"));
  CHECK_THAT(text([&](DraftedRequest& r) { r.steps[s].num_accepted = 2; }),
             Contains(step + "accepted is 2; expected at most 1, the drafts that the output has"));
  CHECK_THAT(text([&](DraftedRequest& r) { ++r.steps[s].position; }),
             Contains(step + "position is " + std::to_string(request.steps[s].position + 1) + "; expected " +
                      std::to_string(request.steps[s].position) + ", the position before"));
  CHECK_THAT(text([&](DraftedRequest& r) { r.tokens.resize(static_cast<std::size_t>(r.steps[s].position)); }),
             Contains(step + "position is ") && Contains("; expected less than "));
  CHECK_THAT(text([&](DraftedRequest& r) { r.steps.erase(r.steps.begin(), r.steps.begin() + 3); }),
             Contains("steps[0].position is ") && Contains("the prompt, maybe with a first token"));
  // The drafts of such a request are compared all the same, and the verdict is no clean one.
  std::vector<DraftedRequest> all = sound;
  all[2].steps[s].num_accepted = 0;
  const DraftAudit audit = audited(all, "eagle3");
  CHECK(audit.all.different == 0);
  CHECK(audit.accounting.size() == 1);
  CHECK(audit.verdict == DraftVerdict::different);
  CHECK_THAT(audit.sentence, Contains("the accounts of 1 request do not add up"));
}

TEST_CASE("few drafts without a difference, or none, are inconclusive") {
  std::vector<DraftedRequest> run = sound_run("eagle3", fault_schedule(0.0f, true));
  run.resize(1);
  run[0].steps.resize(9);
  CHECK(audited(run, "eagle3").verdict == DraftVerdict::inconclusive);
  run[0].steps.clear();
  const DraftAudit none = audited(run, "eagle3");
  CHECK(none.verdict == DraftVerdict::inconclusive);
  CHECK_FALSE(none.recorded_length);
}

TEST_CASE("a recorded tree is read breadth first with its probabilities, and a bad line is refused by its field") {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.jsonl");
  const auto read = [&](const std::string& line) {
    write_whole_file(path, line + "\n");
    return read_recorded_run(path, 100);
  };
  const DraftedRequest tree =
      read(
          R"({"prompt_tokens": [1, 2], "output_tokens": [3, 4, 5, 6], "temperature": 0.5, )" +
          std::string(
              R"("cached_tokens": 1, "prefill_chunks": [1], "steps": [{"position": 3, "drafts": [4, 5, 7, 8], "accepted": 2, )") +
          R"("parents": [-1, 0, -1, 0], "draft_probs": [0.5, 0.25, 1, 0]}]})")
          .front();
  const DraftedStep& step = tree.steps.at(0);
  CHECK(tree.tokens == std::vector<Token>{1, 2, 3, 4, 5, 6});
  CHECK(tree.prompt_len == 2);
  CHECK(tree.temperature == 0.5);
  CHECK(step.drafts.tokens == std::vector<Token>{4, 7, 5, 8});
  CHECK(step.drafts.parents == std::vector<std::int32_t>{-1, -1, 0, 0});
  CHECK(step.log_probs[0] == std::log(0.5));
  CHECK(step.log_probs[1] == 0.0);
  CHECK(step.log_probs[2] == std::log(0.25));
  CHECK(step.log_probs[3] == -std::numeric_limits<double>::infinity());

  const std::string begin = R"({"prompt_tokens": [1, 2], "output_tokens": [3, 4, 5], )";
  const std::string good = R"("steps": [{"position": 3, "drafts": [4], "accepted": 1}]})";
  CHECK(read(begin + good).size() == 1);
  const auto with_step = [&](const std::string& fields) { return begin + R"("steps": [{)" + fields + "}]}"; };
  const std::vector<std::pair<std::string, std::string>> refused{
      {"[]", "is no JSON object; expected one like {\"prompt_tokens\": "},
      {"{\"prompt_tokens\": [1]", "is no JSON object"},
      {R"({"output_tokens": [3], )" + good, "prompt_tokens is missing; expected one, as in {"},
      {R"({"prompt_tokens": [], "output_tokens": [3], )" + good, "prompt_tokens is empty"},
      {R"({"prompt_tokens": [1, 100], "output_tokens": [3], )" + good,
       "prompt_tokens[1] is 100; expected a whole number in [0, 99]"},
      {R"({"prompt_tokens": [1, 2.5], "output_tokens": [3], )" + good, "prompt_tokens[1] is 2.5; expected a whole"},
      {R"({"prompt_tokens": "hello", "output_tokens": [3], )" + good, "prompt_tokens is \"hello\"; expected a list"},
      {begin + R"("prefil_chunks": [2], )" + good, "\"prefil_chunks\" is no field of a recorded run; expected prompt"},
      {begin + R"("temperature": -1, )" + good, "temperature is -1; expected 0 or a number from 1e-6"},
      {begin + R"("temperature": 1e-9, )" + good, "temperature is 1e-09; expected 0 or a number from 1e-6"},
      {begin + R"("prefill_chunks": [1], )" + good, "prefill_chunks with cached_tokens adds up to 1; expected 2"},
      {begin + R"("cached_tokens": 2, )" + good, "cached_tokens is 2; expected a whole number in [0, 1]"},
      {begin + R"("draft_temperature": 1, )" + good, "steps[0].draft_logprobs is missing; expected one for each draft"},
      {begin + R"("steps": [3]})", "steps[0] is 3; expected an object"},
      {with_step(R"("position": 3, "drafts": [4])"), "steps[0].accepted is missing"},
      {with_step(R"("position": 3, "drafts": [4], "accepted": 2)"),
       "steps[0].accepted is 2; expected a whole number in"
       " [0, 1]"},
      {with_step(R"("position": 0, "drafts": [4], "accepted": 0)"), "steps[0].position is 0; expected"},
      {with_step(R"("position": 3, "drafts": [-1], "accepted": 0)"), "steps[0].drafts[0] is -1; expected"},
      {with_step(R"("position": 3, "drafts": [4, 5], "accepted": 0, "parents": [-1, 1])"),
       "steps[0].parents[1] is 1; expected a whole number in [-1, 0]"},
      {with_step(R"("position": 3, "drafts": [4, 5], "accepted": 0, "parents": [-1])"),
       "steps[0].parents has 1 entries; expected 2, one for each draft"},
      {with_step(R"("position": 3, "drafts": [4], "accepted": 0, "draft_probs": [1.5])"),
       "steps[0].draft_probs[0] is 1.5; expected a probability in [0, 1]"},
      {with_step(R"("position": 3, "drafts": [4], "accepted": 0, "draft_logprobs": [0.5])"),
       "steps[0].draft_logprobs[0] is 0.5; expected the logarithm of a probability"},
      {with_step(R"("position": 3, "drafts": [4], "accepted": 0, "draft_logprobs": [-1], "draft_probs": [1])"),
       "steps[0].draft_probs stands beside draft_logprobs; expected one of them"},
      {with_step(R"("position": 18446744073709551615, "drafts": [4], "accepted": 0)"),
       "steps[0].position is 18446744073709551615; expected"},
  };
  for (const auto& [line, message] : refused) {
    INFO(line);
    CHECK_THAT(error_of(ErrorKind::input, [&] { read("\n" + line); }),
               Catch::StartsWith(path + ", line 2") && Contains(message));
  }
  CHECK_THAT(error_of(ErrorKind::input, [&] { read(""); }), Contains("has no request; expected a line for each"));
  DraftedRequest longer;
  longer.where = "run.jsonl, line 1";
  longer.tokens.assign(600, 1);
  longer.prompt_len = 600;
  CHECK_THAT(error_of(ErrorKind::input, [&] { audited({longer}, "eagle3"); }),
             Catch::StartsWith("run.jsonl, line 1: has 600 tokens; expected at most 512, the target's context"));
}

}  // namespace
}  // namespace draftproof::testing

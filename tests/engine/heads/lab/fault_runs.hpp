// Runs in which faults of heads' runners are planted: heads that are worth something, and a schedule that shows the
// faults.
#pragma once

#include "engine/heads/lab/head_faults.hpp"
#include "tests/engine/heads/head_runs.hpp"
#include "tests/engine/heads/taught_heads.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

inline constexpr Token kFaultVocabSize = 117;

struct PlantedHeadFault {
  int number;
  const char* name;  // of head_faults()
  const char* head;  // a taught head
  bool shares_prefixes = true;
};

inline const std::vector<PlantedHeadFault> kPlantedFaults{
    {1, "accepted drafts keep the states made while drafting", "eagle1"},
    {2, "the last pair of a chunk takes a predicted token", "eagle3"},
    {3, "features of the last chunk alone", "eagle3"},
    {4, "feature layers one too low", "dflash"},
    {4, "the final norm is not applied", "eagle1"},
    {5, "offsets of the draft vocabulary taken for tokens", "eagle3"},
    {11, "the pair at a shared block's end is another request's", "eagle3"},
    {13, "one rejected draft stays", "eagle1"},
    {13, "one rejected draft stays", "dflash"},
    {14, "the block begins one position early", "dflash", false},
    {15, "the anchor's slot is dropped", "dflash from the anchor"},
    {15, "epsilon 1e-06 for 1e-05", "eagle3"},
    {16, "biases are not loaded", "eagle1"},
    {16, "own embeddings are overwritten by the target's", "eagle3"},
    {17, "rope scaling is dropped", "eagle3"},
    {21, "mask token 4 for 3", "dflash"},
};

inline HeadFault fault_named(const PlantedHeadFault& planted, const std::shared_ptr<const HeadWeights>& head,
                             const TransformerModel& target) {
  for (HeadFault& fault : head_faults(head, target))
    if (fault.number == planted.number && fault.name == planted.name) return std::move(fault);
  FAIL("no fault " << planted.number << ", " << planted.name);
  return {};
}

// Six requests, in chunks; prompts share two blocks and then differ.
inline HeadSchedule fault_schedule(float temperature, bool shares_prefixes) {
  HeadSchedule schedule;
  schedule.options.policy = SpeculationPolicy(parse_speculation("fixed:4", "test"));
  schedule.options.scheduler.prefill_chunk_max = 12;
  schedule.options.scheduler.num_blocks = 100;
  schedule.options.share_prefixes = shares_prefixes;
  std::mt19937 random(5);
  std::vector<Token> common;
  for (int i = 0; i < 32; ++i) common.push_back(static_cast<Token>(random() % kFaultVocabSize));
  for (int i = 0; i < 6; ++i) {
    Request request;
    request.prompt = common;
    for (int t = 0; t < 14; ++t) request.prompt.push_back(static_cast<Token>(random() % kFaultVocabSize));
    DecodingOptions& options = request.options;
    options.verify.verifier = parse_verifier(temperature == 0.0f ? "chain" : "coupled", "test");
    options.parameters.temperature = temperature;
    options.seed = static_cast<std::uint64_t>(i);
    options.num_speculative_tokens = 4;
    options.stop.max_tokens = 60;
    schedule.requests.push_back(request);
    schedule.arrival_steps.push_back(8 * i);
    schedule.cancel_steps.push_back(-1);
  }
  return schedule;
}

inline std::map<std::string, TaughtHead> taught_heads(const TransformerModel& target,
                                                      const std::vector<std::vector<Token>>& texts) {
  std::map<std::string, TaughtHead> heads;
  const auto add = [&](const char* name, HeadFamily family, RandomHeadOptions options) {
    RandomHead head(family, target.weights().shape, options);
    if (family == HeadFamily::dflash) head.tensors.description.feature_layers = {2, 3};
    heads.try_emplace(name, std::move(head), target, texts, 46, family == HeadFamily::dflash ? 4 : 2);
  };
  add("eagle1", HeadFamily::eagle1, {.seed = 21});
  add("eagle3", HeadFamily::eagle3, {.seed = 22, .own_embedding = true});
  add("dflash", HeadFamily::dflash, {.seed = 23});
  add("dflash from the anchor", HeadFamily::dflash, {.seed = 24, .from_anchor = true});
  return heads;
}

// A target, plain decoding's texts of the schedule, and heads taught by them. Made once.
struct FaultLab {
  RandomLlama tiny{9, {TensorKind::q8_0}, RopePairing::adjacent, false};
  TransformerModel target{tiny.weights(), Arithmetic::int8, 1};
  HeadSchedule schedule = fault_schedule(0.0f, true);
  HeadRun greedy = run_schedule_of_heads(target, nullptr, schedule);
  std::map<std::string, TaughtHead> heads = taught_heads(target, whole_texts());

  std::vector<std::vector<Token>> whole_texts() const {
    std::vector<std::vector<Token>> texts;
    for (std::size_t i = 0; i < greedy.texts.size(); ++i) {
      texts.push_back(schedule.requests[i].prompt);
      texts.back().insert(texts.back().end(), greedy.texts[i].begin(), greedy.texts[i].end());
    }
    return texts;
  }
};

inline FaultLab& fault_lab() {
  static FaultLab lab;
  return lab;
}

}  // namespace draftproof::testing

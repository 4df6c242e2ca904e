// policy_b<requests>_<drafter>: `generate --policy auto` against plain decoding of the same requests at temperature 0,
// with the shipped model; policy_b<requests>_plain, its zero: plain decoding against plain decoding.
//
// Each round decodes all requests both ways, interleaved (interleaved.hpp). Drafters and policy begin anew in each, as
// in a program of their own. Whole requests count, with their prompts.
#include <algorithm>
#include <memory>

#include "cli/bench/cases.hpp"
#include "cli/bench/interleaved.hpp"
#include "engine/decode/paired_run.hpp"
#include "engine/draft/drafter_factory.hpp"
#include "engine/model/prompt_set.hpp"
#include "engine/model/shipped_model.hpp"
#include "engine/model/text_model.hpp"
#include "studies/heads/heads.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kJobsMin = 8;  // few requests beside each other: more of them, one after the other
constexpr int kNumDrafts = 8;        // as in `generate`
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kQuickTokens = 8;

struct PolicyInputs {
  TextModel model;
  std::vector<DecodeJob> jobs;  // kinds of work in turns
};

PolicyInputs open_inputs(int threads, std::int64_t max_tokens) {
  PolicyInputs inputs{open_text_model(kShippedModel, model_path(kShippedModel), {false, threads, {}}, "bench"), {}};
  const PromptSet prompts = read_prompt_set(own_prompts());
  for (std::size_t i = 0; i < prompts.works.front().prompts.size(); ++i)
    for (const Work& work : prompts.works) {
      if (i >= work.prompts.size()) continue;
      DecodeJob& job = inputs.jobs.emplace_back(DecodeJob{tokens_of(work.prompts[i], inputs.model), {}, "bench"});
      job.decoding.parameters.temperature = 0.0f;
      job.decoding.stop.eos_ids = inputs.model.tokenizer->end_tokens();
      job.decoding.stop.max_tokens = max_tokens;
      job.decoding.num_speculative_tokens = kNumDrafts;
    }
  return inputs;
}

// What a side's steps computed, and took in milliseconds a token.
Json parts_of(const StepTimes& times) {
  const auto per_token = [&](std::int64_t count) {
    return static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(times.tokens, 1));
  };
  const auto ms = [&](std::int64_t ns) { return 1e-6 * per_token(ns); };
  return {{"steps", times.steps},
          {"tokens", times.tokens},
          {"rows_per_token", per_token(times.rows)},
          {"drafts_per_token", per_token(times.drafts)},
          {"draft_ms", ms(times.draft_ns)},
          {"verify_ms", ms(times.verify_ns)},
          {"sample_ms", ms(times.sample_ns)},
          {"rest_ms", ms(times.wall_ns - times.draft_ns - times.verify_ns - times.sample_ns - times.mask_ns)}};
}

class PolicyRounds {
 public:
  PolicyRounds(const std::string& drafter, std::size_t batch, int threads, bool quick)
      : inputs_(open_inputs(threads, quick ? kQuickTokens : kTokens)) {
    inputs_.jobs.resize(std::min(std::max(batch, quick ? 1 : kJobsMin), inputs_.jobs.size()));
    room_.batch = static_cast<std::int64_t>(batch);
    options_.threads = threads;
    if (drafter != "plain")
      choice_ = parse_drafter(drafter == "head" ? "head:" + shipped_head_path() : drafter, "bench");
    if (choice_.kind == DrafterKind::head) drafter_ = make();
    warm_up(*inputs_.model.model, inputs_.jobs.front());
  }

  void run() {
    LanguageModel& target = *inputs_.model.model;
    const std::shared_ptr<Drafter> drafter = drafter_ ? drafter_ : make();
    SpeculationPolicy policy;
    if (drafter)
      policy = SpeculationPolicy(whole_drafts(inputs_.jobs.front().decoding, "bench", SpeculationRule::automatic),
                                 std::make_shared<DefaultStepCost>());
    DecodeRun plain(target, nullptr, engine_options(inputs_.jobs, room_, target));
    DecodeRun other(target, drafter.get(), engine_options(inputs_.jobs, room_, target, policy));
    for (const DecodeJob& job : inputs_.jobs) plain.submit(job), other.submit(job);
    const auto step_of = [](DecodeRun& run, StepTimes& sum) -> SideStep {
      return [&]() -> std::optional<std::int64_t> {
        const std::optional<StepTimes> step = run.step();
        if (!step) return std::nullopt;
        if (step->prompt_tokens == 0) sum += *step;
        return step->tokens;
      };
    };
    rounds_.push_back(run_interleaved({step_of(plain, plain_), step_of(other, other_)}, rounds_.size() % 2 == 1,
                                      [&] { return meter_.now(); }));
  }

  PolicyComparison comparison() const {
    return {usage_ratios(std::span(rounds_).subspan(1)), meter_.why_no_instructions(), parts_of(plain_),
            parts_of(other_)};
  }

 private:
  std::shared_ptr<Drafter> make() const { return make_drafter(choice_, inputs_.model, 0.0f, options_, "bench"); }

  UsageMeter meter_;  // before the model's threads
  PolicyInputs inputs_;
  DecodeRoom room_;
  TextModelOptions options_;
  DrafterChoice choice_;
  std::shared_ptr<Drafter> drafter_;  // of heads, which remember nothing of a request that has ended
  std::vector<SideUsages> rounds_;
  StepTimes plain_, other_;
};

}  // namespace

std::vector<BenchCase> policy_cases(const std::vector<int>& threads, bool quick) {
  std::vector<BenchCase> cases;
  if (!has_shipped_model()) return cases;
  for (const int count : threads)
    for (const char* drafter : {"plain", "suffix", "prompt_lookup", "head"})
      for (const std::size_t batch : {1, 4, 8, 16, 24, 32}) {
        const std::string name = "policy_b" + std::to_string(batch) + "_" + drafter;
        const auto prepare = [=] {
          const auto rounds = std::make_shared<PolicyRounds>(drafter, batch, count, quick);
          BenchWork work;
          work.body = [rounds] { rounds->run(); };
          work.compare = [rounds] { return rounds->comparison(); };
          return work;
        };
        cases.push_back({name, count, BenchGoal{"ratio_to_plain_low", false, 0.98}, false, prepare});
      }
  return cases;
}

}  // namespace draftproof

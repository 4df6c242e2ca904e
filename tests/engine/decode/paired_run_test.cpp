// The harness for the same requests with and without speculation: equal tokens where they are promised, room in the
// cache, and times that add up.
#include "engine/decode/paired_run.hpp"

#include <thread>

#include "engine/decode/generate.hpp"
#include "engine/draft/model_drafter.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 7;

struct Jobs {
  ToyModel target{kVocab, 1, 2};
  ToyModel draft_model{kVocab, 1, 3};
  std::vector<DecodeJob> jobs;

  Jobs(const std::string& verifier, float temperature) {
    for (std::size_t i = 0; i < 5; ++i) {
      DecodeJob& job = jobs.emplace_back();
      job.prompt.assign(1 + 9 * i, static_cast<Token>(i));
      job.decoding.parameters.temperature = temperature;
      job.decoding.verify.verifier = parse_verifier(verifier, "verifier");
      job.decoding.num_speculative_tokens = 3;
      job.decoding.stop.max_tokens = 30;
      job.decoding.seed = 40 + i;
      job.where = "job " + std::to_string(i);
    }
  }
  ModelDrafter drafter() {
    return ModelDrafter(draft_model, row_parameters(jobs.front().decoding.parameters.temperature, 1.0, 0, 0.0));
  }
  PairedRun run(const DecodeRoom& room, PairOrder order, const OnVerified& on_verified = nullptr) {
    ModelDrafter drafts = drafter();
    const SpeculationPolicy policy(whole_drafts(jobs.front().decoding, "tree"));
    return run_pair(target, &drafts, jobs, room, policy, order, on_verified);
  }
};

TEST_CASE("both runs of a pair have equal tokens where the verifier promises them, whatever the batch and the order") {
  for (const auto& [verifier, temperature] : {std::pair("chain", 0.0f), {"block", 0.0f}, {"coupled", 0.9f}}) {
    INFO(verifier);
    Jobs jobs(verifier, temperature);
    CHECK(promises_equal_tokens(jobs.jobs.front().decoding));
    for (const PairOrder order : {PairOrder::plain_first, PairOrder::speculative_first}) {
      DecodeRoom room;
      room.batch = order == PairOrder::plain_first ? 1 : 3;
      const PairedRun pair = jobs.run(room, order);
      REQUIRE(pair.plain.generations.size() == jobs.jobs.size());
      REQUIRE(pair.speculative.generations.size() == jobs.jobs.size());
      for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
        const Generation& plain = pair.plain.generations[i];
        const Generation& speculative = pair.speculative.generations[i];
        CHECK_FALSE(first_difference(plain.tokens, speculative.tokens));
        CHECK(plain.acceptance.drafts == 0);
        CHECK(speculative.acceptance.accepted_tokens > 0);
        // Each job has its own prompt and seed.
        PhiloxSource source;
        CHECK(plain.tokens ==
              generate(jobs.target, nullptr, jobs.jobs[i].decoding, jobs.jobs[i].prompt, source).tokens);
      }
    }
  }
}

TEST_CASE("equal tokens are promised at temperature 0 and by coupled verifiers, and never by lossy ones") {
  CHECK_FALSE(promises_equal_tokens(Jobs("chain", 0.9f).jobs.front().decoding));
  CHECK_FALSE(promises_equal_tokens(Jobs("typical", 0.0f).jobs.front().decoding));
  // The promise has a meaning: two draws of one distribution do differ.
  const PairedRun pair = Jobs("chain", 0.9f).run({}, PairOrder::plain_first);
  CHECK(first_difference(pair.plain.generations[0].tokens, pair.speculative.generations[0].tokens));
}

TEST_CASE("the first difference of two outputs is a token, or where the shorter one ends") {
  const std::vector<Token> plain{4, 5, 6};
  CHECK_FALSE(first_difference(plain, plain));
  CHECK(first_difference(plain, std::vector<Token>{4, 0, 6}) == 1);
  CHECK(first_difference(plain, std::vector<Token>{4, 5}) == 2);
  CHECK(first_difference(plain, std::vector<Token>{4, 5, 6, 7}) == 3);
  CHECK(first_difference({}, plain) == 0);
}

TEST_CASE("a verifier that accepts every draft is found by the first token that it let through") {
  Jobs jobs("synthetic:rate=1", 0.0f);
  const PairedRun pair = jobs.run({}, PairOrder::plain_first);
  for (std::size_t i = 0; i < jobs.jobs.size(); ++i) {
    const std::vector<Token>& plain = pair.plain.generations[i].tokens;
    const std::vector<Token>& wrong = pair.speculative.generations[i].tokens;
    const auto at = first_difference(plain, wrong);
    REQUIRE(at.has_value());
    REQUIRE(*at < plain.size());
    CHECK(std::equal(plain.begin(), plain.begin() + static_cast<std::ptrdiff_t>(*at), wrong.begin()));
    CHECK(plain[*at] != wrong[*at]);
    CHECK(pair.speculative.generations[i].origins[*at] == TokenOrigin::accepted);
  }
}

TEST_CASE("the batch reaches the scheduler and the cache, which has room for the largest jobs of a batch") {
  const Jobs jobs("chain", 0.0f);
  // Prompts of 1, 10, 19, 28 and 37 tokens, with a start token, 30 of output and a draft.
  const auto blocks = [](std::int64_t prompt_len) { return (prompt_len + 31 + kDraftNodesMax) / kKvBlockSlots + 2; };
  DecodeRoom room;
  room.batch = 2;
  const SchedulerOptions two = engine_options(jobs.jobs, room, jobs.target).scheduler;
  CHECK(two.running_max == 2);
  CHECK(two.num_blocks == blocks(37) + blocks(28));
  room.batch = 8;
  const SchedulerOptions all = engine_options(jobs.jobs, room, jobs.target).scheduler;
  CHECK(all.running_max == 8);
  CHECK(all.num_blocks == blocks(1) + blocks(10) + blocks(19) + blocks(28) + blocks(37));
  room.num_blocks = 3;
  room.context_len_max = 50;
  room.token_budget = 7;
  const EngineOptions given = engine_options(jobs.jobs, room, jobs.target);
  CHECK(given.scheduler.num_blocks == 3);
  CHECK(given.scheduler.context_len_max == 50);
  CHECK(given.scheduler.token_budget == 7);
  CHECK_FALSE(given.share_prefixes);
}

TEST_CASE("guided jobs find room in the cache for their companions, also where those are the longer ones") {
  Jobs jobs("chain", 0.0f);
  DecodeRoom room;
  room.batch = 5;
  const std::int32_t plain_blocks = engine_options(jobs.jobs, room, jobs.target).scheduler.num_blocks;
  for (DecodeJob& job : jobs.jobs) {
    job.decoding.parameters.guidance_scale = 1.5f;
    job.decoding.unconditional_prompt.assign(3000, 2);
    job.decoding.tree = parse_tree("1x1x1x1", "tree");
  }
  const EngineOptions options = engine_options(jobs.jobs, room, jobs.target);
  CHECK(options.scheduler.num_blocks > 2 * plain_blocks);
  ModelDrafter drafter = jobs.drafter();
  DecodeRun run(jobs.target, &drafter, options);
  for (const DecodeJob& job : jobs.jobs) run.submit(job);
  CHECK_FALSE(run.ended());
  CHECK(run.run().generations.size() == jobs.jobs.size());
  CHECK(run.ended());
  CHECK(run.engine().scheduler().metrics().preemptions == 0);
}

TEST_CASE("the times of steps add up, prompts apart, and an observer's time is in none of them") {
  using namespace std::chrono_literals;
  Jobs jobs("chain", 0.0f);
  ModelDrafter drafter = jobs.drafter();
  DecodeRoom room;
  room.batch = 2;
  const SpeculationPolicy policy(whole_drafts(jobs.jobs.front().decoding, "tree"));
  DecodeRun run(jobs.target, &drafter, engine_options(jobs.jobs, room, jobs.target, policy));
  std::int64_t verified = 0;
  run.on_verified([&](const SpeculativeStep& step, const TargetRows& rows) {
    CHECK(rows.logits.size() == static_cast<std::size_t>(kVocab) * (step.draft.tree.tokens.size() + 1));
    std::this_thread::sleep_for(2ms);
    ++verified;
  });
  for (const DecodeJob& job : jobs.jobs) run.submit(job);
  StepTimes sum;
  std::int64_t prompts = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (const auto step = run.step()) {
    CHECK(step->steps == 1);
    for (const std::int64_t part : {step->draft_ns, step->verify_ns, step->sample_ns}) CHECK(part >= 0);
    CHECK(step->draft_ns + step->verify_ns + step->sample_ns <= step->engine_ns);
    CHECK(step->engine_ns <= step->wall_ns);
    prompts += step->prompt_tokens > 0 ? 1 : 0;
    sum += *step;
  }
  const std::int64_t elapsed_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
  CHECK(sum.wall_ns <= elapsed_ns - verified * 2'000'000);
  const auto [generations, prompt_steps, other_steps] = run.run();
  CHECK(prompt_steps.steps == prompts);
  CHECK(prompt_steps.prompt_tokens == 2 + 11 + 20 + 29 + 38);  // with the start tokens
  CHECK(prompts >= 2);
  CHECK(prompts < sum.steps);
  for (const auto part : {&StepTimes::steps, &StepTimes::tokens, &StepTimes::wall_ns, &StepTimes::engine_ns,
                          &StepTimes::draft_ns, &StepTimes::verify_ns, &StepTimes::sample_ns})
    CHECK(prompt_steps.*part + other_steps.*part == sum.*part);
  std::int64_t tokens = 0;
  std::int64_t steps = 0;
  for (const Generation& generation : generations) {
    tokens += static_cast<std::int64_t>(generation.tokens.size());
    steps += generation.acceptance.steps;
  }
  CHECK(sum.tokens == tokens);
  CHECK(verified == steps);
  CHECK(sum.draft_ns > 0);
  // Plain decoding drafts nothing.
  const PairedRun pair = jobs.run(room, PairOrder::plain_first);
  CHECK(pair.plain.prompt_steps.draft_ns + pair.plain.other_steps.draft_ns == 0);
  CHECK(pair.plain.tokens_per_second() == Approx(1e3 * 150 / pair.plain.wall_ms()));
}

TEST_CASE("a job that cannot be run is refused by name, with and without speculation and in the warm-up") {
  Jobs jobs("chain", 0.0f);
  warm_up(jobs.target, jobs.jobs.front());
  jobs.jobs[3].prompt = {0, 99};
  CHECK_THROWS_WITH(jobs.run({}, PairOrder::plain_first), Contains("99 is outside the vocabulary"));
  DecodeRoom small;
  small.context_len_max = 30;
  jobs.jobs[3].prompt.assign(40, 1);
  CHECK_THROWS_WITH(jobs.run(small, PairOrder::speculative_first), Contains("job 3: the prompt has 41 tokens"));
}

}  // namespace

// Drafts of tiny heads, recorded, against plain decoding, a slow head's rows and a pass of the target alone.
#include "studies/heads/head_recorder.hpp"

#include "studies/heads/state_drift.hpp"
#include "tests/engine/heads/taught_heads.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

constexpr int kDrafts = 4;

DecodeJob tiny_job(std::uint32_t seed, float temperature = 0.0f) {
  DecodeJob job;
  std::mt19937 random(seed);
  for (int i = 0; i < 21; ++i) job.prompt.push_back(static_cast<Token>(random() % 117));
  job.decoding.parameters.temperature = temperature;
  job.decoding.stop.max_tokens = 60;
  job.decoding.seed = seed;
  job.decoding.num_speculative_tokens = kDrafts;
  job.decoding.verify.verifier = parse_verifier("chain", "test");
  return job;
}

std::vector<Token> plain_text(TransformerModel& target, const DecodeJob& job) {
  DecodeRun run(target, nullptr, engine_options({&job, 1}, {}, target));
  run.submit(job);
  std::vector<Token> text = job.prompt;
  const std::vector<Token> output = run.run().generations.front().tokens;
  text.insert(text.end(), output.begin(), output.end());
  return text;
}

// Heads that are worth something on their own texts.
struct TaughtRuns {
  RandomLlama tiny{9, {TensorKind::q8_0}, RopePairing::adjacent, false};
  TransformerModel target{tiny.weights(), Arithmetic::int8, 1};
  std::vector<DecodeJob> jobs{tiny_job(3), tiny_job(4)};
  std::vector<std::vector<Token>> texts;

  TaughtRuns() {
    for (const DecodeJob& job : jobs) texts.push_back(plain_text(target, job));
  }
  TaughtHead taught(HeadFamily family, RandomHeadOptions options) const {
    return TaughtHead(RandomHead(family, tiny.weights()->shape, options), target, texts, 22, 2);
  }
};

TEST_CASE("a recorded draft has the head's probabilities, and was accepted where it is the text") {
  TaughtRuns runs;
  for (const HeadFamily family : {HeadFamily::eagle3, HeadFamily::dflash}) {
    INFO(name_of(family));
    const TaughtHead taught = runs.taught(family, {.seed = 22});
    const auto weights = taught.head.weights();
    HeadRecorder recorder(std::make_shared<DraftHead>(weights, runs.target, "test head"));
    SlowHead slow(weights, runs.target);
    std::int64_t accepted_in_all = 0;
    for (std::size_t r = 0; r < runs.jobs.size(); ++r) {
      const std::vector<Token>& text = runs.texts[r];
      const RecordedHeadRun run = run_recorded(runs.target, recorder, recorder, runs.jobs[r], [] {});
      std::vector<std::int64_t> reached(kDrafts, 0), accepted(kDrafts, 0);
      SlowHead::Text memory;
      for (const HeadStep& step : run.steps) {
        REQUIRE(step.stream_len == 21 + static_cast<std::size_t>(step.output_len));
        bool stands = true;
        std::vector<Token> path;
        for (std::size_t i = 0; i < step.slots.size(); ++i) {
          const HeadSlot& slot = step.slots[i];
          CHECK(slot.reached == stands);
          const std::size_t at = step.stream_len + i;
          if (stands) {
            ++reached[i];
            if (at < text.size()) CHECK(slot.emitted->token == text[at]);
            stands = slot.draft.token == slot.emitted->token;
            accepted[i] += stands ? 1 : 0;
          }
          CHECK(slot.accepted == stands);
          // softmax of the slow head's row.
          const std::vector<float> row = slow.row(memory, std::span(text).first(step.stream_len), path).logits;
          double sum = 0.0;
          for (const float logit : row) sum += std::exp(static_cast<double>(logit));
          std::size_t best = 0;
          for (std::size_t c = 0; c < row.size(); ++c)
            if (row[c] > row[best]) best = c;
          CHECK(slot.draft.token == slow.token_of(static_cast<std::int64_t>(best)));
          CHECK(static_cast<double>(slot.draft.probability) ==
                Approx(std::exp(static_cast<double>(row[best])) / sum).epsilon(1e-4));
          REQUIRE(slot.candidates.size() == kHeadCandidates);
          CHECK(slot.candidates[0].token == slot.draft.token);
          for (std::size_t c = 1; c < kHeadCandidates; ++c)
            CHECK(slot.candidates[c].probability <= slot.candidates[c - 1].probability);
          CHECK(slot.confidence == Approx(slot.draft.probability).epsilon(1e-4));
          path.push_back(slot.draft.token);
        }
        CHECK(step.num_accepted == static_cast<std::size_t>(std::ranges::count(step.slots, true, &HeadSlot::accepted)));
      }
      const AcceptanceCounts& counts = run.generation.acceptance;
      CHECK(counts.reached == reached);
      CHECK(counts.accepted == accepted);
      CHECK(counts.drafts == std::ssize(run.steps));
      accepted_in_all += counts.accepted_tokens;
    }
    CHECK(accepted_in_all > 20);
  }
}

TEST_CASE("drafts that are drawn are recorded at the temperature that they are drawn at") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  const auto weights = RandomHead(HeadFamily::eagle3, target.weights().shape).weights();
  HeadRecorder recorder(std::make_shared<DraftHead>(weights, target, "test head"));
  const RecordedHeadRun run = run_recorded(target, recorder, recorder, tiny_job(5, 0.5f), [] {});
  SlowHead slow(weights, target);
  SlowHead::Text memory;
  bool draws_others = false;
  for (const HeadStep& step : run.steps) {
    const HeadSlot& slot = step.slots.front();
    const std::vector<float> row = slow.row(memory, std::span(run.stream).first(step.stream_len), {}).logits;
    double sum = 0.0, drafted = 0.0, largest = 0.0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const double mass = std::exp(2.0 * static_cast<double>(row[c]));
      sum += mass;
      largest = std::max(largest, mass);
      if (slow.token_of(static_cast<std::int64_t>(c)) == slot.draft.token) drafted = mass;
    }
    CHECK(static_cast<double>(slot.draft.probability) == Approx(drafted / sum).epsilon(1e-4));
    CHECK(static_cast<double>(slot.confidence) == Approx(largest / sum).epsilon(1e-4));
    draws_others = draws_others || slot.candidates[0].token != slot.draft.token;
  }
  CHECK(run.steps.size() > 10);
  CHECK(draws_others);
}

TEST_CASE("a chain drifts from the target's states, and at the second slot not from its own") {
  TaughtRuns runs;
  for (const HeadFamily family : {HeadFamily::eagle1, HeadFamily::eagle3, HeadFamily::mtp}) {
    INFO(name_of(family));
    const TaughtHead taught = runs.taught(family, {.seed = 21, .norm_output = family == HeadFamily::mtp});
    const auto weights = taught.head.weights();
    const auto head = std::make_shared<DraftHead>(weights, runs.target, "test head");
    HeadRecorder recorder(head);
    SlowHead slow(weights, runs.target);
    std::int64_t deeper = 0;
    for (const DecodeJob& job : runs.jobs) {
      const RecordedHeadRun run = run_recorded(runs.target, recorder, recorder, job, [] {});
      const std::vector<DriftSample> drift = drift_of(slow, run.steps, run.stream);
      std::int64_t beyond_first = 0;
      for (std::size_t i = 1; i < run.generation.acceptance.reached.size(); ++i)
        beyond_first += run.generation.acceptance.reached[i];
      REQUIRE(std::ssize(drift) == beyond_first);
      // States of a pass of the target over the whole text.
      const std::vector<float> features = forward_alone(runs.target, run.stream, {}, head->feature_layers()).out.hidden;
      std::vector<float> states;
      head->make_states(features, states);
      const auto width = static_cast<std::size_t>(head->state_width());
      std::size_t sample = 0;
      for (const HeadStep& step : run.steps)
        for (std::size_t i = 0; i < step.states.size(); ++i, ++sample) {
          const std::span<const float> expected = std::span(states).subspan((step.stream_len - 1 + i) * width, width);
          CHECK(drift[sample].slot == static_cast<std::int32_t>(i) + 2);
          CHECK(drift[sample].target.relative_l2 == state_distance(step.states[i], expected).relative_l2);
          CHECK(drift[sample].target.relative_l2 > 0.0);
          if (i == 0) {
            CHECK(drift[sample].own.relative_l2 == 0.0);
            CHECK(drift[sample].own.cosine == 1.0);
          } else {
            CHECK(drift[sample].own.relative_l2 > 0.0);
            ++deeper;
          }
        }
    }
    CHECK(deeper > 3);
  }
}

// Shows the head the features of the token before, behind the first of a pass.
class StaleFeatures final : public Drafter {
 public:
  explicit StaleFeatures(HeadRecorder& head) : head_(head) {}
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override {
    head_.propose(context, plan, chance, out);
  }
  std::span<const std::int32_t> hidden_layers() const override { return head_.hidden_layers(); }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return head_.make_cache(num_blocks);
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override {
    std::vector<ComputedTokens> shown(computed.begin(), computed.end());
    for (ComputedTokens& of : shown) std::copy_backward(of.rows.begin(), of.rows.end() - 1, of.rows.end());
    head_.observe(shown, features, cache);
  }
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override { head_.propose_all(jobs, cache); }

 private:
  HeadRecorder& head_;
};

TEST_CASE("a runner that shows a head the features of other tokens is seen as drift at the second slot") {
  TaughtRuns runs;
  const TaughtHead taught = runs.taught(HeadFamily::eagle1, {.seed = 21});
  const auto weights = taught.head.weights();
  HeadRecorder recorder(std::make_shared<DraftHead>(weights, runs.target, "test head"));
  StaleFeatures stale(recorder);
  SlowHead slow(weights, runs.target);
  std::vector<DriftSample> drift;
  for (std::size_t r = 0; r < runs.jobs.size(); ++r) {
    const RecordedHeadRun run = run_recorded(runs.target, stale, recorder, runs.jobs[r], [] {});
    std::vector<Token> text = runs.jobs[r].prompt;
    text.insert(text.end(), run.generation.tokens.begin(), run.generation.tokens.end());
    CHECK(text == runs.texts[r]);  // which does not show the fault
    std::ranges::copy(drift_of(slow, run.steps, run.stream), std::back_inserter(drift));
  }
  const std::vector<SlotDrift> slots = summarise_drift(drift);
  REQUIRE_FALSE(slots.empty());
  CHECK(slots[0].slot == 2);
  CHECK(slots[0].own_cosine.mean < 0.999);
  CHECK(slots[0].own_relative_l2.mean > 0.05);
}

TEST_CASE("a head that drafts in parallel has no state that drifts, and one with a confidence head that confidence") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  for (const auto& [name, random] : heads_of_every_kind(target.weights().shape)) {
    if (!drafts_in_parallel(random.tensors.description.family)) continue;
    INFO(name);
    const auto weights = random.weights();
    HeadRecorder recorder(std::make_shared<DraftHead>(weights, target, "test head"));
    const RecordedHeadRun run = run_recorded(target, recorder, recorder, tiny_job(6), [] {});
    REQUIRE(run.steps.size() > 10);
    SlowHead slow(weights, target);
    CHECK(drift_of(slow, run.steps, run.stream).empty());
    bool differs = false;
    for (const HeadStep& step : run.steps)
      for (const HeadSlot& slot : step.slots)
        differs = differs || std::abs(slot.confidence - slot.candidates[0].probability) > 1e-3f;
    CHECK(differs == (name == std::string("dspark")));
  }
}

}  // namespace
}  // namespace draftproof::testing

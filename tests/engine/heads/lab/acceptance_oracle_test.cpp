// Rows of heads in an engine against a slow head's. DRAFTPROOF_HEAD_DRAFTS=100000 goes on until as many drafts have
// been compared.
#include "engine/heads/lab/acceptance_oracle.hpp"

#include "base/strict_number.hpp"
#include "tests/engine/heads/head_runs.hpp"
#include "tests/engine/heads/random_heads.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

std::int64_t num_drafts() {
  const char* text = std::getenv("DRAFTPROOF_HEAD_DRAFTS");
  return text == nullptr ? fewer_if_sanitized(4000) : read_integer(text, 1, 1'000'000'000).value();
}

void check_equal(AcceptanceOracle& oracle) {
  oracle.compare();
  if (oracle.first()) FAIL(oracle.first()->text() << "; " << oracle.num_different() << " differences");
}

TEST_CASE("every row, state and draft of every head is what a slow head computes from the tokens alone") {
  const RandomLlama tiny(9, {TensorKind::q4_1, TensorKind::q8_0}, RopePairing::adjacent, false);
  const RandomLlama other(11, {TensorKind::q8_0}, RopePairing::halves, true);
  const std::array<std::shared_ptr<const TransformerWeights>, 2> weights{tiny.weights(), other.weights()};
  std::int64_t drafts = 0;
  std::int64_t rows = 0, guided_rows = 0;
  EngineMetrics all;
  const std::size_t kinds = heads_of_every_kind(weights[0]->shape).size();
  for (std::uint32_t seed = 0; seed < 2 * kinds || drafts < num_drafts(); ++seed) {
    const Arithmetic arithmetic = seed % 2 == 0 ? Arithmetic::int8 : Arithmetic::f32;
    const auto kernels = [&](bool is_scalar) {  // slow under sanitizers
      return is_scalar && (!kSanitized || seed < 8) ? scalar_transformer_kernels() : transformer_kernels();
    };
    TransformerModel target(weights[seed % 5 == 4], arithmetic, 1 + static_cast<int>(seed % 3), std::nullopt,
                            kernels(seed % 7 == 6));
    const auto heads = heads_of_every_kind(target.weights().shape);
    const auto& [name, head] = heads[seed % kinds];
    INFO("seed " << seed << ", " << name);
    std::mt19937 random(seed);
    const HeadSchedule schedule = random_head_schedule(random, 117);
    const auto of_head = head.weights(seed % 4 == 3 ? 4 : 0);
    HeadDrafter drafter(std::make_shared<DraftHead>(of_head, target, "test head"),
                        seed % 3 == 2 ? std::optional(0.7f) : std::nullopt,
                        seed / kinds % 2 == 1 && of_head->description.select_top_k == 0);
    // Little memory: rows are compared while the run goes on.
    AcceptanceOracle oracle(of_head, target, kernels(seed % 4 == 0), seed % 2 == 0 ? 20'000 : 64 << 20);
    oracle.attach(drafter);
    const HeadRun run = run_schedule_of_heads(target, &drafter, schedule);
    check_equal(oracle);
    drafts += oracle.drafts_compared();
    rows += oracle.rows_compared();
    guided_rows += oracle.guided_rows_compared();
    all.preemptions += run.metrics.preemptions;
    all.swapped_blocks += run.metrics.swapped_blocks;
    all.prefix_hits += run.metrics.prefix_hits;
    all.acceptance.accepted_tokens += run.metrics.acceptance.accepted_tokens;
    constexpr auto kCancelled = static_cast<std::size_t>(RequestEnd::cancelled);
    all.ended[kCancelled] += run.metrics.ended[kCancelled];
  }
  // The schedules exercise what they are made for.
  CHECK(rows > drafts / 4);
  CHECK(guided_rows > drafts / 100);
  CHECK(all.preemptions > drafts / 2000);
  CHECK(all.swapped_blocks > drafts / 2000);
  CHECK(all.prefix_hits > drafts / 100);
  CHECK(all.acceptance.accepted_tokens > drafts / 1000);
  CHECK(all.ended[static_cast<std::size_t>(RequestEnd::cancelled)] > drafts / 1000);
  if (std::getenv("DRAFTPROOF_HEAD_DRAFTS") != nullptr)
    WARN(drafts << " drafts, " << rows << " rows, " << all.acceptance.accepted_tokens << " accepted, "
                << all.preemptions << " preemptions, " << all.swapped_blocks << " swapped blocks, " << all.prefix_hits
                << " prefix hits, " << all.ended[static_cast<std::size_t>(RequestEnd::cancelled)] << " cancelled");
}

TEST_CASE("rows of heads stay the slow head's beyond 2,048 tokens and beyond the head's own context", "[release]") {
  RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  tiny.model.description.context_len_max = 2600;
  TransformerModel target(tiny.weights(), Arithmetic::int8, 2);
  HeadSchedule schedule;
  schedule.options.policy = SpeculationPolicy(parse_speculation("fixed:4", "test"));
  schedule.options.scheduler.num_blocks = 300;
  schedule.options.scheduler.token_budget = 300;
  schedule.options.scheduler.prefill_chunk_max = 256;
  std::mt19937 random(3);
  Request request;
  for (std::size_t t = 0; t < 2040; ++t) request.prompt.push_back(static_cast<Token>(random() % 117));
  request.options.num_speculative_tokens = 4;
  request.options.stop.max_tokens = 20;
  schedule.requests.push_back(request);
  schedule.arrival_steps = {0};
  schedule.cancel_steps = {-1};
  for (const HeadFamily family : {HeadFamily::eagle3, HeadFamily::mtp, HeadFamily::dflash}) {
    INFO(name_of(family));
    DecodingOptions& options = schedule.requests[0].options;
    options.verify.verifier = parse_verifier(family == HeadFamily::eagle3 ? "target_only" : "chain", "test");
    options.parameters.temperature = family == HeadFamily::mtp ? 0.0f : 0.8f;
    options.tree.reset();
    if (family == HeadFamily::eagle3) options.tree = branching_shape({2, 1});
    RandomHead head(family, target.weights().shape);
    head.tensors.description.shape.context_len_max = 512;
    const auto weights = head.weights();
    HeadDrafter drafter(std::make_shared<DraftHead>(weights, target, "test head"), std::nullopt);
    AcceptanceOracle oracle(weights, target);
    oracle.attach(drafter);
    run_schedule_of_heads(target, &drafter, schedule);
    check_equal(oracle);
    CHECK(oracle.drafts_compared() > 50);
  }
}

TEST_CASE("a confidence is what the head of confidences says of the slow head's state, behind the token before") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  const RandomHead head(HeadFamily::dflash, target.weights().shape, {.markov = true});
  const auto weights = head.weights();
  HeadDrafter drafter(std::make_shared<DraftHead>(weights, target, "test head"), std::nullopt);
  SlowHead slow(weights, target);
  SlowHead::Text text;
  int compared = 0;
  drafter.on_draft = [&](const HeadDraft& of) {
    slow.row(text, of.stream, {});
    for (std::size_t i = 0; i < of.draft->confidences.size(); ++i, ++compared) {
      std::vector<float> inputs = text.block_rows[i].state;
      const std::size_t width = inputs.size();
      inputs.resize(weights->confidence.size());
      weights->markov_in->decode_row(i == 0 ? of.stream.back() : of.draft->tree.tokens[i - 1],
                                     std::span(inputs).subspan(width));
      double sum = weights->confidence_bias;
      for (std::size_t k = 0; k < inputs.size(); ++k) sum += static_cast<double>(weights->confidence[k] * inputs[k]);
      CHECK(of.draft->confidences[i] == Approx(1.0 / (1.0 + std::exp(-sum))).epsilon(1e-5));
    }
  };
  HeadSchedule schedule;
  schedule.options.policy = SpeculationPolicy(parse_speculation("confidence:max=5,threshold=0", "test"));
  schedule.options.scheduler.num_blocks = 30;
  Request request;
  request.prompt = {5, 6, 7, 8, 9};
  request.options.num_speculative_tokens = 5;
  request.options.stop.max_tokens = 20;
  schedule.requests = {request};
  schedule.arrival_steps = {0};
  schedule.cancel_steps = {-1};
  run_schedule_of_heads(target, &drafter, schedule);
  CHECK(compared > 20);
}

TEST_CASE("a row of the run that differs in one bit is reported with its place") {
  const RandomLlama tiny(9, {TensorKind::q8_0}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  const RandomHead head(HeadFamily::eagle3, target.weights().shape);
  const auto weights = head.weights();
  SlowHead slow(weights, target);
  SlowHead::Text text;
  const std::vector<Token> tokens{5, 6, 7, 8};
  std::vector<float> logits = slow.row(text, tokens, {9}).logits;
  const std::vector<float> state = slow.row(text, tokens, {9}).state;
  const float was = logits[11];
  logits[11] = std::nextafter(was, 100.0f);
  AcceptanceOracle oracle(weights, target);
  oracle.add(HeadRow{3, tokens, {9}, logits, state});
  oracle.compare();
  CHECK(oracle.rows_compared() == 1);
  CHECK(oracle.num_different() == 1);
  REQUIRE(oracle.first());
  const HeadDifference& difference = *oracle.first();
  CHECK(difference.part == DraftPart::logits);
  CHECK(difference.family == HeadFamily::eagle3);
  CHECK(difference.request == 3);
  CHECK(difference.position == 5);
  CHECK(difference.depth == 2);
  CHECK(difference.column == 11);
  CHECK(difference.of_run == logits[11]);
  CHECK(difference.expected == was);
  CHECK_THAT(difference.text(), Catch::StartsWith("eagle3, request 3, position 5, depth 2: logits[11] is "));
}

}  // namespace
}  // namespace draftproof::testing

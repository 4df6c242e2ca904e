// Traces that are written replay, through the reader and the verifier, to the same bits.
#include "reference/trace/trace_writer.hpp"

#include "engine/decode/generate.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "reference/step/batch.hpp"
#include "reference/trace/trace.hpp"
#include "tests/engine/decode/toy_model.hpp"
#include "tests/support/random_request.hpp"
#include "tests/support/test.hpp"

namespace {

constexpr std::int64_t kVocab = 300;  // not a multiple of 32, more than one tile row of masks

// A generation with its requests; the options' spans and the steps must stay alive with it.
struct Recorded {
  Generation generation;
  std::vector<VerifyRequest> requests;
};

Recorded record(Drafter& drafter, DecodingOptions options) {
  ToyModel target(kVocab, 1, 2);
  options.stop.max_tokens = 60;
  options.num_speculative_tokens = 4;
  options.seed = 0xfedcba9876543210u;
  options.keep_steps = true;
  PhiloxSource source;
  static const std::vector<Token> kPrompt{1, 2, 3, 299};
  Recorded recorded{generate(target, &drafter, options, kPrompt, source), {}};
  for (const SpeculativeStep& step : recorded.generation.steps)
    recorded.requests.push_back(request_of(step, options, kVocab, kPrompt, recorded.generation.tokens));
  return recorded;
}

void check_replay(const Recorded& recorded, const VerifyOptions& options, bool has_logits, bool processed) {
  const TemporaryFolder folder;
  const std::string path = folder.file("trace.safetensors");
  write_trace(path, recorded.requests, options);
  const Trace trace = Trace::open(path);
  CHECK(trace.settings().sampler == options.sampler);
  REQUIRE(trace.requests().size() == recorded.requests.size());
  CHECK((trace.requests()[0].proposal_kind == ProposalKind::logits) == has_logits);
  CHECK(trace.settings().draft_processed == processed);
  CHECK(folder.file_names().size() == 1);

  VerifyOptions all_rows = options;
  all_rows.all_rows = true;
  const std::vector<Emission> before = verify_batch(recorded.requests, all_rows, 1);
  const std::vector<Emission> after = verify_batch(trace.requests(), trace.verify_options(), 1);
  CHECK(same_emission(after, before));
  std::vector<Token> tokens;
  for (const Emission& emission : after) tokens.insert(tokens.end(), emission.tokens.begin(), emission.tokens.end());
  tokens.resize(recorded.generation.tokens.size());
  CHECK(tokens == recorded.generation.tokens);
}

RowParameters parameters_of(float temperature, std::int32_t top_k, float top_p, float min_p) {
  RowParameters parameters;
  parameters.temperature = temperature;
  parameters.filters.top_k = top_k;
  parameters.filters.top_p = top_p;
  parameters.filters.min_p = min_p;
  return parameters;
}

TEST_CASE("drafts drawn like the target are written as raw logits and replay to the same bits") {
  ToyModel model(kVocab, 1, 3);
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    DecodingOptions options;
    options.verify.sampler = sampler;
    options.parameters = parameters_of(0.9f, 40, 0.95f, 0.01f);
    ModelDrafter drafter(model, options.parameters);
    check_replay(record(drafter, options), options.verify, true, false);
  }
}

TEST_CASE("drafts with parameters of their own are written processed and replay to the same bits") {
  ToyModel model(kVocab, 1, 3);
  for (const Sampler sampler : {Sampler::inverse, Sampler::race}) {
    for (const RowParameters& draft_parameters :
         {parameters_of(0.7f, 0, 1.0f, 0.0f), parameters_of(1.0f, 7, 1.0f, 0.0f), parameters_of(1.3f, 0, 0.8f, 0.0f),
          parameters_of(1.1f, 50, 0.9f, 0.02f)}) {
      DecodingOptions options;
      options.verify.sampler = sampler;
      options.parameters = parameters_of(0.9f, 0, 0.97f, 0.0f);
      ModelDrafter drafter(model, draft_parameters);
      const Recorded recorded = record(drafter, options);
      // It means something only where drafts are both accepted and rejected.
      const AcceptanceCounts& counts = recorded.generation.acceptance;
      CHECK(counts.accepted_tokens > 5);
      CHECK(counts.accepted_tokens + 5 < counts.draft_tokens);
      check_replay(recorded, options.verify, true, true);
    }
  }
}

TEST_CASE("guidance and histories and masks and biases replay to the same bits") {
  ToyModel model(kVocab, 1, 3);
  const std::vector<LogitBias> bias{{17, 2.5f}, {299, -1.0f}};
  DecodingOptions options;
  options.parameters = parameters_of(0.9f, 0, 1.0f, 0.0f);
  options.parameters.guidance_scale = 1.5f;
  options.parameters.repetition_penalty = 1.2f;
  options.parameters.presence_penalty = 0.5f;
  options.unconditional_prompt = {5};
  options.constraints.logit_bias = bias;
  ModelDrafter drafter(model, parameters_of(0.9f, 0, 1.0f, 0.0f));
  check_replay(record(drafter, options), options.verify, true, false);
  DecodingOptions of_probabilities = options;
  of_probabilities.parameters.guidance_form = GuidanceForm::probabilities;
  const Recorded guided = record(drafter, of_probabilities);
  CHECK(guided.generation.tokens.size() == 60);
  check_replay(guided, options.verify, true, false);

  Recorded masked = record(drafter, options);
  std::vector<std::uint32_t> mask(5 * 10, 0x7fffffffu);
  masked.requests[1].allowed_masks = mask;
  const TemporaryFolder folder;
  write_trace(folder.file("t"), masked.requests, options.verify);
  const Trace trace = Trace::open(folder.file("t"));
  const auto before = verify_batch(masked.requests, options.verify, 1);
  const auto after = verify_batch(trace.requests(), options.verify, 1);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i].tokens == after[i].tokens);
  CHECK(trace.requests()[1].allowed_masks[0] == 0x7fffffffu);
  CHECK(trace.requests()[0].allowed_masks[0] == 0xffffffffu);
}

TEST_CASE("one hot and argmax drafts and greedy targets replay without draft tensors or with them") {
  ToyModel model(kVocab, 1, 3);
  LookupDrafter lookup{PromptLookup(1, 3)};
  ModelDrafter argmax(model, parameters_of(0.0f, 0, 1.0f, 0.0f));
  ModelDrafter sampling(model, {});
  for (const float temperature : {0.0f, 0.3f}) {
    DecodingOptions options;
    options.parameters.temperature = temperature;
    check_replay(record(lookup, options), options.verify, false, true);
    check_replay(record(argmax, options), options.verify, false, true);
    check_replay(record(sampling, options), options.verify, true, true);
  }
}

TEST_CASE("what one trace cannot hold is an error that names the request") {
  ToyModel model(kVocab, 1, 3);
  ModelDrafter drafter(model, {});
  const DecodingOptions options;
  const Recorded recorded = record(drafter, options);
  const TemporaryFolder folder;
  const auto error_of = [&](auto change) {
    std::vector<VerifyRequest> requests = recorded.requests;
    change(requests[1]);
    try {
      write_trace(folder.file("t"), requests, options.verify);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(error_of([](VerifyRequest&) {}) == "no error");
  CHECK(error_of([](VerifyRequest& r) { r.constraints.min_tokens = 3; }).rfind("request 1: a trace has no", 0) == 0);
  CHECK(error_of([](VerifyRequest& r) { r.target.vocab_size = 299; }).find("vocabulary") != std::string::npos);
  CHECK(error_of([](VerifyRequest& r) { r.target_is_probabilities = true; }).find("mixed") != std::string::npos);
  CHECK(error_of([](VerifyRequest& r) { r.proposal_kind = ProposalKind::one_hot; }).find("one kind of proposal") !=
        std::string::npos);
  CHECK(error_of([](VerifyRequest& r) { r.draft_parameters.temperature = 0.0f; }).find("argmax drafts") !=
        std::string::npos);
  CHECK(error_of([](VerifyRequest& r) {
          r.parameters.filters.order = FilterOrder::top_k_first;
        }).find("filter order") != std::string::npos);
  CHECK_THROWS_WITH(write_trace(folder.file("none"), {}, options.verify), Contains("at least one"));
}

}  // namespace

// Heads as drafters of an engine: whatever they draft, the text is plain decoding's.
#include "engine/heads/head_drafter.hpp"

#include "engine/decode/engine.hpp"
#include "engine/draft/front_drafter.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/heads/random_heads.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

std::vector<std::vector<Token>> texts_of(TransformerModel& target, Drafter* drafter,
                                         const std::vector<Request>& requests, const EngineOptions& options,
                                         std::int64_t* accepted = nullptr) {
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, drafter, sampler, options);
  for (const Request& request : requests) engine.submit(request.prompt, request.options, request.speculates);
  engine.run();
  std::vector<std::vector<Token>> texts;
  for (std::uint64_t i = 0; i < requests.size(); ++i) {
    const std::optional<Generation> generation = engine.take(i);
    REQUIRE(generation);
    if (generation->failure) std::rethrow_exception(generation->failure);
    texts.push_back(generation->tokens);
  }
  if (accepted != nullptr) *accepted += engine.scheduler().metrics().acceptance.accepted_tokens;
  return texts;
}

TEST_CASE("whatever a head drafts, alone or behind suffix decoding, greedy and coupled text is plain decoding's") {
  RandomLlama tiny(9, {TensorKind::q4_1}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  std::int64_t accepted = 0;
  for (const auto& [name, head] : heads_of_every_kind(target.weights().shape)) {
    INFO(name);
    for (std::uint32_t seed = 0; seed < fewer_if_sanitized(16); ++seed) {
      INFO("seed " << seed);
      std::mt19937 random(seed);
      const bool greedy = seed % 2 == 0;
      const char* const verifier =
          !greedy ? (seed % 4 == 1 ? "coupled" : "coupled_list") : (seed % 4 == 0 ? "chain" : "target_only");
      std::vector<Request> requests = random_requests(random, 117, verifier, greedy);
      for (Request& request : requests) {  // a model without a start token
        request.prompt.push_back(7);
        if (request.options.parameters.guidance_scale != 1.0f) request.options.unconditional_prompt = {1, 2, 3};
      }
      const EngineOptions options = random_options(random);
      const bool guided = seed / 2 % 2 == 1 && head.tensors.description.select_top_k == 0;
      const auto alone = std::make_shared<HeadDrafter>(head.head(target), std::nullopt, guided);
      SuffixFrontDrafter behind_suffix(alone, 1);
      Drafter& drafter = seed / 4 % 2 == 0 ? static_cast<Drafter&>(*alone) : behind_suffix;
      CHECK(texts_of(target, &drafter, requests, options, &accepted) == texts_of(target, nullptr, requests, options));
    }
  }
  CHECK(accepted > 0);
}

// MTP that is its target: one layer, which is the target's own, reads the embedding and not the feature. Embeddings
// have the size that the head's norm gives them. (It lacks the first token, which no pair holds.)
struct TargetAsHead {
  RandomLlama target{21, {TensorKind::f32}, RopePairing::halves, false};
  HeadTensors head;
  std::vector<std::vector<std::byte>> bytes;

  TargetAsHead() {
    ModelWeights& model = target.model;
    model.layers.resize(1);
    model.description.num_layers = 1;
    const auto width = static_cast<std::size_t>(model.description.width);
    bytes.reserve(4);
    std::vector<float> embeddings = ModelWeights::values_of(model.token_embedding);
    for (std::size_t row = 0; row < embeddings.size(); row += width) {
      double squares = 0;
      for (std::size_t i = 0; i < width; ++i) squares += static_cast<double>(embeddings[row + i] * embeddings[row + i]);
      for (std::size_t i = 0; i < width; ++i) embeddings[row + i] /= static_cast<float>(std::sqrt(squares));
    }
    model.token_embedding = model.head = tensor("embedding", embeddings, width);
    head.description.family = HeadFamily::mtp;
    head.description.format = "test";
    head.description.shape = model.description;
    head.description.target_width = model.description.width;
    head.embed_norm = tensor("embed_norm", std::vector<float>(width, 1 / std::sqrt(static_cast<float>(width))), width);
    head.hidden_norm = tensor("hidden_norm", std::vector<float>(width, 1.0f), width);
    std::vector<float> first_half(width * 2 * width, 0.0f);
    for (std::size_t i = 0; i < width; ++i) first_half[i * 2 * width + i] = 1.0f;
    head.fuse = tensor("fc", first_half, 2 * width);
    head.layers = model.layers;
    head.out_norm = model.final_norm;
  }
  WeightTensor tensor(const char* name, const std::vector<float>& values, std::size_t columns) {
    const auto from = std::as_bytes(std::span(values));
    bytes.emplace_back(from.begin(), from.end());
    return {name, TensorKind::f32, static_cast<std::int64_t>(values.size() / columns),
            static_cast<std::int64_t>(columns), bytes.back()};
  }
};

TEST_CASE("guided drafts of a head that is its target are the guided target's tokens, and unguided ones are not") {
  const TargetAsHead both;
  TransformerModel target(both.target.weights(), Arithmetic::f32, 1);
  const auto weights = std::make_shared<const HeadWeights>(pack_head(both.head, 0, 1));
  std::mt19937 random(5);
  std::vector<Request> requests(6);
  for (Request& request : requests) {
    for (int i = 0; i < 40; ++i) {
      request.prompt.push_back(static_cast<Token>(random() % 117));
      request.options.unconditional_prompt.push_back(static_cast<Token>(random() % 117));
    }
    request.options.parameters.temperature = 0.0f;
    request.options.parameters.guidance_scale = 2.5f;
    request.options.num_speculative_tokens = 4;
    request.options.stop.max_tokens = 41;
  }
  EngineOptions options;
  options.policy = SpeculationPolicy(parse_speculation("fixed:4", "test"));
  const auto accepted = [&](bool guided) {
    HeadDrafter drafter(std::make_shared<DraftHead>(weights, target, "test head"), std::nullopt, guided);
    std::int64_t count = 0;
    CHECK(texts_of(target, &drafter, requests, options, &count) == texts_of(target, nullptr, requests, options));
    return count;
  };
  // The first of a request's 41 tokens follows the prompt, and four of five others are accepted at best: 32.
  CHECK(accepted(true) > 6 * 26);
  CHECK(accepted(false) < 6 * 16);
}

}  // namespace
}  // namespace draftproof::testing

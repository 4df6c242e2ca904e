// Heads as drafters of an engine: whatever they draft, the text is plain decoding's.
#include "engine/heads/head_drafter.hpp"

#include <catch2/catch.hpp>

#include "engine/decode/engine.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/heads/random_heads.hpp"

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

TEST_CASE("whatever a head drafts, greedy and coupled text is plain decoding's") {
  RandomLlama tiny(9, {TensorKind::q4_1}, RopePairing::adjacent, false);
  TransformerModel target(tiny.weights(), Arithmetic::int8, 1);
  std::int64_t accepted = 0;
  for (const auto& [name, head] : heads_of_every_kind(target.weights().shape)) {
    INFO(name);
    for (std::uint32_t seed = 0; seed < 12; ++seed) {
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
      HeadDrafter drafter(head.head(target), std::nullopt);
      CHECK(texts_of(target, &drafter, requests, options, &accepted) == texts_of(target, nullptr, requests, options));
    }
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace draftproof::testing

// Speculation on transformers, made up and real: the tokens of plain decoding, bit for bit, and the KV of plain
// decoding, slot by slot, whatever the drafter, the verifier, the tree, the batch, chunks, preemption, threads and
// kernels.
#include "engine/decode/engine.hpp"
#include "engine/decode/generate.hpp"
#include "engine/draft/model_drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"
#include "engine/draft/suffix_drafter.hpp"
#include "engine/grammar/compile_grammar.hpp"
#include "engine/model/model_files.hpp"
#include "engine/transformer/transformer_model.hpp"
#include "tests/engine/decode/random_requests.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {
namespace {

// The KV of every running request against that of its tokens computed at once, in a cache of their own.
void check_kv(const Engine& engine, LanguageModel& target) {
  const ModelBackend& backend = engine.backend();
  for (RequestHandle handle = 0; handle < backend.num_handles(); ++handle) {
    const RequestProgress& progress = engine.scheduler().progress(handle);
    if (!backend.has(handle) || progress.state != RequestState::running) continue;
    for (std::int32_t s = 0; s < progress.num_streams; ++s) {
      const StreamProgress& stream = progress.streams[static_cast<std::size_t>(s)];
      const auto n = static_cast<std::size_t>(stream.computed);
      if (n == 0) continue;
      const auto alone = forward_alone(target, backend.request(handle).stream(s).first(n)).kv;
      const StreamContext context{stream.table.blocks, stream.computed};
      bool same = true;
      for (std::size_t p = 0; p < n; ++p)
        same = same && backend.cache().slot_bytes(context.slot(static_cast<std::int64_t>(p))) ==
                           alone->slot_bytes(static_cast<std::int64_t>(p));
      CHECK(same);
    }
  }
}

struct DraftModels {
  explicit DraftModels(const TransformerModel& target, std::vector<std::int64_t> layers)
      : fewer_layers(target.with_layers(layers)), coarser(target.requantised(4)) {}

  // Tree verifiers want drafts that are drawn.
  std::unique_ptr<Drafter> drafter(std::mt19937& random, bool needs_probabilities) {
    RowParameters parameters;
    parameters.temperature = 0.7f;
    switch (random() % (needs_probabilities ? 2 : 4)) {
      case 0:
        return std::make_unique<ModelDrafter>(*fewer_layers, parameters);
      case 1:
        return std::make_unique<ModelDrafter>(*coarser, parameters);
      case 2:
        return std::make_unique<LookupDrafter>(PromptLookup(1, 4));
      default:
        return std::make_unique<SuffixDrafter>();
    }
  }

  std::unique_ptr<TransformerModel> fewer_layers;
  std::unique_ptr<TransformerModel> coarser;
};

std::vector<std::string> lossless_verifiers() {
  std::vector<std::string> names;
  for (const VerifierInfo& info : verifiers())
    if (info.lossless) names.emplace_back(info.name);
  return names;
}

// Runs the requests together; each must get what it gets alone by plain decoding of `reference`. Returns how many
// drafts were accepted.
std::int64_t check_requests(TransformerModel& target, LanguageModel& reference, Drafter& drafter,
                            const std::vector<Request>& requests, const EngineOptions& options, int kv_checks) {
  PhiloxSource source;
  SourceSampler<PhiloxSource> sampler(source);
  Engine engine(target, &drafter, sampler, options);
  for (const Request& request : requests) engine.submit(request.prompt, request.options, request.speculates);
  for (int step = 0; engine.step(); ++step)
    if (step % 5 == 3 && kv_checks-- > 0) check_kv(engine, reference);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Generation alone = generate(reference, nullptr, requests[i].options, requests[i].prompt, source);
    const auto together = engine.take(i);
    REQUIRE(together.has_value());
    CHECK_FALSE(together->failure);
    CHECK(together->tokens == alone.tokens);
  }
  return engine.scheduler().metrics().acceptance.accepted_tokens;
}

TEST_CASE("speculation with every drafter and verifier gives a small transformer's own tokens and KV") {
  const RandomLlama tiny(5, {TensorKind::q4_1, TensorKind::q8_0}, RopePairing::adjacent, false);
  const auto weights = tiny.weights();
  const std::vector<std::string> lossless = lossless_verifiers();
  std::int64_t accepted = 0;
  for (std::uint32_t seed = 0; seed < fewer_if_sanitized(60); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const Arithmetic arithmetic = seed % 2 == 0 ? Arithmetic::int8 : Arithmetic::f32;
    TransformerModel target(weights, arithmetic, 1 + static_cast<int>(seed % 3));
    // Plain decoding by one thread, in scalar code (slow under sanitizers).
    TransformerModel reference(weights, arithmetic, 1, std::nullopt,
                               kSanitized ? transformer_kernels() : scalar_transformer_kernels());
    DraftModels models(target, {0, 2});
    const bool greedy = seed % 4 != 0;
    const std::string verifier = greedy ? lossless[seed % lossless.size()] : "coupled";
    std::vector<Request> requests = random_requests(random, 117, verifier, greedy);
    if (requests.size() > 4) requests.resize(4);
    for (Request& request : requests) {
      if (request.prompt.empty()) request.prompt = {7};
      if (request.options.parameters.guidance_scale != 1.0f) request.options.unconditional_prompt = {1, 2, 3};
    }
    const bool needs_probabilities = parse_verifier(verifier, "test").info().proposal != DraftSampling::any &&
                                     parse_verifier(verifier, "test").info().draft != DraftForm::chain;
    const auto drafter = models.drafter(random, needs_probabilities);
    accepted += check_requests(target, reference, *drafter, requests, random_options(random), 3);
  }
  CHECK(accepted > fewer_if_sanitized(300));
}

TEST_CASE("speculation with every drafter gives the shipped model's own tokens and KV", "[release]") {
  const auto path = shipped_model_path();
  if (!path) return;
  const ModelFiles files = open_model_files(*path);
  const auto weights = std::make_shared<const TransformerWeights>(pack_weights(files.weights, 2));
  TransformerModel target(weights, Arithmetic::int8, 2);
  TransformerModel reference(weights, Arithmetic::int8, 1);
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < 30; ++layer)
    if (layer < 12 || layer > 16) layers.push_back(layer);
  DraftModels models(target, layers);
  const std::vector<std::string> texts = {
      "The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy",
      "The quick brown fox jumps over the fence and", "for i in range(10):\n    print(i)\nfor j in range(10):\n",
      "Na\u00efve caf\u00e9s \u2014 \u65e5\u672c\u8a9e, and then"};
  GrammarCompiler grammars(files.tokenizer, target.vocab_size(), files.tokenizer->end_tokens());
  std::shared_ptr<const Grammar> list;
  if (has_grammars())
    list =
        grammars.compile({GrammarForm::json_schema, R"({"type": "array", "items": {"type": "string"}})", {}, "test"});
  std::int64_t accepted = 0;
  const std::vector<const char*> names = {"chain", "coupled", "traversal", "rrsw"};
  for (std::uint32_t seed = 0; seed < names.size(); ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const bool greedy = std::string(names[seed]) != "coupled";
    std::vector<Request> requests = random_requests(random, 1000, names[seed], greedy);
    requests.resize(3);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Request& request = requests[i];
      request.options.verify.verifier = parse_verifier(names[seed], "test");
      request.options.parameters.temperature = greedy ? 0.0f : 0.8f;
      request.prompt = files.tokenizer->encode(texts[(seed + i) % texts.size()]);
      request.options.stop = {};
      request.options.stop.max_tokens = kSanitized ? 6 : 12;
      if (request.options.parameters.guidance_scale != 1.0f) request.options.unconditional_prompt = {1, 2, 3};
      if (i != 1) continue;  // one request of each batch follows a grammar
      request.options.stop.eos_ids = files.tokenizer->end_tokens();
      request.options.grammar = {list, seed % 2 == 0};
    }
    const auto drafter = models.drafter(random, std::string(names[seed]) == "rrsw");
    accepted += check_requests(target, reference, *drafter, requests, random_options(random), 1);
  }
  CHECK(accepted > 10);
}

}  // namespace
}  // namespace draftproof::testing

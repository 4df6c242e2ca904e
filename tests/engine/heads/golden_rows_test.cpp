// Heads at work, against what others compute: the modules of the packages that make_golden.py names, and the same head
// from another format.
#include "engine/heads/draft_head.hpp"
#include "engine/heads/head_files.hpp"
#include "engine/model/gathered_batch.hpp"
#include "tests/engine/heads/head_folders.hpp"
#include "tests/engine/weights/tiny_llama.hpp"
#include "tests/support/test.hpp"

namespace {

// A target for heads of the tests, and a head at work on it.
struct Target {
  std::shared_ptr<TransformerModel> model;

  explicit Target(const TinyLlama& tiny, const WeightTensor* embedding = nullptr) {
    const TemporaryFolder folder;
    write_whole_file(folder.file("m.gguf"), tiny.gguf().bytes());
    ModelWeights weights = weights_of_gguf(std::make_shared<const GgufFile>(GgufFile::open(folder.file("m.gguf"))));
    if (embedding != nullptr) weights.token_embedding = weights.head = *embedding;
    model = std::make_shared<TransformerModel>(std::make_shared<const TransformerWeights>(pack_weights(weights, 1)),
                                               Arithmetic::f32, 1);
  }
  DraftHead head(const HeadTensors& tensors) const {
    return {std::make_shared<const HeadWeights>(pack_head(tensors, 0, 1)), *model, tensors.path};
  }
};

// Tokens at positions [first, first + n), a chain behind `length` tokens of context.
struct Chain : GatheredBatch {
  std::vector<std::int32_t> blocks{0, 1, 2, 3, 4};

  Chain(std::span<const Token> of, std::int32_t first) {
    add_chain(of, first);
    for (std::int32_t i = 0; i < size(); ++i) wanted.push_back(i);
    contexts.push_back({blocks, first});
  }
  HeadBatch batch() const { return {view()}; }
};

// Logits after every pair of a chain: features [n, layers, width] of tokens 0 to n - 1, and the token behind each.
std::vector<float> logits_of_pairs(DraftHead head, std::span<const Token> tokens, std::span<const float> features) {
  std::vector<float> states;
  head.make_states(features, states);
  const Chain chain(tokens.subspan(1), 1);
  HeadOutput out;
  const auto kv = head.make_cache(80);
  head.run_pairs(chain.batch(), states, *kv, out);
  return out.logits;
}

std::size_t best_row(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST_CASE("an EAGLE-3 head as safetensors with offsets and as GGUF with tokens and permuted rows drafts the same") {
  const TemporaryFolder files;
  speculators_eagle3().write(files);
  write_whole_file(files.file("head.gguf"), eagle3_gguf().bytes());
  const HeadTensors folder = open_head_files(files.path());
  const HeadTensors gguf = open_head_files(files.file("head.gguf"));
  CHECK(folder.description.shape.rope_pairing == RopePairing::halves);
  CHECK(gguf.description.shape.rope_pairing == RopePairing::adjacent);
  CHECK(gguf.description.norm_before_residual);
  CHECK(gguf.description.draft_tokens == folder.description.draft_tokens);
  CHECK(gguf.description.feature_layers == folder.description.feature_layers);
  const std::vector<const WeightTensor*> a = tensors_of(folder), b = tensors_of(gguf);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::vector<float> expected = ModelWeights::values_of(*a[i]);
    if (a[i]->name.ends_with("q_proj.weight")) expected = adjacent_rows(expected, 2, 64);
    if (a[i]->name.ends_with("k_proj.weight")) expected = adjacent_rows(expected, 1, 64);
    CHECK(ModelWeights::values_of(*b[i]) == expected);
  }
  TinyLlama tiny;
  tiny.layers = 4;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.head_size = 16;
  const Target target(tiny);
  const std::vector<Token> tokens{3, 9, 17, 2, 38, 11, 25, 9, 0};
  TestRandom random(7);
  std::vector<float> features(8 * 3 * 32);
  for (float& value : features) value = random.normal();
  const std::vector<float> of_folder = logits_of_pairs(target.head(folder), tokens, features);
  const std::vector<float> of_gguf = logits_of_pairs(target.head(gguf), tokens, features);
  REQUIRE(of_folder.size() == 80);
  REQUIRE(of_gguf.size() == 80);
  for (std::size_t i = 0; i < of_folder.size(); ++i) CHECK(of_gguf[i] == Approx(of_folder[i]).margin(1e-4));
  for (std::size_t i = 0; i < 80; i += 10)
    CHECK(best_row(std::span(of_gguf).subspan(i, 10)) == best_row(std::span(of_folder).subspan(i, 10)));
  // Rows of Q and K in the other order are another head.
  HeadTensors unpaired = gguf;
  unpaired.description.shape.rope_pairing = RopePairing::halves;
  const std::vector<float> wrong = logits_of_pairs(target.head(unpaired), tokens, features);
  double distance = 0;
  for (std::size_t i = 0; i < wrong.size(); ++i) distance += std::abs(wrong[i] - of_folder[i]);
  CHECK(distance > 0.1);
}

// Heads that other people's modules made and ran (experiments/heads/make_golden.py says which), their keys and values
// rounded to binary16 as the KV here is. Rows differ by 1e-6 of their largest logit (medians of the heads: 2e-7 to
// 7e-6) and by 3e-4 at most: a key or value near the middle of two binary16 numbers may be rounded to either.
// DRAFTPROOF_GOLDEN=1 prints the differences.
constexpr double kRounding = 5e-4;
const std::string kGolden = std::string(DRAFTPROOF_SOURCE_DIR) + "/tests/engine/heads/golden/";

struct Golden {
  std::string name;
  SafetensorsFile rows = SafetensorsFile::open(kGolden + name + "/rows.safetensors");
  SafetensorsFile inputs = SafetensorsFile::open(kGolden + "inputs.safetensors");
  SafetensorsFile target = SafetensorsFile::open(kGolden + "target/model.safetensors");
  HeadTensors tensors = open_head_files(kGolden + name);
  TensorView drafts_view = rows.tensor("drafts"), logits_view = rows.tensor("logits");
  TensorView tokens_view = inputs.tensor("tokens");

  std::span<const Token> tokens() const { return tokens_view.as<std::int32_t>(); }
  std::span<const std::int32_t> drafts() const { return drafts_view.as<std::int32_t>(); }
  std::span<const float> logits() const { return logits_view.as<float>(); }
  // Taken from the shape of drafts [rows, steps].
  std::size_t num_rows() const { return static_cast<std::size_t>(drafts_view.shape[0]); }
  std::size_t num_steps() const { return static_cast<std::size_t>(drafts_view.shape[1]); }
  std::size_t width() const { return static_cast<std::size_t>(logits_view.shape[2]); }

  // Behind the layers of `layers`, [56, layers, 64] of [56, 3, 64].
  std::vector<float> features(std::vector<std::size_t> layers) const {
    const TensorView view = inputs.tensor("features");
    std::vector<float> all(view.element_count());
    decode_blocks(TensorKind::f16, view.bytes, all);
    std::vector<float> chosen;
    for (std::size_t t = 0; t < tokens().size(); ++t)
      for (const std::size_t layer : layers)
        chosen.insert(chosen.end(), all.begin() + static_cast<std::ptrdiff_t>((3 * t + layer) * 64),
                      all.begin() + static_cast<std::ptrdiff_t>((3 * t + layer + 1) * 64));
    return chosen;
  }
  DraftHead head() const {
    TinyLlama tiny;
    tiny.layers = 4;
    tiny.width = 64;
    tiny.head_size = 16;
    tiny.vocab = 128;
    const TensorView embedding = target.tensor("model.embed_tokens.weight");
    const WeightTensor of_target{embedding.name, TensorKind::bf16, 128, 64, embedding.bytes};
    return Target(tiny, &of_target).head(tensors);
  }
};

struct Comparison {
  std::vector<double> differences;  // of each row the largest, in parts of its largest logit

  void add(const DraftHead& head, std::span<const float> ours, std::span<const float> theirs, Token draft) {
    REQUIRE(ours.size() == theirs.size());
    double scale = 0;
    for (const float logit : theirs)
      if (std::isfinite(logit)) scale = std::max(scale, std::abs(static_cast<double>(logit)));
    double difference = 0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      REQUIRE(std::isfinite(ours[i]) == std::isfinite(theirs[i]));
      if (theirs[i] == -std::numeric_limits<float>::infinity() && ours[i] == theirs[i]) continue;
      REQUIRE(std::isfinite(ours[i]));
      difference = std::max(difference, std::abs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])));
    }
    CHECK(difference <= kRounding * scale);
    CHECK(head.token_of(static_cast<std::int64_t>(best_row(ours))) == draft);
    differences.push_back(difference / scale);
  }
};

// Step s behind the pairs of the text up to each row, and the row's own drafts, or of P-EAGLE masks.
void compare_pairs(const Golden& golden, std::vector<std::size_t> layers, Comparison& comparison) {
  DraftHead head = golden.head();
  const std::size_t rows = golden.num_rows(), steps = golden.num_steps(), width = golden.width();
  const bool is_masked = head.description().family == HeadFamily::peagle;
  std::vector<float> states;
  const std::vector<float> features = golden.features(std::move(layers));
  head.make_states(std::span(features).first(rows * features.size() / golden.tokens().size()), states);
  const auto kv = head.make_cache(static_cast<std::int64_t>(80 + rows * steps));
  HeadOutput out;
  head.run_pairs(Chain(golden.tokens().subspan(1, rows), 1).batch(), states, *kv, out);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step > 0) {
      Chain drafts({}, 0);
      drafts.contexts.clear();
      std::vector<std::vector<std::int64_t>> tails(rows);
      for (std::size_t i = 0; i < rows; ++i) {
        const auto newest = static_cast<std::int32_t>(i) + 1;
        const auto slot = [&](std::size_t s) { return static_cast<std::int64_t>(80 + (s - 1) * rows + i); };
        drafts.wanted.push_back(
            drafts.add(is_masked ? head.description().mask_token : golden.drafts()[i * steps + step - 1],
                       newest + static_cast<std::int32_t>(step), kContextParent, slot(step)));
        for (std::size_t s = 1; s < step; ++s) tails[i].push_back(slot(s));
        drafts.contexts.push_back({drafts.blocks, newest + 1});
      }
      HeadBatch batch = drafts.batch();
      batch.tails = tails;
      std::vector<float> masks;
      for (std::size_t i = 0; i < rows && is_masked; ++i)
        std::ranges::copy(head.weights().mask_hidden, std::back_inserter(masks));
      if (is_masked)
        head.make_states(masks, states);
      else
        states = out.states;
      head.run_pairs(batch, states, *kv, out);
    }
    for (std::size_t i = 0; i < rows; ++i)
      comparison.add(head, std::span(out.logits).subspan(i * width, width),
                     golden.logits().subspan((step * rows + i) * width, width), golden.drafts()[i * steps + step]);
  }
}

// A block behind each anchor; of DSpark each slot behind the draft before it, and its confidence.
void compare_blocks(const Golden& golden, Comparison& comparison) {
  DraftHead head = golden.head();
  const HeadDescription& d = golden.tensors.description;
  const TensorView anchors = golden.rows.tensor("anchors");
  const std::vector<float> features = golden.features({0, 1});
  const std::size_t steps = golden.num_steps(), width = golden.width();
  REQUIRE(steps == static_cast<std::size_t>(head.draft_len_max()));
  for (std::size_t a = 0; a < golden.num_rows(); ++a) {
    const std::int32_t anchor = anchors.as<std::int32_t>()[a];
    INFO("anchor " << anchor);
    const auto length = static_cast<std::size_t>(anchor);
    const auto kv = head.make_cache(80);
    std::vector<float> states;
    head.make_states(std::span(features).first(length * 2 * 64), states);
    head.store_context(Chain(golden.tokens().first(length), 0).batch(), states, *kv);
    std::vector<Token> block(static_cast<std::size_t>(d.block_len), d.mask_token);
    block[0] = golden.tokens()[length];
    HeadOutput out;
    head.run_blocks(Chain(block, anchor).batch(), *kv, out);
    for (std::size_t step = 0; step < steps; ++step) {
      const std::size_t slot = step + (d.from_anchor ? 0 : 1);
      const Token before = step == 0 ? block[0] : golden.drafts()[a * steps + step - 1];
      const std::span<float> row = std::span(out.logits).subspan(slot * width, width);
      const auto state = std::span<const float>(out.states).subspan(slot * 64, 64);
      if (head.weights().markov_in) head.add_markov({{before}}, row, state);
      if (d.from_anchor) {
        const float confidence = head.confidence(state, before);
        CHECK(confidence == Approx(golden.rows.tensor("confidences").as<float>()[a * steps + step]).margin(1e-4));
      }
      comparison.add(head, row, golden.logits().subspan((a * steps + step) * width, width),
                     golden.drafts()[a * steps + step]);
    }
  }
}

void compare_medusa(const Golden& golden, Comparison& comparison) {
  DraftHead head = golden.head();
  const std::size_t rows = golden.num_rows(), heads = golden.num_steps(), width = golden.width();
  const std::vector<float> features = golden.features({2});
  std::vector<float> states, logits;
  head.make_states(features, states);
  for (std::size_t of = 0; of < heads; ++of) {
    head.run_medusa(of, states, logits);
    for (std::size_t i = 0; i < rows; ++i)
      comparison.add(head, std::span(logits).subspan(i * width, width),
                     golden.logits().subspan((of * rows + i) * width, width), golden.drafts()[i * heads + of]);
  }
}

TEST_CASE("heads that other people's packages made compute what the packages' own modules compute") {
  const std::vector<std::pair<const char*, std::vector<std::size_t>>> pairs{{"eagle1-eagle", {2}},
                                                                            {"eagle3-speculators", {0, 1, 2}},
                                                                            {"eagle3-specforge", {0, 1, 2}},
                                                                            {"peagle-speculators", {0, 1, 2}},
                                                                            {"mtp-speculators", {2}},
                                                                            {"mtp-qwen", {2}},
                                                                            {"mtp-glm", {2}}};
  std::size_t rows = 0;
  double largest = 0;
  const auto compare = [&](const char* name, const auto& of) {
    INFO(name);
    Comparison comparison;
    of(Golden{name}, comparison);
    std::vector<double>& all = comparison.differences;
    std::ranges::sort(all);
    if (std::getenv("DRAFTPROOF_GOLDEN") != nullptr)
      WARN(name << ": " << all.size() << " rows, differences up to " << all.back() << ", median "
                << all[all.size() / 2]);
    rows += all.size();
    largest = std::max(largest, all.back());
  };
  for (const auto& [name, layers] : pairs)
    compare(name, [&](const Golden& golden, Comparison& to) { compare_pairs(golden, layers, to); });
  for (const char* const name : {"dflash-dflash", "dflash-speculators", "dflash2-dflash", "dflash2-speculators",
                                 "dspark-speculators", "dspark-specforge"})
    compare(name, compare_blocks);
  compare("medusa-medusa", compare_medusa);
  CHECK(rows >= 1000);
  CHECK(largest > 0);  // rows of our own making would differ in nothing
}

// SiLU(W1 x + b1) through W2, + b2, in double.
TEST_CASE("Medusa heads of two linear layers compute what these say, without a residual") {
  const HeadFiles files = medusa_of_linears();
  const TemporaryFolder folder;
  files.write(folder);
  TinyLlama tiny;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.head_size = 16;
  DraftHead head = Target(tiny).head(open_head_files(folder.path()));
  TestRandom random(7);
  std::vector<float> states(2 * 32), logits;
  for (float& x : states) x = random.normal();
  for (std::size_t of = 0; of < 2; ++of) {
    const std::string prefix = std::to_string(of) + ".";
    const std::vector<float> w1 = files.values(prefix + "0.weight"), b1 = files.values(prefix + "0.bias");
    const std::vector<float> w2 = files.values(prefix + "2.weight"), b2 = files.values(prefix + "2.bias");
    head.run_medusa(of, states, logits);
    REQUIRE(logits.size() == 2 * 40);
    for (std::size_t row = 0; row < 2; ++row) {
      std::vector<double> inner(32);
      for (std::size_t j = 0; j < 32; ++j) {
        double sum = static_cast<double>(b1[j]);
        for (std::size_t k = 0; k < 32; ++k)
          sum += static_cast<double>(w1[32 * j + k]) * static_cast<double>(states[32 * row + k]);
        inner[j] = sum / (1.0 + std::exp(-sum));
      }
      for (std::size_t v = 0; v < 40; ++v) {
        double sum = static_cast<double>(b2[v]);
        for (std::size_t j = 0; j < 32; ++j) sum += static_cast<double>(w2[32 * v + j]) * inner[j];
        CHECK(static_cast<double>(logits[40 * row + v]) == Approx(sum).epsilon(1e-4).margin(1e-4));
      }
    }
  }
}

}  // namespace

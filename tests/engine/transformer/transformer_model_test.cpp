#include "engine/transformer/transformer_model.hpp"

#include "tests/engine/transformer/decoded_streams.hpp"
#include "tests/engine/transformer/plain_llama.hpp"
#include "tests/engine/transformer/random_tensors.hpp"
#include "tests/support/forward_alone.hpp"
#include "tests/support/test.hpp"

namespace {

struct Variant {
  const char* name;
  std::vector<TensorKind> kinds;
  RopePairing pairs;
  bool extras;
};

const std::vector<Variant>& variants() {
  static const std::vector<Variant> all = {
      {"a Llama in Q4_1 and Q8_0",
       {TensorKind::q4_1, TensorKind::q4_1, TensorKind::q8_0},
       RopePairing::adjacent,
       false},
      {"a Qwen in Q4_0, F16 and BF16",
       {TensorKind::q4_0, TensorKind::f16, TensorKind::bf16},
       RopePairing::halves,
       true},
      {"a Llama in Q4_K, Q5_K, Q6_K and Q5_0",
       {TensorKind::q4_k, TensorKind::q5_k, TensorKind::q6_k, TensorKind::q5_0},
       RopePairing::adjacent,
       false},
      {"a Llama in F32", {TensorKind::f32}, RopePairing::halves, false},
  };
  return all;
}

// Worst error of logits against those in double precision, relative to their standard deviation.
double worst_error(const std::vector<float>& logits, const std::vector<double>& exact) {
  double squares = 0.0;
  double worst = 0.0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    squares += exact[i] * exact[i];
    const double off = std::fabs(static_cast<double>(logits[i]) - exact[i]);
    if (!(off <= worst)) worst = off;
  }
  return worst / std::sqrt(squares / static_cast<double>(exact.size()));
}

}  // namespace

TEST_CASE("logits of a tiny model are those of the formulas in double precision, within what rounding allows") {
  for (const Variant& variant : variants()) {
    INFO(variant.name);
    const RandomLlama tiny(21, variant.kinds, variant.pairs, variant.extras);
    const PlainLlama oracle(tiny.model);
    TransformerModel exact(tiny.weights(), Arithmetic::f32, 1);
    const std::unique_ptr<TransformerModel> fast = exact.with_arithmetic(Arithmetic::int8);
    PlainDecoding decoded(exact);
    PlainDecoding decoded_fast(*fast);
    TestRandom random(22);
    const std::vector<Token> tokens = random.tokens(20, tiny.model.description.vocab_size);
    for (const std::size_t length : {std::size_t{1}, std::size_t{2}, std::size_t{20}}) {
      const std::vector<Token> part(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length));
      const std::vector<double> logits = oracle.logits(part);
      CHECK(worst_error(decoded.after(part).logits, logits) < 4e-3);  // keys and values are binary16
      const double fast_error = worst_error(decoded_fast.after(part).logits, logits);
      CHECK(fast_error < 0.2);
      const bool all_float = variant.kinds == std::vector<TensorKind>{TensorKind::f32};
      CHECK((fast_error > 1e-2 || all_float));
    }
  }
}

TEST_CASE("a row's bits do not depend on the batch, on chunks, on trees or on where its context lies") {
  for (const Variant& variant : variants()) {
    INFO(variant.name);
    const RandomLlama tiny(31, variant.kinds, variant.pairs, variant.extras);
    for (const Arithmetic arithmetic : {Arithmetic::int8, Arithmetic::f32}) {
      TransformerModel model(tiny.weights(), arithmetic, 1);
      PlainDecoding plain(model);
      DecodedStreams streams(model, 3, 40, 32);
      int mismatches = 0;
      const int kRounds = kSanitized ? 2 : 6;
      for (int round = 0; round < kRounds; ++round) mismatches += streams.run_batch(round % 2 == 0 ? 3 : 14, 9, plain);
      CHECK(mismatches == 0);
      CHECK(streams.rows() > 10 * kRounds);
    }
  }
}

TEST_CASE("a row's bits depend neither on the number of threads nor on the instruction set") {
  const RandomLlama tiny(41, {TensorKind::q4_1, TensorKind::q8_0, TensorKind::f16}, RopePairing::adjacent, true);
  const auto weights = tiny.weights();
  for (const Arithmetic arithmetic : {Arithmetic::int8, Arithmetic::f32}) {
    TransformerModel scalar(weights, arithmetic, 1, std::nullopt, scalar_transformer_kernels());
    PlainDecoding plain(scalar);
    for (const TransformerKernels& kernels : available_transformer_kernels())
      for (const int threads : kSanitized ? std::vector{1, 7} : std::vector{1, 2, 3, 7}) {
        INFO("kernels: " << kernels.target << ", threads: " << threads);
        TransformerModel model(weights, arithmetic, threads, std::nullopt, kernels);
        DecodedStreams streams(model, 2, 20, 42);
        int mismatches = 0;
        for (int round = 0; round < (kSanitized ? 1 : 3); ++round) mismatches += streams.run_batch(20, 6, plain);
        CHECK(mismatches == 0);
        CHECK(streams.rows() > 20);
      }
  }
}

TEST_CASE("the comparison with plain decoding can fail") {
  const RandomLlama tiny(51, {TensorKind::q4_1}, RopePairing::adjacent, false);
  const RandomLlama other(52, {TensorKind::q4_1}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::int8, 1);
  TransformerModel another(other.weights(), Arithmetic::int8, 1);
  PlainDecoding plain(another);
  DecodedStreams streams(model, 1, 10, 53);
  CHECK(streams.run_batch(8, 8, plain) > 0);
}

TEST_CASE("a slot that is copied serves as the one it came from") {
  const RandomLlama tiny(61, {TensorKind::q4_0}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::int8, 1);
  const std::unique_ptr<KvCache> kv = model.make_kv_cache(40);
  CHECK(kv->num_slots() == 48);
  const std::vector<Token> tokens = {3, 1, 4};
  const std::vector<std::int32_t> positions = {0, 1, 2}, streams = {0, 0, 0}, parents = {-1, 0, 1}, wanted = {2};
  const std::vector<std::int64_t> slots = {0, 1, 37};  // the last one as a draft would have it
  const std::vector<std::int32_t> blocks = {0};
  const std::vector<StreamContext> fresh = {{blocks, 0}};
  ForwardOutput out;
  model.forward({tokens, positions, streams, parents, slots, fresh, wanted, {}}, *kv, out);
  kv->copy_slot(37, 2);
  CHECK(kv->slot_bytes(37) == kv->slot_bytes(2));
  CHECK(kv->slot_bytes(1) != kv->slot_bytes(2));
  forward_one(model, *kv, blocks, 5, 3, out);
  PlainDecoding plain(model);
  CHECK(same_row(out.logits.data(), plain.after({3, 1, 4, 5}).logits));
}

TEST_CASE("views leave layers out or round weights again, and share the cache's form") {
  const RandomLlama tiny(71, {TensorKind::f32}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::f32, 2);
  const std::unique_ptr<TransformerModel> skipping = model.with_layers({0, 2});
  CHECK(skipping->num_layers() == 2);
  CHECK(&skipping->weights() == &model.weights());
  ModelWeights fewer = tiny.model;
  fewer.layers.erase(fewer.layers.begin() + 1);
  const PlainLlama oracle(fewer);
  PlainDecoding decoded(*skipping);
  CHECK(worst_error(decoded.after({5, 6, 7}).logits, oracle.logits({5, 6, 7})) < 2e-3);

  // It drafts on the target's cache and leaves the layer that it skips alone.
  const std::unique_ptr<KvCache> kv = model.make_kv_cache(16);
  ForwardOutput out;
  forward_one(*skipping, *kv, {0}, 9, 0, out);
  const std::vector<std::byte> bytes = kv->slot_bytes(0);
  const std::size_t of_layer = bytes.size() / 3;
  const auto any = [&](std::size_t layer) {
    return std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(layer * of_layer),
                       bytes.begin() + static_cast<std::ptrdiff_t>((layer + 1) * of_layer),
                       [](std::byte b) { return b != std::byte{0}; });
  };
  CHECK(any(0));
  CHECK_FALSE(any(1));
  CHECK(any(2));
  CHECK(error_of(ErrorKind::usage, [&] {
          (void)model.with_layers({1, 1});
        }) == "layers: layer 1 is in the list; expected ascending numbers below 3");
  CHECK(error_of(ErrorKind::usage, [&] { (void)model.with_layers({3}); }).find("below 3") != std::string::npos);

  double error_before = 0.0;
  PlainDecoding target(model);
  const std::vector<float> expected = target.after({5, 6, 7}).logits;
  for (const int bits : {8, 6, 4, 3, 2}) {
    const std::unique_ptr<TransformerModel> rounded = model.requantised(bits);
    CHECK(rounded->weights().bytes_per_pass() < model.weights().bytes_per_pass());
    PlainDecoding drafted(*rounded);
    const double error = worst_error(drafted.after({5, 6, 7}).logits, {expected.begin(), expected.end()});
    INFO("bits: " << bits << ", error: " << error);
    CHECK(error > error_before);
    if (bits >= 6) error_before = error;  // fewer are as good as noise to random weights
  }
  CHECK(error_of(ErrorKind::usage, [&] { (void)model.requantised(9); }) ==
        "bits: is 9; expected a number of bits from 2 to 8");
}

TEST_CASE("the residual stream is handed out behind the layers asked for") {
  const RandomLlama tiny(81, {TensorKind::f32}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::f32, 2);
  const std::vector<Token> tokens = {3, 1};
  const ForwardOutput out = forward_alone(model, tokens, {}, std::vector<std::int32_t>{1, 3}).out;
  CHECK(out.logits.empty());
  const auto width = static_cast<std::ptrdiff_t>(tiny.model.description.width);
  REQUIRE(std::ssize(out.hidden) == 2 * 2 * width);
  // The first layer alone outputs what the whole model has behind its first layer.
  const std::unique_ptr<TransformerModel> first = model.with_layers({0});
  const ForwardOutput of_first = forward_alone(*first, tokens, {}, std::vector<std::int32_t>{1}).out;
  for (std::ptrdiff_t token = 0; token < 2; ++token)
    CHECK(std::equal(of_first.hidden.begin() + token * width, of_first.hidden.begin() + (token + 1) * width,
                     out.hidden.begin() + token * 2 * width));
  CHECK_FALSE(std::equal(out.hidden.begin(), out.hidden.begin() + width, out.hidden.begin() + width));
}

TEST_CASE("a row that overflows is NaN throughout, and so is what follows it, and no other stream suffers") {
  RandomLlama tiny(91, {TensorKind::q8_0}, RopePairing::adjacent, false);
  // Token 7 has an embedding that leaves the range of float within the first layers; the gate alone squares it.
  std::vector<float> table(static_cast<std::size_t>(tiny.model.description.vocab_size * tiny.model.description.width),
                           0.02f);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] *= static_cast<float>(static_cast<int>(i * 7 % 11) - 5);
  for (std::int64_t i = 0; i < tiny.model.description.width; ++i)
    table[static_cast<std::size_t>(7 * tiny.model.description.width + i)] = 3e38f;
  tiny.model.token_embedding.kind = TensorKind::f32;
  tiny.model.token_embedding.bytes = std::as_bytes(std::span(table));
  tiny.model.description.tied = false;
  tiny.model.head =
      tiny.store.matrix("head", TensorKind::q8_0, tiny.model.description.vocab_size, tiny.model.description.width);
  const auto weights = tiny.weights();
  for (const Arithmetic arithmetic : {Arithmetic::int8, Arithmetic::f32})
    for (const TransformerKernels& kernels : available_transformer_kernels()) {
      INFO("kernels: " << kernels.target);
      TransformerModel model(weights, arithmetic, 1, std::nullopt, kernels);
      const std::unique_ptr<KvCache> kv = model.make_kv_cache(32);
      const std::vector<Token> tokens = {3, 7, 4, 3, 4};
      const std::vector<std::int32_t> positions = {0, 1, 2, 0, 1}, streams = {0, 0, 0, 1, 1},
                                      parents = {-1, 0, 1, -1, 3}, wanted = {0, 1, 2, 3, 4};
      const std::vector<std::int64_t> slots = {0, 1, 2, 16, 17};
      const std::vector<std::int32_t> blocks0 = {0}, blocks1 = {1};
      const std::vector<StreamContext> fresh = {{blocks0, 0}, {blocks1, 0}};
      ForwardOutput out;
      model.forward({tokens, positions, streams, parents, slots, fresh, wanted, {}}, *kv, out);
      const auto vocab = static_cast<std::size_t>(tiny.model.description.vocab_size);
      const auto all = [&](std::size_t row, auto holds) {
        return std::all_of(out.logits.begin() + static_cast<std::ptrdiff_t>(row * vocab),
                           out.logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocab), holds);
      };
      for (const std::size_t row : {0, 3, 4}) CHECK(all(row, [](float x) { return std::isfinite(x); }));
      for (const std::size_t row : {1, 2}) CHECK(all(row, [](float x) { return std::isnan(x); }));
    }
}

TEST_CASE("batches that a model cannot run are errors that say so") {
  const RandomLlama tiny(101, {TensorKind::f32}, RopePairing::adjacent, false);
  TransformerModel model(tiny.weights(), Arithmetic::f32, 1);
  const std::unique_ptr<KvCache> kv = model.make_kv_cache(544);
  ForwardOutput out;
  std::vector<std::int32_t> blocks(33);
  for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b] = static_cast<std::int32_t>(b);
  const auto run = [&](Token token, std::int32_t position) { forward_one(model, *kv, blocks, token, position, out); };
  CHECK(error_of(ErrorKind::input, [&] { run(117, 0); }).find("expected one in [0, 117)") != std::string::npos);
  CHECK(error_of(ErrorKind::input, [&] { run(-1, 0); }).find("expected one in [0, 117)") != std::string::npos);
  CHECK(error_of(ErrorKind::input, [&] { run(1, 512); }).find("expected one below 512") != std::string::npos);
  // A batch of nothing is no error.
  model.forward({}, *kv, out);
  CHECK(out.logits.empty());
}

TEST_CASE("weights that the kernels do not take are errors that name them") {
  RandomLlama tiny(111, {TensorKind::f32}, RopePairing::adjacent, true);
  tiny.model.description.head_size = 24;
  CHECK(error_of(ErrorKind::input, [&] { (void)pack_weights(tiny.model, 1); }) ==
        "the length of a head is 24; expected a multiple of 16");
  tiny.model.description.head_size = 16;
  std::vector<float> bias(32, 0.0f);
  bias[30] = std::numeric_limits<float>::infinity();
  tiny.model.layers[1].key_bias.bytes = std::as_bytes(std::span(bias));
  CHECK(error_of(ErrorKind::input, [&] { (void)pack_weights(tiny.model, 1); }) ==
        "layer 1.key_bias: value 30 is not finite; expected a number");
}

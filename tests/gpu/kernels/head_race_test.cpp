// The race fused into the product of a head: the tokens of the call on logits that were stored, and nothing else.
#include "gpu/kernels/head_race.cuh"
#include "gpu/api.hpp"
#include "gpu/regress/inputs.hpp"
#include "tests/support/test.hpp"

namespace draftproof::simt_executor {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kWidth = 5;
constexpr std::int64_t kVocabSize = 4500;  // two tiles, the second one not full
constexpr std::int64_t kTiles = 2;

struct Inputs {
  std::vector<float> hidden = regress::normal_logits(1, kRows, kWidth, kWidth, 1.5f);
  std::vector<float> head = regress::normal_logits(2, kVocabSize, kWidth, kWidth, 1.0f);
  std::vector<float> temperature = {1.0f, 0.7f, 1.0f, 2.0f, 0.3f, 1.0f};
  std::vector<std::uint64_t> seed = {1, 2, 3, 4, 5, 1};
  std::vector<std::uint32_t> step = {0, 1, 2, 3, 4, 9};
};

// head_logits, then the call of the reference.
std::vector<Token> unfused(Inputs& in, const Buffer<float>& hidden, const Buffer<float>& head) {
  const auto logits = Buffer<float>::output("logits", static_cast<std::size_t>(kRows * kVocabSize));
  const HeadProduct product{hidden.read_only(), head.read_only(), kWidth, kVocabSize};
  launch({.kernel = "head_logits", .grid = {kRows}, .block = {256}}, head_logits, product, logits.global());
  const std::vector<float> stored = logits.values();
  std::vector<Token> tokens(kRows);
  std::vector<std::int32_t> status(kRows);
  draftproof_sample_arguments a{};
  a.rows = a.requests = kRows;
  a.vocab_size = kVocabSize;
  a.logits = {stored.data(), kVocabSize, DRAFTPROOF_F32};
  a.parameters.temperature = in.temperature.data();
  a.randomness = {in.seed.data(), in.step.data()};
  a.sampler = DRAFTPROOF_RACE;
  a.purpose = DRAFTPROOF_TARGET_SAMPLE;
  a.tokens = tokens.data();
  a.status = status.data();
  draftproof_settings reference{};
  reference.executor = DRAFTPROOF_REFERENCE;
  device::sample(a, reference);
  return tokens;
}

// A fault: the seed of the block in place of the row.
__global__ void race_with_seed_of_block(HeadProduct product, Global<const float> temperature, Randomness random,
                                        std::int64_t tiles, Global<std::uint64_t> winner_score,
                                        Global<Token> winner_token) {
  const std::int64_t row = blockIdx.x / tiles;
  const std::int64_t first = blockIdx.x % tiles * kTileTokens;
  const auto racing = racing_tile(LogitsOfHead{product, row}, unfiltered_row(), random, row, blockIdx.x % kRows,
                                  kMaskedExponent, temperature[row]);
  const Winner best = winner_of_tile(racing, first, std::min<std::int64_t>(first + kTileTokens, product.vocab_size));
  if (threadIdx.x != 0) return;
  winner_score[blockIdx.x] = best.score;
  winner_token[blockIdx.x] = best.token;
}

template <class Kernel>
std::vector<Token> fused(const Inputs& in, const Buffer<float>& hidden, const Buffer<float>& head,
                         std::uint32_t threads, std::uint64_t order, Kernel kernel) {
  const auto temperature = Buffer<float>::input("temperature", in.temperature);
  const auto seed = Buffer<std::uint64_t>::input("seed", in.seed);
  const auto step = Buffer<std::uint32_t>::input("step", in.step);
  const auto score = Buffer<std::uint64_t>::output("winner_score", kRows * kTiles);
  const auto token = Buffer<Token>::output("winner_token", kRows * kTiles);
  const auto tokens = Buffer<Token>::output("tokens", kRows);
  const HeadProduct product{hidden.read_only(), head.read_only(), kWidth, kVocabSize};
  const Randomness random{seed.read_only(), step.read_only(), nullptr, DRAFTPROOF_TARGET_SAMPLE};
  launch({.kernel = "race_head_tiles", .grid = {kRows * kTiles}, .block = {threads}, .seed = order}, kernel, product,
         temperature.read_only(), random, kTiles, score.global(), token.global());
  launch({.kernel = "finish_head_race", .grid = {kRows}, .block = {32}, .seed = order}, finish_head_race, kTiles,
         score.read_only(), token.read_only(), tokens.global());
  return tokens.values();
}

TEST_CASE("a race fused into the product of a head draws the tokens of the call on stored logits") {
  Inputs in;
  const auto hidden = Buffer<float>::input("hidden", in.hidden);
  const auto head = Buffer<float>::input("head", in.head);
  const std::vector<Token> expected = unfused(in, hidden, head);
  for (const std::uint32_t threads : {32u, 256u})
    for (const std::uint64_t order : {1u, 2u})
      CHECK(fused(in, hidden, head, threads, order, race_head_tiles) == expected);
  CHECK(fused(in, hidden, head, 256, 1, race_with_seed_of_block) != expected);
  CHECK(expected[0] != expected[5]);  // the same seed at another step and row
}

}  // namespace
}  // namespace draftproof::simt_executor

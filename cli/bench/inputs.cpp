#include "cli/bench/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parallel.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kPoolSize = std::size_t{1} << 21;
constexpr std::size_t kLongestRow = std::size_t{1} << 20;
constexpr std::uint64_t kSeed = 20240607;

// Marsaglia's polar method: a pair of independent normals from a point in the unit disc.
std::pair<float, float> normal_pair(std::uint64_t seed, std::uint32_t index) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const RandomBlock block = philox_block(seed, index, attempt, 0, static_cast<std::uint32_t>(Purpose::simulator));
    const double x = 2.0 * uniform_53(high_half(block)) - 1.0;
    const double y = 2.0 * uniform_53(low_half(block)) - 1.0;
    const double square = x * x + y * y;
    if (square >= 1.0 || square == 0.0) continue;
    const double scale = std::sqrt(-2.0 * natural_log(square) / square);
    return {static_cast<float>(x * scale), static_cast<float>(y * scale)};
  }
}

// softmax(logits) [V] into `probs`.
void write_softmax(const std::vector<float>& logits, std::int64_t row, Distribution& distribution, float* probs) {
  distribution.make_logits_distribution().assign(logits, row);
  for (std::size_t tile = 0; tile < distribution.tile_count(); ++tile) {
    float* out = probs + tile * static_cast<std::size_t>(kTileTokens);
    std::vector<float> scratch(static_cast<std::size_t>(kTileTokens));
    distribution.tile_probabilities(tile, scratch.data());
    const std::size_t left = logits.size() - tile * static_cast<std::size_t>(kTileTokens);
    std::copy_n(scratch.data(), std::min<std::size_t>(left, kTileTokens), out);
  }
}

}  // namespace

NormalPool::NormalPool(std::uint64_t seed) : values_(kPoolSize), seed_(seed) {
  for (std::size_t i = 0; i < kPoolSize; i += 2) {
    const auto [a, b] = normal_pair(seed, static_cast<std::uint32_t>(i / 2));
    values_[i] = a;
    values_[i + 1] = b;
  }
}

void NormalPool::fill(std::uint64_t row, std::size_t count, float* out) const {
  const std::size_t offset = derive_seed(seed_, row) % (kPoolSize - kLongestRow);
  std::copy_n(values_.data() + offset, count, out);
}

BenchVerifyInputs make_verify_inputs(std::int64_t batch, std::int64_t draft_len, std::int64_t vocab_size, int threads) {
  // With correlation 0.8 the overlap of the two softmaxes, which is the acceptance rate, is about 0.75.
  constexpr float kCorrelation = 0.8f;
  constexpr float kIndependent = 0.6f;  // sqrt(1 - 0.8^2)
  const NormalPool pool(kSeed);
  const auto size = static_cast<std::size_t>(vocab_size);
  const auto rows = static_cast<std::size_t>(batch * (draft_len + 1));
  const auto draft_rows = static_cast<std::size_t>(batch * draft_len);
  BenchVerifyInputs inputs{batch, draft_len, vocab_size, {}, {}, {}, {}, {}};
  inputs.target_logits.resize(rows * size);
  inputs.target_bf16.resize(rows * size);
  inputs.target_probs.resize(rows * size);
  inputs.draft_probs.resize(draft_rows * size);
  inputs.drafts.resize(draft_rows);
  parallel_for(batch * (draft_len + 1), threads, [&](std::int64_t item, int) {
    const auto row = static_cast<std::size_t>(item);
    float* target = inputs.target_logits.data() + row * size;
    pool.fill(2 * row, size, target);
    std::transform(target, target + size, inputs.target_bf16.data() + row * size, f32_to_bf16);
    Distribution distribution;
    std::vector<float> logits(target, target + size);
    write_softmax(logits, item, distribution, inputs.target_probs.data() + row * size);

    const std::int64_t position = item % (draft_len + 1);
    if (position == draft_len) return;  // the bonus row has no draft
    const auto draft_row = static_cast<std::size_t>(item / (draft_len + 1) * draft_len + position);
    pool.fill(2 * row + 1, size, logits.data());
    for (std::size_t i = 0; i < size; ++i) logits[i] = kCorrelation * target[i] + kIndependent * logits[i];
    write_softmax(logits, item, distribution, inputs.draft_probs.data() + draft_row * size);
    const Address address{0, static_cast<std::uint32_t>(draft_row), 0, Purpose::draft_sample};
    inputs.drafts[draft_row] = DistributionMasses(distribution).draw(PhiloxSource().block(kSeed, address));
  });
  return inputs;
}

}  // namespace draftproof

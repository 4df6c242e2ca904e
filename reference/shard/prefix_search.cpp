#include "reference/shard/prefix_search.hpp"

#include <array>

#include "reference/numerics/fraction.hpp"
#include "reference/numerics/order_key.hpp"

namespace draftproof {

std::uint64_t least_mass_of(float min_p, float first, std::int32_t exponent, std::int32_t tile_exponent) {
  const std::uint64_t mass = mass_of_weight(tile_weight(exp_parts(first), tile_exponent));
  return ceil_of_fraction(min_p, row_scale(mass, exponent, tile_exponent));
}

// take(first column, logits, weights f 2^(n - N_t), count) of groups of neighbours; what is masked or dropped weighs
// nothing. Groups whose largest logit lies below `low` are passed over.
template <class Take>
void PartSearch::for_each_group(float low, const Take& take) const {
  const LogitsDistribution& part = shard_->logits();
  std::array<float, kGroupTokens> scratch;
  std::array<float, kGroupTokens> weights;
  const std::span<const float> largest = part.group_largest();
  const auto end = static_cast<std::size_t>(part.vocab_size());
  for (std::size_t begin = 0; begin < end; begin += kGroupTokens) {
    if (!largest.empty() && largest[begin / kGroupTokens] < low) continue;
    const std::size_t count = std::min(kGroupTokens, end - begin);
    const float* const x = part.logits_in(begin, count, scratch.data());
    if (measure_ == Measure::mass) part.weights_in(begin, count, weights.data());
    take(begin, x, weights.data(), count);
  }
}

std::uint64_t PartSearch::amount(float x, float weight, std::size_t column) const {
  if (measure_ == Measure::count) return x >= -kLogitLimit ? 1 : 0;
  return shard_->logits().row_mass(weight, column / kTileTokens);
}

void PartSearch::list(std::uint32_t known_bits, std::uint32_t key) {
  const auto is_other = [&](std::uint32_t own) { return ((own ^ key) & known_bits) != 0; };
  if (is_listed_) {
    std::erase_if(listed_, [&](const Candidate& candidate) { return is_other(candidate.key); });
    return;
  }
  is_listed_ = true;
  listed_.clear();
  for_each_group(value_of_key(key & known_bits),
                 [&](std::size_t begin, const float* x, const float* weights, std::size_t count) {
                   std::array<std::uint32_t, kGroupTokens> found;  // without branches, which would be guessed wrongly
                   std::size_t end = 0;
                   for (std::size_t i = 0; i < count; ++i) {
                     found[end] = static_cast<std::uint32_t>(i);
                     end += is_other(order_key(x[i])) ? 0 : 1;
                   }
                   for (std::size_t f = 0; f < end; ++f) {
                     const std::size_t i = found[f];
                     const std::uint64_t own = amount(x[i], weights[i], begin);
                     if (own != 0)
                       listed_.push_back({order_key(x[i]), static_cast<Token>(begin + i) + shard_->base(), own});
                   }
                 });
}

void PartSearch::add_histogram(int round, std::uint32_t key, std::span<std::uint64_t> words) {
  constexpr std::size_t kLanes = 4;  // neighbours often share a bucket, whose sum would wait for the one before
  std::array<std::array<std::uint64_t, kSearchBuckets>, kLanes> sums{};
  if (round == 0) {
    for_each_group(-kLogitLimit, [&](std::size_t begin, const float* x, const float* weights, std::size_t count) {
      std::array<std::uint32_t, kGroupTokens> bucket;
      std::array<std::uint64_t, kGroupTokens> amounts;
      for (std::size_t i = 0; i < count; ++i) bucket[i] = order_key(x[i]) >> 24;
      for (std::size_t i = 0; i < count; ++i) amounts[i] = amount(x[i], weights[i], begin);
      for (std::size_t i = 0; i < count; ++i) sums[i % kLanes][bucket[i]] += amounts[i];
    });
  } else {
    const int shift = 24 - 8 * round;
    list(~0u << (shift + 8), key);
    for (const Candidate& candidate : listed_) sums[0][candidate.key >> shift & 0xffu] += candidate.amount;
  }
  for (std::size_t b = 0; b < kSearchBuckets; ++b) {
    const std::uint64_t sum = sums[0][b] + sums[1][b] + sums[2][b] + sums[3][b];
    if (measure_ == Measure::mass)
      words[b] += sum;
    else
      words[b / 2] += sum << 32 * (b % 2);
  }
}

std::uint64_t PartSearch::measure_of_ties(std::uint32_t key) {
  list(~0u, key);
  std::uint64_t sum = 0;
  for (const Candidate& candidate : listed_) sum += candidate.amount;
  return sum;
}

Token PartSearch::token_of_ties(std::uint32_t key, std::uint64_t limit) {
  list(~0u, key);
  std::uint64_t sum = 0;
  for (const Candidate& candidate : listed_)
    if ((sum += candidate.amount) >= limit) return candidate.token;
  return kPaddingToken;
}

}  // namespace draftproof

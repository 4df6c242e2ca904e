#include "reference/shard/row_shard.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>

namespace draftproof {
namespace {

using TileOfFloats = std::array<float, kTileTokens>;

// -infinity in each type of logits.
std::uint32_t masked_bits(DType dtype) {
  return dtype == DType::f32 ? 0xff800000u : dtype == DType::f16 ? 0xfc00u : 0xff80u;
}

// take(tile, begin, values, count) of every tile of a part.
template <class Take>
void for_each_tile(const LogitsDistribution& part, const Take& take) {
  TileOfFloats scratch;
  for (std::size_t t = 0; t < part.tile_count(); ++t) {
    const std::size_t begin = t * kTileTokens;
    take(t, begin, part.logits_in(begin, part.tile_size(t), scratch.data()), part.tile_size(t));
  }
}

}  // namespace

RowShard::RowShard(const TokenRange& range)
    : range_(range), base_(range.size() == 0 ? 0 : range.begin - range.begin % kTileTokens) {}

RowView RowShard::padded(const RowView& part, std::vector<std::uint32_t>& memory, bool with_zeros) const {
  const auto before = static_cast<std::size_t>(range_.begin - base_);
  if (range_.size() == 0) return {DType::f32, nullptr, 0};
  if (before == 0) return part;
  const auto count = static_cast<std::size_t>(part.vocab_size);
  const std::size_t element = part.dtype == DType::f32 ? 4 : 2;
  memory.resize(before + count);
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  const std::uint32_t bits = with_zeros ? 0 : masked_bits(part.dtype);
  for (std::size_t i = 0; i < before; ++i) std::memcpy(bytes + i * element, &bits, element);
  std::memcpy(bytes + before * element, part.data, count * element);
  return {part.dtype, memory.data(), static_cast<std::int64_t>(before + count)};
}

void RowShard::edit(RowInput input) {
  input.logits = padded(input.logits, logits_memory_, false);
  if (input.unconditional) input.unconditional = padded(*input.unconditional, unconditional_memory_, false);
  input.first_token = base_;
  if (range_.size() == 0) return;
  read([&] { pipeline_.edit(input); });
}

bool RowShard::try_assign(bool has_filters) {
  LogitsDistribution& part = distribution_.make_logits_distribution();
  if (range_.size() == 0) return part.try_assign_part({DType::f32, nullptr, 0}, 1.0f, has_filters);
  return pipeline_.try_assign_part(part, has_filters);
}

void RowShard::check_as_given() {
  read([&] { pipeline_.check_as_given(); });
}

void RowShard::throw_bad_logit() {
  read([&] { pipeline_.throw_bad_row(distribution_.make_logits_distribution()); });
}

RankedLogit RowShard::largest_logit() {
  RankedLogit largest{-std::numeric_limits<float>::infinity(), kPaddingToken};
  if (range_.size() == 0) return largest;
  read([&] { largest = pipeline_.largest_of_part(); });
  if (largest.token != kPaddingToken) largest.token += base_;
  return largest;
}

void RowShard::make_probabilities(const RowView& part, const RowName& row) {
  distribution_.make_probabilities(padded(part, logits_memory_, true), row);
}

void RowShard::make_one_hot(Token token) {
  const bool is_here = token >= range_.begin && token < range_.end;
  distribution_.make_one_hot(is_here ? token - base_ : kPaddingToken,
                             range_.size() == 0 ? 0 : std::int64_t{range_.end} - base_);
}

void RowShard::raise_exponents(std::span<std::int32_t> row_tiles) const {
  for (std::size_t t = 0; t < logits().tile_count(); ++t) {
    std::int32_t& exponent = row_tiles[first_tile() + t];
    exponent = std::max(exponent, logits().tiles()[t].n_max);
  }
}

void RowShard::add_tile_sums(std::span<std::uint64_t> row_tiles) const {
  for (std::size_t t = 0; t < logits().tile_count(); ++t) row_tiles[first_tile() + t] += logits().tiles()[t].sum;
}

void RowShard::join_tiles(std::span<const std::int32_t> row_tiles) {
  LogitsDistribution& part = distribution_.make_logits_distribution();
  part.join_tiles(row_tiles.subspan(first_tile(), part.tile_count()));
}

void RowShard::join_row(std::int32_t exponent, std::uint64_t total) {
  distribution_.make_logits_distribution().join_row(exponent, total);
}

std::vector<RankedLogit> RowShard::first_tokens(std::size_t n) const {
  // At least n tokens reach the n-th of the groups' largest logits; filters may have dropped some of them.
  const std::span<const float> groups = logits().group_largest();
  float least = -kLogitLimit;
  if (n > 0 && groups.size() >= n) {
    std::vector<float> ordered(groups.begin(), groups.end());
    std::nth_element(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(n - 1), ordered.end(),
                     std::greater<>());
    least = std::max(least, ordered[n - 1]);
  }
  std::vector<RankedLogit> tokens = kept_from(least);
  if (tokens.size() < n && least > -kLogitLimit) tokens = kept_from(-kLogitLimit);
  const std::size_t listed = std::min(n, tokens.size());
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(listed), tokens.end(), comes_first);
  tokens.resize(listed);
  return tokens;
}

// The kept tokens whose logits are at least `least`.
std::vector<RankedLogit> RowShard::kept_from(float least) const {
  const std::span<const float> groups = logits().group_largest();
  std::vector<RankedLogit> tokens;
  for_each_tile(logits(), [&](std::size_t, std::size_t begin, const float* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (i % kGroupTokens == 0 && !groups.empty() && groups[(begin + i) / kGroupTokens] < least) {
        i += kGroupTokens - 1;
        continue;
      }
      const auto token = static_cast<Token>(begin + i);
      if (x[i] >= least && logits().is_kept(token)) tokens.push_back({x[i], token + base_});
    }
  });
  return tokens;
}

std::int64_t RowShard::count_before(const RankedLogit& other) const {
  std::int64_t before = 0;
  for_each_tile(logits(), [&](std::size_t, std::size_t begin, const float* x, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto token = static_cast<Token>(begin + i);
      before += comes_first({x[i], token + base_}, other) && logits().is_kept(token) ? 1 : 0;
    }
  });
  return before;
}

void RowShard::keep(KeptSet set) {
  constexpr Token kLast = std::numeric_limits<Token>::max();
  if (set.last_token != kLast) set.last_token = std::max(kPaddingToken, set.last_token - base_);
  distribution_.make_logits_distribution().keep(set);
}

}  // namespace draftproof

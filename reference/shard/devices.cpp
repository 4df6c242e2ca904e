#include "reference/shard/devices.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof {

std::vector<TokenRange> even_split(std::int64_t vocab_size, std::size_t devices) {
  std::vector<TokenRange> ranges;
  const auto count = static_cast<std::int64_t>(devices);
  for (std::int64_t d = 0; d < count; ++d)
    ranges.push_back({static_cast<Token>(vocab_size * d / count), static_cast<Token>(vocab_size * (d + 1) / count)});
  return ranges;
}

Devices::Devices(std::vector<TokenRange> ranges, Collectives* between, std::size_t here)
    : ranges_(std::move(ranges)), between_(between), here_(here) {
  Token end = 0;
  for (std::size_t d = 0; d < ranges_.size(); ++d) {
    const auto [a, b] = ranges_[d];
    if (a != end || b < a)
      throw input_error("shard " + std::to_string(d), "it holds tokens [" + std::to_string(a) + ", " +
                                                          std::to_string(b) + "); expected a range from " +
                                                          std::to_string(end) + " on");
    end = b;
    cuts_tiles_ = cuts_tiles_ || (b % kTileTokens != 0 && d + 1 < ranges_.size());
  }
  if (end == 0 || end > kVocabularyLimit)
    throw input_error(
        "shards", "they hold " + std::to_string(end) + " tokens; expected 1 to " + std::to_string(kVocabularyLimit));
}

std::size_t Devices::tile_count() const {
  return static_cast<std::size_t>((vocab_size() + kTileTokens - 1) / kTileTokens);
}

std::size_t Devices::owner(Token token) const {
  const auto found = std::upper_bound(ranges_.begin(), ranges_.end(), token,
                                      [](Token t, const TokenRange& range) { return t < range.end; });
  return static_cast<std::size_t>(found - ranges_.begin());
}

std::size_t Devices::first_of_tile(std::size_t tile) const {
  return owner(static_cast<Token>(tile * kTileTokens));
}

std::size_t Devices::last_of_tile(std::size_t tile) const {
  return owner(static_cast<Token>(
      std::min<std::int64_t>(vocab_size(), (static_cast<std::int64_t>(tile) + 1) * kTileTokens) - 1));
}

}  // namespace draftproof

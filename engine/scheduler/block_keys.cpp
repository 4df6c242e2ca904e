#include "engine/scheduler/block_keys.hpp"

#include <algorithm>

namespace draftproof {

// Finds the place in the table only, so it cannot change a result.
std::size_t BlockKeys::Hash::operator()(const Content& content) const {
  std::uint64_t hash = content.before;
  for (const Token token : content.tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

std::uint64_t BlockKeys::key_after(std::uint64_t before, std::span<const Token> tokens) {
  Content content{before, {}};
  std::ranges::copy(tokens, content.tokens.begin());
  return keys_.try_emplace(content, keys_.size() + 1).first->second;
}

std::vector<std::uint64_t> BlockKeys::keys_of(std::span<const Token> tokens) {
  std::vector<std::uint64_t> keys;
  constexpr auto kSlots = static_cast<std::size_t>(kKvBlockSlots);
  for (std::size_t first = 0; first + kSlots <= tokens.size(); first += kSlots)
    keys.push_back(key_after(keys.empty() ? 0 : keys.back(), tokens.subspan(first, kSlots)));
  return keys;
}

}  // namespace draftproof

#include "engine/scheduler/kv_blocks.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "base/error.hpp"

namespace draftproof {

KvBlockPool::KvBlockPool(std::int32_t num_blocks) {
  if (num_blocks < 0)
    throw usage_error("number of KV blocks", "it is " + std::to_string(num_blocks) + "; expected 0 or more");
  blocks_.resize(static_cast<std::size_t>(num_blocks));
  // The lowest block is taken first.
  for (std::int32_t block = num_blocks - 1; block >= 0; --block) blank_.push_back(block);
  const std::size_t places = std::bit_ceil(2 * blocks_.size() + 2);
  table_.assign(places, kNoBlock);
  shift_ = 64 - std::countr_zero(places);
}

std::int32_t KvBlockPool::find(std::uint64_t key) const {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t place = home(key); table_[place] != kNoBlock; place = (place + 1) & mask)
    if (blocks_[table_[place]].key == key) return table_[place];
  return kNoBlock;
}

void KvBlockPool::publish(std::int32_t block, std::uint64_t key) {
  if (blocks_[block].findable) return;
  const std::size_t mask = table_.size() - 1;
  std::size_t place = home(key);
  for (; table_[place] != kNoBlock; place = (place + 1) & mask)
    if (blocks_[table_[place]].key == key) return;
  table_[place] = block;
  blocks_[block].key = key;
  blocks_[block].findable = true;
}

void KvBlockPool::link(std::int32_t block) {
  blocks_[block].before = newest_;
  blocks_[block].after = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : blocks_[newest_].after) = block;
  newest_ = block;
  ++num_cached_;
}

void KvBlockPool::unlink(std::int32_t block) {
  const Block& b = blocks_[block];
  (b.before == kNoBlock ? oldest_ : blocks_[b.before].after) = b.after;
  (b.after == kNoBlock ? newest_ : blocks_[b.after].before) = b.before;
  --num_cached_;
}

void KvBlockPool::take_over(std::int32_t block) {
  if (!wanted_by_others(block)) return unpublish(block);
  if (blocks_[block].claims > 0) --blocks_[block].claims;
}

void KvBlockPool::forget(std::int32_t block) {
  unlink(block);
  unpublish(block);
  blank_.push_back(block);
}

void KvBlockPool::unpublish(std::int32_t block) {
  const std::size_t mask = table_.size() - 1;
  std::size_t hole = home(blocks_[block].key);
  while (table_[hole] != block) hole = (hole + 1) & mask;
  // Entries behind the hole move up where it lies between their home and their place, so that no search ends early.
  for (std::size_t place = (hole + 1) & mask; table_[place] != kNoBlock; place = (place + 1) & mask) {
    const std::size_t distance = (place - home(blocks_[table_[place]].key)) & mask;
    if (distance < ((place - hole) & mask)) continue;
    table_[hole] = table_[place];
    hole = place;
  }
  table_[hole] = kNoBlock;
  blocks_[block].findable = false;
  blocks_[block].claims = 0;
}

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
  content.tokens.fill(-1);
  std::ranges::copy(tokens, content.tokens.begin());
  return keys_.try_emplace(content, keys_.size() + 1).first->second;
}

std::uint64_t BlockKeys::tail_key(std::span<const std::uint64_t> full_blocks, std::span<const Token> tokens) {
  constexpr auto kSlots = static_cast<std::size_t>(kKvBlockSlots);
  const std::size_t full = tokens.size() / kSlots;
  if (tokens.size() % kSlots == 0) return 0;
  return key_after(full == 0 ? 0 : full_blocks[full - 1], tokens.subspan(full * kSlots));
}

std::vector<std::uint64_t> BlockKeys::keys_of(std::span<const Token> tokens) {
  std::vector<std::uint64_t> keys;
  constexpr auto kSlots = static_cast<std::size_t>(kKvBlockSlots);
  for (std::size_t first = 0; first + kSlots <= tokens.size(); first += kSlots)
    keys.push_back(key_after(keys.empty() ? 0 : keys.back(), tokens.subspan(first, kSlots)));
  return keys;
}

}  // namespace draftproof

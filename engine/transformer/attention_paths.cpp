#include "engine/transformer/attention_paths.hpp"

namespace draftproof {
namespace {

TileSlots no_slots() {
  TileSlots slots;
  slots.fill(-1);
  return slots;
}

}  // namespace

void AttentionPaths::build(const ForwardBatch& batch) {
  const std::size_t n = batch.tokens.size();
  if (tiles_.size() < n) tiles_.resize(n);
  last_.assign(n, no_slots());
  gathered_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<PathTile>& tiles = tiles_[i];
    const std::int64_t position = batch.positions[i];
    const std::int64_t first_of_last = position / kKvBlockSlots * kKvBlockSlots;
    TileSlots& last = last_[i];
    if (batch.parents[i] == kContextParent) {
      const StreamContext& context = batch.contexts[static_cast<std::size_t>(batch.streams[i])];
      tiles.clear();
      for (std::int64_t t = 0; t < position / kKvBlockSlots; ++t)
        tiles.push_back({context.blocks[static_cast<std::size_t>(t)], -1});
      for (std::int64_t p = first_of_last; p < position; ++p)
        last[static_cast<std::size_t>(p - first_of_last)] = context.slot(p);
    } else {
      const auto parent = static_cast<std::size_t>(batch.parents[i]);
      tiles = tiles_[parent];
      if (first_of_last != position) {
        last = last_[parent];
        tiles.pop_back();
      }
    }
    last[static_cast<std::size_t>(position - first_of_last)] = batch.slots[i];
    append_tile(i, last, position - first_of_last + 1);
  }
}

void AttentionPaths::append_tile(std::size_t token, const TileSlots& slots, std::int64_t count) {
  bool whole = slots[0] % kKvBlockSlots == 0;
  for (std::int64_t p = 1; p < count; ++p) whole = whole && slots[static_cast<std::size_t>(p)] == slots[0] + p;
  if (whole) {
    tiles_[token].push_back({static_cast<std::int32_t>(slots[0] / kKvBlockSlots), -1});
    return;
  }
  tiles_[token].push_back({-1, static_cast<std::int32_t>(gathered_.size())});
  gathered_.push_back(slots);
}

}  // namespace draftproof

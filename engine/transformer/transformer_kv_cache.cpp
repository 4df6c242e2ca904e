#include "engine/transformer/transformer_kv_cache.hpp"

#include <algorithm>
#include <cstring>

namespace draftproof {

TransformerKvCache::TransformerKvCache(const KvShape& shape, std::int64_t num_slots)
    : shape_(shape),
      num_blocks_((num_slots + kKvBlockSlots - 1) / kKvBlockSlots),
      data_(static_cast<std::size_t>(shape.layers * num_blocks_ * 2 * shape.kv_heads * shape.head_len * kKvBlockSlots) *
            sizeof(std::uint16_t)) {}

void TransformerKvCache::copy_slot(std::int64_t from, std::int64_t to) {
  const std::int64_t from_in = from % kKvBlockSlots;
  const std::int64_t to_in = to % kKvBlockSlots;
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
      const std::uint16_t* const from_keys = keys(layer, from / kKvBlockSlots, head);
      std::uint16_t* const to_keys = keys(layer, to / kKvBlockSlots, head);
      for (std::int64_t i = 0; i < shape_.head_len; ++i)
        to_keys[i * kKvBlockSlots + to_in] = from_keys[i * kKvBlockSlots + from_in];
      std::memmove(values(layer, to / kKvBlockSlots, head) + to_in * shape_.head_len,
                   values(layer, from / kKvBlockSlots, head) + from_in * shape_.head_len,
                   static_cast<std::size_t>(shape_.head_len) * sizeof(std::uint16_t));
    }
}

void TransformerKvCache::clear_slot(std::int64_t slot) {
  const std::int64_t block = slot / kKvBlockSlots;
  const std::int64_t in = slot % kKvBlockSlots;
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer)
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
      for (std::int64_t i = 0; i < shape_.head_len; ++i) keys(layer, block, head)[i * kKvBlockSlots + in] = 0;
      std::fill_n(values(layer, block, head) + in * shape_.head_len, shape_.head_len, std::uint16_t{0});
    }
}

std::vector<std::byte> TransformerKvCache::slot_bytes(std::int64_t slot) const {
  const std::int64_t block = slot / kKvBlockSlots;
  const std::int64_t in = slot % kKvBlockSlots;
  std::vector<std::uint16_t> halves;
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head)
      for (std::int64_t i = 0; i < shape_.head_len; ++i)
        halves.push_back(keys(layer, block, head)[i * kKvBlockSlots + in]);
    for (std::int64_t head = 0; head < shape_.kv_heads; ++head) {
      const std::uint16_t* const row = values(layer, block, head) + in * shape_.head_len;
      halves.insert(halves.end(), row, row + shape_.head_len);
    }
  }
  std::vector<std::byte> bytes(halves.size() * sizeof(std::uint16_t));
  std::memcpy(bytes.data(), halves.data(), bytes.size());
  return bytes;
}

}  // namespace draftproof

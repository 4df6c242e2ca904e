// Keys and values as binary16 in slots, 16 to a block, laid out for attention: of every layer, block and head the keys
// as [head_len][16 slots] and the values as [16 slots][head_len].
#pragma once

#include <cstdint>

#include "engine/model/language_model.hpp"
#include "engine/transformer/buffers.hpp"

namespace draftproof {

struct KvShape {
  std::int64_t layers;
  std::int64_t kv_heads;
  std::int64_t head_len;

  bool operator==(const KvShape&) const = default;
};

class TransformerKvCache final : public KvCache {
 public:
  // num_slots is rounded up to whole blocks.
  TransformerKvCache(const KvShape& shape, std::int64_t num_slots);

  const KvShape& shape() const { return shape_; }
  std::int64_t num_slots() const override { return num_blocks_ * kKvBlockSlots; }
  void copy_slot(std::int64_t from, std::int64_t to) override;
  void clear_slot(std::int64_t slot);  // to zeros
  // [layers][keys, values][kv_heads][head_len], binary16.
  std::vector<std::byte> slot_bytes(std::int64_t slot) const override;

  std::uint16_t* keys(std::int64_t layer, std::int64_t block, std::int64_t head) const {
    return tile(layer, block, 2 * head);
  }
  std::uint16_t* values(std::int64_t layer, std::int64_t block, std::int64_t head) const {
    return tile(layer, block, 2 * head + 1);
  }

 private:
  std::uint16_t* tile(std::int64_t layer, std::int64_t block, std::int64_t of_block) const {
    const std::int64_t index = (layer * num_blocks_ + block) * 2 * shape_.kv_heads + of_block;
    return reinterpret_cast<std::uint16_t*>(data_.data()) + index * shape_.head_len * kKvBlockSlots;
  }

  KvShape shape_;
  std::int64_t num_blocks_;
  HugeBuffer data_;
};

}  // namespace draftproof

// The entries of a drafting head beside an engine's KV, and the features that they are made of.
//
// The KV of true tokens lies in the target's blocks; entries made of drafts lie elsewhere and live for one step. So a
// full block holds what its tokens determine, whoever finds it in the prefix cache, and nothing of a rejected draft
// stays. Until a draft needs the entries of a block, the features of its tokens are kept; of a block that holds all its
// entries those of the last token: the first pair behind it begins with them, also where the block is found in the
// prefix cache.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/draft/drafter.hpp"
#include "engine/heads/draft_head.hpp"

namespace draftproof {

// The tokens of a request, or of its companion of guidance, and where the KV of all but the newest lies.
struct HeadStream {
  std::uint64_t request;
  std::int32_t stream_index;
  std::span<const Token> tokens;
  StreamContext kv;

  std::int64_t newest() const { return std::ssize(tokens) - 1; }
};

class HeadEntries final : public DraftCache {
 public:
  static constexpr std::int64_t kScratchSlots = 16384;  // of drafts' entries in a step

  HeadEntries(const DraftHead& head, std::int32_t num_blocks);

  void copy_block(std::int32_t from, std::int32_t to) override;
  void forget(std::uint64_t request) override;
  std::int64_t take_late_ns() override { return std::exchange(late_ns_, 0); }
  void add_late_ns(std::int64_t ns) { late_ns_ += ns; }

  // features [rows, of a token]: of a pass. Error (internal): the tokens follow others that were never shown.
  void keep(const ComputedTokens& of, std::span<const float> features);
  // The features of the token at a position. Error (internal): they were not kept.
  std::span<const float> features(const StreamContext& of, std::int64_t position);

  // Were all tokens but the newest shown, and is their KV there?
  bool reaches(const HeadStream& stream) const;
  // Has a full block all its entries?
  bool stores(const HeadStream& stream, std::int64_t block_number) {
    return block(stream.kv, block_number * kKvBlockSlots).stored == kKvBlockSlots;
  }
  // The first position whose entry the KV lacks. Blocks behind it that other requests filled may have theirs.
  std::int64_t lacking_from(const HeadStream& stream);
  // The entries of positions [begin, end) are in the KV now, like those before them.
  void mark_stored(const HeadStream& stream, std::int64_t begin, std::int64_t end);
  // The first token has no pair.
  std::int64_t first_entry() const { return first_entry_; }

  TransformerKvCache& kv() { return *kv_; }          // of a head with layers
  std::int64_t scratch() const { return scratch_; }  // the first of kScratchSlots

 private:
  struct Block {
    std::vector<float> features;  // of its last tokens
    std::int32_t filled = 0;
    std::int32_t stored = 0;  // entries that its slots hold
  };
  Block& block(const StreamContext& of, std::int64_t position) {
    return blocks_[static_cast<std::size_t>(of.blocks[static_cast<std::size_t>(position / kKvBlockSlots)])];
  }
  void begin_block(Block& block);
  void drop_features(Block& block);

  std::unique_ptr<TransformerKvCache> kv_;  // null: the head has no layers
  std::int64_t scratch_;
  std::size_t of_token_;  // features
  std::int64_t first_entry_;
  bool keeps_last_alone_;
  std::map<std::pair<std::uint64_t, std::int32_t>, std::int64_t> ends_;  // of a stream: behind the last token shown
  std::int64_t late_ns_ = 0;
  std::vector<Block> blocks_;
  std::vector<std::vector<float>> spare_;  // memory of blocks that hold all their entries, for the next ones
};

}  // namespace draftproof

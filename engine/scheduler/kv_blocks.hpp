// The KV cache in blocks of kKvBlockSlots slots, counted by who holds them. Blocks are numbers; what lies in them is
// the backend's.
//
//   held      by one stream or more; only full blocks are shared, and full blocks are never written again
//   findable  full, and known by the key of its content; a block that nobody holds stays findable until it is reused
//   tail      findable, held by nobody and not full: the end of what a request has left. Who goes on from there copies
//             it before writing; the last of those who claimed it writes into it (copy on write)
//   free      held by nobody: blank ones are reused first, then findable ones, the least recently released first
//
// The key of a block stands for its content and all content before it (a hash chain), so equal keys mean that a prefix
// may be shared. Keys come from the caller: this file knows nothing of tokens. Nothing is allocated after construction.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof {

inline constexpr std::int32_t kNoBlock = -1;

// Blocks that hold positions 0 .. length - 1.
constexpr std::int32_t blocks_for(std::int64_t length) {
  return static_cast<std::int32_t>((length + kKvBlockSlots - 1) / kKvBlockSlots);
}

class KvBlockPool {
 public:
  // Errors (usage): a negative number of blocks.
  explicit KvBlockPool(std::int32_t num_blocks);

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_free() const { return static_cast<std::int32_t>(blank_.size()) + num_cached_; }
  std::int32_t num_held() const { return num_blocks() - num_free(); }

  // A block for one holder. Precondition: num_free() > 0.
  std::int32_t allocate() {
    if (blank_.empty()) forget(oldest_);
    const std::int32_t block = blank_.back();
    blank_.pop_back();
    blocks_[block].references = 1;
    return block;
  }
  // One holder more, of a block that was found.
  void retain(std::int32_t block) {
    if (blocks_[block].references++ == 0) unlink(block);
  }
  // One holder less.
  void release(std::int32_t block) {
    if (--blocks_[block].references > 0) return;
    if (blocks_[block].findable) return link(block);
    blank_.push_back(block);
  }

  // The block with this key, or kNoBlock.
  std::int32_t find(std::uint64_t key) const;
  // Makes a full block findable. Does nothing where another block has the key already.
  void publish(std::int32_t block, std::uint64_t key);

  // Somebody will go on from this tail.
  void claim(std::int32_t block) { ++blocks_[block].claims; }
  // Would who holds it have to copy it?
  bool wanted_by_others(std::int32_t block) const { return blocks_[block].claims > 1 || blocks_[block].references > 1; }
  // One of them, who holds it, writes now: where others want it a copy; else the block, which nobody finds any more.
  void take_over(std::int32_t block);

  std::int32_t references(std::int32_t block) const { return blocks_[block].references; }
  bool findable(std::int32_t block) const { return blocks_[block].findable; }
  std::uint64_t key(std::int32_t block) const { return blocks_[block].key; }  // of a findable one

 private:
  friend struct KvBlockInspection;  // invariants, and the faults that tests plant

  struct Block {
    std::uint64_t key = 0;
    std::int32_t references = 0;
    std::int32_t claims = 0;         // of a tail
    std::int32_t before = kNoBlock;  // in the list of findable blocks that nobody holds, the oldest first
    std::int32_t after = kNoBlock;
    bool findable = false;
  };

  void link(std::int32_t block);
  void unlink(std::int32_t block);
  void unpublish(std::int32_t block);
  void forget(std::int32_t block);  // a findable block that nobody holds becomes blank
  std::size_t home(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<Block> blocks_;
  std::vector<std::int32_t> blank_;  // a stack
  std::vector<std::int32_t> table_;  // open addressing: blocks by key, kNoBlock where empty
  int shift_ = 63;
  std::int32_t num_cached_ = 0;  // findable, held by nobody
  std::int32_t oldest_ = kNoBlock;
  std::int32_t newest_ = kNoBlock;
};

// The blocks of one stream, in the order of its positions.
struct BlockTable {
  std::vector<std::int32_t> blocks;

  std::int32_t missing_for(std::int64_t length) const {
    const std::int32_t missing = blocks_for(length) - static_cast<std::int32_t>(blocks.size());
    return missing > 0 ? missing : 0;
  }
  // Precondition: pool.num_free() >= missing_for(length).
  void grow_to(KvBlockPool& pool, std::int64_t length) {
    for (std::int32_t missing = missing_for(length); missing > 0; --missing) blocks.push_back(pool.allocate());
  }
  // Releases the last blocks first, so that of a prefix the beginning stays findable longest.
  void trim_to(KvBlockPool& pool, std::int64_t length) {
    for (const auto kept = static_cast<std::size_t>(blocks_for(length)); blocks.size() > kept; blocks.pop_back())
      pool.release(blocks.back());
  }
};

// The keys by which streams share full KV blocks: numbers, given out one for every different content (a block's tokens
// and all tokens before it) that was seen. Contents are compared, not hashes, so that no two prefixes are taken for
// one.

class BlockKeys {
 public:
  // The keys of all full blocks of a stream. Time O(tokens), 120 bytes or so for every content that was not seen.
  std::vector<std::uint64_t> keys_of(std::span<const Token> tokens);
  // The key of what lies behind the full blocks, of these keys; 0 where nothing does.
  std::uint64_t tail_key(std::span<const std::uint64_t> full_blocks, std::span<const Token> tokens);
  // The key of the next block, after one of key `before` (0 for the first). Precondition: at most kKvBlockSlots tokens;
  // fewer are a tail's.
  std::uint64_t key_after(std::uint64_t before, std::span<const Token> tokens);

 private:
  struct Content {
    std::uint64_t before;
    std::array<Token, static_cast<std::size_t>(kKvBlockSlots)> tokens;
    friend bool operator==(const Content&, const Content&) = default;
  };
  struct Hash {
    std::size_t operator()(const Content& content) const;
  };

  std::unordered_map<Content, std::uint64_t, Hash> keys_;
};

}  // namespace draftproof

// Streams of tokens run through a model in batches of any form, and what plain decoding says of the same tokens.
#pragma once

#include "engine/model/gathered_batch.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

struct DecodedToken {
  std::vector<float> logits;  // after it
  std::vector<std::byte> kv;  // of it
};

inline bool same_row(const float* a, const std::vector<float>& b) {
  return std::memcmp(a, b.data(), b.size() * sizeof(float)) == 0;
}

// A pass of one token behind `position` committed ones, which lie in `blocks` as it will: its row is wanted.
inline void forward_one(LanguageModel& model, KvCache& kv, const std::vector<std::int32_t>& blocks, Token token,
                        std::int32_t position, ForwardOutput& out) {
  const std::int32_t zero = 0;
  const std::int32_t parent = kContextParent;
  const StreamContext context{blocks, position};
  const std::int64_t slot = context.slot(position);
  model.forward({{&token, 1}, {&position, 1}, {&zero, 1}, {&parent, 1}, {&slot, 1}, {&context, 1}, {&zero, 1}, {}}, kv,
                out);
}

// One token a pass, everything before it committed, in blocks 0, 1, ...: what every other way is compared with.
class PlainDecoding {
 public:
  explicit PlainDecoding(LanguageModel& model) : model_(model) {}

  // Result for the last of these tokens.
  const DecodedToken& after(const std::vector<Token>& tokens) {
    const auto found = known_.find(tokens);
    if (found != known_.end()) return found->second;
    const std::unique_ptr<KvCache> kv = model_.make_kv_cache(static_cast<std::int64_t>(tokens.size()) + 16);
    std::vector<std::int32_t> blocks(tokens.size() / 16 + 1);
    for (std::size_t b = 0; b < blocks.size(); ++b) blocks[b] = static_cast<std::int32_t>(b);
    ForwardOutput out;
    std::vector<Token> path;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      forward_one(model_, *kv, blocks, tokens[t], static_cast<std::int32_t>(t), out);
      path.push_back(tokens[t]);
      known_[path] = {out.logits, kv->slot_bytes(static_cast<std::int64_t>(t))};
    }
    return known_.at(tokens);
  }

 private:
  LanguageModel& model_;
  std::map<std::vector<Token>, DecodedToken> known_;
};

// Streams with their committed tokens in blocks that lie anywhere, and batches of what comes next: chunks of committed
// tokens and trees of drafts, of several streams at once.
class DecodedStreams {
 public:
  DecodedStreams(LanguageModel& model, std::size_t streams, std::int64_t num_blocks, std::uint64_t seed)
      : model_(model), kv_(model.make_kv_cache(num_blocks * kKvBlockSlots)), streams_(streams), random_(seed) {
    for (std::int64_t b = 0; b < num_blocks; ++b) free_.push_back(static_cast<std::int32_t>(b));
  }

  // Runs a batch: of each stream up to `chunk` tokens that are committed afterwards, and up to `drafts` nodes that hang
  // from anything of it and are forgotten. Returns how many rows or slots differ from plain decoding.
  int run_batch(std::int64_t chunk, std::int64_t drafts, PlainDecoding& plain) {
    Batch batch;
    std::vector<std::int32_t> scratch;
    for (Stream& stream : streams_) {
      const auto committed = static_cast<std::int64_t>(stream.tokens.size());
      std::vector<std::int32_t> nodes;  // of this stream in this batch
      const std::int64_t count = random_.below(chunk + 1);
      for (std::int64_t c = 0; c < count; ++c) {
        const auto position = static_cast<std::int64_t>(stream.tokens.size());
        if (position % kKvBlockSlots == 0) stream.blocks.push_back(take_block());
        stream.tokens.push_back(random_.token(model_.vocab_size()));
        const std::int64_t slot = std::int64_t{stream.blocks.back()} * kKvBlockSlots + position % kKvBlockSlots;
        nodes.push_back(batch.add(stream.tokens, nodes.empty() ? kContextParent : nodes.back(), slot));
      }
      const std::int64_t tree = random_.below(drafts + 1);
      for (std::int64_t d = 0; d < tree; ++d) {
        const std::int64_t from = random_.below(static_cast<std::int64_t>(nodes.size()) + 1) - 1;
        std::vector<Token> path = from < 0
                                      ? std::vector<Token>(stream.tokens.begin(), stream.tokens.begin() + committed)
                                      : batch.paths[static_cast<std::size_t>(nodes[static_cast<std::size_t>(from)])];
        path.push_back(random_.token(model_.vocab_size()));
        if (d % kKvBlockSlots == 0) scratch.push_back(take_block());
        // Backwards in the block, so that drafts never look like a block in order.
        const std::int64_t slot = std::int64_t{scratch.back()} * kKvBlockSlots + 15 - d % kKvBlockSlots;
        nodes.push_back(batch.add(path, from < 0 ? kContextParent : nodes[static_cast<std::size_t>(from)], slot));
      }
      batch.contexts.push_back({stream.blocks, committed});
    }
    for (std::size_t i = 0; i < batch.tokens.size(); i += random_.chance(0.3) ? 2 : 1)
      batch.wanted.push_back(static_cast<std::int32_t>(i));
    ForwardOutput out;
    model_.forward(batch.view(), *kv_, out);
    int mismatches = 0;
    const auto vocab = static_cast<std::size_t>(model_.vocab_size());
    for (std::size_t r = 0; r < batch.wanted.size(); ++r) {
      const DecodedToken& expected = plain.after(batch.paths[static_cast<std::size_t>(batch.wanted[r])]);
      mismatches += same_row(out.logits.data() + r * vocab, expected.logits) ? 0 : 1;
    }
    for (std::size_t i = 0; i < batch.tokens.size(); ++i)
      mismatches += kv_->slot_bytes(batch.slots[i]) == plain.after(batch.paths[i]).kv ? 0 : 1;
    rows_ += static_cast<std::int64_t>(batch.wanted.size());
    free_.insert(free_.end(), scratch.begin(), scratch.end());
    return mismatches;
  }

  std::int64_t rows() const { return rows_; }  // compared so far
  KvCache& kv() { return *kv_; }

 private:
  struct Stream {
    std::vector<Token> tokens;
    std::vector<std::int32_t> blocks;
  };
  struct Batch : GatheredBatch {
    std::vector<std::vector<Token>> paths;  // from the beginning of the stream, by token of the batch

    std::int32_t add(const std::vector<Token>& path, std::int32_t parent, std::int64_t slot) {
      paths.push_back(path);
      return GatheredBatch::add(path.back(), static_cast<std::int64_t>(path.size()) - 1, parent, slot);
    }
  };

  std::int32_t take_block() {
    const auto at = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(free_.size())));
    const std::int32_t block = free_[at];
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(at));
    return block;
  }

  LanguageModel& model_;
  std::unique_ptr<KvCache> kv_;
  std::vector<Stream> streams_;
  std::vector<std::int32_t> free_;
  TestRandom random_;
  std::int64_t rows_ = 0;
};

}  // namespace draftproof::testing

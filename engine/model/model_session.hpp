// One reader of a language model: rows after any context, with what earlier calls left in the cache used again. For
// drafters, and wherever a context grows by a few tokens at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/gathered_batch.hpp"

namespace draftproof {

class ModelSession {
 public:
  // `model` must outlive the object.
  explicit ModelSession(LanguageModel& model) : model_(model) {}

  std::int64_t vocab_size() const { return model_.vocab_size(); }

  // The logits [V] after `context`. Contexts of one stream share a cache: one that begins like the stream's last costs
  // what is new. Errors (input): an empty context where the model has no start token, one longer than the model takes.
  void logits(std::span<const Token> context, std::span<float> out, std::uint64_t stream = 0);

  // Row 0 is that after `context`, row i + 1 that after node i of a draft tree (parents as in ForwardBatch, its nodes
  // numbered from 0), in one forward pass: out [nodes + 1, V].
  void tree_logits(std::span<const Token> context, std::span<const Token> nodes, std::span<const std::int32_t> parents,
                   std::span<float> out, std::uint64_t stream = 0);

  // Frees a stream's cache.
  void forget(std::uint64_t stream) { streams_.erase(stream); }

 private:
  struct Stream {
    std::unique_ptr<KvCache> cache;
    std::vector<Token> committed;  // position p is in slot p
    std::vector<Token> nodes;      // of the last call; node i is in slot committed.size() + i
    std::vector<std::int32_t> parents;
  };
  void keep_common_prefix(Stream& stream, std::span<const Token> context);
  void reserve(Stream& stream, std::size_t slots);

  LanguageModel& model_;
  std::map<std::uint64_t, Stream> streams_;
  std::vector<Token> context_;  // with the start token
  ForwardOutput output_;
  GatheredBatch batch_;
  std::vector<std::int32_t> blocks_;
};

}  // namespace draftproof

// The byte-level n-gram model behind the interface of the decoding loops.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "engine/model/language_model.hpp"
#include "engine/model/ngram_model.hpp"

namespace draftproof {

// A language model that is a plain function of the tokens before a row: n-grams, models made up in tests. Its KV entry
// of a token is the token itself, so that everything an engine does with slots (moves, rollbacks, sharing) shows in its
// output.

class ContextModel : public LanguageModel {
 public:
  // Writes the logits [V] of the token after `context`: a pure function of it, whatever was asked before.
  virtual void logits(std::span<const Token> context, std::span<float> out) = 0;

  std::int64_t context_len_max() const override { return std::numeric_limits<std::int32_t>::max(); }
  // Stands before every context in the cache and in no context that logits() sees.
  std::optional<Token> start_token() const override { return kPaddingToken; }
  std::unique_ptr<KvCache> make_kv_cache(std::int64_t num_slots) const override;
  // Hands out no hidden features. Errors: also (input) where some are asked for.
  void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) override;

 private:
  std::vector<Token> path_;
};

// Rows are remembered in a direct-mapped table by the bytes that they depend on, since the same few contexts come back
// when many continuations start at one prefix, and when a rejected draft is looked at again.
class NgramLanguageModel final : public ContextModel {
 public:
  // `model` must outlive the object.
  explicit NgramLanguageModel(const NgramModel& model);

  std::int64_t vocab_size() const override { return NgramModel::kVocabularySize; }
  void logits(std::span<const Token> context, std::span<float> out) override;

 private:
  struct Slot {
    std::vector<Token> context;  // the last order - 1 tokens, or fewer
    std::vector<float> row;      // empty: the slot is free
  };

  const NgramModel& model_;
  std::vector<Slot> slots_;
};

}  // namespace draftproof

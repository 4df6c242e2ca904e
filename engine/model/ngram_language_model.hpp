// The byte-level n-gram model behind the interface of the decoding loops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/context_model.hpp"
#include "engine/model/ngram_model.hpp"

namespace draftproof {

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

// A language model that is a plain function of the tokens before a row: n-grams, models made up in tests. Its KV entry
// of a token is the token itself, so that everything an engine does with slots (moves, rollbacks, sharing) shows in its
// output.
#pragma once

#include <limits>
#include <vector>

#include "engine/model/language_model.hpp"

namespace draftproof {

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

}  // namespace draftproof

// Draft models with another tokenizer than the target (Timor et al. 2502.05202).
//
// Token-level intersection (TLI) reads the model in the target's token ids. Its rows are those of the tokens that both
// tokenizers have; every other token of the target is impossible, and a softmax divides by what the shared ones weigh.
// So q is a proposal with zeros, and every verifier keeps its guarantee. The context reaches the draft model as its own
// tokens: a shared token as itself, another one as the longest tokens of the draft model that spell its bytes.
//
// String-level exact match (SLEM) lets the model draft its own most probable tokens, whichever; what they spell is
// written in the target's tokens, and these are the draft, one-hot. The target verifies tokens of its own, so that the
// draft, a function of the context, may be anything. The context is decoded and encoded again.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/draft/drafter.hpp"
#include "engine/model/model_session.hpp"
#include "engine/model/ngram_language_model.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

// Two tokens are the same if they add the same bytes to a text, special ones if they are written alike.
class SharedVocabularyModel final : public ContextModel {
 public:
  // Error (input) at `where`: the tokenizers share no token.
  SharedVocabularyModel(std::shared_ptr<LanguageModel> draft, const Tokenizer& draft_tokenizer,
                        const Tokenizer& target_tokenizer, std::int64_t target_vocab_size, const std::string& where);

  std::int64_t vocab_size() const override { return vocab_size_; }
  const SharedTokens& shared_tokens() const { return counts_; }
  void logits(std::span<const Token> context, std::span<float> out) override;
  // With a session of the draft model, so that a stream's context is read once.
  std::unique_ptr<KvCache> make_kv_cache(std::int64_t num_slots) const override;
  void forward(const ForwardBatch& batch, KvCache& kv, ForwardOutput& out) override;

 private:
  std::shared_ptr<LanguageModel> draft_;
  std::int64_t vocab_size_;
  std::vector<std::pair<Token, Token>> shared_;  // the target's, the draft model's
  SharedTokens counts_;
  std::vector<std::vector<Token>> spelled_;  // [V] a token of the target in those of the draft model
  ModelSession alone_;
  ModelSession* session_ = &alone_;  // of the stream under way
  std::vector<Token> context_;
  std::vector<float> row_;
};

class StringMatchDrafter final : public Drafter {
 public:
  StringMatchDrafter(std::shared_ptr<LanguageModel> draft, std::shared_ptr<const Tokenizer> draft_tokenizer,
                     std::shared_ptr<const Tokenizer> target_tokenizer, std::int64_t target_vocab_size);

  // As ModelDrafter::discard_kv().
  void discard_kv() { discards_kv_ = true; }

  // Chains of the plan's depth at most. Empty where the target's tokens do not spell what was drafted, or the context
  // is longer than the model takes.
  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  void finish(const DraftContext& context) override { session_.forget(context.request); }
  std::optional<SharedTokens> shared_tokens() const override { return counts_; }

 private:
  void read(std::span<const Token> context);
  std::vector<Token> spelled(std::span<const Token> context, const std::string& text) const;

  std::shared_ptr<LanguageModel> draft_;
  std::shared_ptr<const Tokenizer> draft_tokenizer_, target_tokenizer_;
  SharedTokens counts_;
  ModelSession session_;
  bool discards_kv_ = false;
  std::vector<Token> context_;  // in the draft model's tokens
  std::vector<float> row_;
};

}  // namespace draftproof

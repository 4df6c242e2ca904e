// Drafts that a request's grammar forces: where one token alone may follow, or every sentence goes on with the same
// text, that is the draft, for nothing. Elsewhere another drafter proposes. A token that stands alone is accepted with
// certainty; of a text one way to write it is proposed, and the target decides, as of every draft: exact under every
// lossless verifier.
#pragma once

#include <memory>

#include "engine/draft/drafter.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

class GrammarDrafter final : public Drafter {
 public:
  // other null: nothing is proposed elsewhere, nor for requests without a grammar. tokenizer null: single tokens alone.
  GrammarDrafter(std::shared_ptr<Drafter> other, std::shared_ptr<const Tokenizer> tokenizer)
      : other_(std::move(other)), tokenizer_(std::move(tokenizer)) {}

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance& chance, Draft& out) override;
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;
  bool looks_up() const override { return other_ == nullptr || other_->looks_up(); }
  bool has_confidences() const override { return other_ != nullptr && other_->has_confidences(); }
  void finish(const DraftContext& context) override {
    if (other_) other_->finish(context);
  }
  std::span<const std::int32_t> hidden_layers() const override {
    return other_ ? other_->hidden_layers() : std::span<const std::int32_t>();
  }
  std::unique_ptr<DraftCache> make_cache(std::int32_t num_blocks) const override {
    return other_ ? other_->make_cache(num_blocks) : nullptr;
  }
  void observe(std::span<const ComputedTokens> computed, std::span<const float> features, DraftCache* cache) override {
    if (other_) other_->observe(computed, features, cache);
  }

 private:
  std::vector<Token> forced(DraftMask& grammar, std::size_t most) const;
  // False: the grammar forces nothing.
  bool propose_forced(const DraftContext& context, const DraftPlan& plan, Draft& out) const;

  std::shared_ptr<Drafter> other_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace draftproof

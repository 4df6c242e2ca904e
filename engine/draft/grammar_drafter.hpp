// Drafts that a request's grammar forces: where one token alone may follow, or every sentence goes on with the same
// text, that is the draft, for nothing. Elsewhere another drafter proposes. A token that stands alone is accepted with
// certainty; of a text one way to write it is proposed, and the target decides, as of every draft: exact under every
// lossless verifier.
#pragma once

#include <memory>

#include "engine/draft/front_drafter.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

class GrammarDrafter final : public FrontDrafter {
 public:
  // other null: nothing is proposed elsewhere, nor for requests without a grammar. tokenizer null: single tokens alone.
  GrammarDrafter(std::shared_ptr<Drafter> other, std::shared_ptr<const Tokenizer> tokenizer)
      : FrontDrafter(std::move(other)), tokenizer_(std::move(tokenizer)) {}

 private:
  std::vector<Token> forced(DraftMask& grammar, std::size_t most) const;
  // False: the grammar forces nothing.
  bool propose_first(const DraftJob& job) override;

  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace draftproof

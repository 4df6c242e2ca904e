// Prompt lookup as the drafter: the draft is what followed an earlier occurrence of the context's last tokens. It has
// no probabilities, so its proposal distribution is one-hot, and it may be shorter than the budget or empty.
#pragma once

#include "reference/draft/drafter.hpp"
#include "reference/draft/prompt_lookup.hpp"

namespace draftproof {

class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(const PromptLookup& lookup) : lookup_(lookup) {}

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) override {
    out.proposal_kind = ProposalKind::one_hot;
    out.draft_parameters = {};
    out.logits.clear();
    out.tree = DraftTree::chain(lookup_.propose(context.tokens, plan.draft_len_max()));
  }

 private:
  PromptLookup lookup_;
};

}  // namespace draftproof

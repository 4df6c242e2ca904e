// Prompt lookup as the drafter: the draft is what followed an earlier occurrence of the context's last tokens. It has
// no probabilities, so its proposal distribution is one-hot, and it may be shorter than the budget or empty.
#pragma once

#include "engine/draft/drafter.hpp"
#include "engine/draft/prompt_lookup.hpp"

namespace draftproof {

class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(const PromptLookup& lookup) : lookup_(lookup) {}

  void propose(const DraftContext& context, const DraftPlan& plan, DraftChance&, Draft& out) override {
    out.proposal_kind = ProposalKind::one_hot;
    out.draft_parameters = {};
    out.logits.clear();
    const PromptLookup::Found found = lookup_.find(context.tokens, plan.draft_len_max());
    out.tree = DraftTree::chain(found.tokens);
    out.evidence.clear();
    for (std::int32_t i = 0; i < out.tree.size(); ++i) out.evidence.push_back({found.match_len + i, 1.0f});
  }

 private:
  PromptLookup lookup_;
};

}  // namespace draftproof

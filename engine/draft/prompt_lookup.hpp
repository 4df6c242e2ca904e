// Prompt lookup, a drafter without a model: find where the last few tokens of the context occurred before, and propose
// what followed there. The longest suffix of the context that has an earlier occurrence is found by the algorithm of
// Knuth, Morris and Pratt on the reversed context, as in the n-gram drafter of vLLM. The proposal has no probabilities:
// its distribution is one-hot, and a verifier must treat it so.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "engine/draft/drafter.hpp"

namespace draftproof {

// Which occurrence of the longest matching suffix is continued when there are several. The earliest one, as in vLLM,
// has the longest continuation; the most recent one is nearest in subject, but stands against the end of the context in
// a run of equal tokens, where it can propose only one token.
enum class LookupTie { earliest, most_recent };

class PromptLookup {
 public:
  // Suffixes of min_n to max_n tokens are looked up. Errors: usage unless 1 <= min_n <= max_n.
  PromptLookup(int min_n, int max_n, LookupTie tie = LookupTie::earliest);

  // Up to k tokens: those after the chosen occurrence, fewer where the context ends first, none where no suffix of
  // min_n tokens or more occurred before. An occurrence may overlap the suffix itself. Time O(context), memory
  // O(max_n). Errors: usage if k is negative.
  std::vector<Token> propose(std::span<const Token> context, int k) const { return find(context, k).tokens; }
  // The same with the length of the suffix that was found.
  struct Found {
    std::vector<Token> tokens;
    std::int32_t match_len = 0;
  };
  Found find(std::span<const Token> context, int k) const;

 private:
  int min_n_;
  int max_n_;
  LookupTie tie_;
};

// Prompt lookup as the drafter: the draft is what followed an earlier occurrence of the context's last tokens. It has
// no probabilities, so its proposal distribution is one-hot, and it may be shorter than the budget or empty.

class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(const PromptLookup& lookup, int threads = 1) : lookup_(lookup), threads_(threads) {}

  // In parallel over requests where their contexts outweigh the start of threads: 64 contexts of 4,096 tokens take 0.3
  // ms on one.
  void propose_all(std::span<DraftJob> jobs, DraftCache* cache) override;

  bool looks_up() const override { return true; }
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
  int threads_;
};

}  // namespace draftproof

// Which candidate of the drafter the target took.
//
// At every position that a step reached and that had a draft, the emitted token (an accepted draft, or the one that
// replaced a rejected one) has a rank among the drafter's candidates there: 1 for the token with the drafter's highest
// logit, of equal ones the smaller id first. So the rate of rank 2 says what a second sibling would have caught. A
// drafter without probabilities has one candidate, the draft: its rank 1 is acceptance.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/decode/decode_step.hpp"

namespace draftproof {

inline constexpr std::size_t kRanks = 8;

struct RankCounts {
  std::int64_t positions = 0;  // that had a draft
  std::array<std::int64_t, kRanks> by_rank{};
  bool has_candidates = false;  // the drafter has probabilities

  // Counts the positions of a verified step.
  void add(const SpeculativeStep& step, std::size_t vocab_size) {
    const Draft& draft = step.draft;
    for (std::size_t i = 0; i < step.emission.tokens.size(); ++i) {
      const std::int32_t parent = i == 0 ? kRootNode : step.emission.path[i - 1];
      if (draft.tree.children(parent).empty()) return;
      ++positions;
      std::size_t rank = i < step.emission.num_accepted ? 1 : kRanks + 1;
      if (draft.proposal_kind == ProposalKind::logits) {
        has_candidates = true;
        rank = rank_of(static_cast<std::size_t>(step.emission.tokens[i]),
                       std::span(draft.logits).subspan(static_cast<std::size_t>(parent + 1) * vocab_size, vocab_size));
      }
      if (rank <= kRanks) ++by_rank[rank - 1];
    }
  }

 private:
  static std::size_t rank_of(std::size_t token, std::span<const float> logits) {
    std::size_t before = 0;
    for (std::size_t other = 0; other < logits.size(); ++other)
      before += logits[other] > logits[token] || (logits[other] == logits[token] && other < token) ? 1 : 0;
    return before + 1;
  }
};

}  // namespace draftproof

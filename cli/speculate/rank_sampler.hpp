// Which candidate of the drafter the target took, counted while an engine runs.
//
// At every position that a step reached and that had a draft, the emitted token (an accepted draft, or the one that
// replaced a rejected one) has a rank among the drafter's candidates there: 1 for the token with the drafter's highest
// logit, of equal ones the smaller id first. So the rate of rank 2 says what a second sibling would have caught. A
// drafter without probabilities has one candidate, the draft: its rank 1 is acceptance.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "engine/decode/step_sampler.hpp"

namespace draftproof {

inline constexpr std::size_t kRanks = 8;

struct RankCounts {
  std::int64_t positions = 0;  // that had a draft
  std::array<std::int64_t, kRanks> by_rank{};
  bool has_candidates = false;  // the drafter has probabilities
};

class RankSampler final : public StepSampler {
 public:
  // `inner` does the sampling and must outlive the object.
  explicit RankSampler(StepSampler& inner) : inner_(inner) {}

  Token sample(const TargetRows& rows, const DecodingOptions& options, const Sequence& sequence,
               const History* history) override {
    return inner_.sample(rows, options, sequence, history);
  }
  void propose(Drafter& drafter, const DraftContext& context, const DraftPlan& plan, const DecodingOptions& options,
               SpeculativeStep& step) override {
    inner_.propose(drafter, context, plan, options, step);
  }
  void verify(const TargetRows& rows, const DecodingOptions& options, std::int64_t vocab_size, const Sequence& sequence,
              SpeculativeStep& step) override {
    inner_.verify(rows, options, vocab_size, sequence, step);
    const auto begin = std::chrono::steady_clock::now();
    count(step, static_cast<std::size_t>(vocab_size));
    own_time_ += std::chrono::steady_clock::now() - begin;
  }

  const RankCounts& counts() const { return counts_; }
  // Time of the counting, which is no part of speculation.
  double own_ms() const { return std::chrono::duration<double, std::milli>(own_time_).count(); }

 private:
  void count(const SpeculativeStep& step, std::size_t vocab_size) {
    const Draft& draft = step.draft;
    for (std::size_t i = 0; i < step.emission.tokens.size(); ++i) {
      const std::int32_t parent = i == 0 ? kRootNode : step.emission.path[i - 1];
      if (draft.tree.children(parent).empty()) return;
      ++counts_.positions;
      std::size_t rank = i < step.emission.num_accepted ? 1 : kRanks + 1;
      if (draft.proposal_kind == ProposalKind::logits) {
        counts_.has_candidates = true;
        rank = rank_of(static_cast<std::size_t>(step.emission.tokens[i]),
                       std::span(draft.logits).subspan(static_cast<std::size_t>(parent + 1) * vocab_size, vocab_size));
      }
      if (rank <= kRanks) ++counts_.by_rank[rank - 1];
    }
  }

  static std::size_t rank_of(std::size_t token, std::span<const float> logits) {
    std::size_t before = 0;
    for (std::size_t other = 0; other < logits.size(); ++other)
      before += logits[other] > logits[token] || (logits[other] == logits[token] && other < token) ? 1 : 0;
    return before + 1;
  }

  StepSampler& inner_;
  RankCounts counts_;
  std::chrono::steady_clock::duration own_time_{};
};

}  // namespace draftproof

// The rows of one verification step, processed when they are asked for, each with the history that plain decoding would
// have had there: that of its own path through the draft. Asking for a row changes nothing; rows may be asked for in
// any order and again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/logits/history.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

// Buffers of one thread; reuse them over requests.
struct StepWorkspace {
  Pipeline target_pipeline;
  Pipeline draft_pipeline;
  Distribution target;
  Distribution proposal;
};

// The distribution that row `row` of the proposal's logits has under `parameters`: temperature and filters. RowError.
void process_proposal_row(const VerifyRequest& request, std::uint32_t row, const RowParameters& parameters,
                          Pipeline& pipeline, Distribution& distribution);

// Against a greedy target every proposal gives the same decisions as a one-hot one: p is 0 or 1.
bool has_greedy_target(const VerifyRequest& request);
// Logits of which each draft is the argmax: one-hot proposals.
bool has_argmax_drafts(const VerifyRequest& request);

class StepRows {
 public:
  // The request must have been validated; it and the workspace must outlive the object. Of the options logprobs and
  // raw_logprobs are looked at.
  StepRows(const VerifyRequest& request, const VerifyOptions& options, StepWorkspace& workspace);

  const VerifyRequest& request() const { return request_; }

  // The target's distribution at a row, and the one that the children of the row's node were drawn from. Each is valid
  // until the same function is called for another row. RowError naming tensor, row and place.
  const Distribution& target(std::uint32_t row);
  const Distribution& proposal(std::uint32_t row);

  // Log-probabilities of a token of a row. The row is processed again where it is no longer held, except for a draft
  // that was the walk's next one when the row was left.
  struct Logprobs {
    float processed = 0.0f;
    float raw = 0.0f;  // 0 without raw_logprobs
  };
  Logprobs logprobs(std::uint32_t row, Token token);

  // State of a row that has been processed, from logits.
  struct Kept {
    float mass;
    std::int64_t count;
  };
  Kept kept(std::uint32_t row);

 private:
  void process_target(std::uint32_t row);
  void bring_history_to(std::uint32_t row);
  void note_draft_before(std::uint32_t next_row);
  Logprobs logprobs_of_held_row(Token token);
  RowInput input_of(std::uint32_t row) const;
  std::uint32_t parent_row(std::uint32_t row) const {
    return DraftTree::row_after(request_.draft.parents[static_cast<std::size_t>(row) - 1]);
  }

  const VerifyRequest& request_;
  StepWorkspace& workspace_;
  bool logprobs_;
  bool raw_logprobs_;
  bool uses_history_;
  bool reads_no_argmax_rows_;              // a chain's argmax drafting is one-hot at the drafts
  std::vector<std::int32_t> first_child_;  // [K + 1] of the node of each row; kRootNode: none
  History committed_;
  History history_;  // the copy that advances along a path
  std::uint32_t history_row_ = 0;
  std::optional<std::uint32_t> target_row_;
  std::optional<std::uint32_t> proposal_row_;
  std::vector<std::optional<Logprobs>> noted_;  // [K] of the draft nodes, in their parents' rows
  std::vector<std::optional<Kept>> kept_;       // [K + 1]
};

}  // namespace draftproof

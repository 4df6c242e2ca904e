#include "reference/step/step_rows.hpp"

#include "reference/logits/edits.hpp"

namespace draftproof {

void process_proposal_row(const VerifyRequest& request, std::uint32_t row, const RowParameters& parameters,
                          Pipeline& pipeline, Distribution& distribution) {
  RowInput input;
  input.logits = request.proposal.row(row);
  input.parameters = parameters;
  input.row = {request.first_proposal_row + row, "draft_logits", row};
  pipeline.run(input, distribution);
}

bool has_greedy_target(const VerifyRequest& request) {
  return !request.target_is_probabilities && request.parameters.temperature == 0.0f;
}

bool has_argmax_drafts(const VerifyRequest& request) {
  return request.proposal_kind == ProposalKind::logits && request.draft_parameters.temperature == 0.0f;
}

StepRows::StepRows(const VerifyRequest& request, const VerifyOptions& options, StepWorkspace& workspace)
    : request_(request),
      workspace_(workspace),
      logprobs_(options.logprobs),
      raw_logprobs_(options.logprobs && options.raw_logprobs),
      uses_history_(!request.target_is_probabilities && request.target_fault == RowStatus::ok &&
                    needs_history(request.parameters, request.constraints)),
      reads_no_argmax_rows_(request.draft.is_chain() && !request.has_tree_rows()),
      first_child_(request.draft.tokens.size() + 1, kRootNode),
      noted_(request.draft.tokens.size()),
      kept_(request.draft.tokens.size() + 1) {
  for (std::int32_t node = request.draft.size() - 1; node >= 0; --node)
    first_child_[parent_row(DraftTree::row_after(node))] = node;
  if (!uses_history_) return;
  committed_ = History(request.prompt_tokens, request.output_tokens, request.target.vocab_size);
  history_ = committed_;
}

// The row of an ancestor is a part of the way: from there the drafts in between are appended; else from the start.
void StepRows::bring_history_to(std::uint32_t row) {
  std::vector<std::uint32_t> below;  // rows from `row` up to, without, the row that the history stands at
  std::uint32_t at = row;
  for (; at != 0 && at != history_row_; at = parent_row(at)) below.push_back(at);
  if (at != history_row_) history_ = committed_;
  for (auto next = below.rbegin(); next != below.rend(); ++next)
    history_.append(request_.draft.tokens[static_cast<std::size_t>(*next) - 1]);
  history_row_ = row;
}

RowInput StepRows::input_of(std::uint32_t row) const {
  RowInput input{request_.target.row(row), std::nullopt, request_.parameters,
                 request_.constraints,     &history_,    {request_.first_row + row, "target_logits", row}};
  if (request_.unconditional) input.unconditional = request_.unconditional->row(row);
  if (!request_.allowed_masks.empty()) {
    const auto words = static_cast<std::size_t>((request_.target.vocab_size + 31) / 32);
    const std::size_t stride =
        request_.allowed_mask_stride == 0 ? words : static_cast<std::size_t>(request_.allowed_mask_stride);
    input.constraints.allowed_mask = request_.allowed_masks.subspan(row * stride, words);
  }
  return input;
}

void StepRows::process_target(std::uint32_t row) {
  Distribution& distribution = workspace_.target;
  target_row_.reset();  // a row that throws is not held
  if (request_.target_is_probabilities) {
    distribution.make_probabilities(request_.target.row(row), {request_.first_row + row, "target_probs", row});
  } else {
    const RowInput input = input_of(row);
    if (request_.target_fault != RowStatus::ok)
      throw RowError(request_.target_fault, input.row, -1, "the request's parameters, ids or histories are invalid");
    if (uses_history_) {
      bring_history_to(row);
      if (static_cast<std::int64_t>(history_.tokens().size()) > request_.history_len_max)
        throw RowError(RowStatus::bad_parameter, input.row, -1, "the history is longer than history_len_max");
    }
    workspace_.target_pipeline.run(input, distribution);
    kept_[row] = Kept{static_cast<float>(distribution.kept_mass()), distribution.kept_count()};
  }
  target_row_ = row;
}

// A walk that goes down to a child will emit the child's token in the row it leaves, most of the time: its
// log-probabilities cost little while the row is there.
void StepRows::note_draft_before(std::uint32_t next_row) {
  if (!logprobs_ || request_.target_is_probabilities) return;  // those cost nothing, and may be none
  if (next_row == 0 || !target_row_ || parent_row(next_row) != *target_row_) return;
  noted_[next_row - 1] = logprobs_of_held_row(request_.draft.tokens[next_row - 1]);
}

const Distribution& StepRows::target(std::uint32_t row) {
  if (target_row_ != row) {
    note_draft_before(row);
    process_target(row);
  }
  return workspace_.target;
}

const Distribution& StepRows::proposal(std::uint32_t row) {
  Distribution& distribution = workspace_.proposal;
  if (proposal_row_ == row) return distribution;
  proposal_row_.reset();
  const bool is_one_hot = request_.proposal_kind == ProposalKind::one_hot || has_greedy_target(request_) ||
                          (has_argmax_drafts(request_) && reads_no_argmax_rows_);
  if (is_one_hot) {
    distribution.make_one_hot(request_.draft.tokens[static_cast<std::size_t>(first_child_[row])],
                              request_.target.vocab_size);
  } else if (request_.proposal_kind == ProposalKind::probabilities) {
    distribution.make_probabilities(request_.proposal.row(row),
                                    {request_.first_proposal_row + row, "draft_probs", row});
  } else {
    if (request_.proposal_fault != RowStatus::ok)
      throw RowError(request_.proposal_fault, {request_.first_proposal_row + row, "draft_logits", row}, -1,
                     "the draft's parameters are invalid");
    process_proposal_row(request_, row, request_.draft_parameters, workspace_.draft_pipeline, distribution);
  }
  proposal_row_ = row;
  return distribution;
}

StepRows::Logprobs StepRows::logprobs_of_held_row(Token token) {
  const float processed = workspace_.target.log_probability(token);
  if (!raw_logprobs_) return {processed, 0.0f};
  return {processed,
          request_.target_is_probabilities ? processed : workspace_.target_pipeline.raw_log_probability(token)};
}

StepRows::Logprobs StepRows::logprobs(std::uint32_t row, Token token) {
  for (std::size_t node = row; node < noted_.size(); ++node)
    if (noted_[node] && parent_row(static_cast<std::uint32_t>(node) + 1) == row && request_.draft.tokens[node] == token)
      return *noted_[node];
  target(row);
  return logprobs_of_held_row(token);
}

StepRows::Kept StepRows::kept(std::uint32_t row) {
  if (!kept_[row]) {
    const Distribution& distribution = target(row);
    kept_[row] = Kept{static_cast<float>(distribution.kept_mass()), distribution.kept_count()};
  }
  return *kept_[row];
}

}  // namespace draftproof

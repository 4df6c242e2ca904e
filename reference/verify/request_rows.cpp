#include "reference/verify/request_rows.hpp"

#include "reference/logits/edits.hpp"

namespace draftproof {
namespace {

bool is_greedy(const VerifyRequest& request) {
  return !request.target_is_probabilities && request.parameters.temperature == 0.0f;
}

}  // namespace

RequestRows::RequestRows(const VerifyRequest& request, const VerifyOptions& options, VerifyWorkspace& workspace,
                         Emission& emission)
    : request_(request), options_(options), workspace_(workspace), emission_(emission) {
  if (!request.target_is_probabilities && needs_history(request.parameters, request.constraints))
    history_ = History(request.prompt_tokens, request.output_tokens, request.target.vocab_size);
}

RowInput RequestRows::input_of(std::uint32_t row) const {
  RowInput input{request_.target.row(row), std::nullopt, request_.parameters,
                 request_.constraints,     &history_,    request_.first_row + row};
  if (request_.unconditional) input.unconditional = request_.unconditional->row(row);
  if (!request_.allowed_masks.empty()) {
    const auto words = static_cast<std::size_t>((request_.target.vocab_size + 31) / 32);
    input.constraints.allowed_mask = request_.allowed_masks.subspan(row * words, words);
  }
  return input;
}

void RequestRows::process_target(std::uint32_t row) {
  Distribution& distribution = workspace_.target_distribution;
  if (request_.target_is_probabilities) {
    distribution.make_probabilities(request_.target.row(row), request_.first_row + row);
  } else {
    if (needs_history(request_.parameters, request_.constraints)) {
      // Rows come in order: bring the copy from the row before up to this one.
      for (std::int64_t i = target_row_ < 0 ? 0 : target_row_; i < static_cast<std::int64_t>(row); ++i)
        history_.append(request_.draft[static_cast<std::size_t>(i)]);
    }
    workspace_.target_pipeline.run(input_of(row), distribution);
    emission_.kept_mass.push_back(static_cast<float>(distribution.kept_mass()));
    emission_.kept_count.push_back(distribution.kept_count());
  }
  if (request_.target_is_probabilities && options_.all_rows) {
    emission_.kept_mass.push_back(1.0f);
    emission_.kept_count.push_back(distribution.kept_count());
  }
  target_row_ = row;
}

const Distribution& RequestRows::target_distribution(std::uint32_t row) {
  if (target_row_ != static_cast<std::int64_t>(row)) process_target(row);
  return workspace_.target_distribution;
}

float RequestRows::probability(std::uint32_t row, Token token) {
  // The chain goes on to the next row only when the draft of the row before was accepted, hence emitted.
  if (row > 0 && target_row_ == static_cast<std::int64_t>(row) - 1) emit(row - 1, request_.draft[row - 1]);
  return target_distribution(row).probability(token);
}

DistributionMasses RequestRows::masses(std::uint32_t row) {
  if (row > 0 && target_row_ == static_cast<std::int64_t>(row) - 1) emit(row - 1, request_.draft[row - 1]);
  return DistributionMasses(target_distribution(row));
}

void process_draft_row(const VerifyRequest& request, std::uint32_t row, const RowParameters& parameters,
                       Pipeline& pipeline, Distribution& distribution) {
  RowInput input;
  input.logits = request.proposal.row(row);
  input.parameters = parameters;
  input.row = row;
  pipeline.run(input, distribution);
}

const Distribution& RequestRows::proposal_distribution(std::uint32_t row) {
  Distribution& distribution = workspace_.proposal_distribution;
  if (proposal_row_ == static_cast<std::int64_t>(row)) return distribution;
  proposal_row_ = row;
  const bool argmax_drafts =
      request_.proposal_kind == ProposalKind::logits && request_.draft_parameters.temperature == 0.0f;
  // Against a greedy target every proposal gives the same decisions as a one-hot one: p is 0 or 1.
  if (request_.proposal_kind == ProposalKind::one_hot || argmax_drafts || is_greedy(request_)) {
    distribution.make_one_hot(request_.draft[row], request_.target.vocab_size);
  } else if (request_.proposal_kind == ProposalKind::probabilities) {
    distribution.make_probabilities(request_.proposal.row(row), row);
  } else {
    process_draft_row(request_, row, request_.draft_parameters, workspace_.draft_pipeline, distribution);
  }
  return distribution;
}

void RequestRows::emit(std::uint32_t row, Token token) {
  const Distribution& distribution = target_distribution(row);
  emission_.tokens.push_back(token);
  emission_.logprobs.push_back(distribution.log_probability(token));
  if (!options_.raw_logprobs) return;
  emission_.raw_logprobs.push_back(request_.target_is_probabilities
                                       ? distribution.log_probability(token)
                                       : workspace_.target_pipeline.raw_log_probability(token));
}

}  // namespace draftproof

// The rows of a step as a test makes them without the step layer: each by a pipeline of its own and with a history that
// is built anew from the tokens which plain decoding would have written there.
#pragma once

#include "reference/logits/pipeline.hpp"
#include "reference/step/request.hpp"
#include "reference/verify/dense_rows.hpp"
#include "tests/support/test.hpp"

namespace draftproof::own_rows {

struct Row {
  Pipeline pipeline;
  Distribution distribution;
};

inline DenseMasses<double> dense(const Distribution& distribution) {
  DenseMasses<double> row;
  for (Token t = 0; t < distribution.vocab_size(); ++t) row.push_back(static_cast<double>(distribution.probability(t)));
  return row;
}

// Row `row` of the target's logits after the tokens `path`, which follow the committed ones.
inline void process(const VerifyRequest& request, std::uint32_t row, const std::vector<Token>& path, Row& out) {
  std::vector<Token> written(request.output_tokens.begin(), request.output_tokens.end());
  written.insert(written.end(), path.begin(), path.end());
  const History history(request.prompt_tokens, written, request.target.vocab_size);
  RowInput input{request.target.row(row), std::nullopt, request.parameters, request.constraints, &history, row};
  if (request.unconditional) input.unconditional = request.unconditional->row(row);
  const auto words = static_cast<std::size_t>((request.target.vocab_size + 31) / 32);
  if (!request.allowed_masks.empty())
    input.constraints.allowed_mask = request.allowed_masks.subspan(row * words, words);
  out.pipeline.run(input, out.distribution);
}

// All rows of a request, made in a random order.
struct Rows {
  std::vector<std::unique_ptr<Row>> target;    // [K + 1]
  std::vector<std::unique_ptr<Row>> proposal;  // [K + 1]; of nodes without children null
  DenseRows<double> dense_target, dense_proposal;

  Rows(const VerifyRequest& request, TestRandom& random) : target(request.rows()), proposal(request.rows()) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t row = 0; row < request.rows(); ++row)
      order.insert(order.begin() + random.below(static_cast<std::int64_t>(order.size()) + 1), row);
    for (const std::uint32_t row : order) {
      target[row] = std::make_unique<Row>();
      make_target(request, row);
      const std::vector<std::int32_t> children = request.draft.children(static_cast<std::int32_t>(row) - 1);
      if (children.empty()) continue;
      proposal[row] = std::make_unique<Row>();
      make_proposal(request, row, request.draft.tokens[static_cast<std::size_t>(children.front())]);
    }
    for (std::uint32_t row = 0; row < request.rows(); ++row) {
      dense_target.rows.push_back(dense(target[row]->distribution));
      dense_proposal.rows.push_back(proposal[row] ? dense(proposal[row]->distribution) : DenseMasses<double>());
    }
  }

 private:
  void make_target(const VerifyRequest& request, std::uint32_t row) {
    if (request.target_is_probabilities)
      target[row]->distribution.make_probabilities(request.target.row(row), row);
    else
      process(request, row, request.draft.path(static_cast<std::int32_t>(row) - 1), *target[row]);
  }
  // One-hot at the first child: without probabilities; of argmax drafts in a chain; and where the target is greedy, for
  // which every proposal is as good as any.
  void make_proposal(const VerifyRequest& request, std::uint32_t row, Token first_child) {
    Row& out = *proposal[row];
    const bool is_logits = request.proposal_kind == ProposalKind::logits;
    const bool greedy_target = !request.target_is_probabilities && request.parameters.temperature == 0.0f;
    const bool is_chain = request.draft.is_chain() && request.proposal.rows == request.draft.size();
    const bool argmax_chain = is_logits && request.draft_parameters.temperature == 0.0f && is_chain;
    if (request.proposal_kind == ProposalKind::one_hot || greedy_target || argmax_chain)
      out.distribution.make_one_hot(first_child, request.target.vocab_size);
    else if (is_logits)
      out.pipeline.run({request.proposal.row(row), {}, request.draft_parameters, {}, nullptr, row}, out.distribution);
    else
      out.distribution.make_probabilities(request.proposal.row(row), row);
  }
};

// Rows by their fixed-point masses, as the chain rules draw from them.
struct MassTarget {
  const Rows& rows;
  float probability(std::uint32_t row, Token token) const { return rows.target[row]->distribution.probability(token); }
  DistributionMasses masses(std::uint32_t row) const { return DistributionMasses(rows.target[row]->distribution); }
};
struct MassProposal {
  const Rows& rows;
  float probability(std::uint32_t row, Token token) const {
    return rows.proposal[row]->distribution.probability(token);
  }
};
inline ResidualMasses residual_masses(const MassTarget& target, const MassProposal& proposal, std::uint32_t row) {
  return {target.rows.target[row]->distribution, proposal.rows.proposal[row]->distribution};
}

}  // namespace draftproof::own_rows

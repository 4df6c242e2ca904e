#include "reference/step/impossible_drafts.hpp"

#include <algorithm>
#include <vector>

#include "base/parallel.hpp"
#include "reference/step/step_rows.hpp"
#include "reference/step/verify_step.hpp"

namespace draftproof {
namespace {

bool consults_proposal(const VerifyRequest& request) {
  return request.proposal_kind != ProposalKind::one_hot && !has_greedy_target(request) && !has_argmax_drafts(request);
}

struct ThreadState {
  Pipeline pipeline;
  Distribution distribution;
};

// Probability of a draft node, under its parent's proposal row.
float draft_probability(const VerifyRequest& request, std::size_t node, ThreadState& state) {
  const std::uint32_t row = DraftTree::row_after(request.draft.parents[node]);
  if (request.proposal_kind == ProposalKind::probabilities) {
    state.distribution.make_probabilities(request.proposal.row(row),
                                          {request.first_proposal_row + row, "draft_probs", row});
  } else {
    process_proposal_row(request, row, request.draft_parameters, state.pipeline, state.distribution);
  }
  return state.distribution.probability(request.draft.tokens[node]);
}

}  // namespace

std::string ImpossibleDrafts::sentence() const {
  if (!first) return {};
  return std::to_string(count) + " draft token(s) have probability 0 under the proposal distribution given, first " +
         "request " + std::to_string(first->request) + " at position " + std::to_string(first->position) + " (token " +
         std::to_string(first->token) +
         "): they were drawn from another distribution, so the output does not follow the target";
}

ImpossibleDrafts find_impossible_drafts(std::span<const VerifyRequest> requests, int threads) {
  std::vector<ThreadState> states(static_cast<std::size_t>(threads));
  std::vector<ImpossibleDrafts> found(requests.size());
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t b, int thread) {
    const VerifyRequest& request = requests[static_cast<std::size_t>(b)];
    if (!consults_proposal(request)) return;
    ImpossibleDrafts& mine = found[static_cast<std::size_t>(b)];
    for (std::size_t node = 0; node < request.draft.tokens.size(); ++node) {
      try {
        if (draft_probability(request, node, states[static_cast<std::size_t>(thread)]) > 0.0f) continue;
      } catch (const RowError& error) {
        throw error_in_request(request, b, error);
      }
      if (mine.count++ == 0) mine.first = {b, static_cast<std::int64_t>(node), request.draft.tokens[node]};
    }
  });
  ImpossibleDrafts all;
  for (const ImpossibleDrafts& mine : found) {
    all.count += mine.count;
    if (!all.first) all.first = mine.first;
  }
  return all;
}

}  // namespace draftproof

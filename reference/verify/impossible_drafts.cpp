#include "reference/verify/impossible_drafts.hpp"

#include <algorithm>
#include <vector>

#include "reference/parallel.hpp"
#include "reference/verify/request_rows.hpp"

namespace draftproof {
namespace {

bool consults_proposal(const VerifyRequest& request) {
  const bool greedy_target = !request.target_is_probabilities && request.parameters.temperature == 0.0f;
  const bool argmax_drafts =
      request.proposal_kind == ProposalKind::logits && request.draft_parameters.temperature == 0.0f;
  return request.proposal_kind != ProposalKind::one_hot && !greedy_target && !argmax_drafts;
}

struct ThreadState {
  Pipeline pipeline;
  Distribution distribution;
};

float draft_probability(const VerifyRequest& request, std::uint32_t row, ThreadState& state) {
  if (request.proposal_kind == ProposalKind::probabilities) {
    state.distribution.make_probabilities(request.proposal.row(row), row);
  } else {
    process_draft_row(request, row, request.draft_parameters, state.pipeline, state.distribution);
  }
  return state.distribution.probability(request.draft[row]);
}

}  // namespace

ImpossibleDrafts find_impossible_drafts(std::span<const VerifyRequest> requests, int threads) {
  std::vector<ThreadState> states(static_cast<std::size_t>(threads));
  std::vector<ImpossibleDrafts> found(requests.size());
  parallel_for(static_cast<std::int64_t>(requests.size()), threads, [&](std::int64_t b, int thread) {
    const VerifyRequest& request = requests[static_cast<std::size_t>(b)];
    if (!consults_proposal(request)) return;
    ImpossibleDrafts& mine = found[static_cast<std::size_t>(b)];
    for (std::uint32_t row = 0; row < request.draft.size(); ++row) {
      if (draft_probability(request, row, states[static_cast<std::size_t>(thread)]) > 0.0f) continue;
      if (mine.count++ == 0) mine.first = {b, row, request.draft[row]};
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

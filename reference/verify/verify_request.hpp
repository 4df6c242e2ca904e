// One verification step of one request, from rows to emitted tokens: the logits pipeline of every row it needs, with
// the history that plain decoding would have had there, and the chain verifier over the resulting distributions.
#pragma once

#include "reference/verify/chain.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/request_rows.hpp"

namespace draftproof {

// The request must have been validated. Source: any source of addressed blocks (random/).
template <class Source>
Emission verify_request(const VerifyRequest& request, const VerifyOptions& options, Source& source,
                        VerifyWorkspace& workspace) {
  Emission emission;
  RequestRows target(request, options, workspace, emission);
  RequestProposal proposal{target};
  AddressedChance<Source> chance(source, request.seed, request.step, options.sampler, options.convention);
  const ChainOutcome outcome = verify_chain(request.draft, target, proposal, chance);
  target.emit(outcome.num_accepted, outcome.last_token);
  emission.num_accepted = outcome.num_accepted;
  if (options.all_rows) {
    for (std::uint32_t row = outcome.num_accepted + 1; row <= request.draft.size(); ++row)
      target.target_distribution(row);
  }
  return emission;
}

}  // namespace draftproof

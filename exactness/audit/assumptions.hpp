// Consequences, for the tests of an audit, of the verifier that is said to have emitted the steps.
#pragma once

#include <optional>
#include <string>

#include "exactness/audit/audit_sample.hpp"
#include "reference/step/verifiers.hpp"

namespace draftproof {

// The verifier that emitted the steps; absent: any lossless one.
using AssumedVerifier = std::optional<VerifierChoice>;

// "any", or the verifier with its parameters as parse_verifier reads them.
std::string text_of(const AssumedVerifier& verifier);
// Error (usage) at `where`, as of parse_verifier.
AssumedVerifier parse_assumed_verifier(const std::string& text, const std::string& where);

struct Assumptions {
  bool lossless = true;
  // No token of target probability 0 is emitted. Lossless verifiers emit none, lossy ones may.
  bool keeps_support = true;
  // Token chain: the decisions on drafts are coins of known rates.
  bool chain_decisions = false;
  // The verifier whose decisions given the drafts are known (own_decisions.hpp), other than the token chain.
  std::optional<VerifierChoice> decides;
  // At every node that is reached, the token emitted there follows the target's row, whatever was drafted above. Else
  // this holds for the completed string alone.
  bool exact_at_nodes = false;
  // An emitted token that the node drafted is an accepted one.
  bool accepts_drafted = false;
  // accepts_drafted speaks only of nodes whose siblings the proposal can produce.
  bool needs_possible_drafts = false;
  // How siblings were drawn, where the verifier relies on it; DraftSampling::any: nothing is known, nor tested.
  DraftSampling drafts = DraftSampling::any;
  // The drafts may have been raced over the noise that emits the tokens, so that these depend on them.
  bool drafts_share_noise = false;
};

// `trees`: the sample has a draft that is no chain.
Assumptions assumptions_of(const AssumedVerifier& verifier, bool trees);

// Errors of require_fit and require_replayable, for the first request whose draft, or recorded numbers, the verifier
// does not take.
void require_fit(const AssumedVerifier& verifier, const StepSample& sample);

}  // namespace draftproof

#include "exactness/audit/assumptions.hpp"

#include "exactness/audit/own_decisions.hpp"
#include "reference/step/replayable.hpp"

namespace draftproof {

std::string text_of(const AssumedVerifier& verifier) {
  return verifier ? text_of(*verifier) : "any";
}

AssumedVerifier parse_assumed_verifier(const std::string& text, const std::string& where) {
  if (text == "any") return std::nullopt;
  return parse_verifier(text, where);
}

Assumptions assumptions_of(const AssumedVerifier& verifier, bool trees) {
  Assumptions assumed;
  if (!verifier) {
    // Verifiers of a chain rely on its drafts; of a tree there are too many ways to draw siblings.
    assumed.drafts = trees ? DraftSampling::any : DraftSampling::drawn;
    assumed.drafts_share_noise = trees;
    return assumed;
  }
  const VerifierInfo& info = verifier->info();
  assumed.lossless = verifier->is_lossless();
  assumed.keeps_support = info.keeps_support;
  assumed.chain_decisions = info.decisions == Decisions::coin_per_draft;
  if (has_own_decisions(*verifier)) assumed.decides = verifier;
  assumed.drafts_share_noise = info.is_coupled();
  if (!assumed.lossless) return assumed;
  assumed.drafts = info.proposal;
  assumed.exact_at_nodes = !info.joint && !assumed.chain_decisions;  // coins of known rates tell more
  assumed.accepts_drafted = assumed.exact_at_nodes && info.recovered != Recovered::rejected;
  assumed.needs_possible_drafts = assumed.accepts_drafted && info.proposal != DraftSampling::any;
  return assumed;
}

void require_fit(const AssumedVerifier& verifier, const StepSample& sample) {
  if (!verifier) return;
  for (std::size_t b = 0; b < sample.requests.size(); ++b) {
    const VerifyRequest& request = sample.requests[b];
    require_fit(*verifier, request.draft, request.proposal_kind != ProposalKind::one_hot,
                "request " + std::to_string(b));
    if (request.recorded.any()) require_replayable(request, *verifier, "request " + std::to_string(b));
  }
}

}  // namespace draftproof

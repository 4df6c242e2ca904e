#include "exactness/audit/assumptions.hpp"

#include "exactness/audit/own_decisions.hpp"
#include "reference/step/replayable.hpp"

namespace draftproof {
namespace {

bool is_exact(const VerifierChoice& choice) {
  const bool at_one =
      choice.verifier == Verifier::thresholds && choice.parameter("acc") == 1.0 && choice.parameter("single") == 1.0;
  return choice.info().lossless || at_one;
}

}  // namespace

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
    // Whatever verifies a chain relies on its drafts; of a tree there are too many ways to draw siblings.
    assumed.drafts = trees ? DraftSampling::any : DraftSampling::drawn;
    assumed.drafts_share_noise = trees;
    return assumed;
  }
  assumed.lossless = is_exact(*verifier);
  if (assumed.lossless) assumed.drafts = verifier->info().proposal;
  if (has_own_decisions(*verifier)) assumed.decides = verifier;
  switch (verifier->verifier) {
    case Verifier::chain:
      assumed.chain_decisions = true;
      break;
    case Verifier::coupled:
    case Verifier::coupled_list:
      assumed.drafts_share_noise = true;
      [[fallthrough]];
    case Verifier::sampler_match:
    case Verifier::naive:
    case Verifier::target_only:
      assumed.exact_at_nodes = assumed.accepts_drafted = true;
      break;
    case Verifier::rrs:
    case Verifier::rrsw:
    case Verifier::greedy_draft:
      assumed.exact_at_nodes = assumed.accepts_drafted = assumed.needs_possible_drafts = true;
      break;
    case Verifier::k_seq:
      assumed.exact_at_nodes = true;  // a rejected sibling keeps residual mass, and may be emitted all the same
      break;
    case Verifier::thresholds:
      assumed.exact_at_nodes = assumed.accepts_drafted = assumed.lossless;
      break;
    case Verifier::synthetic:
      assumed.keeps_support = false;  // drafts are accepted by a coin that does not look at the target
      break;
    case Verifier::block:
    case Verifier::traversal:
    case Verifier::greedy_multipath:
    case Verifier::typical:
    case Verifier::top_k_resample:
      break;
  }
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

#include "exactness/audit/fitting.hpp"

#include "base/error.hpp"

namespace draftproof {
namespace {

StepSample first_steps(const StepSample& sample, std::size_t steps) {
  StepSample first = sample;
  if (sample.requests.size() <= steps) return first;
  first.requests.resize(steps);
  first.begins.resize(steps + 1);
  first.tokens.resize(first.begins.back());
  if (first.path_nodes) first.path_nodes->resize(first.begins.back() - steps);
  if (first.groups) first.groups->resize(steps);
  first.at.reset();
  return first;
}

bool takes_all(const VerifierChoice& choice, const StepSample& sample) {
  try {
    require_fit(choice, sample);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> fitting_verifiers(const StepSample& sample, const AuditOptions& options) {
  const StepSample steps = first_steps(sample, kFittingStepsMax);
  std::vector<std::string> names;
  for (const VerifierInfo& info : verifiers()) {
    const VerifierChoice choice(info.verifier);
    if (info.decisions == Decisions::unknown || (options.verifier && options.verifier->verifier == info.verifier))
      continue;
    if (!takes_all(choice, steps)) continue;
    AuditOptions assuming = options;
    assuming.verifier = choice;
    if (audit_steps(steps, assuming).verdict == AuditVerdict::biased) continue;
    names.emplace_back(info.name);
  }
  return names;
}

void note_fitting_verifiers(Audit& audit, const StepSample& sample, const AuditOptions& options) {
  if (audit.verdict != AuditVerdict::biased || !options.verifier || sample.malformed.count > 0) return;
  audit.fits = fitting_verifiers(sample, options);
  if (audit.fits.empty()) return;
  audit.sentence += ". The steps are consistent with --verifier ";
  for (std::size_t i = 0; i < audit.fits.size(); ++i)
    audit.sentence += (i == 0 ? "" : i + 1 == audit.fits.size() ? " or " : ", ") + audit.fits[i];
  audit.sentence += ": was it that one?";
}

}  // namespace draftproof

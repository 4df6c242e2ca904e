// Finds the verifier whose steps these are: an audit under the wrong verifier accuses a correct one.
#pragma once

#include <string>
#include <vector>

#include "exactness/audit/audit.hpp"

namespace draftproof {

// The verifiers of the registry, other than the one assumed, whose decisions are known and under which nothing is found
// in these steps; in the order of the registry. Of verifiers whose decisions are not known there are too few tests: a
// faulty engine may pass them. Looks at kFittingStepsMax steps at most. Errors as of audit_steps.
std::vector<std::string> fitting_verifiers(const StepSample& sample, const AuditOptions& options);

inline constexpr std::size_t kFittingStepsMax = 50'000;

// Completes an audit that accuses a named verifier: notes in `fits`, and in the sentence, what fits instead.
void note_fitting_verifiers(Audit& audit, const StepSample& sample, const AuditOptions& options);

}  // namespace draftproof

// Whose steps are these? An audit under the wrong verifier accuses a right one.
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

// Of an audit that accuses a named verifier: notes in `fits`, and in the sentence, what fits instead.
void note_fitting_verifiers(Audit& audit, const StepSample& sample, const AuditOptions& options);

}  // namespace draftproof

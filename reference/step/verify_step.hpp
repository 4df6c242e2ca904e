// One verification step of one request, from rows to emitted tokens: the logits pipeline of every row that the verifier
// asks for, with the history that plain decoding would have had there, and the verifier's template over the resulting
// distributions. It is the same template that is proved.
#pragma once

#include <cstdint>
#include <span>

#include "reference/step/step_rows.hpp"

namespace draftproof {

// The request must have been validated for options.verifier. Throws RowError for the first unusable row read (block:
// the most severe). Source: any source of addressed blocks (random/); instantiated in verify_step.cpp for PhiloxSource,
// AuditedSource and InjectedSource, and by verify_step_of.hpp for others.
template <class Source>
Emission verify_step(const VerifyRequest& request, const VerifyOptions& options, Source& source,
                     StepWorkspace& workspace);

// The step that took this path and emitted this token behind it, whoever decided so: the log-probabilities, kept masses
// and counts of the options. Throws RowError as above.
Emission emission_along(const VerifyRequest& request, std::span<const std::int32_t> path, Token last_token,
                        const VerifyOptions& options, StepWorkspace& workspace);

// "request 3, draft position 2, row 17 of target_logits, column 40: the logit is NaN; ...".
Error error_in_request(const VerifyRequest& request, std::int64_t request_index, const RowError& error);

}  // namespace draftproof

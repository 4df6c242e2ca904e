// Verification steps as a trace file, which `draftproof verify` replays to the same tokens (format: trace.hpp).
#pragma once

#include <span>
#include <string>

#include "reference/step/request.hpp"

namespace draftproof {

// Writes one trace with a request per step, in the order given. Rows keep their dtype. Where the drafts were drawn with
// temperature and filters of their own, which the format has no tensors for, the draft logits are written as the
// pipeline left them (divided by the temperature, -inf for dropped tokens; draft_processed = 1): their masses are the
// same integers, so the replay is the same bits. One-hot and argmax drafts have no draft tensor.
//
// The requests must be valid. Errors (input) naming the request: what one trace cannot hold, which is requests that
// differ in vocabulary, dtype, kind of target, kind of proposal or filter order; allowed ids, bad words and min_tokens.
void write_trace(const std::string& path, std::span<const VerifyRequest> requests, const VerifyOptions& options);

}  // namespace draftproof

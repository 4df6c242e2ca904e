// Placeholders: ids of -1 within a chain of drafts, at places that an engine keeps and must not verify (vLLM pads
// decoding steps so, and marks drafts that a grammar forbids). A placeholder is rejected and a token is drawn in its
// place, so that nothing behind it is looked at: the chain ends before it, and its row is the bonus row.
//
// The token is drawn from the target, as vLLM does for drafts without probabilities. With probabilities vLLM draws from
// max(p - q, 0) of a row q that no draft was drawn from, which is the target's where that row is zeros.
#pragma once

#include "reference/step/request.hpp"

namespace draftproof {

// Ends a chain before its first placeholder, with rows and recorded numbers: what was recorded for a rejection there is
// then what was recorded for the bonus token. Trees are left as they are.
void end_at_placeholder(VerifyRequest& request);

}  // namespace draftproof

// Draft tokens that the proposal distribution they come with cannot produce: q(x) = 0. The verifier rejects them, so
// its output stays well defined, but it is not the target's distribution: the drafts were drawn from another
// distribution than the one given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/token.hpp"
#include "reference/step/request.hpp"

namespace draftproof {

struct ImpossibleDraft {
  std::int64_t request;
  std::int64_t position;
  Token token;
};

struct ImpossibleDrafts {
  std::int64_t count = 0;
  std::optional<ImpossibleDraft> first;  // lowest request, then lowest position

  std::string sentence() const;  // of at least one
};

// Looks at every draft whose proposal the verifier consults: not those of greedy requests, whose output does not depend
// on it, nor argmax drafts. Requests must have been validated; errors (input) are those of processing a row of draft
// logits.
ImpossibleDrafts find_impossible_drafts(std::span<const VerifyRequest> requests, int threads);

}  // namespace draftproof

// The logits of a row, or of the part of it that one device holds. Edits are of single tokens, so that a part is edited
// without the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

struct LogitsPart {
  std::span<float> logits;
  Token first = 0;  // the token of logits[0]

  LogitsPart(std::span<float> part, Token first_token = 0) : logits(part), first(first_token) {}  // NOLINT
  LogitsPart(std::vector<float>& row) : logits(row) {}                                            // NOLINT

  // The logit of a token; null: it is of another part.
  float* find(Token token) const {
    const std::int64_t place = std::int64_t{token} - first;
    return std::cmp_less(place, logits.size()) && place >= 0 ? &logits[static_cast<std::size_t>(place)] : nullptr;
  }
};

}  // namespace draftproof

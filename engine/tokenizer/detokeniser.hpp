// Text of tokens.
#pragma once

#include <string_view>

#include "base/token.hpp"

namespace draftproof {

// Token id -> bytes. The bytes of one token may be a part of a UTF-8 character, or none at all (special tokens).
class Detokeniser {
 public:
  virtual ~Detokeniser() = default;
  // Valid until the next call; asked only for ids in [0, V).
  virtual std::string_view bytes_of(Token token) const = 0;
};

}  // namespace draftproof

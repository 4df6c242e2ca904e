// A language model as the decoding loops see it: a context becomes one row of logits.
//
// An object holds the buffers of one thread; what is costly (the trained model) is shared between objects.
#pragma once

#include <cstdint>
#include <span>

#include "reference/token.hpp"

namespace draftproof {

class LanguageModel {
 public:
  virtual ~LanguageModel() = default;
  virtual std::int64_t vocab_size() const = 0;
  // Writes the logits [V] of the token after `context`: a pure function of it, whatever was asked before.
  virtual void logits(std::span<const Token> context, std::span<float> out) = 0;
};

}  // namespace draftproof

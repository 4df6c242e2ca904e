// Generated text made fit for a terminal, with a colour for how each token came about.
#pragma once

#include <span>
#include <string>

#include "base/token.hpp"
#include "cli/shared/terminal.hpp"
#include "engine/decode/generation.hpp"
#include "engine/decode/stop.hpp"

namespace draftproof {

// Tokens that are bytes.
class ByteDetokeniser final : public Detokeniser {
 public:
  std::string_view bytes_of(Token token) const override;
};

std::string bytes_of(std::span<const Token> tokens, const Detokeniser& detokeniser = ByteDetokeniser());

Colour colour_of(TokenOrigin origin);

// The text of a generation; a character of several tokens has the colour of its first.
std::string painted_text(const Generation& generation, const Palette& palette,
                         const Detokeniser& detokeniser = ByteDetokeniser());

}  // namespace draftproof

// A token as one word of a line: spaces are middle dots, line ends are "\n"; a token without bytes has the name that
// its model gives it.
#pragma once

#include <string>

#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

std::string token_label(const Tokenizer& tokenizer, Token token);

}  // namespace draftproof

// Exact distributions and strings of tokens, as messages write them.
#pragma once

#include <span>
#include <string>

#include "exactness/proof/output_distribution.hpp"

namespace draftproof {

std::string text_of(const Rational& x);                 // "3/5"
std::string text_of(std::span<const Rational> masses);  // "(1/10, 3/5, 3/10)"
std::string text_of(const TokenString& string);         // "[0 2 1]"

}  // namespace draftproof

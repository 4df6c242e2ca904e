#include "exactness/proof/distribution_text.hpp"

#include <sstream>

namespace draftproof {

std::string text_of(const Rational& x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

std::string text_of(std::span<const Rational> masses) {
  std::string text;
  for (const Rational& x : masses) text += (text.empty() ? "(" : ", ") + text_of(x);
  return text + ")";
}

std::string text_of(const TokenString& string) {
  std::string text;
  for (const Token token : string) text += (text.empty() ? "" : " ") + std::to_string(token);
  return "[" + text + "]";
}

}  // namespace draftproof

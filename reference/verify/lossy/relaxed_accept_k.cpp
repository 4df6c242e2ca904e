#include "reference/verify/lossy/relaxed_accept_k.hpp"

namespace draftproof {

bool is_thinking(std::span<const Token> prompt, std::span<const Token> output, Token begin, Token end) {
  bool thinking = begin < 0 || std::ranges::find(prompt, begin) != prompt.end();
  for (const Token token : output) {
    if (token == begin) thinking = true;
    if (token == end) thinking = false;
  }
  return thinking;
}

}  // namespace draftproof

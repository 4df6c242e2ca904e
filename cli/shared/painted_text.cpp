#include "cli/shared/painted_text.hpp"

#include <array>

#include "base/printable.hpp"

namespace draftproof {

std::string_view ByteDetokeniser::bytes_of(Token token) const {
  static const std::array<char, 256> bytes = [] {
    std::array<char, 256> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<char>(static_cast<unsigned char>(i));
    return all;
  }();
  return {&bytes[static_cast<std::size_t>(token)], 1};
}

std::string bytes_of(std::span<const Token> tokens, const Detokeniser& detokeniser) {
  std::string bytes;
  for (const Token token : tokens) bytes += detokeniser.bytes_of(token);
  return bytes;
}

Colour colour_of(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::accepted:
      return Colour::green;
    case TokenOrigin::recovered:
      return Colour::red;
    case TokenOrigin::bonus:
      return Colour::cyan;
    case TokenOrigin::sampled:
      break;
  }
  return Colour::grey;
}

std::string painted_text(const Generation& generation, const Palette& palette, const Detokeniser& detokeniser) {
  std::string bytes;
  std::vector<TokenOrigin> origins;  // of every byte
  for (std::size_t i = 0; i < generation.tokens.size(); ++i) {
    bytes += detokeniser.bytes_of(generation.tokens[i]);
    origins.resize(bytes.size(), generation.origins[i]);
  }
  std::string text;
  std::string run;
  TokenOrigin run_origin = TokenOrigin::sampled;
  for (const PrintableCharacter& character : printable_characters(bytes)) {
    const TokenOrigin origin = origins[character.first_byte];
    if (origin != run_origin) {
      text += palette.paint(colour_of(run_origin), run);
      run.clear();
      run_origin = origin;
    }
    run += character.text;
  }
  return text + palette.paint(colour_of(run_origin), run);
}

}  // namespace draftproof

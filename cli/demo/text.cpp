#include "cli/demo/text.hpp"

#include "reference/printable.hpp"

namespace draftproof {

std::string bytes_of(std::span<const Token> tokens) {
  std::string bytes;
  for (const Token token : tokens) bytes += static_cast<char>(static_cast<unsigned char>(token));
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

std::string painted_text(const Generation& generation, const Palette& palette) {
  std::string text;
  std::string run;
  TokenOrigin run_origin = TokenOrigin::sampled;
  for (const PrintableCharacter& character : printable_characters(bytes_of(generation.tokens))) {
    const TokenOrigin origin = generation.origins[character.first_byte];
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

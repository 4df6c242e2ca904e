#include "studies/token_label.hpp"

#include "base/printable.hpp"

namespace draftproof {

std::string token_label(const Tokenizer& tokenizer, Token token) {
  std::string label;
  for (const PrintableCharacter& character : printable_characters(tokenizer.bytes_of(token))) {
    if (character.text == " ") {
      label += "\u00b7";
    } else if (character.text == "\n") {
      label += "\\n";
    } else if (character.text == "\t") {
      label += "\\t";
    } else {
      label += character.text;
    }
  }
  return label.empty() ? printable_line(tokenizer.entry(token).text) : label;
}

}  // namespace draftproof

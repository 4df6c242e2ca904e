// Grammars over a vocabulary of the 256 bytes, and which texts they take as a whole.
#pragma once

#include "engine/grammar/compile_grammar.hpp"
#include "tests/support/test.hpp"

namespace draftproof::testing {

class ByteTextEncoder final : public TextEncoder {
 public:
  void encode(std::string_view text, bool, std::vector<Token>& ids) const override {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
};

// Token 256 ends a sentence.
inline std::shared_ptr<const Grammar> byte_grammar(const GrammarSource& source) {
  Tokenizer::Parts parts;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    parts.vocabulary.push_back({text, text, false, false});
  }
  parts.vocabulary.push_back({"<end>", "", true, true});
  parts.encoder = std::make_unique<ByteTextEncoder>();
  return GrammarCompiler(std::make_shared<const Tokenizer>(std::move(parts)), 257, {256}).compile(source);
}

inline bool is_sentence(const Grammar& grammar, const std::string& text) {
  const std::unique_ptr<GrammarState> state = grammar.start();
  for (const char c : text)
    if (!state->accept(static_cast<unsigned char>(c))) return false;
  return state->is_complete();
}

}  // namespace draftproof::testing

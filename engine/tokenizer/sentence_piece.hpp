// SentencePiece-style BPE: spaces are written as U+2581, characters are the first symbols, and neighbours merge. What
// is no token of the vocabulary becomes the tokens of its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/byte_level.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

// The space that is put in front of a text.
enum class SpacePrefix : std::uint8_t { never, first_text, every_text };  // every: also behind a special token

// The byte that a token like "<0x0A>" stands for.
std::optional<unsigned char> byte_of_byte_token(std::string_view text);

// "▁a" -> " a".
std::string with_spaces(std::string_view text);

class SentencePieceEncoder final : public TextEncoder {
 public:
  struct Parts {
    std::unordered_map<std::string, Token> ids;  // by text with U+2581
    // Neighbours merge to any token that is their text, the one of highest score first (GGUF) ...
    std::vector<float> scores;  // [V]
    // ... or, where there are no scores, by rank (tokenizer.json).
    MergeTable merges;
    std::array<Token, 256> byte_ids{};  // kPaddingToken: none
    std::optional<Token> unknown;
    SpacePrefix prefix = SpacePrefix::every_text;
    bool joins_unknown = false;  // a run of unknown characters is one token
  };
  explicit SentencePieceEncoder(Parts parts);

  void encode(std::string_view text, bool is_first, std::vector<Token>& ids) const override;

 private:
  Parts parts_;
  std::size_t token_bytes_max_ = 0;
};

}  // namespace draftproof

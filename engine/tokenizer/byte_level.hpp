// Byte-level BPE: text is cut into pieces; the bytes of a piece are its first symbols; pairs merge by rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tokenizer/merging.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

// The bytes that a token of such a vocabulary stands for. Vocabularies are written in characters that can be printed: a
// byte of ASCII or Latin-1 that can be is itself, the others are U+0100 and following, in order. Nothing where the text
// holds other characters.
std::optional<std::string> bytes_of_byte_level(std::string_view text);

// Pairs of tokens that merge: the one of smallest rank first.
class MergeTable {
 public:
  // Later pairs have higher ranks. A pair that is there already keeps its rank.
  void add(Token left, Token right, Token merged);
  std::size_t size() const { return merges_.size(); }
  std::optional<Merge> find(Token left, Token right) const;

 private:
  struct Hash {
    std::size_t operator()(std::uint64_t key) const {
      return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15) >> 20);
    }
  };
  std::unordered_map<std::uint64_t, Merge, Hash> merges_;
  std::uint32_t next_rank_ = 0;
};

class ByteLevelEncoder final : public TextEncoder {
 public:
  struct Parts {
    PreTokenizer pre_tokenizer;
    std::unordered_map<std::string, Token> ids;  // by bytes
    MergeTable merges;
    std::optional<Token> unknown;     // for bytes that have no token
    bool whole_pieces_first = false;  // a piece that is a token is that token, whatever the merges would give
  };
  explicit ByteLevelEncoder(Parts parts);

  void encode(std::string_view text, bool is_first, std::vector<Token>& ids) const override;

 private:
  void encode_piece(std::string_view piece, std::vector<Token>& ids) const;

  Parts parts_;
  std::array<Token, 256> byte_ids_{};  // kPaddingToken: none
};

}  // namespace draftproof

// Byte-level BPE: text is cut into pieces; the bytes of a piece are its first symbols; pairs merge by rank.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token.hpp"
#include "engine/tokenizer/pre_tokenizer.hpp"
#include "engine/tokenizer/tokenizer.hpp"

namespace draftproof {

// The loop of every byte-pair encoding: of all neighbours that may merge, the best pair merges first, of equals the
// leftmost, until none may.

// A stretch of the text, in a list from left to right.
struct MergeSymbol {
  Token id = kPaddingToken;  // none: it is no token of the vocabulary
  std::uint32_t begin = 0;   // in the text, in bytes
  std::uint32_t length = 0;  // 0: it went into its left neighbour
  std::int32_t previous = -1;
  std::int32_t next = -1;
};

struct Merge {
  double order = 0;  // smaller ones first
  Token id = kPaddingToken;
};

// The symbols are linked in their order and merged. `find(left, right)` gives the merge of two neighbours or nothing.
// O(n log n) calls and comparisons for n symbols.
template <class Find>
void merge_symbols(std::vector<MergeSymbol>& symbols, Find find) {
  struct Candidate {
    Merge merge;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t length;  // of both, to tell a candidate whose symbols have changed since
    bool operator<(const Candidate& other) const {
      return merge.order != other.merge.order ? merge.order > other.merge.order : left > other.left;
    }
  };
  std::vector<Candidate> storage;
  storage.reserve(symbols.size() * 2);
  std::priority_queue<Candidate> candidates({}, std::move(storage));
  const auto at = [&](std::int32_t i) -> MergeSymbol& { return symbols[static_cast<std::size_t>(i)]; };
  const auto consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    if (const std::optional<Merge> merge = find(at(left), at(right)))
      candidates.push({*merge, left, right, at(left).length + at(right).length});
  };
  const auto count = static_cast<std::int32_t>(symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    at(i).previous = i - 1;
    at(i).next = i + 1 < count ? i + 1 : -1;
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) consider(i, i + 1);
  while (!candidates.empty()) {
    const Candidate candidate = candidates.top();
    candidates.pop();
    MergeSymbol& left = at(candidate.left);
    MergeSymbol& right = at(candidate.right);
    if (left.length == 0 || right.length == 0 || left.length + right.length != candidate.length) continue;
    left.id = candidate.merge.id;
    left.length = candidate.length;
    left.next = right.next;
    if (right.next >= 0) at(right.next).previous = candidate.left;
    right.length = 0;
    consider(left.previous, candidate.left);
    consider(candidate.left, left.next);
  }
}

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

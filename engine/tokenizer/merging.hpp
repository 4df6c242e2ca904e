// The loop of every byte-pair encoding: of all neighbours that may merge, the best pair merges first, of equals the
// leftmost, until none may.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "base/token.hpp"

namespace draftproof {

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

}  // namespace draftproof

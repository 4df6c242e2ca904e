// The path through a draft tree that a step's tokens took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/verify/draft_tree.hpp"

namespace draftproof {

struct EmittedPath {
  std::vector<std::int32_t> nodes;  // as many as could be matched; all of them unless the tokens are no path
  bool ambiguous = false;           // a node on it has a sibling of the same token: another path may have been taken
};

// A path whose tokens are `accepted` (what was emitted, without the last token); of several the first in sampling
// order. Where there is none, the longest that can be matched.
EmittedPath find_emitted_path(const DraftTree& tree, std::span<const Token> accepted);

// The tokens of nodes.
std::vector<Token> tokens_of(const DraftTree& tree, std::span<const std::int32_t> nodes);

}  // namespace draftproof

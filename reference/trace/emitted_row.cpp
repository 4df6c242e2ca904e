#include "reference/trace/emitted_row.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "reference/verify/emitted_path.hpp"

namespace draftproof {

EmittedRow read_emitted_row(std::span<const std::int64_t> row, const DraftTree& draft, std::int64_t vocab_size) {
  const auto end = std::find(row.begin(), row.end(), kPaddingToken);
  EmittedRow read{static_cast<std::size_t>(end - row.begin()), {}};
  for (const std::int64_t token : row) {
    if (token == kPaddingToken || (token >= 0 && token < vocab_size)) continue;
    read.wrong = "has token " + std::to_string(token) + "; expected ids in [0, " + std::to_string(vocab_size) +
                 ") and -1 (padding)";
    return read;
  }
  if (std::any_of(end, row.end(), [](std::int64_t token) { return token != kPaddingToken; })) {
    read.wrong =
        "has -1 (padding) at " + std::to_string(read.count) + " and tokens after it; expected padding only at the end";
    return read;
  }
  const auto depth = static_cast<std::size_t>(draft.depth_max());
  if (read.count < 1 || read.count > depth + 1) {
    read.wrong = "has " + std::to_string(read.count) + " tokens and " +
                 (draft.is_chain() ? std::to_string(depth) + " drafts; expected 1 to K + 1 tokens"
                                   : "a tree of depth " + std::to_string(depth) + "; expected 1 to depth + 1 tokens") +
                 ", not cut at a stop token";
    return read;
  }
  const std::vector<Token> accepted(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(read.count) - 1);
  const std::size_t matched = find_emitted_path(draft, accepted).nodes.size();
  if (matched < accepted.size())
    read.wrong = "has token " + std::to_string(row[matched]) + " at " + std::to_string(matched) +
                 (draft.is_chain() ? " where the draft is " + std::to_string(draft.tokens[matched])
                                   : ", and no draft node after the tokens before it holds that token") +
                 "; all tokens but the last are accepted drafts";
  return read;
}

}  // namespace draftproof

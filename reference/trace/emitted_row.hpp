// A row of output tokens [W], padded with -1, as what one step emitted.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/token.hpp"
#include "reference/verify/draft_tree.hpp"

namespace draftproof {

struct EmittedRow {
  std::size_t count = 0;  // of tokens before the padding
  std::string wrong;      // empty: accepted drafts, then one more token; else what no verifier may emit
};

EmittedRow read_emitted_row(std::span<const std::int64_t> row, const DraftTree& draft, std::int64_t vocab_size);

}  // namespace draftproof

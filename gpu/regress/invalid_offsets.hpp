// Offsets that lie about the arrays that they cut, for the cases of all calls that take some.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace draftproof::regress {

struct InvalidOffsets {
  std::string what;
  std::vector<std::int64_t> offsets;
};

// cu_num_draft_tokens of requests with drafts, with each kind of lie: the first is not 0, the last is not the total,
// one lies outside the drafts (by little, by 2^40, by all that 64 bits can), inside but below or above its neighbours,
// and several of these at random. Some requests stay valid.
std::vector<InvalidOffsets> invalid_draft_offsets(const std::vector<std::int64_t>& cu_num_draft_tokens);

// Offsets of lists over `count` elements: several of the lists lead out of them, the others stay as they are.
std::vector<InvalidOffsets> invalid_list_offsets(const std::vector<std::int64_t>& offsets, std::int64_t count);

}  // namespace draftproof::regress

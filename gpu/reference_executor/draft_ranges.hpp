// The drafts of requests, whatever their offsets say (twin: kernels/draft_ranges.cuh).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpu/offset_guards.hpp"

namespace draftproof::reference_executor {

// [requests] from the arguments of any call with drafts.
template <class Arguments>
std::vector<DraftRange> draft_ranges(const Arguments& a) {
  const DraftShape shape{a.requests, a.draft_tokens_total, a.draft_len_max};
  std::vector<DraftRange> ranges;
  std::int64_t highest = 0;
  for (std::int64_t b = 0; b < a.requests; ++b) {
    const std::int64_t first = a.cu_num_draft_tokens[b];
    ranges.push_back(draft_range(b, highest, first, a.cu_num_draft_tokens[b + 1], shape));
    if (b > 0) highest = std::max(highest, bounding_offset(first, shape));
  }
  return ranges;
}

}  // namespace draftproof::reference_executor

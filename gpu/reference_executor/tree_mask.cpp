#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "gpu/executors.hpp"
#include "gpu/reference_executor/draft_ranges.hpp"
#include "reference/verify/tree_attention.hpp"

namespace draftproof::reference_executor {

void tree_mask(const draftproof_tree_mask_arguments& a, const draftproof_settings&) {
  const std::vector<DraftRange> ranges = draft_ranges(a);
  for (std::int64_t b = 0; b < a.requests; ++b) {
    const DraftRange& range = ranges[static_cast<std::size_t>(b)];
    const std::int64_t nodes = range.length();
    std::int32_t* depths = a.depths + range.begin + b;
    std::uint32_t* mask = a.mask + (range.begin + b) * a.words_per_row;
    std::fill_n(depths, nodes + 1, 0);
    std::fill_n(mask, (nodes + 1) * a.words_per_row, 0u);
    a.status[b] = range.valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;
    if (!range.valid) continue;
    const std::span<const std::int32_t> parents(a.parents + range.begin, static_cast<std::size_t>(nodes));
    try {
      std::ranges::copy(tree_depths(parents), depths);
      const PackedTreeMask packed = packed_tree_mask(parents);
      for (std::int64_t r = 0; r <= nodes; ++r)
        std::copy_n(packed.words.begin() + r * packed.words_per_row, packed.words_per_row, mask + r * a.words_per_row);
    } catch (const Error&) {
      a.status[b] = DRAFTPROOF_ROW_BAD_ID;
    }
  }
}

}  // namespace draftproof::reference_executor

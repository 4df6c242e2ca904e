#include <algorithm>
#include <span>

#include "gpu/executors.hpp"
#include "reference/draft/tree_attention.hpp"
#include "reference/error.hpp"

namespace draftproof::reference_executor {

void tree_mask(const draftproof_tree_mask_arguments& a, const draftproof_settings&) {
  for (std::int64_t b = 0; b < a.requests; ++b) {
    const std::int64_t first_node = a.cu_num_draft_tokens[b];
    const std::int64_t nodes = a.cu_num_draft_tokens[b + 1] - first_node;
    const std::span<const std::int32_t> parents(a.parents + first_node, static_cast<std::size_t>(nodes));
    std::int32_t* depths = a.depths + first_node + b;
    std::uint32_t* mask = a.mask + (first_node + b) * a.words_per_row;
    std::fill_n(depths, nodes + 1, 0);
    std::fill_n(mask, (nodes + 1) * a.words_per_row, 0u);
    a.status[b] = DRAFTPROOF_ROW_OK;
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

// Depths and masks of draft trees as a call: kernels/tree_mask.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/tree_mask.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void tree_mask(const draftproof_tree_mask_arguments& a, const draftproof_settings& settings) {
  if (a.requests == 0) return;
  OperationMemory memory(nullptr);
  const std::int64_t rows = a.draft_tokens_total + a.requests;
  launch(describe(settings, "tree_masks", a.requests, block_threads(settings, 256)), tree_masks,
         memory.input("cu_num_draft_tokens", a.cu_num_draft_tokens, a.requests + 1),
         DraftShape{a.requests, a.draft_tokens_total, a.draft_len_max},
         memory.input("parents", a.parents, a.draft_tokens_total), a.words_per_row,
         memory.output("depths", a.depths, rows), memory.output("mask", a.mask, rows * a.words_per_row),
         memory.output("status", a.status, a.requests));
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

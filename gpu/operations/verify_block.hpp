// Block verification as a call: kernels/block_verify.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/block_verify.cuh"
#include "gpu/operations/verify_launch.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

BlockScratch block_scratch(OperationMemory& memory, const draftproof_verify_arguments& a) {
  const std::int64_t rows = target_rows_of(a);
  BlockScratch scratch;
  scratch.weights = memory.scratch<double>("weights", rows);
  scratch.is_summed = memory.scratch<std::int32_t>("is_summed", rows);
  scratch.rows_summed = memory.scratch<std::int32_t>("rows_summed", a.requests);
  scratch.decisions = memory.scratch<BlockDecision>("decisions", a.requests);
  scratch.blocks_done = memory.scratch<std::uint32_t>("blocks_done", a.requests);
  scratch.drawers_done = memory.scratch<std::uint32_t>("drawers_done", a.requests);
  scratch.tile_sum = memory.scratch<std::uint64_t>("residual_tile_sum", rows * tiles_of(a.vocab_size));
  scratch.row_total = memory.scratch<std::uint64_t>("residual_total", rows);
  return scratch;
}

}  // namespace

std::int64_t verify_block_workspace_bytes(const draftproof_verify_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  VerifyScratch::in(memory, a);
  block_scratch(memory, a);
  return memory.workspace_bytes();
}

void verify_block(const draftproof_verify_arguments& a, const draftproof_settings& settings) {
  if (a.requests == 0) return;
  OperationMemory memory(a.workspace);
  const VerifyScratch row_scratch = VerifyScratch::in(memory, a);
  const BlockScratch scratch = block_scratch(memory, a);
  const VerifyOutputs out = verify_outputs(memory, a);
  const VerifyLaunch call(a, settings, memory, row_scratch);
  call.with_rows([&]<int kTarget, int kProposal>(const VerifyRows<kTarget, kProposal>& rows) {
    const std::uint32_t threads = block_threads(settings, 128);
    launch(describe(settings, "weigh_drafts", blocks_of_warps(a.requests, threads), threads),
           weigh_drafts<kTarget, kProposal>, rows, a.requests, scratch, out);
    const std::int64_t tiles = a.requests * tiles_of(a.vocab_size);
    if (a.draft_len_max > 0)
      launch(describe(settings, "sum_residuals", a.draft_len_max * tiles, block_threads(settings, 256)),
             sum_residuals<kTarget, kProposal>, rows, scratch, out);
    launch(describe(settings, "draw_last_tokens", tiles, block_threads(settings, 256)),
           draw_last_tokens<kTarget, kProposal>, rows, scratch, out);
  });
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

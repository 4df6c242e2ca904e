// Chain verification as a call: kernels/chain.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/chain.cuh"
#include "gpu/operations/verify_launch.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

struct ChainScratch {
  VerifyScratch rows;
  Global<ChainDecision> decisions;
  Global<std::uint32_t> blocks_done;
  Global<std::uint64_t> tile_sum;

  static ChainScratch in(OperationMemory& memory, const draftproof_verify_arguments& a) {
    const VerifyScratch rows = VerifyScratch::in(memory, a);
    return {rows, memory.scratch<ChainDecision>("decisions", a.requests),
            memory.scratch<std::uint32_t>("blocks_done", a.requests),
            memory.scratch<std::uint64_t>("residual_tile_sum", a.requests * tiles_of(a.vocab_size))};
  }
};

}  // namespace

std::int64_t verify_chain_workspace_bytes(const draftproof_verify_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  ChainScratch::in(memory, a);
  return memory.workspace_bytes();
}

void verify_chain(const draftproof_verify_arguments& a, const draftproof_settings& settings) {
  if (a.requests == 0) return;
  OperationMemory memory(a.workspace);
  const ChainScratch scratch = ChainScratch::in(memory, a);
  const VerifyOutputs out = verify_outputs(memory, a);
  const VerifyLaunch call(a, settings, memory, scratch.rows);
  call.with_rows([&]<int kTarget, int kProposal>(const VerifyRows<kTarget, kProposal>& rows) {
    const std::uint32_t threads = block_threads(settings, 128);
    launch(describe(settings, "judge_drafts", blocks_of_warps(a.requests, threads), threads),
           judge_drafts<kTarget, kProposal>, rows, a.requests, scratch.decisions, scratch.blocks_done, out);
    constexpr bool kOwnMasses = kTarget == DRAFTPROOF_LOGITS && kProposal == DRAFTPROOF_ONE_HOT;
    const std::int64_t blocks_per_request = kOwnMasses ? 1 : tiles_of(a.vocab_size);
    launch(describe(settings, "recover_tokens", a.requests * blocks_per_request, block_threads(settings, 256)),
           recover_tokens<kTarget, kProposal>, rows, scratch.decisions, blocks_per_request, scratch.tile_sum,
           scratch.blocks_done, out);
  });
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

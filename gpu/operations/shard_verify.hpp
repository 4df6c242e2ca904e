// A verification of drafts across devices as a call: kernels/shard_verify.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/shard_verify.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

void add_scratch(OperationMemory& memory, const draftproof_shard_verify_arguments& a, ShardVerify& v) {
  if (a.stage > 0) v.decisions = memory.scratch<ShardDecision>("decisions", a.requests);
}

ShardSide side_of(OperationMemory& memory, const draftproof_shard_rows& given) {
  const std::int64_t rows = given.shard.rows;
  const ShardView shard = view_of(memory, given.shard);
  return {shard,
          {memory.input("tile_exponent", given.tile_exponent, rows * (shard.tiles + 1)),
           memory.input("largest", given.largest, rows), memory.input("tile_sum", given.tile_sum, rows * shard.tiles),
           memory.input("kept", given.kept, rows), shard.tiles}};
}

}  // namespace

std::int64_t shard_verify_workspace_bytes(const draftproof_shard_verify_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  ShardVerify v{};
  add_scratch(memory, a, v);
  return memory.workspace_bytes();
}

void shard_verify(const draftproof_shard_verify_arguments& a, const draftproof_settings& settings) {
  const std::int64_t requests = a.requests;
  if (requests == 0) return;
  OperationMemory memory(a.workspace);
  ShardVerify v{};
  add_scratch(memory, a, v);
  v.target = side_of(memory, a.target);
  v.proposal_kind = a.draft_tokens_total == 0 ? DRAFTPROOF_ONE_HOT : a.proposal_kind;
  if (v.proposal_kind != DRAFTPROOF_ONE_HOT) v.proposal = side_of(memory, a.proposal);
  v.stage = a.stage;
  v.drafts.tokens = memory.input("draft_tokens", a.draft_tokens, a.draft_tokens_total);
  v.drafts.cu_num_draft_tokens = memory.input("cu_num_draft_tokens", a.cu_num_draft_tokens, requests + 1);
  v.drafts.seed = memory.input("seed", a.randomness.seed, requests);
  v.drafts.step = memory.input("step", a.randomness.step, requests);
  v.drafts.vocab_size = a.target.shard.vocab_size;
  v.drafts.tiles = v.target.shard.tiles;
  v.drafts.shape = {requests, a.draft_tokens_total, a.draft_len_max};

  // Each stage writes its message and reads those before.
  const std::int64_t drafts = a.draft_tokens_total;
  const std::int64_t sums = requests * (v.drafts.tiles + 1);
  const std::int64_t shares = requests * a.target.shard.devices;
  if (a.stage == 0) v.masses = memory.output("draft", a.draft, drafts);
  if (a.stage >= 1) v.draft = memory.input("draft", a.draft, drafts);
  if (a.stage == 1) v.masses = memory.output("residual", a.residual, sums);
  if (a.stage >= 2) v.residual = memory.input("residual", a.residual, sums);
  if (a.stage == 2) v.message = memory.output("share", a.share, shares);
  if (a.stage == 3) v.share = memory.input("share", a.share, shares);
  if (a.stage == 3) v.message = memory.output("drawn", a.drawn, requests);
  if (a.stage == 4) {
    v.drawn = memory.input("drawn", a.drawn, requests);
    const std::int64_t places = requests * (a.draft_len_max + 1);
    v.out = {memory.output("num_accepted", a.num_accepted, requests), memory.output("tokens", a.tokens, places),
             memory.output("logprobs", a.logprobs, places), memory.output("status", a.status, requests),
             a.draft_len_max};
  }

  const auto by_request = [&](const char* name, auto kernel, std::uint32_t threads) {
    launch(describe(settings, name, requests, threads), kernel, v);
  };
  const std::uint32_t threads = block_threads(settings, 128);
  if (a.stage == 0) by_request("say_shard_drafts", say_shard_drafts, threads);
  if (a.stage >= 1) by_request("judge_shard_drafts", judge_shard_drafts, threads);
  if (a.stage == 1 && v.target.shard.device_tiles > 0) {
    launch(
        describe(settings, "sum_shard_residuals", requests * v.target.shard.device_tiles, block_threads(settings, 256)),
        sum_shard_residuals, v);
    if (v.proposal_kind == DRAFTPROOF_PROBABILITIES)
      by_request("refuse_shard_residuals", refuse_shard_residuals, threads);
  }
  if (a.stage == 2) by_request("share_last_tokens", share_last_tokens, kShardVerifyThreads);
  if (a.stage == 3) by_request("find_last_tokens", find_last_tokens, kShardVerifyThreads);
  if (a.stage == 4) by_request("emit_shard_tokens", emit_shard_tokens, kShardVerifyThreads);
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

// A draw of rows across devices as a call: kernels/shard_draw.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/shard_draw.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

void add_scratch(OperationMemory& memory, const draftproof_shard_draw_arguments& a, std::int64_t tiles, ShardDraw& d) {
  if (a.sampler != DRAFTPROOF_RACE || a.stage != 0) return;
  d.tile_score = memory.scratch<std::uint64_t>("tile_score", CheckedSize(a.shard.rows) * tiles);
  d.tile_token = memory.scratch<Token>("tile_token", CheckedSize(a.shard.rows) * tiles);
}

}  // namespace

std::int64_t shard_draw_workspace_bytes(const draftproof_shard_draw_arguments& a) {
  OperationMemory memory = OperationMemory::measuring();
  ShardDraw d{};
  add_scratch(memory, a, view_of(memory, a.shard).device_tiles, d);
  return memory.workspace_bytes();
}

void shard_draw(const draftproof_shard_draw_arguments& a, const draftproof_settings& settings) {
  const std::int64_t rows = a.shard.rows;
  if (rows == 0) return;
  OperationMemory memory(a.workspace);
  ShardDraw d{};
  d.shard = view_of(memory, a.shard);
  add_scratch(memory, a, d.shard.device_tiles, d);
  d.rows = {memory.input("tile_exponent", a.tile_exponent, rows * (d.shard.tiles + 1)),
            memory.input("largest", a.largest, rows), memory.input("tile_sum", a.tile_sum, rows * d.shard.tiles),
            memory.input("kept", a.kept, rows), d.shard.tiles};
  d.random = {memory.input("seed", a.randomness.seed, rows), memory.input("step", a.randomness.step, rows),
              memory.input("row_in_step", a.row_in_step, rows), static_cast<std::uint32_t>(a.purpose)};
  d.is_race = a.sampler == DRAFTPROOF_RACE;
  d.stage = a.stage;
  const auto words_of = [&](std::int32_t stage) {
    return rows * (stage == 0 && !d.is_race ? std::int64_t{a.shard.devices} : 1);
  };
  if (a.combined != nullptr) d.combined = memory.input("combined", a.combined, words_of(a.stage - 1));
  if (a.stage < 2 && d.is_race) d.winner = memory.in_out("winner", a.winner, 2 * rows);
  if (a.stage < 2) d.message = memory.output("message", a.message, words_of(a.stage));
  if (a.stage == 2) {
    d.tokens = memory.output("tokens", a.tokens, rows);
    d.logprobs = memory.output("logprobs", a.logprobs, rows);
    d.status = memory.output("status", a.status, rows);
  }
  if (d.is_race && a.stage == 0 && d.shard.device_tiles > 0)
    launch(describe(settings, "race_shard_tiles", rows * d.shard.device_tiles, block_threads(settings, 256)),
           race_shard_tiles, d);
  launch(describe(settings, "draw_shard_rows", rows, kShardDrawThreads), draw_shard_rows, d);
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

// A round of the filters of rows across devices as a call: kernels/shard_select.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/shard_select.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void shard_select(const draftproof_shard_select_arguments& a, const draftproof_settings& settings) {
  const std::int64_t rows = a.shard.rows;
  if (rows == 0) return;
  OperationMemory memory(nullptr);
  ShardSearch s{};
  s.shard = view_of(memory, a.shard);
  s.is_mass = a.filter == DRAFTPROOF_SHARD_TOP_P;
  s.round = a.round;
  const auto words_of = [&](std::int32_t round) -> std::int64_t {
    if (round < kHistogramRounds) return s.is_mass ? kSearchBuckets : kSearchBuckets / 2;
    return round == kHistogramRounds ? s.shard.devices : 1;
  };
  s.words = a.message == nullptr ? 0 : words_of(a.round);
  s.parameters = view_of(memory, a.parameters, rows);
  const auto search = memory.in_out("search", a.search, rows);
  const auto kept = memory.in_out("kept", a.kept, rows);
  s.search = search;
  s.kept = kept;
  s.rows = {memory.input("tile_exponent", a.tile_exponent, rows * (s.shard.tiles + 1)),
            memory.input("largest", a.largest, rows), nullptr, kept, s.shard.tiles};
  if (a.combined != nullptr) s.combined = memory.input("combined", a.combined, rows * words_of(a.round - 1));
  s.message = memory.output("message", a.message, rows * s.words);
  launch(describe(settings, "step_shard_search", rows, kSearchThreads), step_shard_search, s);
  const std::uint32_t threads = block_threads(settings, 256);
  if (s.shard.device_tiles > 0 && a.round <= kHistogramRounds)
    launch(describe(settings, "add_to_shard_search", rows * s.shard.device_tiles, threads), add_to_shard_search, s);
  if (s.shard.device_tiles > 0 && a.round == kHistogramRounds + 1)
    launch(describe(settings, "find_shard_tie", rows, threads), find_shard_tie, s);
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

// The sums of rows across devices as a call: kernels/shard_summarise.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/shard_summarise.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void shard_summarise(const draftproof_shard_summarise_arguments& a, const draftproof_settings& settings) {
  const std::int64_t rows = a.shard.rows;
  if (rows == 0) return;
  OperationMemory memory(nullptr);
  const ShardView shard = view_of(memory, a.shard);
  const std::int64_t tiles = rows * shard.tiles;
  const CombinedRows combined{memory.input("tile_exponent", a.tile_exponent, tiles + rows), nullptr, nullptr,
                              memory.input("kept", a.kept, rows), shard.tiles};
  launch(describe(settings, "summarise_shard_tiles", tiles, block_threads(settings, 256)), summarise_shard_tiles, shard,
         combined, memory.input("own_exponent", a.own_exponent, tiles), memory.input("own_sum", a.own_sum, tiles),
         memory.output("tile_sum", a.tile_sum, tiles));
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

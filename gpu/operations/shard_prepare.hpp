// The first message of rows across devices as a call: kernels/shard_prepare.cuh.
#include "gpu/executors.hpp"
#include "gpu/kernels/shard_prepare.cuh"
#include "gpu/operations/instances.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void shard_prepare(const draftproof_shard_prepare_arguments& a, const draftproof_settings& settings) {
  const std::int64_t rows = a.shard.rows;
  if (rows == 0) return;
  OperationMemory memory(nullptr);
  const ShardView shard = view_of(memory, a.shard);
  const PreparedRows out{memory.output("tile_exponent", a.tile_exponent, rows * (shard.tiles + 1)),
                         memory.output("largest", a.largest, rows),
                         memory.output("own_exponent", a.own_exponent, rows * shard.tiles),
                         memory.output("own_sum", a.own_sum, rows * shard.tiles)};
  launch(describe(settings, "begin_shard_rows", rows, 128), begin_shard_rows, shard, out);
  if (shard.device_tiles > 0) {
    with_element(shard.logits.dtype, [&](auto element) {
      with_block_threads(settings, [&](auto threads) {
        launch(describe(settings, "prepare_shard_tiles", rows * shard.device_tiles, threads),
               prepare_shard_tiles<decltype(element), threads.value>, shard, out);
      });
    });
  }
  launch(describe(settings, "finish_shard_rows", rows, 128), finish_shard_rows, shard, out);
  memory.check_outputs();
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

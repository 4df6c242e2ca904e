// Launches that make the distributions of rows: kernels/mass.cuh.
#include "gpu/kernels/mass.cuh"
#include "gpu/operations/instances.hpp"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// run(std::integral_constant<int, threads>): how many threads share a tile, where the caller does not say. Many tiles
// want little work besides their elements: 64 elements a thread where 16 bits each fit its registers. Few want to be
// done soon.
template <class Element, class Run>
void with_tile_threads(const draftproof_settings& settings, std::int64_t tiles, Run run) {
  if constexpr (sizeof(Element) == 2) {
    if (settings.block_threads == 0 && tiles >= kManyTiles) return run(std::integral_constant<int, 64>{});
  } else if (settings.block_threads == 0 && tiles >= kManyTiles) {
    return run(std::integral_constant<int, 128>{});
  }
  with_block_threads(settings, run);
}

}  // namespace

void launch_tile_masses(const draftproof_settings& settings, const RowsView& logits, std::int64_t rows,
                        std::int64_t vocab_size, Global<const float> temperature, RowRequests row_requests,
                        const DistributionScratch& distribution) {
  const std::int64_t tiles = tiles_of(vocab_size);
  with_element(logits.dtype, [&](auto element) {
    with_tile_threads<decltype(element)>(settings, rows * tiles, [&](auto threads) {
      launch(describe(settings, "mass_tiles", rows * tiles, threads), mass_tiles<decltype(element), threads.value>,
             logits, temperature, row_requests, vocab_size, tiles, distribution.tile_sum, distribution.tile_exponent);
    });
  });
}

LogitsDistribution launch_unfiltered_distribution(const draftproof_settings& settings, const RowsView& logits,
                                                  std::int64_t rows, std::int64_t vocab_size,
                                                  Global<const float> temperature, RowRequests row_requests,
                                                  const DistributionScratch& distribution) {
  const std::int64_t tiles = tiles_of(vocab_size);
  launch_tile_masses(settings, logits, rows, vocab_size, temperature, row_requests, distribution);
  launch(describe(settings, "finish_rows", rows, 128), finish_rows, temperature, row_requests, tiles,
         distribution.tile_sum, distribution.tile_exponent, distribution.rows);
  return {logits,     temperature, row_requests, distribution.tile_sum, distribution.tile_exponent, distribution.rows,
          vocab_size, tiles};
}

LogitsDistribution launch_given_distribution(const draftproof_settings& settings, OperationMemory& memory,
                                             const RowsView& logits, std::int64_t rows, std::int64_t vocab_size,
                                             Global<const float> temperature, RowRequests row_requests,
                                             const draftproof_row_sums& sums, const DistributionScratch& distribution) {
  const std::int64_t tiles = tiles_of(vocab_size);
  launch(describe(settings, "adopt_rows", rows, 128), adopt_rows, row_requests,
         memory.input("row_exponent", sums.row_exponent, rows), memory.input("row_total", sums.row_total, rows),
         memory.input("row_status", sums.status, rows), tiles, distribution.tile_exponent, distribution.rows);
  return {logits, temperature, row_requests, nullptr, distribution.tile_exponent, distribution.rows, vocab_size, tiles};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

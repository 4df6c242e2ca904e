// Launches that make the laws of rows: kernels/mass.cuh.
#include "gpu/kernels/mass.cuh"
#include "gpu/operations/instances.hpp"
#include "gpu/operations/launch_law.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

void launch_tile_masses(const draftproof_settings& settings, const RowsView& logits, std::int64_t rows,
                        std::int64_t vocab_size, Global<const float> temperature,
                        Global<const std::int32_t> row_request, const LawScratch& law) {
  const std::int64_t tiles = tiles_of(vocab_size);
  with_element(logits.dtype, [&](auto element) {
    with_block_threads(settings, [&](auto threads) {
      launch(describe(settings, "mass_tiles", rows * tiles, threads), mass_tiles<decltype(element), threads.value>,
             logits, temperature, row_request, vocab_size, tiles, law.tile_sum, law.tile_exponent);
    });
  });
}

LogitsLaw launch_unfiltered_law(const draftproof_settings& settings, const RowsView& logits, std::int64_t rows,
                                std::int64_t vocab_size, Global<const float> temperature,
                                Global<const std::int32_t> row_request, const LawScratch& law) {
  const std::int64_t tiles = tiles_of(vocab_size);
  launch_tile_masses(settings, logits, rows, vocab_size, temperature, row_request, law);
  launch(describe(settings, "finish_rows", rows, 128), finish_rows, temperature, row_request, tiles, law.tile_sum,
         law.tile_exponent, law.rows);
  return {logits, temperature, row_request, law.tile_sum, law.tile_exponent, law.rows, vocab_size, tiles};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

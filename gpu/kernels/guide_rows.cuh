// Guidance of whole rows as a call of its own, one block a tile (twin: combine_guidance in
// reference/logits/guidance.hpp).
//
//   conditional, unconditional [rows, vocab_size], scale [rows] -> out [rows, out_stride] f32, status [rows]
//
// Ladder (bytes that must move: two elements read, 4 bytes written a token):
//   v1 (this)  16-byte loads and stores; a row that is refused is overwritten by a second kernel, which of other rows
//       reads the status alone.
//   next: in one pass with what follows, as edit_rows.cuh does inside the pipeline.
#pragma once

#include "gpu/kernels/guidance.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct GuidedRows {
  RowsView conditional;
  RowsView unconditional;
  Global<const float> scale;
  std::int64_t vocab_size;
  std::int64_t tiles;
  Global<float> out;
  std::int64_t out_stride;
  bool aligned;  // every row of out begins at a multiple of 16 bytes
  Global<std::int32_t> status;
};

// Grid: rows / blockDim.x blocks, rounded up.
__global__ void begin_guided_rows(Global<const float> scale, std::int64_t rows, Global<std::int32_t> status) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  status[row] = is_finite(scale[row]) ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_PARAMETER;
}

// Grid: rows * tiles blocks.
__global__ void guide_rows(GuidedRows g) {
  const std::int64_t row = blockIdx.x / g.tiles;
  const std::int64_t tile = blockIdx.x % g.tiles;
  const float scale = g.scale[row];
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  const std::int64_t end = tile_end < g.vocab_size ? tile_end : g.vocab_size;
  bool valid = true;
  for (std::int64_t column = tile * kTileTokens + threadIdx.x * 8; column < end; column += blockDim.x * 8) {
    float x[8];
    load_row(g.conditional, row, column, g.vocab_size, negative_infinity(), x);
    if (scale != 1.0f) {
      float u[8];
      load_row(g.unconditional, row, column, g.vocab_size, negative_infinity(), u);
      DRAFTPROOF_UNROLL
      for (int i = 0; i < 8; ++i) {
        const GuidedLogit guided = guided_logit(x[i], u[i], scale);
        x[i] = guided.value;
        valid = valid && guided.valid;
      }
    }
    store_eight(g.out, row * g.out_stride + column, end - column, g.aligned, x);
  }
  if (!valid) atomicMax(&g.status[row], static_cast<std::int32_t>(DRAFTPROOF_ROW_BAD_GUIDANCE));
}

// Grid: rows * tiles blocks.
__global__ void refuse_guided_rows(GuidedRows g) {
  const std::int64_t row = blockIdx.x / g.tiles;
  const std::int64_t tile = blockIdx.x % g.tiles;
  if (g.status[row] == DRAFTPROOF_ROW_OK) return;
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  const std::int64_t end = tile_end < g.vocab_size ? tile_end : g.vocab_size;
  for (std::int64_t i = tile * kTileTokens + threadIdx.x; i < end; i += blockDim.x)
    g.out[row * g.out_stride + i] = bit_cast<float>(0x7fc00000u);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

// Dense edits of rows of logits: guidance, NaN policy, allowed ids and grammar bitmask, one block a tile (twin: the
// first half of Pipeline::run and mask_tokens).
//
//   logits [rows, vocab_size], unconditional [rows, vocab_size], allowed_mask [rows, ceil(vocab_size / 32)]
//     -> edited [rows, edited_stride] f32, tile_status [rows, tiles]
//
// Ladder (bytes that must move: what is read of the row, 4 vocab_size written; an eighth of a byte a token of bitmask):
//   v1 (this)  16-byte loads and stores, a byte of bitmask for eight tokens. A row that nothing edits never comes here.
//   next: in one pass with the mass of the tile, where no sparse edit follows.
#pragma once

#include "gpu/kernels/constraints.cuh"
#include "gpu/kernels/guidance.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// The allowed ids of requests as bitmasks. A bad id is passed over here and refused in edit_tokens. A request without a
// list has no bits: it has no such constraint. Grid: requests blocks.
__global__ void allowed_bits_of_ids(Global<const Token> allowed_ids, std::int64_t allowed_ids_count,
                                    Global<const std::int64_t> allowed_offsets, std::int64_t vocab_size,
                                    std::int64_t words, Global<std::uint32_t> allowed_bits) {
  const std::int64_t request = blockIdx.x;
  const Global<std::uint32_t> bits = allowed_bits + request * words;
  for (std::int64_t w = threadIdx.x; w < words; w += blockDim.x) bits[w] = 0;
  __syncthreads();
  const ListRange list = list_of(allowed_offsets, request, allowed_ids_count);
  for (std::int64_t i = list.begin + threadIdx.x; i < list.end; i += blockDim.x) {
    const Token id = allowed_ids[i];
    if (id < 0 || id >= vocab_size) continue;
    atomicOr(&bits[id / 32], 1u << (id % 32));
  }
}

struct DenseEdits {
  RowsView logits;
  RowsView unconditional;  // element type and pointers as given; has_unconditional says whether there is one
  bool has_unconditional;
  ParametersView parameters;
  ConstraintsView constraints;
  Global<const std::uint32_t> allowed_bits;  // [requests, words], of allowed ids; null: no request has a list
  RowRequests row_requests;
  std::int64_t vocab_size;
  std::int64_t tiles;
  Global<float> edited;  // [rows, edited_stride]
  std::int64_t edited_stride;
  Global<std::int32_t> tile_status;
};

// Which of the eight tokens from `column` on may be drawn.
__device__ inline std::uint32_t allowed_byte(const DenseEdits& e, std::int64_t row, std::int64_t request,
                                             std::int64_t column) {
  std::uint32_t byte = 0xffu;
  if (e.constraints.allowed_mask != nullptr) {
    const std::uint32_t word = e.constraints.allowed_mask[row * e.constraints.allowed_mask_stride + column / 32];
    byte &= word >> (column % 32);
  }
  if (e.allowed_bits != nullptr && e.constraints.allowed(request).count() > 0) {
    const std::uint32_t word = e.allowed_bits[request * ((e.vocab_size + 31) / 32) + column / 32];
    byte &= word >> (column % 32);
  }
  return byte;
}

// Grid: rows * tiles blocks.
__global__ void edit_rows(DenseEdits e) {
  constexpr int kCount = 8;
  const std::int64_t row = blockIdx.x / e.tiles;
  const std::int64_t tile = blockIdx.x % e.tiles;
  const std::int64_t request = e.row_requests.of(row);
  const float scale = value_of(e.parameters.guidance_scale, request, 1.0f);
  const bool nan_is_masked = value_of<std::uint8_t>(e.parameters.nan_policy, request, 0) != 0;
  const bool guides = scale != 1.0f && e.has_unconditional;
  bool bad_guidance = scale != 1.0f && !e.has_unconditional;
  bool has_nan = false;
  bool infinite = false;
  const std::int64_t tile_end = (tile + 1) * kTileTokens;
  const std::int64_t end = tile_end < e.vocab_size ? tile_end : e.vocab_size;
  for (std::int64_t column = tile * kTileTokens + threadIdx.x * kCount; column < end; column += blockDim.x * kCount) {
    float x[kCount];
    load_row(e.logits, row, column, e.vocab_size, negative_infinity(), x);
    if (guides) {
      float u[kCount];
      load_row(e.unconditional, row, column, e.vocab_size, negative_infinity(), u);
      DRAFTPROOF_UNROLL
      for (int i = 0; i < kCount; ++i) {
        const GuidedLogit guided = guided_logit(x[i], u[i], scale);
        x[i] = guided.value;
        bad_guidance = bad_guidance || !guided.valid;
      }
    }
    const std::uint32_t allowed = allowed_byte(e, row, request, column);
    DRAFTPROOF_UNROLL
    for (int i = 0; i < kCount; ++i) {
      if (x[i] != x[i]) {
        has_nan = has_nan || !nan_is_masked;
        x[i] = negative_infinity();
      }
      infinite = infinite || x[i] == -negative_infinity();
      if ((allowed >> i & 1u) == 0) x[i] = negative_infinity();
    }
    store_eight(e.edited, row * e.edited_stride + column, end - column, true, x);
  }
  std::uint32_t worst = DRAFTPROOF_ROW_OK;
  if (infinite) worst = DRAFTPROOF_ROW_INFINITE_LOGIT;
  if (has_nan) worst = DRAFTPROOF_ROW_NAN_LOGIT;
  if (bad_guidance) worst = DRAFTPROOF_ROW_BAD_GUIDANCE;
  worst = block_reduce(worst, Max{});
  if (threadIdx.x == 0) e.tile_status[row * e.tiles + tile] = static_cast<std::int32_t>(worst);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

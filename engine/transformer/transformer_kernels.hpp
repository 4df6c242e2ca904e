// The loops of a forward pass that are worth vectorising. Each exists once in plain scalar code
// (transformer_kernels_scalar.cpp, the definition) and once for each instruction set; all give the same bits, since the
// lanes of a sum and the order in which lanes are added are part of the definition, and the sums of int8 products are
// over integers. The tests compare them on whichever targets the machine has.
//
// A NaN or an infinity that goes into a row comes out of it as a NaN or an infinity somewhere, of unspecified bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/transformer/int8_rows.hpp"
#include "engine/transformer/packed_matrix.hpp"

namespace draftproof {

// Groups [group_begin, group_end) of a product of a matrix with rows of activations.
struct ProductPart {
  const PackedMatrix* weights;
  std::int64_t group_begin;
  std::int64_t group_end;
  float* out;  // [rows][out_stride], column 0 being row 0 of the matrix; whole groups are written
  std::size_t out_stride;
  const std::byte* next;  // what the thread reads after this part, for the prefetch; or null
};

// Keys and values of a tile of 16 positions of one head: lanes are positions for keys, dimensions for values.
inline constexpr std::int64_t kTilePositions = 16;

struct TransformerKernels {
  const char* target;  // "scalar", "AVX2", "AVX3", ... as RowKernels, and "AVX2_VNNI"

  // Blocks [block_begin, block_end) of a row x into its tile (int8_rows.hpp).
  void (*quantise)(const float* x, std::int64_t block_begin, std::int64_t block_end, const Int8Tile& tile, int row);

  // out[m][r] = acc, from +0, blocks b ascending: acc = fma((float) sum_k q_k (code_k - offset), d_b d, acc), then
  // acc = fma(m_b, d sum_k q_k, acc) where the format has a minimum. With scales for each 16 columns: the lower half
  // first, then the upper. Not for float formats.
  void (*int8_product)(const ProductPart& part, std::span<const Int8Tile> tiles);

  // out[m][r] = acc, from +0, blocks ascending: t = +0, columns k ascending: t = fma(w_k, x_k, t); acc = acc + t.
  // x: [rows][x_stride].
  void (*float_product)(const ProductPart& part, const float* x, std::size_t x_stride, int rows);

  // out = (x r) weight, r = 1 / sqrt(s / (float) count + epsilon), NaN where s is infinite; s = sum of squares: lane
  // i % 16 by fma, i ascending; then lanes l and l + 8, l + 4, l + 2, l + 1 are added. count is a multiple of 16.
  void (*rms_norm)(const float* x, const float* weight, std::size_t count, float epsilon, float* out);

  // out[i] = (g / (1 + exp(-g))) u, the exponent within +-kExpLimit. count is a multiple of 16.
  void (*swiglu)(const float* gate, const float* up, std::size_t count, float* out);

  // x[i] = x[i] + y[i]; count is a multiple of 16.
  void (*add)(float* x, const float* y, std::size_t count);

  // scores[j][p] = sum over dimensions i ascending of fma(q[i][j], key[i][p], .) from +0. queries: [head_len], each
  // query_stride floats on, of which num_queries are taken; key: binary16 [head_len][16]; scores: [num_queries][16].
  void (*tile_scores)(const float* queries, std::size_t query_stride, int num_queries, const std::uint16_t* key,
                      std::int64_t head_len, float* scores);

  // scores of positions [first, count) -> exp(score - max), and returns 1 / their sum: lane p % 16, p ascending; lanes
  // as in rms_norm. Tiles of 16 positions lie tile_stride floats apart; what lies before first, which is in the first
  // tile, and what follows count in its tile is set to +0.
  float (*softmax)(float* scores, std::size_t first, std::size_t count, std::size_t tile_stride);

  // out[j][i] = fma(weights[j][p], value[p][i], .), p ascending in [0, count). weights: [num_queries][16]; value:
  // binary16 [16][head_len]; out: [num_queries][head_len].
  void (*tile_values)(const float* weights, int num_queries, std::size_t count, const std::uint16_t* value,
                      std::int64_t head_len, float* out);

  // out[i] = x[i] * factor; count is a multiple of 16. out may be x.
  void (*scale)(const float* x, std::size_t count, float factor, float* out);

  // To binary16, to nearest, ties to even. Returns false where one is not finite then. count is a multiple of 16.
  bool (*to_f16)(const float* x, std::size_t count, std::uint16_t* out);

  // Whether all are finite.
  bool (*all_finite)(const float* x, std::size_t count);
};

// exp(x) is f 2^n of exp_parts(x) for x cut to [-kExpLimit, kExpLimit], where the power is a normal number.
inline constexpr float kExpLimit = 86.0f;

const TransformerKernels& scalar_transformer_kernels();

// The fastest set on this processor.
const TransformerKernels& transformer_kernels();

// Every set that runs on this processor, the scalar one first.
std::vector<TransformerKernels> available_transformer_kernels();

// How far ahead of the weights in use memory is asked for the next; half of it costs a tenth of the speed.
inline constexpr std::ptrdiff_t kPrefetchBytes = 8192;

// Products of int8 rows by instruction set; null where the processor or the compiler lacks it.
using Int8Product = void (*)(const ProductPart& part, std::span<const Int8Tile> tiles);
Int8Product int8_product_avx2();
Int8Product int8_product_avxvnni();
Int8Product int8_product_avx512_vnni();
Int8Product int8_product_wasm();

// Which of them a set takes, by the instructions: "AVX-512 VNNI", "AVX-VNNI", "AVX2", "WebAssembly" or "scalar".
const char* int8_instructions(const TransformerKernels& kernels);

}  // namespace draftproof

// Products of a matrix with rows of activations, shared by the threads of a team: what a forward pass is made of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/transformer/buffers.hpp"
#include "engine/transformer/int8_rows.hpp"
#include "engine/transformer/thread_team.hpp"
#include "engine/transformer/transformer_kernels.hpp"

namespace draftproof {

// int8: rows are rounded to int8 before a quantised matrix; f32: they stay float. Matrices of floats take floats in
// both.
enum class Arithmetic : std::uint8_t { int8, f32 };

inline bool takes_int8(Arithmetic arithmetic, const PackedMatrix& matrix) {
  return arithmetic == Arithmetic::int8 && layout_of(matrix.format()).quantised();
}

// Rows of activations as the products take them.
struct ActivationRows {
  AlignedFloats values;  // [n][width]
  Int8Rows int8;         // where a quantised matrix wants them so
  std::int64_t width = 0;

  void resize(std::size_t n, std::int64_t columns, bool as_int8);
  float* row(std::size_t i) { return values.data() + i * static_cast<std::size_t>(width); }
  // Blocks [block_begin, block_end) of a row into its tile.
  void quantise(const TransformerKernels& kernels, std::size_t i, std::int64_t block_begin, std::int64_t block_end);
};

// A product is cut into units of two groups, whose rows make a block of activations.
inline constexpr std::int64_t kUnitGroups = kBlockColumns / kGroupRows;

inline std::int64_t units_of(const PackedMatrix& matrix) {
  return (matrix.groups() + kUnitGroups - 1) / kUnitGroups;
}
// Rows with those that fill the last group: the stride that an output needs at least.
inline std::size_t padded_rows(const PackedMatrix& matrix) {
  return static_cast<std::size_t>(matrix.groups() * kGroupRows);
}
// Units of a range that a thread claims at once: 5 us of reading.
std::int64_t grain_of(const PackedMatrix& matrix);

// Units [begin, end) of matrix times rows to `to` [rows][stride]. next: what the thread reads after them where that is
// not the matrix itself; null: it is.
void multiply_units(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMatrix& matrix,
                    std::int64_t begin, std::int64_t end, ActivationRows& rows, float* to, std::size_t stride,
                    const std::byte* next = nullptr);

// One row by one thread: x [columns] -> out [padded_rows(matrix)].
void multiply_row(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMatrix& matrix, const float* x,
                  AlignedFloats& out);

// body(i) for the items of a phase of a team.
template <class Body>
void for_items(ThreadTeam& team, int thread, std::int64_t count, const Body& body) {
  constexpr std::int64_t kRanges = 8;  // at most, per thread
  const std::int64_t ranges = kRanges * team.threads();
  const std::int64_t grain = std::max<std::int64_t>(1, (count + ranges - 1) / ranges);
  team.for_ranges(thread, count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) body(i);
  });
}

// One product by itself.
class RowProduct {
 public:
  // x [n, columns] -> out [n, rows]. A row of out in which a value is not finite is NaN throughout.
  void run(ThreadTeam& team, const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMatrix& matrix,
           std::span<const float> x, std::vector<float>& out);

 private:
  ActivationRows rows_;
  AlignedFloats product_;  // [n][rows, padded to whole groups]
};

}  // namespace draftproof

#include "engine/transformer/row_product.hpp"

#include <limits>

namespace draftproof {

void ActivationRows::resize(std::size_t n, std::int64_t columns, bool as_int8) {
  width = columns;
  values.resize(n * static_cast<std::size_t>(columns));
  if (as_int8) int8.resize(static_cast<int>(n), columns);
}

void ActivationRows::quantise(const TransformerKernels& kernels, std::size_t i, std::int64_t block_begin,
                              std::int64_t block_end) {
  const Int8Tile& tile = int8.tile_of(static_cast<int>(i));
  kernels.quantise(row(i), block_begin, block_end, tile, static_cast<int>(i) - tile.first_row);
}

std::int64_t grain_of(const PackedMatrix& matrix) {
  constexpr std::int64_t kRangeBytes = 64 << 10;
  return std::max<std::int64_t>(1, kRangeBytes / (static_cast<std::int64_t>(matrix.group_bytes()) * kUnitGroups));
}

void multiply_units(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMatrix& matrix,
                    std::int64_t begin, std::int64_t end, ActivationRows& rows, float* to, std::size_t stride,
                    const std::byte* next) {
  const std::int64_t group_end = std::min(matrix.groups(), end * kUnitGroups);
  const ProductPart part{
      &matrix, begin * kUnitGroups, group_end, to, stride, next != nullptr ? next : matrix.group(group_end)};
  if (takes_int8(arithmetic, matrix))
    kernels.int8_product(part, rows.int8.tiles());
  else
    kernels.float_product(part, rows.values.data(), static_cast<std::size_t>(rows.width),
                          static_cast<int>(rows.values.size() / static_cast<std::size_t>(rows.width)));
}

void multiply_row(const TransformerKernels& kernels, Arithmetic arithmetic, const PackedMatrix& matrix, const float* x,
                  AlignedFloats& out) {
  out.resize(padded_rows(matrix));
  const ProductPart part{&matrix, 0, matrix.groups(), out.data(), out.size(), nullptr};
  if (!takes_int8(arithmetic, matrix))
    return kernels.float_product(part, x, static_cast<std::size_t>(matrix.columns()), 1);
  thread_local Int8Rows int8;
  int8.resize(1, matrix.columns());
  kernels.quantise(x, 0, matrix.blocks(), int8.tiles()[0], 0);
  kernels.int8_product(part, int8.tiles());
}

void RowProduct::run(ThreadTeam& team, const TransformerKernels& kernels, Arithmetic arithmetic,
                     const PackedMatrix& matrix, std::span<const float> x, std::vector<float>& out) {
  const auto columns = static_cast<std::size_t>(matrix.columns());
  const auto width = static_cast<std::size_t>(matrix.rows());
  const std::size_t n = x.size() / columns;
  const bool int8 = takes_int8(arithmetic, matrix);
  out.resize(n * width);
  if (n == 0) return;
  rows_.resize(n, matrix.columns(), int8);
  std::ranges::copy(x, rows_.values.begin());
  const std::size_t padded = padded_rows(matrix);
  product_.resize(n * padded);
  team.run([&](int thread) {
    if (int8)
      for_items(team, thread, static_cast<std::int64_t>(n),
                [&](std::size_t i) { rows_.quantise(kernels, i, 0, matrix.blocks()); });
    team.for_ranges(thread, units_of(matrix), grain_of(matrix), [&](std::int64_t begin, std::int64_t end) {
      multiply_units(kernels, arithmetic, matrix, begin, end, rows_, product_.data(), padded);
    });
    for_items(team, thread, static_cast<std::int64_t>(n), [&](std::size_t i) {
      const float* const from = product_.data() + i * padded;
      if (kernels.all_finite(from, width))
        std::copy_n(from, width, out.data() + i * width);
      else
        std::fill_n(out.data() + i * width, width, std::numeric_limits<float>::quiet_NaN());
    });
  });
}

}  // namespace draftproof

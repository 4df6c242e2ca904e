// A weight matrix, repacked once at load from the blocks of a file into the layout of the kernels. No value changes:
// decode_row() gives what decode_blocks() gives, bit for bit.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/transformer/buffers.hpp"
#include "engine/transformer/packed_format.hpp"
#include "engine/weights/block_formats.hpp"

namespace draftproof {

// Where the matrices of a model lie one after the other, in the order in which a pass reads them.
class WeightArena {
 public:
  explicit WeightArena(std::size_t bytes) : buffer_(bytes) {}
  // The next `bytes`, zeroed, aligned to 64. The sum must be what was asked for, each rounded up to 64.
  std::byte* take(std::size_t bytes) {
    std::byte* const at = buffer_.data() + used_;
    used_ += (bytes + 63) / 64 * 64;
    return at;
  }

 private:
  HugeBuffer buffer_;
  std::size_t used_ = 0;
};

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // `name` is for errors. data: [rows] rows of encoded_bytes(kind, columns). Errors (input): columns that are no
  // multiple of 32 or of the kind's block; a value (or a scale) that is NaN or infinite.
  // arena: null, and the matrix has memory of its own.
  PackedMatrix(const std::string& name, TensorKind kind, std::int64_t rows, std::int64_t columns,
               std::span<const std::byte> data, int threads, std::shared_ptr<WeightArena> arena = nullptr);

  // Bytes that such a matrix takes of an arena.
  static std::size_t bytes_of(TensorKind kind, std::int64_t rows, std::int64_t columns);

  PackedFormat format() const { return format_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t blocks() const { return columns_ / kBlockColumns; }
  std::int64_t groups() const { return (rows_ + kGroupRows - 1) / kGroupRows; }
  std::size_t group_bytes() const { return layout_of(format_).group_bytes(static_cast<std::size_t>(blocks())); }
  std::size_t bytes() const { return group_bytes() * static_cast<std::size_t>(groups()); }
  const std::byte* group(std::int64_t g) const { return data_ + static_cast<std::size_t>(g) * group_bytes(); }

  // The rows of these indices, in their order.
  PackedMatrix gathered(std::span<const std::int32_t> rows, int threads) const;
  // out [columns]: the values of a row.
  void decode_row(std::int64_t row, std::span<float> out) const;

 private:
  PackedFormat format_ = PackedFormat::f32;
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  std::shared_ptr<WeightArena> arena_;
  std::byte* data_ = nullptr;
};

}  // namespace draftproof

// Rows 2^31 elements apart: from the third on, 32-bit offsets of elements wrap. Only the pages that are written exist.
#pragma once

#include <cstdint>

#include "gpu/draftproof.h"

namespace draftproof::regress {

inline constexpr std::int64_t kFarStride = std::int64_t{1} << 31;

// Memory of which nothing exists until it is written; zeros.
class SparseMemory {
 public:
  explicit SparseMemory(std::int64_t bytes);  // Error (input): the system maps no so many
  ~SparseMemory();
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;
  void* begin() const { return begin_; }

 private:
  std::size_t bytes_;
  void* begin_;
};

class SparseRows {
 public:
  explicit SparseRows(std::int64_t rows) : memory_(rows * kFarStride * 4) {}

  float* row(std::int64_t r) { return static_cast<float*>(memory_.begin()) + r * kFarStride; }
  // With the first columns of rows that lie closer together.
  draftproof_rows filled(const float* from, std::int64_t rows, std::int64_t from_stride, std::int64_t vocab_size);

 private:
  SparseMemory memory_;
};

}  // namespace draftproof::regress

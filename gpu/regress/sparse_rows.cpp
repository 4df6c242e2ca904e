#include "gpu/regress/sparse_rows.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace draftproof::regress {

SparseMemory::SparseMemory(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes)) {
  begin_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin_ == MAP_FAILED)
    throw input_error("sparse memory", "the system maps no " + std::to_string(bytes_) + " bytes");
}
SparseMemory::~SparseMemory() {
  munmap(begin_, bytes_);
}

draftproof_rows SparseRows::filled(const float* from, std::int64_t rows, std::int64_t from_stride,
                                   std::int64_t vocab_size) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(from + r * from_stride, vocab_size, row(r));
  return {row(0), kFarStride, DRAFTPROOF_F32};
}

}  // namespace draftproof::regress

#include "gpu/simt/cells.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "base/error.hpp"

namespace draftproof::simt {
namespace {

constexpr std::size_t kHeapBytesMax = std::size_t{1} << 30;

}  // namespace

void Cells::Release::operator()(Cell* cells) const {
  if (mapped_bytes == 0) {
    std::free(cells);
  } else {
    munmap(cells, mapped_bytes);
  }
}

Cells::Cells(std::size_t count) : size_(count) {
  if (count == 0) return;
  const std::size_t bytes = count * sizeof(Cell);
  if (bytes <= kHeapBytesMax) {
    cells_.reset(static_cast<Cell*>(std::calloc(count, sizeof(Cell))));
    if (!cells_) throw std::bad_alloc();
    return;
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    throw input_error("CPU executor", "the system maps no " + std::to_string(bytes) + " bytes for shadow cells");
  cells_ = std::unique_ptr<Cell, Release>(static_cast<Cell*>(mapped), Release{bytes});
}

}  // namespace draftproof::simt

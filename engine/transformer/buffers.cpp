#include "engine/transformer/buffers.hpp"

#include <sys/mman.h>

#include <new>

namespace draftproof {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t mapped_bytes(std::size_t bytes) {
  // A page more than needed: the mapping may begin anywhere in one.
  return (bytes + kHugePage - 1) / kHugePage * kHugePage;
}

}  // namespace

HugeBuffer::HugeBuffer(std::size_t bytes) : HugeBuffer() {
  if (bytes == 0) return;
  void* const at =
      mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  madvise(at, mapped_bytes(bytes), MADV_HUGEPAGE);  // a hint: small pages give the same results
  data_ = std::unique_ptr<std::byte, Unmap>(static_cast<std::byte*>(at), Unmap{bytes});
}

void HugeBuffer::Unmap::operator()(std::byte* at) const {
  munmap(at, mapped_bytes(bytes));
}

}  // namespace draftproof

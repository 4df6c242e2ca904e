#include "gpu/simt/global_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "base/error.hpp"

namespace draftproof::simt {
namespace {

constexpr std::uint64_t kGuardBytes = 256;  // on each side; also the alignment
constexpr std::uint64_t kGuardWord = 0x6a7d0c3b91e2f458;

void write_guard(std::byte* at) {
  for (std::uint64_t i = 0; i < kGuardBytes; i += sizeof(kGuardWord))
    std::memcpy(at + i, &kGuardWord, sizeof(kGuardWord));
}

// The first damaged byte of a guard, or kGuardBytes.
std::uint64_t damage(const std::byte* at) {
  std::byte right[kGuardBytes];
  write_guard(right);
  return static_cast<std::uint64_t>(std::mismatch(right, right + kGuardBytes, at).first - right);
}

}  // namespace

void GlobalMemory::Free::operator()(std::byte* p) const {
  std::free(p);
}

GlobalMemory::GlobalMemory(const std::string& name, std::uint64_t bytes, std::uint32_t element_bytes,
                           std::uint32_t granule, bool has_cells)
    : region_(std::make_unique<Region>()) {
  const std::uint64_t padded = (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  bytes_.reset(static_cast<std::byte*>(std::aligned_alloc(kGuardBytes, padded + 2 * kGuardBytes)));
  if (!bytes_) throw std::bad_alloc();
  region_->name = "buffer " + name;
  region_->has_guards = true;
  region_->data = bytes_.get() + kGuardBytes;
  region_->bytes = bytes;
  region_->element_bytes = element_bytes;
  region_->granule = granule;
  if (has_cells) region_->cells = Cells(bytes / granule);
  write_guard(bytes_.get());
  write_guard(region_->data + bytes);  // right behind the last element, whatever the padding
  poison(region_->data, bytes);
}

void GlobalMemory::mark_written() const {
  region_->begins_written = true;
}

std::int64_t GlobalMemory::first_unwritten() const {
  if (region_->begins_written) return -1;
  const Cells& cells = region_->cells;
  const auto found =
      std::find_if(cells.begin(), cells.end(), [](const Cell& cell) { return (cell.flags & Cell::written) == 0; });
  return found == cells.end() ? -1 : (found - cells.begin()) * region_->granule / region_->element_bytes;
}

void GlobalMemory::throw_unwritten(std::int64_t element) const {
  throw Error(ErrorKind::internal, region_->name, "element " + std::to_string(element) + " was never written");
}

void GlobalMemory::throw_input() const {
  throw Error(ErrorKind::internal, region_->name, "is an input; a kernel that writes needs in_out or output");
}

void check_guards(const Region& region, const std::string& when) {
  const std::uint64_t before = damage(region.data - kGuardBytes);
  const std::uint64_t behind = damage(region.data + region.bytes);
  if (before != kGuardBytes) {
    throw Error(
        ErrorKind::internal, region.name,
        "a guard word is damaged " + std::to_string(kGuardBytes - before) + " bytes before its begin, found " + when);
  }
  if (behind != kGuardBytes) {
    throw Error(ErrorKind::internal, region.name,
                "a guard word is damaged " + std::to_string(behind) + " bytes behind its end, found " + when);
  }
}

}  // namespace draftproof::simt

#include "gpu/simt/shared_memory.hpp"

#include <utility>

namespace draftproof::simt {

SharedMemory::SharedMemory(std::uint64_t dynamic_bytes) {
  dynamic_.region.name = "dynamic shared memory";
  dynamic_.region.space = Space::shared;
  dynamic_.region.granule = 4;
  allocate(dynamic_, dynamic_bytes);
}

void SharedMemory::begin_block() {
  poison(dynamic_.region.data, dynamic_.region.bytes);
  for (const auto& array : arrays_) poison(array->region.data, array->region.bytes);
}

Region& SharedMemory::dynamic(std::uint32_t alignment) {
  Region& region = dynamic_.region;
  if (alignment < region.granule) {
    const std::uint32_t parts = region.granule / alignment;
    Cells finer(region.cells.size() * parts);
    for (std::size_t i = 0; i < finer.size(); ++i) finer[i] = region.cells[i / parts];
    region.cells = std::move(finer);
    region.granule = alignment;
  }
  return region;
}

Region* SharedMemory::array(const void* tag, const char* name, std::uint64_t bytes, std::uint32_t element_bytes,
                            std::uint32_t alignment, std::uint64_t limit) {
  for (const auto& array : arrays_) {
    if (array->tag == tag) return &array->region;
  }
  static_bytes_ += bytes;
  if (static_bytes_ > limit) return nullptr;
  auto array = std::make_unique<Array>();
  array->tag = tag;
  array->region.name = std::string("shared array ") + name;
  array->region.space = Space::shared;
  array->region.element_bytes = element_bytes;
  array->region.granule = alignment;
  allocate(*array, bytes);
  poison(array->region.data, bytes);
  return &arrays_.emplace_back(std::move(array))->region;
}

void SharedMemory::allocate(Array& array, std::uint64_t bytes) {
  array.bytes = std::make_unique<std::max_align_t[]>(bytes / sizeof(std::max_align_t) + 1);
  array.region.data = reinterpret_cast<std::byte*>(array.bytes.get());
  array.region.bytes = bytes;
  array.region.cells = Cells((bytes + array.region.granule - 1) / array.region.granule);
}

}  // namespace draftproof::simt

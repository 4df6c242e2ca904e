#include "gpu/simt/operation_memory.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace draftproof::simt {

void OperationMemory::check_outputs() const {
  for (const Output& output : outputs_) {
    const Region& region = *output.region;
    for (std::size_t row = 0; row < output.rows; ++row) {
      const Cell* const begin = region.cells.begin() + row * output.row_stride;
      const Cell* const end = begin + output.columns;
      const auto found = std::find_if(begin, end, [](const Cell& cell) { return (cell.flags & Cell::written) == 0; });
      if (found == end) continue;
      const std::int64_t element = (found - region.cells.begin()) * region.granule / region.element_bytes;
      throw Error(ErrorKind::internal, region.name, "element " + std::to_string(element) + " was never written");
    }
  }
}

}  // namespace draftproof::simt

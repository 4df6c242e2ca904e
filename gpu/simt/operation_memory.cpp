#include "gpu/simt/operation_memory.hpp"

#include <algorithm>

#include "reference/error.hpp"

namespace draftproof::simt {

void OperationMemory::check_outputs() const {
  for (const Region* output : outputs_) {
    const auto found = std::find_if(output->cells.begin(), output->cells.end(),
                                    [](const Cell& cell) { return (cell.flags & Cell::written) == 0; });
    if (found == output->cells.end()) continue;
    const std::int64_t element = (found - output->cells.begin()) * output->granule / output->element_bytes;
    throw Error(ErrorKind::internal, output->name, "element " + std::to_string(element) + " was never written");
  }
}

}  // namespace draftproof::simt

// The choice of row kernels where there is no vector library: the scalar set, which defines them.
#include "reference/row_kernels/row_kernels.hpp"
#include "base/error.hpp"

namespace draftproof {

const RowKernels& row_kernels() {
  return scalar_row_kernels();
}

std::vector<RowKernels> available_row_kernels() {
  return {scalar_row_kernels()};
}

void select_row_kernels(const std::string& target) {
  if (target != scalar_row_kernels().target)
    throw usage_error("--simd", "'" + target + "' is not there; this build has scalar alone");
}

}  // namespace draftproof

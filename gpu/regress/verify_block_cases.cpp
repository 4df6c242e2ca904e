// Cases of block verification.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/verify_inputs.hpp"

namespace draftproof::regress {

std::vector<RegressCase> verify_block_cases() {
  const VerifyCall block{"verify_block", device::verify_block_workspace_bytes, device::verify_block};
  return shared_verify_cases(block);
}

}  // namespace draftproof::regress

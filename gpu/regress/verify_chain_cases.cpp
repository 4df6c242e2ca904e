// Cases of chain verification.
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/inputs.hpp"
#include "gpu/regress/verify_inputs.hpp"

namespace draftproof::regress {

std::vector<RegressCase> verify_chain_cases() {
  const VerifyCall chain{"verify_chain", device::verify_chain_workspace_bytes, device::verify_chain};
  return shared_verify_cases(chain);
}

}  // namespace draftproof::regress

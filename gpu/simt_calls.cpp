// Alone in its object file, so that the programs of faults can define another.
#if defined(DRAFTPROOF_HAS_SIMT)
#include "gpu/executors.hpp"

namespace draftproof {

const KernelCalls& simt_calls() {
  return simt_executor::kCalls;
}

}  // namespace draftproof
#endif

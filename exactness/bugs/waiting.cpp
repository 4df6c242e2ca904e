// Faults, or parts of them, that live where this project has no code yet. Those of kernels are in gpu/faults.
#include "exactness/bugs/bug.hpp"

namespace draftproof {

std::vector<WaitingBug> waiting_bugs() {
  return {{"B12", "ROCm/aiter #2035", "an engine of several ranks, each with its own share of the vocabulary"}};
}

}  // namespace draftproof

// Faults, or parts of them, that live where this project has no code yet. Those of kernels are in gpu/mutants.
#include "reference/exactness/mutants/mutant.hpp"

namespace draftproof {

std::vector<WaitingMutant> waiting_mutants() {
  return {{"B12", "ROCm/aiter #2035", "an engine of several ranks, each with its own share of the vocabulary"}};
}

}  // namespace draftproof

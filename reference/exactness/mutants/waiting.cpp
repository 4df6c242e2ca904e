// Faults, or parts of them, that live where this project has no code yet.
#include "reference/exactness/mutants/mutant.hpp"

namespace draftproof {

std::vector<WaitingMutant> waiting_mutants() {
  return {{"B06", "flashinfer #424", "CUDA kernels: a race checker on their own block reduces"},
          {"B12", "ROCm/aiter #2035", "an engine of several ranks, each with its own share of the vocabulary"},
          {"B58", "flashinfer #2937", "CUDA kernels: their own offset of a row where B V > 2^32"}};
}

}  // namespace draftproof

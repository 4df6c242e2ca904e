// Kernels for every vector instruction set that was compiled and that this processor has. Included by files that
// Highway compiles once a target.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/highway.h"

namespace draftproof {

// `scalar` first, then what `of_target` (HWY_DYNAMIC_DISPATCH of a function that returns kernels, with their target's
// name) gives for each; targets for which it gives the scalar ones are left out. Not thread-safe: it changes what
// Highway dispatches to meanwhile.
template <class Kernels, class OfTarget>
std::vector<Kernels> kernels_of_every_target(const Kernels& scalar, OfTarget of_target) {
  std::vector<Kernels> found{scalar};
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const Kernels kernels = of_target();
    if (std::strcmp(kernels.target, "scalar") != 0) found.push_back(kernels);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return found;
}

}  // namespace draftproof

// Kernels for every vector instruction set that was compiled and that this processor has. Included by files that
// Highway compiles once a target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "hwy/highway.h"

namespace draftproof {

// Adds to `found` what `of_target` (HWY_DYNAMIC_DISPATCH of a function that returns kernels, with their target's name)
// gives for each target; what has the name of one that is there already is left out. Not thread-safe: it changes what
// Highway dispatches to meanwhile.
template <class Kernels, class OfTarget>
std::vector<Kernels> kernels_of_every_target(std::vector<Kernels> found, OfTarget of_target) {
  for (std::int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    const Kernels kernels = of_target();
    if (std::none_of(found.begin(), found.end(),
                     [&](const Kernels& other) { return std::strcmp(other.target, kernels.target) == 0; }))
      found.push_back(kernels);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  return found;
}

}  // namespace draftproof

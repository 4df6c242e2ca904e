// Are the kernels with planted faults built? `ninja faults` builds them, and ./draftproof test --all.
#pragma once

#include <catch2/catch.hpp>
#include <filesystem>

#include "gpu/regress/fault_program.hpp"

namespace draftproof::testing {

inline bool faults_are_built() {
  const bool built = std::filesystem::exists(regress::faults_folder() + "/B08-first-seed.run");
  if (!built) WARN("SKIPPED: the kernels with planted faults are not built; ./draftproof test --all builds them");
  return built;
}

}  // namespace draftproof::testing

// Runs a check with every set of row kernels that this processor has, and puts the first choice back.
#pragma once

#include <catch2/catch.hpp>
#include <string>

#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof::testing {

template <class Check>
void for_each_row_kernel_set(Check check) {
  struct Restore {
    std::string target = row_kernels().target;
    ~Restore() { select_row_kernels(target); }
  } restore;
  for (const RowKernels& kernels : available_row_kernels()) {
    INFO("row kernels: " << kernels.target);
    select_row_kernels(kernels.target);
    check();
  }
}

}  // namespace draftproof::testing

// Which instance of a kernel template a launch takes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/dtype.hpp"
#include "gpu/device.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// run(std::integral_constant<int, threads>): the instance for the caller's block size, 256 unless asked otherwise.
template <class Run>
void with_block_threads(const draftproof_settings& settings, Run run) {
  switch (block_threads(settings, 256)) {
    case 128:
      return run(std::integral_constant<int, 128>{});
    case 512:
      return run(std::integral_constant<int, 512>{});
    default:
      return run(std::integral_constant<int, 256>{});
  }
}

// run(Element{}): the instance for an element type.
template <class Run>
void with_element(std::int32_t dtype, Run run) {
  if (dtype == DRAFTPROOF_F32) return run(float{});
  if (dtype == DRAFTPROOF_F16) return run(Float16{});
  run(BFloat16{});
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

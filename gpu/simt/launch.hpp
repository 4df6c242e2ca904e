// The one place that starts kernels: a description says what to run, the arguments follow as the kernel takes them.
#pragma once

#include <functional>

#include "gpu/launch_description.hpp"
#include "gpu/simt/checked_pointer.hpp"
#include "gpu/simt/global_memory.hpp"

namespace draftproof {

namespace simt {

// Runs the kernel once per thread of the grid, blocks over the OS threads of the description. Throws the fault of the
// block that comes first in the seeded order.
void run_grid(const LaunchDescription& description, const std::function<void()>& kernel);

template <class T>
void check_argument(const LaunchDescription& description, const CheckedPointer<T>& pointer) {
  const Region* region = pointer.region();
  if (region != nullptr && region->has_guards) check_guards(*region, "after kernel " + description.kernel);
}
template <class T>
void check_argument(const LaunchDescription&, const T&) {}

}  // namespace simt

// Throws Error(internal) for a description that a GPU would refuse, for a fault of the kernel, and for guard words that
// are found damaged after it.
template <class Kernel, class... Arguments>
void launch(const LaunchDescription& description, const Kernel& kernel, const Arguments&... arguments) {
  check_description(description);
  simt::run_grid(description, [&] { kernel(arguments...); });
  (simt::check_argument(description, arguments), ...);
}

}  // namespace draftproof

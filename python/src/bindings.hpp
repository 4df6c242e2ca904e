// The parts of the extension module, each bound where it is written.
#pragma once

#include <nanobind/nanobind.h>

namespace draftproof::python {

namespace nb = nanobind;

void bind_sampling(nb::module_& module);
void bind_audit(nb::module_& module);

}  // namespace draftproof::python

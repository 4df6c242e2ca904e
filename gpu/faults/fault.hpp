// The parts of a fault's program beside its kernels.
#pragma once

namespace draftproof {

// The regression cases that must find it: those with this in their names.
const char* fault_cases();

}  // namespace draftproof

// The machine that a result was measured on, as every JSON document states it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace draftproof {

// `simd_target` is the set of row kernels in use (RowKernels::target). Facts the system does not tell are null.
nlohmann::ordered_json describe_machine(const std::string& simd_target);

}  // namespace draftproof

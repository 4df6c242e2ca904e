// The shipped model, which is not in the repository: the launcher downloads it when an argument names it
// (`./draftproof fetch smollm2`).
#pragma once

#include <string>

namespace draftproof {

inline constexpr const char* kShippedModel = "smollm2";

// Whether it is in share/draftproof/models (base/files/own_files.hpp), of a build folder build/models.
bool has_shipped_model();

// The path of `name`: of the shipped model there, otherwise the name itself. Input error: the shipped model
// is not there.
std::string model_path(const std::string& name);

}  // namespace draftproof

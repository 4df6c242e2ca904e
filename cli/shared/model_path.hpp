// Where a model that an option names lies.
#pragma once

#include <string>

#include "cli/shared/options.hpp"

namespace draftproof {

// The shipped model; the launcher downloads it when an argument names it (`./draftproof fetch smollm2`).
inline constexpr const char* kShippedModel = "smollm2";

// The path of `name`: of the shipped model in build/models, otherwise the name itself. Input error: the shipped model
// is not there.
std::string model_path(const std::string& name);

// Whether the shipped model is there.
bool has_shipped_model();

// "--no-download". The launcher obeys it; a program needs it to fall back on another model.
void add_no_download(Options& options, bool& no_download);

}  // namespace draftproof

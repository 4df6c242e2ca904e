// Options that name models.
#pragma once

#include <string>

#include "cli/shared/options.hpp"
#include "engine/model/shipped_model.hpp"

namespace draftproof {

// "--no-download". The launcher obeys it; a program needs it to fall back on another model.
inline void add_no_download(Options& options, bool& no_download) {
  options.flag("--no-download", no_download, "Never download the model smollm2");
}

}  // namespace draftproof

// Output of `draftproof generate`: for people, and as JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/generate/run.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {

void print_generate(std::ostream& out, const GenerateOptions& options, const GenerateRun& run, const Palette& palette);

Json generate_json(const GenerateOptions& options, const GenerateRun& run, const std::vector<std::string>& arguments);

}  // namespace draftproof

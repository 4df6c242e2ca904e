// The demo for people: text in colours, acceptance as bars, the verdict.
#pragma once

#include <ostream>
#include <string>

#include "cli/demo/run.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {

// "accepted 12, recovered 3, bonus 4", in the colours of the text.
std::string origin_legend(const Generation& generation, const Palette& palette);

void print_demo(std::ostream& out, const DemoOptions& options, const DemoRun& run, const Palette& palette);

}  // namespace draftproof

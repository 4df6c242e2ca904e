// The demo for people: text in colours, acceptance as bars, the verdict.
#pragma once

#include <ostream>

#include "cli/demo/run.hpp"
#include "cli/shared/terminal.hpp"

namespace draftproof {

void print_demo(std::ostream& out, const DemoOptions& options, const DemoRun& run, const Palette& palette);

}  // namespace draftproof

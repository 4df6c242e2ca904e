// Definitions of the two lengths of speculation, for the help of every command that prints them.
#pragma once

#include "cli/shared/options.hpp"

namespace draftproof {

inline void add_acceptance_terms(Options& options) {
  options.footer(
      "Acceptance length counts steps with a draft only, as vLLM's does; tokens per step counts all target steps.");
}

}  // namespace draftproof

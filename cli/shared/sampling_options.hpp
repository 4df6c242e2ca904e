// The options of a distribution that demo and generate both have.
#pragma once

#include <cstdint>

#include "cli/shared/options.hpp"

namespace draftproof {

inline void add_sampling_options(Options& command, double& temperature, double& top_p, std::int64_t& top_k,
                                 double& min_p) {
  command.number("--temperature", temperature, kTemperatureRange, "0 is greedy");
  command.number("--top-p", top_p, kNucleusRange, "Nucleus (1: off)");
  command.integer("--top-k", top_k, kTopKRange, "Tokens kept (0: off)");
  command.number("--min-p", min_p, kShareRange, "Least share of the likeliest token (0: off)");
}

}  // namespace draftproof

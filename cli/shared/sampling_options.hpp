// The options of a distribution that demo and generate both have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "cli/shared/options.hpp"
#include "reference/error.hpp"
#include "reference/logits/samplers.hpp"

namespace draftproof {

inline void add_sampling_options(Options& command, double& temperature, double& top_p, std::int64_t& top_k,
                                 double& min_p) {
  command.number("--temperature", temperature, kTemperatureRange, "0 is greedy");
  command.number("--top-p", top_p, kNucleusRange, "Nucleus (1: off)");
  command.integer("--top-k", top_k, kTopKRange, "Tokens kept (0: off)");
  command.number("--min-p", min_p, kShareRange, "Minimum probability relative to the most likely token (0: off)");
}

// Of every further sampler of the pipeline an option of its name.
inline void add_further_samplers(Options& command, SamplerParameters& samplers) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (const SamplerParameterName& sampler : sampler_parameter_names()) {
    std::string flag = "--" + std::string(sampler.name);
    std::replace(flag.begin(), flag.end(), '_', '-');
    command.number(flag, samplers.*sampler.value, {-kLargest, kLargest, false, "a finite number"},
                   std::string(sampler.meaning) + "; docs/trace.md");
  }
}

// Errors (usage): a value out of range; a sampler that has another number or state in every row, where a text is made.
inline void require_stateless(const SamplerParameters& samplers, const std::string& where) {
  if (samplers.has_state())
    throw usage_error(where, std::string(samplers.mirostat != 0.0f ? "mirostat" : "xtc_probability") +
                                 " would need another number or state in every row; expected " +
                                 (samplers.mirostat != 0.0f ? "0" : "0 or 1") +
                                 " here (files of single draws and of filters take any, docs/trace.md)");
  validate(samplers, where);
}

}  // namespace draftproof

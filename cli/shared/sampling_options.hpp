// The options of a distribution that demo and generate both have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "cli/shared/top_p.hpp"
#include "reference/logits/samplers.hpp"

namespace draftproof {

inline void add_sampling_options(Options& command, double& temperature, TopP& top_p, std::int64_t& top_k,
                                 double& min_p) {
  command.number("--temperature", temperature, kTemperatureRange, "0 is greedy");
  add_top_p(command, "--top-p", top_p,
            "Nucleus (1: off); compared as float32, of which 0.8 is above 4/5, or as N/D, exactly");
  command.integer("--top-k", top_k, kTopKRange, "Tokens kept (0: off)");
  command.number("--min-p", min_p, kShareRange, "Minimum probability relative to the most likely token (0: off)");
}

// Adds one option per extra sampler, except stateful ones and those with a random number in every row (Mirostat, XTC,
// adaptive-p), which a text that is made here has not got, and the window of penalties, which not all programs have.
// `has_others`: there may be other samplers, which some are for. Returns the options.
inline std::vector<std::string> add_further_samplers(
    Options& command, SamplerParameters& samplers, const std::function<bool()>& has_others = [] { return false; }) {
  using P = SamplerParameters;
  std::vector<std::string> options;
  for (const SamplerParameterName& sampler : sampler_parameter_names()) {
    constexpr float P::*kLeftOff[] = {&P::xtc_uniform,     &P::mirostat,      &P::mirostat_mu,
                                      &P::adaptive_target, &P::adaptive_mean, &P::penalty_last_n};
    if (std::find(std::begin(kLeftOff), std::end(kLeftOff), sampler.value) != std::end(kLeftOff)) continue;
    std::string& flag = options.emplace_back("--" + std::string(sampler.name));
    std::replace(flag.begin(), flag.end(), '_', '-');
    const std::string help = std::string(sampler.meaning) + "; docs/trace.md";
    float& value = samplers.*sampler.value;
    if (sampler.value == &P::xtc_probability) {
      command.number(flag, value, {1.0, 1.0, true, "0 (off) or 1, as between them every row has a number of its own"},
                     help);
    } else if (sampler.whole) {
      command.integer(flag, value, {static_cast<std::int64_t>(sampler.least), static_cast<std::int64_t>(sampler.most)},
                      help);
    } else {
      command.number(flag, value, {sampler.least, sampler.most, false, sampler.expected}, help);
    }
  }
  const auto belong_to = [&](const std::vector<std::string>& names, const std::string& main, float P::*strength) {
    command.used_only(names, "without a " + main + " above 0",
                      [=, &samplers] { return samplers.*strength > 0.0f || has_others(); });
  };
  belong_to({"--smoothing-curve"}, "--smoothing-factor", &P::smoothing_factor);
  belong_to({"--xtc-threshold"}, "--xtc-probability", &P::xtc_probability);
  belong_to({"--dry-base", "--dry-allowed-length", "--dry-range"}, "--dry-multiplier", &P::dry_multiplier);
  return options;
}

}  // namespace draftproof

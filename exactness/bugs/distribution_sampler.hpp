// Samplers of filter bugs: the distribution that a row should have, and draws from the distribution that faulty code gives it.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "exactness/bugs/filter/hunts.hpp"

namespace draftproof {

// The probabilities of a processed row.
std::vector<double> probabilities_of(const Distribution& distribution);
std::vector<double> kept_probabilities(const LogitsDistribution& row, const KeptTokens& kept);

// Draw number i is inverse-CDF sampling from `drawn_from` with the seed of request i.
LargeSampler sampler_of_distribution(std::vector<double> distribution, std::span<const double> drawn_from);

// The row filtered by definition, and by the rule.
LargeSampler sampler_of_rule(const Logits& logits, const RowParameters& parameters, const KeptRule& rule);
// The same as filter_sampler of a bug.
inline auto filter_sampler_of(KeptRule rule) {
  return [rule = std::move(rule)](const Logits& logits, const RowParameters& parameters) {
    return sampler_of_rule(logits, parameters, rule);
  };
}

}  // namespace draftproof

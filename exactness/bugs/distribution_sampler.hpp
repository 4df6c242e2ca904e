// Samplers of filter bugs: the distribution that a row should have, and draws from the one that faulty code gives it.
#pragma once

#include <utility>

#include "exactness/bugs/bug.hpp"
#include "exactness/bugs/filter/hunts.hpp"

namespace draftproof {

// The row filtered by definition, and by the rule.
LargeSampler sampler_of_rule(const Logits& logits, const RowParameters& parameters, const KeptRule& rule);
// The same as filter_sampler of a bug.
inline auto filter_sampler_of(KeptRule rule) {
  return [rule = std::move(rule)](const Logits& logits, const RowParameters& parameters) {
    return sampler_of_rule(logits, parameters, rule);
  };
}

}  // namespace draftproof

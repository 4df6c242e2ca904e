// Truncation: min-p, top-k and top-p as exact integer rules over the total order (value descending, id ascending).
//
//   top_k  keeps the first k tokens.
//   top_p  keeps a token iff the mass strictly before it is < ceil(top_p * sum of masses).
//   min_p  keeps a token iff its mass is >= min_p * mass of the first token.
// Each leaves its first `least_kept` tokens; of min_p, where the last of them has too little mass, these alone.
// Engines and texts have other rules for top_p, each with p S exact and the first token always kept:
//   up_to      the mass before it is <= p S: one token more where a cumulative mass is p S (SGLang's sorted path).
//   through    the mass through it is <= p S: without the token that crosses p.
//   ascending  sorted ascending, it goes iff the mass through it is <= (1 - p) S (vLLM, transformers): the rule above
//              but in ties, of which the last ids stay.
// The row (1/2, 1/4, 1/4) tells `before`, `through` and `ascending` apart at p = 5/8, and `before` from `up_to` at 1/2.
// At least one token always survives. Selection is by radix over order-preserving keys, never by an approximate pivot.
#pragma once

#include <cstdint>

#include "reference/numerics/fraction.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof {

enum class FilterOrder {
  joint,        // every filter sees the whole row; the kept set is their intersection
  top_k_first,  // min-p and top-k first, then top-p over what they left, renormalised
};

enum class Ties {
  exact_k,   // the total order decides: exactly k tokens, and top-p stops at one token
  keep_all,  // tokens of the same value as the last kept one stay too, as value-only engines have it
};

enum class TopPRule : std::uint8_t { before, up_to, through, ascending };

struct FilterParameters {
  std::int32_t top_k = 0;  // 0: off
  float top_p = 1.0f;      // 1: off; compared as the dyadic fraction that it is: 0.8f is above 0.8
  float min_p = 0.0f;      // 0: off
  FilterOrder order = FilterOrder::joint;
  Ties ties = Ties::exact_k;
  std::uint32_t top_p_numerator = 0;  // over a denominator that is not 0: compared in place of top_p
  std::uint32_t top_p_denominator = 0;
  std::int64_t least_kept = 1;
  TopPRule top_p_rule = TopPRule::before;

  bool any() const { return top_k != 0 || top_p != 1.0f || min_p != 0.0f; }
};

// The limit below which the mass before a kept token of top-p lies, `mass` being that of all tokens.
std::uint64_t top_p_limit(const FilterParameters& parameters, std::uint64_t mass);

// Restricts the distribution (one that has not been filtered yet) to the kept set. The parameters must be valid.
void apply_filters(const FilterParameters& parameters, LogitsDistribution& distribution);

}  // namespace draftproof

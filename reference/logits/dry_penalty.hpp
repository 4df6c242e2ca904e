// DRY ("don't repeat yourself"; p-e-w, text-generation-webui, llama.cpp): a token that would continue a repetition is
// penalised, the more the longer what is repeated.
//
// For each place of the context, how many tokens up to it equal the tokens at the end of the context, without a
// sequence breaker among them: L. The token that stands after that place would make the repetition longer. A token
// whose longest L is at least dry_allowed_length gets l -= dry_multiplier dry_base^(L - dry_allowed_length). Breakers
// are not penalised.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "reference/logits/logits_part.hpp"
#include "reference/logits/samplers.hpp"

namespace draftproof {

// Tokens and their longest repetitions, each token once, those of dry_allowed_length or more; ascending ids. Takes time
// in proportion to the context.
std::vector<std::pair<Token, std::int64_t>> repetitions(std::span<const Token> context, std::span<const Token> breakers,
                                                        const SamplerParameters& parameters);

// Masked tokens stay masked.
void penalise_repetitions(std::span<const Token> context, std::span<const Token> breakers,
                          const SamplerParameters& parameters, const LogitsPart& part);

}  // namespace draftproof

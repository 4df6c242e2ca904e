// One request, decoded plainly or with speculation, from beginning to end.
//
// Guarantee: with a lossless verifier the output of both follows the same distribution; at temperature 0, and with
// coupled verification at any, it is the same tokens.
#pragma once

#include <span>

#include "engine/decode/generation.hpp"
#include "engine/decode/step_sampler.hpp"

namespace draftproof {

// drafter null: plain decoding, one token per step. Errors: those of validate(DecodingOptions), of the model and of the
// rows; rows of plain decoding are named by the tokens before them, others by request = verification step.
Generation generate(LanguageModel& target, Drafter* drafter, const DecodingOptions& options,
                    std::span<const Token> prompt, StepSampler& sampler);

template <class Source>
Generation generate(LanguageModel& target, Drafter* drafter, const DecodingOptions& options,
                    std::span<const Token> prompt, Source& source) {
  SourceSampler<Source> sampler(source);
  return generate(target, drafter, options, prompt, static_cast<StepSampler&>(sampler));
}

}  // namespace draftproof

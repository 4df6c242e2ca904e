#include "engine/decode/decoding_options.hpp"

#include <string>

#include "base/error.hpp"
#include "reference/logits/logprobs.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

void check_ids(std::span<const Token> tokens, std::int64_t vocab_size, const std::string& where) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab_size)
      throw input_error(
          where + ", token " + std::to_string(i),
          "id " + std::to_string(tokens[i]) + " is outside the vocabulary [0, " + std::to_string(vocab_size) + ")");
  }
}

}  // namespace

RowParameters row_parameters(double temperature, double top_p, std::int64_t top_k, double min_p) {
  RowParameters parameters;
  parameters.temperature = static_cast<float>(temperature);
  parameters.filters.top_p = static_cast<float>(top_p);
  parameters.filters.top_k = static_cast<std::int32_t>(top_k);
  parameters.filters.min_p = static_cast<float>(min_p);
  return parameters;
}

bool promises_equal_tokens(const DecodingOptions& decoding) {
  const VerifierInfo& verifier = decoding.verify.verifier.info();
  return verifier.lossless && (decoding.parameters.temperature == 0.0f || verifier.is_coupled());
}

void validate(const DecodingOptions& options, std::span<const Token> prompt, std::int64_t vocab_size) {
  validate(options.parameters, "target parameters");
  validate(options.constraints, vocab_size, "target constraints");
  check_ids(prompt, vocab_size, "prompt");
  check_ids(options.unconditional_prompt, vocab_size, "unconditional prompt");
  check_ids(options.logprob_token_ids, vocab_size, "logprob_token_ids");
  if (options.logprob_token_ids.size() > kLogprobTokenIdsMax)
    throw usage_error("logprob_token_ids", "has " + std::to_string(options.logprob_token_ids.size()) +
                                               " ids; expected at most " + std::to_string(kLogprobTokenIdsMax));
  if (options.num_speculative_tokens < 0 || options.num_speculative_tokens > kSpeculativeTokensMax)
    throw usage_error("num_speculative_tokens", "it is " + std::to_string(options.num_speculative_tokens) +
                                                    "; expected a count from 0 to " +
                                                    std::to_string(kSpeculativeTokensMax));
  plan_for(options.verify.verifier, options.tree, options.num_speculative_tokens, "tree");
  if (options.max_steps && *options.max_steps < 0)
    throw usage_error("max_steps", "it is " + std::to_string(*options.max_steps) + "; expected 0 or more steps");
  if (!options.stop.max_tokens && !options.stop.max_model_len && !options.max_steps)
    throw usage_error("decoding options", "nothing limits the output; give max_tokens, max_model_len or max_steps");
}

}  // namespace draftproof

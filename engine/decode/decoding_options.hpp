// Options of a request for the decoding loops.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/token.hpp"
#include "engine/decode/stop.hpp"
#include "engine/grammar/grammar.hpp"
#include "reference/logits/parameters.hpp"
#include "reference/step/request.hpp"
#include "reference/verify/tree_shape.hpp"

namespace draftproof {

inline constexpr int kSpeculativeTokensMax = 64;

struct DecodingOptions {
  RowParameters parameters;
  RowConstraints constraints;               // of every row; its spans must outlive the generation
  GrammarChoice grammar;                    // whose masks come on top of the constraints
  std::vector<Token> unconditional_prompt;  // for guidance_scale other than 1: empty, or a negative prompt
  StopParameters stop;                      // max_tokens, max_model_len or max_steps must be given
  const Detokeniser* detokeniser = nullptr;
  std::uint64_t seed = 0;
  VerifyOptions verify;                   // verifier, sampler and acceptance convention
  std::optional<std::int64_t> max_steps;  // forward steps of the target model

  // Speculative decoding only.
  int num_speculative_tokens = 5;  // K, the length of a chain or of the paths of a draft
  std::optional<TreeShape> tree;   // the shape of drafts that are trees
  bool keep_steps = false;         // Generation::steps holds every step with its rows

  std::optional<std::int64_t> num_logprobs;         // Generation::logprobs holds these many of every token
  std::optional<std::int64_t> num_prompt_logprobs;  // likewise Generation::prompt_logprobs
  std::vector<Token> logprob_token_ids;             // whose log-probabilities both list, too
};

// The four parameters that nearly every request names, as options and documents hold them; the others are off.
RowParameters row_parameters(double temperature, double top_p, std::int64_t top_k, double min_p);

// Are the tokens those of plain decoding, rather than of the same distribution?
bool promises_equal_tokens(const DecodingOptions& decoding);

// Errors (usage): a parameter or constraint out of range, no limit at all, K outside [0, kSpeculativeTokensMax];
// (input) a prompt id outside [0, vocab_size).
void validate(const DecodingOptions& options, std::span<const Token> prompt, std::int64_t vocab_size);

}  // namespace draftproof

// Sampling parameters of one row. They are per row, always: a batch mixes greedy, guided and penalised rows freely.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/token.hpp"
#include "reference/logits/bad_words.hpp"
#include "reference/logits/filters.hpp"
#include "reference/logits/samplers.hpp"

namespace draftproof {

// What guidance combines of both rows (logits/guidance.hpp): their logits, which is exact, or log(p + 1e-10).
enum class GuidanceForm : std::uint8_t { logits, probabilities };

enum class NanPolicy : std::uint8_t { error, as_minus_inf };

// Which tokens the last penalty_last_n are of, and how those of the prompt count. A repetition penalty holds for tokens
// of prompt and output, frequency and presence penalties count those of the output, if nothing else is said.
enum class PenaltyWindow : std::uint8_t {
  whole_prompt,  // of the output, and the whole prompt is penalised for repetition
  alike,         // of prompt and output, which count alike (llama.cpp)
  output,        // of the output; the prompt does not count
  joint,         // of prompt and output
};

struct RowParameters {
  float temperature = 1.0f;  // 0 is greedy
  FilterParameters filters;
  SamplerParameters samplers;
  float repetition_penalty = 1.0f;  // > 0; l > 0 ? l / r : l r for tokens of prompt and output
  float frequency_penalty = 0.0f;   // l -= f * count in the output
  float presence_penalty = 0.0f;    // l -= f if in the output
  PenaltyWindow penalty_window = PenaltyWindow::whole_prompt;  // of samplers.penalty_last_n
  float guidance_scale = 1.0f;                                 // 1: the conditional logits, bit for bit
  GuidanceForm guidance_form = GuidanceForm::logits;
  NanPolicy nan_policy = NanPolicy::error;
};

struct LogitBias {
  Token token;
  float value;
};

// Tokens that must not be drawn. Spans are views; empty means no constraint.
struct RowConstraints {
  std::span<const std::uint32_t> allowed_mask;  // [ceil(V/32)], bit j of word w allows token 32 w + j
  std::span<const Token> allowed_ids;           // the only ids allowed
  const BadWords* bad_words = nullptr;
  std::int64_t min_tokens = 0;      // stop ids are banned while fewer tokens than this have been emitted
  std::span<const Token> stop_ids;  // EOS and stop token ids
  std::span<const LogitBias> logit_bias;
  std::span<const Token> dry_breakers = {};  // DRY: no repetition goes across one of these
};

// top_p as engines take it: of 0 the first token stays, as of every share that is small enough.
inline float top_p_of_engine(float top_p) {
  return top_p == 0.0f ? std::numeric_limits<float>::denorm_min() : top_p;
}

// Errors (usage) naming `where` (a row or a request) and the parameter, and saying what is expected.
inline void validate(const RowParameters& p, const std::string& where) {
  const auto require = [&](bool valid, const char* name, double value, const char* range) {
    if (!valid) throw usage_error(where, std::string(name) + " is " + std::to_string(value) + "; expected " + range);
  };
  require(p.temperature >= 0.0f && std::isfinite(p.temperature), "temperature", p.temperature,
          "0 (greedy) or a finite number above");
  require(p.filters.top_p > 0.0f && p.filters.top_p <= 1.0f, "top_p", p.filters.top_p, "a number in (0, 1]");
  require(p.filters.top_p_denominator == 0 ||
              (p.filters.top_p_numerator > 0 && p.filters.top_p_numerator <= p.filters.top_p_denominator),
          "top_p", p.filters.top_p_numerator, "a fraction in (0, 1]");
  require(p.filters.min_p >= 0.0f && p.filters.min_p <= 1.0f, "min_p", p.filters.min_p, "a number in [0, 1]");
  require(p.filters.top_k >= 0, "top_k", p.filters.top_k, "0 (off) or a positive count");
  require(p.repetition_penalty > 0.0f && std::isfinite(p.repetition_penalty), "repetition_penalty",
          p.repetition_penalty, "a finite number above 0 (1: off)");
  require(std::isfinite(p.frequency_penalty), "frequency_penalty", p.frequency_penalty, "a finite number");
  require(std::isfinite(p.presence_penalty), "presence_penalty", p.presence_penalty, "a finite number");
  require(std::isfinite(p.guidance_scale), "guidance_scale", p.guidance_scale, "a finite number (1: no guidance)");
  validate(p.samplers, where);
}

// Ids outside [0, V), biases that are not finite, masks of the wrong length: errors (usage) naming `where`.
void validate(const RowConstraints& constraints, std::int64_t vocab_size, const std::string& where);

}  // namespace draftproof

#include "reference/logits/edits.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

namespace draftproof {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

bool has_penalty(const RowParameters& p) {
  return p.repetition_penalty != 1.0f || p.frequency_penalty != 0.0f || p.presence_penalty != 0.0f;
}

using Counts = std::unordered_map<Token, History::Counts>;

Counts counts_in_window(const RowParameters& p, const History& history) {
  const std::span<const Token> tokens = history.tokens();
  const auto prompt_len = tokens.size() - static_cast<std::size_t>(history.output_len());
  const auto n = p.samplers.penalty_last_n < 0.0f ? tokens.size() : static_cast<std::size_t>(p.samplers.penalty_last_n);
  const bool of_both = p.penalty_window == PenaltyWindow::alike || p.penalty_window == PenaltyWindow::joint;
  const std::size_t least = of_both ? 0 : prompt_len;
  Counts counts;
  for (std::size_t i = std::max(least, tokens.size() - std::min(n, tokens.size())); i < tokens.size(); ++i) {
    if (i < prompt_len && p.penalty_window == PenaltyWindow::joint)
      counts[tokens[i]].in_prompt = true;
    else
      ++counts[tokens[i]].in_output;
  }
  if (p.penalty_window == PenaltyWindow::whole_prompt)
    for (const Token token : tokens.first(prompt_len)) counts[token].in_prompt = true;
  return counts;
}

}  // namespace

void mask_tokens(const RowConstraints& constraints, const History& history, const LogitsPart& part) {
  const std::span<float> logits = part.logits;
  const auto first = static_cast<std::size_t>(part.first);
  const auto mask = [&](Token token) {
    if (float* l = part.find(token)) *l = kMasked;
  };
  if (!constraints.allowed_ids.empty()) {
    std::vector<bool> allowed(logits.size(), false);
    for (const Token token : constraints.allowed_ids)
      if (const float* l = part.find(token)) allowed[static_cast<std::size_t>(l - logits.data())] = true;
    for (std::size_t i = 0; i < logits.size(); ++i)
      if (!allowed[i]) logits[i] = kMasked;
  }
  if (!constraints.allowed_mask.empty()) {
    for (std::size_t i = 0; i < logits.size(); ++i)
      if ((constraints.allowed_mask[(first + i) / 32] >> ((first + i) % 32) & 1u) == 0) logits[i] = kMasked;
  }
  if (constraints.bad_words != nullptr)
    for (const Token token : constraints.bad_words->banned_next(history.tokens())) mask(token);
  if (history.output_len() < constraints.min_tokens)
    for (const Token token : constraints.stop_ids) mask(token);
}

void add_bias(const RowConstraints& constraints, const LogitsPart& part) {
  for (const LogitBias& bias : constraints.logit_bias)
    if (float* l = part.find(bias.token)) *l += bias.value;
}

void penalise(const RowParameters& parameters, const History& history, const LogitsPart& part) {
  if (!has_penalty(parameters)) return;
  const bool is_whole =
      parameters.samplers.penalty_last_n < 0.0f && parameters.penalty_window == PenaltyWindow::whole_prompt;
  for (const auto& [token, counts] : is_whole ? history.counts() : counts_in_window(parameters, history)) {
    float* const found = part.find(token);
    if (found == nullptr || *found == kMasked) continue;  // a penalty that overflows would make a NaN of the mask
    float& l = *found;
    l = l > 0.0f ? l / parameters.repetition_penalty : l * parameters.repetition_penalty;
    if (counts.in_output == 0) continue;
    l -= parameters.frequency_penalty * static_cast<float>(counts.in_output);
    l -= parameters.presence_penalty;
  }
}

bool needs_history(const RowParameters& parameters, const RowConstraints& constraints) {
  return has_penalty(parameters) || parameters.samplers.dry_multiplier != 0.0f ||
         parameters.samplers.no_repeat_ngram_size != 0.0f || constraints.bad_words != nullptr ||
         constraints.min_tokens > 0;
}

void validate(const RowConstraints& constraints, std::int64_t vocab_size, const std::string& where) {
  const auto require_id = [&](Token token, const char* what) {
    if (token < 0 || token >= vocab_size)
      throw usage_error(where, std::string(what) + " holds token " + std::to_string(token) + "; expected ids in [0, " +
                                   std::to_string(vocab_size) + ")");
  };
  for (const Token token : constraints.allowed_ids) require_id(token, "allowed ids");
  for (const Token token : constraints.stop_ids) require_id(token, "stop ids");
  for (const Token token : constraints.dry_breakers) require_id(token, "dry_breakers");
  for (const LogitBias& bias : constraints.logit_bias) {
    require_id(bias.token, "logit_bias");
    if (!std::isfinite(bias.value))
      throw usage_error(where, "logit_bias of token " + std::to_string(bias.token) + " is not a finite number");
  }
  const auto words = static_cast<std::size_t>((vocab_size + 31) / 32);
  if (!constraints.allowed_mask.empty() && constraints.allowed_mask.size() != words)
    throw usage_error(where, "the allowed-token bitmask has " + std::to_string(constraints.allowed_mask.size()) +
                                 " words; expected ceil(V/32) = " + std::to_string(words));
  if (constraints.min_tokens < 0)
    throw usage_error(where, "min_tokens is " + std::to_string(constraints.min_tokens) + "; expected 0 or more");
}

}  // namespace draftproof

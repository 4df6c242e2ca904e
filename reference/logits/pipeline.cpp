#include "reference/logits/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "reference/error.hpp"
#include "reference/logits/edits.hpp"
#include "reference/logits/guidance.hpp"

namespace draftproof {
namespace {

bool edits_anything(const RowInput& input) {
  const RowConstraints& c = input.constraints;
  return needs_history(input.parameters, c) || !c.allowed_mask.empty() || !c.allowed_ids.empty() ||
         !c.logit_bias.empty();
}

bool is_bad(float x) {
  return !(x < std::numeric_limits<float>::infinity());
}

bool has_bad_logit(std::span<const float> logits) {
  for (std::size_t begin = 0; begin < logits.size(); begin += kTileTokens) {
    const std::size_t count = std::min<std::size_t>(kTileTokens, logits.size() - begin);
    if (!row_kernels().maximum(logits.data() + begin, count).valid) return true;
  }
  return false;
}

}  // namespace

std::span<const float> Pipeline::load(const RowView& view, std::vector<float>& buffer) {
  const auto count = static_cast<std::size_t>(view.vocab_size);
  if (view.dtype != DType::f32) buffer.resize(count);
  return {elements_of(view, 0, count, buffer.data()), count};
}

// NaN counts for more than +infinity, wherever they stand.
void Pipeline::check_raw(NanPolicy policy) {
  if (!has_bad_logit(raw_)) return;
  std::int64_t infinite = -1;
  for (std::size_t i = 0; i < raw_.size(); ++i) {
    if (!is_bad(raw_[i])) continue;
    if (!std::isnan(raw_[i])) {
      if (infinite < 0) infinite = static_cast<std::int64_t>(i);
      continue;
    }
    if (policy == NanPolicy::error)
      throw RowError(RowStatus::nan_logit, row_, static_cast<std::int64_t>(i),
                     "the logit is NaN; expected a finite value, or -inf (masked)");
    if (raw_.data() != conditional_buffer_.data()) {
      conditional_buffer_.assign(raw_.begin(), raw_.end());
      raw_ = conditional_buffer_;
    }
    conditional_buffer_[i] = -std::numeric_limits<float>::infinity();
  }
  if (infinite >= 0)
    throw RowError(RowStatus::infinite_logit, row_, infinite,
                   "the logit is +inf; expected a finite value, or -inf (masked)");
}

void Pipeline::run(const RowInput& input, Distribution& distribution) {
  const RowParameters& parameters = input.parameters;
  row_ = input.row;
  raw_normaliser_.reset();
  raw_ = load(input.logits, conditional_buffer_);
  if (parameters.guidance_scale != 1.0f) {
    if (!input.unconditional)
      throw RowError(RowStatus::bad_guidance, row_, -1, "guidance_scale is not 1 and there is no unconditional row");
    const std::span<const float> unconditional = load(*input.unconditional, unconditional_buffer_);
    conditional_buffer_.resize(raw_.size());
    combine_guidance(raw_, unconditional, parameters.guidance_scale, row_, conditional_buffer_);
    raw_ = conditional_buffer_;
  }

  const bool edits = edits_anything(input);
  const bool divides = parameters.temperature != 0.0f && parameters.temperature != 1.0f;
  // Where the row goes to the kernels as it is, they find the bad logits themselves.
  if (edits || divides || parameters.nan_policy != NanPolicy::error) check_raw(parameters.nan_policy);
  processed_ = raw_;
  if (edits || divides) {
    edited_buffer_.assign(raw_.begin(), raw_.end());
    processed_ = edited_buffer_;
  }
  if (edits) {
    static const History kEmpty;
    const History& history = input.history != nullptr ? *input.history : kEmpty;
    mask_tokens(input.constraints, history, edited_buffer_);
    add_bias(input.constraints, edited_buffer_);
    penalise(parameters, history, edited_buffer_);
  }
  if (parameters.temperature == 0.0f) {
    distribution.make_one_hot(greedy_token(processed_, row_), static_cast<std::int64_t>(processed_.size()));
    return;
  }
  if (divides)
    for (float& l : edited_buffer_) l /= parameters.temperature;
  LogitsDistribution& row = distribution.make_logits_distribution();
  row.assign(processed_, row_);
  if (!edits && !divides) raw_normaliser_ = row.log_normaliser();
  apply_filters(parameters.filters, row);
}

float Pipeline::raw_log_probability(Token token) {
  if (!raw_normaliser_) {
    raw_logits_distribution_.assign(raw_, row_);
    raw_normaliser_ = raw_logits_distribution_.log_normaliser();
  }
  return raw_normaliser_->log_probability(raw_[static_cast<std::size_t>(token)]);
}

}  // namespace draftproof

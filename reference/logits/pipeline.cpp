#include "reference/logits/pipeline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "reference/logits/adaptive_p.hpp"
#include "reference/logits/dry_penalty.hpp"
#include "reference/logits/edits.hpp"
#include "reference/logits/guidance.hpp"
#include "reference/logits/no_repeat_ngram.hpp"

namespace draftproof {
namespace {

bool edits_anything(const RowInput& input) {
  const RowConstraints& c = input.constraints;
  return needs_history(input.parameters, c) || !c.allowed_mask.empty() || !c.allowed_ids.empty() ||
         !c.logit_bias.empty();
}

// Do samplers before the filters look at the row over its temperature?
bool reshapes(const RowParameters& parameters) {
  return parameters.samplers.before_filters() && parameters.temperature != 0.0f;
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

RowView view_of(std::span<const float> logits) {
  return {DType::f32, logits.data(), static_cast<std::int64_t>(logits.size())};
}

}  // namespace

std::span<const float> Pipeline::load(const RowView& view, std::vector<float>& buffer) {
  const auto count = static_cast<std::size_t>(view.vocab_size);
  if (view.dtype != DType::f32) buffer.resize(count);
  return {elements_of(view, 0, count, buffer.data()), count};
}

std::span<const float> Pipeline::raw_logits() {
  const std::span<const float> loaded = load(raw_, conditional_buffer_);
  raw_ = view_of(loaded);
  return loaded;
}

std::span<const float> Pipeline::processed_logits() {
  const bool is_edited = edited_.data == edited_buffer_.data();
  const std::span<const float> edited = is_edited ? std::span<const float>(edited_buffer_) : raw_logits();
  if (temperature_ == 0.0f || temperature_ == 1.0f) return edited;
  if (!is_divided_) {
    divided_buffer_.resize(edited.size());
    row_kernels().divide(edited.data(), edited.size(), temperature_, divided_buffer_.data());
    is_divided_ = true;
  }
  return divided_buffer_;
}

// NaN counts for more than +infinity, wherever they stand.
void Pipeline::check_raw(NanPolicy policy) {
  std::span<const float> raw = raw_logits();
  if (!has_bad_logit(raw)) return;
  std::int64_t infinite = -1;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (!is_bad(raw[i])) continue;
    if (!std::isnan(raw[i])) {
      if (infinite < 0) infinite = static_cast<std::int64_t>(i);
      continue;
    }
    if (policy == NanPolicy::error)
      throw RowError(RowStatus::nan_logit, row_, static_cast<std::int64_t>(i),
                     "the logit is NaN; expected a finite value, or -inf (masked)");
    if (raw.data() != conditional_buffer_.data()) {
      conditional_buffer_.assign(raw.begin(), raw.end());
      raw = conditional_buffer_;
      raw_ = view_of(raw);
    }
    conditional_buffer_[i] = -std::numeric_limits<float>::infinity();
  }
  if (infinite >= 0)
    throw RowError(RowStatus::infinite_logit, row_, infinite,
                   "the logit is +inf; expected a finite value, or -inf (masked)");
}

void Pipeline::edit(const RowInput& input) {
  const RowParameters& parameters = input.parameters;
  row_ = input.row;
  raw_normaliser_.reset();
  raw_ = input.logits;
  temperature_ = parameters.temperature;
  is_divided_ = false;
  if (parameters.guidance_scale != 1.0f) {
    if (!input.unconditional)
      throw RowError(RowStatus::bad_guidance, row_, -1, "guidance_scale is not 1 and there is no unconditional row");
    const std::span<const float> conditional = raw_logits();
    const std::span<const float> unconditional = load(*input.unconditional, unconditional_buffer_);
    conditional_buffer_.resize(conditional.size());
    combine_guidance(conditional, unconditional, parameters.guidance_scale, row_, conditional_buffer_,
                     parameters.guidance_form);
    raw_ = view_of(conditional_buffer_);
  }

  is_edited_ = edits_anything(input);
  // Where the row goes to the kernels as it is, they find the bad logits themselves.
  if (is_edited_ || reshapes(parameters) || parameters.nan_policy != NanPolicy::error) check_raw(parameters.nan_policy);
  edited_ = raw_;
  if (is_edited_) {
    const std::span<const float> raw = raw_logits();
    edited_buffer_.assign(raw.begin(), raw.end());
    edited_ = view_of(edited_buffer_);
    static const History kEmpty;
    const History& history = input.history != nullptr ? *input.history : kEmpty;
    const LogitsPart part(edited_buffer_, input.first_token);
    mask_tokens(input.constraints, history, part);
    if (const auto n = static_cast<std::size_t>(parameters.samplers.no_repeat_ngram_size))
      for (const Token token : repeating_tokens(history.tokens(), n))
        if (float* l = part.find(token)) *l = -std::numeric_limits<float>::infinity();
    add_bias(input.constraints, part);
    penalise(parameters, history, part);
    penalise_repetitions(history.tokens(), input.constraints.dry_breakers, parameters.samplers, part);
  }
}

void Pipeline::check_as_given() {
  if (temperature_ != 1.0f) check_raw(NanPolicy::error);
}

void Pipeline::throw_bad_row(LogitsDistribution& row) {
  row.assign(edited_, temperature_, row_);
  throw Error(ErrorKind::internal, "row " + std::to_string(row_.number), "a kernel refused a row without a bad logit");
}

void Pipeline::run(const RowInput& input, Distribution& distribution) {
  const RowParameters& parameters = input.parameters;
  edit(input);
  if (temperature_ == 0.0f) {
    distribution.make_one_hot(greedy_token(processed_logits(), row_), edited_.vocab_size);
    return;
  }
  const bool reshaped = reshapes(parameters);
  if (reshaped) {
    const std::span<const float> processed = processed_logits();
    edited_buffer_.assign(processed.begin(), processed.end());
    apply_before_filters(parameters.samplers, edited_buffer_);
    edited_ = view_of(edited_buffer_);
    temperature_ = 1.0f;
  }
  LogitsDistribution& row = distribution.make_logits_distribution();
  const bool filters = parameters.filters.any();
  if (!(filters ? row.try_weigh(edited_, temperature_, row_) : row.try_assign(edited_, temperature_, row_))) {
    check_as_given();
    throw_bad_row(row);
  }
  FilterParameters filter_parameters = parameters.filters;
  filter_parameters.least_kept = static_cast<std::int64_t>(parameters.samplers.min_tokens_to_keep);
  filter_parameters.top_p_rule = static_cast<TopPRule>(parameters.samplers.top_p_rule);
  apply_filters(filter_parameters, row);
  apply_after_filters(parameters.samplers, row);
  if (!is_edited_ && !reshaped && temperature_ == 1.0f) raw_normaliser_ = row.unfiltered_log_normaliser();
  if (parameters.samplers.adapts()) {
    adapt_logits(parameters.samplers, row, adapted_buffer_);
    row.assign(adapted_buffer_, row_);
  }
}

float Pipeline::raw_log_probability(Token token) {
  if (!raw_normaliser_) {
    raw_logits_distribution_.assign(raw_, 1.0f, row_);
    raw_normaliser_ = raw_logits_distribution_.log_normaliser();
  }
  return raw_normaliser_->log_probability(element_of(raw_, token));
}

}  // namespace draftproof

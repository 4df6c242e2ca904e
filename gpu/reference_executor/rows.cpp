#include "gpu/reference_executor/rows.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "reference/logits/edits.hpp"

namespace draftproof::reference_executor {
namespace {

static_assert(static_cast<int>(RowStatus::ok) == DRAFTPROOF_ROW_OK);
static_assert(static_cast<int>(RowStatus::nothing_left) == DRAFTPROOF_ROW_NOTHING_LEFT);
static_assert(static_cast<int>(RowStatus::all_zero) == DRAFTPROOF_ROW_ALL_ZERO);
static_assert(static_cast<int>(RowStatus::bad_sum) == DRAFTPROOF_ROW_BAD_SUM);
static_assert(static_cast<int>(RowStatus::logit_too_large) == DRAFTPROOF_ROW_LOGIT_TOO_LARGE);
static_assert(static_cast<int>(RowStatus::infinite_logit) == DRAFTPROOF_ROW_INFINITE_LOGIT);
static_assert(static_cast<int>(RowStatus::nan_logit) == DRAFTPROOF_ROW_NAN_LOGIT);
static_assert(static_cast<int>(RowStatus::bad_probability) == DRAFTPROOF_ROW_BAD_PROBABILITY);
static_assert(static_cast<int>(RowStatus::bad_guidance) == DRAFTPROOF_ROW_BAD_GUIDANCE);
static_assert(static_cast<int>(RowStatus::bad_id) == DRAFTPROOF_ROW_BAD_ID);
static_assert(static_cast<int>(RowStatus::bad_parameter) == DRAFTPROOF_ROW_BAD_PARAMETER);

// List `at` of a list of lists over `count` elements.
template <class T>
GuardedList<T> list_of(const T* values, std::int64_t count, const std::int64_t* offsets, std::int64_t at) {
  if (values == nullptr || offsets == nullptr) return {};
  return guarded_list(values, list_range(offsets[at], offsets[at + 1], count));
}

bool ids_valid(std::span<const Token> ids, std::int64_t vocab_size) {
  return std::all_of(ids.begin(), ids.end(), [&](Token id) { return id >= 0 && id < vocab_size; });
}

}  // namespace

DType dtype_of(const draftproof_rows& rows) {
  if (rows.dtype == DRAFTPROOF_F32) return DType::f32;
  return rows.dtype == DRAFTPROOF_F16 ? DType::f16 : DType::bf16;
}

RowView row_view(const draftproof_rows& rows, std::int64_t row, std::int64_t vocab_size) {
  const DType dtype = dtype_of(rows);
  const std::int64_t bytes = static_cast<std::int64_t>(dtype_size_bytes(dtype));
  return {dtype, static_cast<const std::byte*>(rows.data) + row * rows.row_stride * bytes, vocab_size};
}

std::vector<float> floats_of(const RowView& view) {
  std::vector<float> values(static_cast<std::size_t>(view.vocab_size));
  const float* elements = elements_of(view, 0, values.size(), values.data());
  if (elements != values.data()) std::copy_n(elements, values.size(), values.data());
  return values;
}

GuardedList<Token> drafted_before(const draftproof_constraints& constraints, std::int64_t row) {
  if (constraints.row_draft_begin == nullptr) return {};
  return guarded_list(constraints.row_draft_tokens,
                      list_range_of_length(constraints.row_draft_begin[row], constraints.row_draft_len[row],
                                           constraints.row_draft_tokens_count));
}

// The enumerations are checked here, the others by the reference.
RowStatus status_of(const draftproof_parameters& parameters, std::int64_t request) {
  if (value_of<std::uint8_t>(parameters.filter_order, request, 0) > 1) return RowStatus::bad_parameter;
  if (value_of<std::uint8_t>(parameters.ties, request, 0) > 1) return RowStatus::bad_parameter;
  if (value_of<std::uint8_t>(parameters.top_p_rule, request, 0) > 3) return RowStatus::bad_parameter;
  if (value_of<std::uint8_t>(parameters.nan_policy, request, 0) > 1) return RowStatus::bad_parameter;
  try {
    validate(parameters_of(parameters, request), "request");
  } catch (const Error&) {
    return RowStatus::bad_parameter;
  }
  return RowStatus::ok;
}

RowParameters parameters_of(const draftproof_parameters& parameters, std::int64_t request) {
  RowParameters out;
  out.temperature = value_of(parameters.temperature, request, 1.0f);
  out.filters.top_k = value_of<std::int32_t>(parameters.top_k, request, 0);
  out.filters.top_p = value_of(parameters.top_p, request, 1.0f);
  out.filters.min_p = value_of(parameters.min_p, request, 0.0f);
  out.filters.order = static_cast<FilterOrder>(value_of<std::uint8_t>(parameters.filter_order, request, 0));
  out.filters.ties = static_cast<Ties>(value_of<std::uint8_t>(parameters.ties, request, 0));
  out.samplers.top_p_rule = value_of<std::uint8_t>(parameters.top_p_rule, request, 0);
  out.repetition_penalty = value_of(parameters.repetition_penalty, request, 1.0f);
  out.frequency_penalty = value_of(parameters.frequency_penalty, request, 0.0f);
  out.presence_penalty = value_of(parameters.presence_penalty, request, 0.0f);
  out.guidance_scale = value_of(parameters.guidance_scale, request, 1.0f);
  out.nan_policy = static_cast<NanPolicy>(value_of<std::uint8_t>(parameters.nan_policy, request, 0));
  return out;
}

RequestConstraints::RequestConstraints(const draftproof_constraints& c, std::int64_t vocab_size, std::int64_t request)
    : vocab_size_(vocab_size) {
  constraints_.allowed_ids = looked_at(list_of(c.allowed_ids, c.allowed_ids_count, c.allowed_offsets, request));
  constraints_.min_tokens = value_of<std::int64_t>(c.min_tokens, request, 0);
  constraints_.stop_ids = looked_at(list_of(c.stop_ids, c.stop_ids_count, c.stop_offsets, request));
  const std::span<const Token> biased = looked_at(list_of(c.bias_tokens, c.bias_count, c.bias_offsets, request));
  for (std::size_t i = 0; i < biased.size(); ++i)
    bias_.push_back({biased[i], c.bias_values[c.bias_offsets[request] + static_cast<std::int64_t>(i)]});
  const GuardedList<Token> committed = list_of(c.history_tokens, c.history_tokens_count, c.history_offsets, request);
  committed_ = committed.elements;
  history_valid_ = committed.valid;
  prompt_len_ = value_of<std::int64_t>(c.prompt_len, request, 0);
  history_len_max_ = c.history_len_max;
  if (c.bad_word_sequences == nullptr) return;
  const ListRange sequences =
      list_range(c.bad_word_sequences[request], c.bad_word_sequences[request + 1], c.bad_word_sequences_count);
  lists_valid_ = lists_valid_ && sequences.valid;
  has_bad_words_ = sequences.count() > 0;
  for (std::int64_t s = sequences.begin; s < sequences.end; ++s) {
    const GuardedList<Token> sequence = list_of(c.bad_word_tokens, c.bad_word_tokens_count, c.bad_word_offsets, s);
    lists_valid_ = lists_valid_ && sequence.valid;
    if (sequence.valid) sequences_.emplace_back(sequence.elements.begin(), sequence.elements.end());
  }
}

std::span<const Token> RequestConstraints::looked_at(const GuardedList<Token>& list) {
  lists_valid_ = lists_valid_ && list.valid;
  return list.elements;
}

RowStatus RequestConstraints::status(const RowParameters& parameters, const GuardedList<Token>& drafted) {
  const auto committed = static_cast<std::int64_t>(committed_.size());
  const bool finite = std::all_of(bias_.begin(), bias_.end(), [](LogitBias b) { return std::isfinite(b.value); });
  const bool empty = std::any_of(sequences_.begin(), sequences_.end(), [](const auto& s) { return s.empty(); });
  looks_at_history_ = needs_history(parameters, constraints_) || has_bad_words_;
  const bool history_valid = history_valid_ && drafted.valid;
  const bool fits =
      !history_valid || (prompt_len_ >= 0 && prompt_len_ <= committed &&
                         committed + static_cast<std::int64_t>(drafted.elements.size()) <= history_len_max_);
  if (constraints_.min_tokens < 0 || !finite || empty || (looks_at_history_ && !fits)) return RowStatus::bad_parameter;
  bool valid =
      lists_valid_ && ids_valid(constraints_.allowed_ids, vocab_size_) && ids_valid(constraints_.stop_ids, vocab_size_);
  for (const LogitBias& bias : bias_) valid = valid && ids_valid({&bias.token, 1}, vocab_size_);
  for (const auto& sequence : sequences_) valid = valid && ids_valid(sequence, vocab_size_);
  if (looks_at_history_)
    valid = valid && history_valid && ids_valid(committed_, vocab_size_) && ids_valid(drafted.elements, vocab_size_);
  return valid ? RowStatus::ok : RowStatus::bad_id;
}

const RowConstraints& RequestConstraints::constraints() {
  constraints_.logit_bias = bias_;
  if (!sequences_.empty() && !bad_words_)
    constraints_.bad_words = &bad_words_.emplace(sequences_, static_cast<std::size_t>(vocab_size_));
  return constraints_;
}

RowStatus Rows::process(std::int64_t row, std::int64_t request, const GuardedList<Token>& drafted,
                        Distribution& distribution) {
  if (request < 0) return RowStatus::bad_id;
  RowStatus status = status_of(input_.parameters, request);
  if (status != RowStatus::ok) return status;
  RowInput in;
  in.parameters = parameters_of(input_.parameters, request);
  RequestConstraints constraints(input_.constraints, input_.vocab_size, request);
  status = constraints.status(in.parameters, drafted);
  if (status != RowStatus::ok) return status;
  in.constraints = constraints.constraints();
  const draftproof_constraints& c = input_.constraints;
  if (c.allowed_mask != nullptr)
    in.constraints.allowed_mask = {c.allowed_mask + row * c.allowed_mask_stride,
                                   static_cast<std::size_t>((input_.vocab_size + 31) / 32)};
  History history;
  if (constraints.looks_at_history()) {
    history = History(constraints.prompt(), constraints.output(), input_.vocab_size);
    for (const Token token : drafted.elements) history.append(token);
    in.history = &history;
  }
  in.logits = row_view(input_.logits, row, input_.vocab_size);
  if (input_.unconditional.data != nullptr) in.unconditional = row_view(input_.unconditional, row, input_.vocab_size);
  in.row = row;
  try {
    pipeline_.run(in, distribution);
  } catch (const RowError& error) {
    return error.status();
  }
  return RowStatus::ok;
}

}  // namespace draftproof::reference_executor

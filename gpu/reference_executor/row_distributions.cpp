#include "gpu/reference_executor/row_distributions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "gpu/reference_executor/row_status.hpp"
#include "reference/error.hpp"
#include "reference/logits/edits.hpp"
#include "reference/logits/guidance.hpp"

namespace draftproof::reference_executor {
namespace {

// List `at` of a list of lists over `count` elements.
template <class T>
GuardedList<T> list_of(const T* values, std::int64_t count, const std::int64_t* offsets, std::int64_t at) {
  if (values == nullptr || offsets == nullptr) return {};
  return guarded_list(values, list_range(offsets[at], offsets[at + 1], count));
}

// The parameters of a request in the form that the reference checks; the three that are enumerations are checked here.
bool parameters_valid(const draftproof_parameters& parameters, std::int64_t request) {
  if (value_of<std::uint8_t>(parameters.filter_order, request, 0) > 1) return false;
  if (value_of<std::uint8_t>(parameters.ties, request, 0) > 1) return false;
  if (value_of<std::uint8_t>(parameters.nan_policy, request, 0) > 1) return false;
  try {
    validate(parameters_of(parameters, request), "request");
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool ids_valid(std::span<const Token> ids, std::int64_t vocab_size) {
  return std::all_of(ids.begin(), ids.end(), [&](Token id) { return id >= 0 && id < vocab_size; });
}

// One request's constraints with the storage behind them. Its lists and ids may be invalid: status() is asked before
// row() is.
class RequestConstraints {
 public:
  RequestConstraints(const RowDistributionsInput& input, std::int64_t row, std::int64_t request,
                     const GuardedList<Token>& drafted)
      : vocab_size_(input.vocab_size), drafted_(drafted.elements), history_valid_(drafted.valid) {
    const draftproof_constraints& c = input.constraints;
    const auto words = static_cast<std::size_t>((vocab_size_ + 31) / 32);
    if (c.allowed_mask != nullptr) row_.allowed_mask = {c.allowed_mask + row * c.allowed_mask_stride, words};
    row_.allowed_ids = looked_at(list_of(c.allowed_ids, c.allowed_ids_count, c.allowed_offsets, request));
    row_.min_tokens = value_of<std::int64_t>(c.min_tokens, request, 0);
    row_.stop_ids = looked_at(list_of(c.stop_ids, c.stop_ids_count, c.stop_offsets, request));
    const std::span<const Token> biased = looked_at(list_of(c.bias_tokens, c.bias_count, c.bias_offsets, request));
    for (std::size_t i = 0; i < biased.size(); ++i)
      bias_.push_back({biased[i], c.bias_values[c.bias_offsets[request] + static_cast<std::int64_t>(i)]});
    row_.logit_bias = bias_;
    const GuardedList<Token> committed = list_of(c.history_tokens, c.history_tokens_count, c.history_offsets, request);
    committed_ = committed.elements;
    history_valid_ = history_valid_ && committed.valid;
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

  // DRAFTPROOF_ROW_BAD_PARAMETER, DRAFTPROOF_ROW_BAD_ID or 0. Only a history that is looked at can refuse a row.
  std::int32_t status(const RowParameters& parameters) {
    const auto committed = static_cast<std::int64_t>(committed_.size());
    const bool finite = std::all_of(bias_.begin(), bias_.end(), [](LogitBias b) { return std::isfinite(b.value); });
    const bool empty = std::any_of(sequences_.begin(), sequences_.end(), [](const auto& s) { return s.empty(); });
    looks_at_history_ = needs_history(parameters, row_) || has_bad_words_;
    const bool fits = !history_valid_ || (prompt_len_ >= 0 && prompt_len_ <= committed &&
                                          committed + static_cast<std::int64_t>(drafted_.size()) <= history_len_max_);
    if (row_.min_tokens < 0 || !finite || empty || (looks_at_history_ && !fits)) return DRAFTPROOF_ROW_BAD_PARAMETER;
    bool valid = lists_valid_ && ids_valid(row_.allowed_ids, vocab_size_) && ids_valid(row_.stop_ids, vocab_size_);
    for (const LogitBias& bias : bias_) valid = valid && ids_valid({&bias.token, 1}, vocab_size_);
    for (const auto& sequence : sequences_) valid = valid && ids_valid(sequence, vocab_size_);
    if (looks_at_history_)
      valid = valid && history_valid_ && ids_valid(committed_, vocab_size_) && ids_valid(drafted_, vocab_size_);
    return valid ? DRAFTPROOF_ROW_OK : DRAFTPROOF_ROW_BAD_ID;
  }

  // Only where the status is 0.
  const RowConstraints& row() {
    if (!sequences_.empty()) row_.bad_words = &bad_words_.emplace(sequences_, static_cast<std::size_t>(vocab_size_));
    return row_;
  }
  const History* history() {
    if (!looks_at_history_) return nullptr;
    const auto prompt_len = static_cast<std::size_t>(prompt_len_);
    history_ = History(committed_.first(prompt_len), committed_.subspan(prompt_len), vocab_size_);
    for (const Token token : drafted_) history_.append(token);
    return &history_;
  }

 private:
  // The elements of a list that every row looks at.
  std::span<const Token> looked_at(const GuardedList<Token>& list) {
    lists_valid_ = lists_valid_ && list.valid;
    return list.elements;
  }

  std::int64_t vocab_size_;
  std::span<const Token> drafted_;
  std::span<const Token> committed_;
  std::int64_t prompt_len_ = 0;
  std::int64_t history_len_max_ = 0;
  bool lists_valid_ = true;
  bool history_valid_ = true;
  bool has_bad_words_ = false;
  bool looks_at_history_ = false;
  std::vector<LogitBias> bias_;
  std::vector<std::vector<Token>> sequences_;
  std::optional<BadWords> bad_words_;
  History history_;
  RowConstraints row_;
};

// Of the row as it came in: guidance, NaN, +infinity.
std::int32_t status_of_raw(const RowInput& row) {
  std::vector<float> raw = floats_of(row.logits);
  if (row.parameters.guidance_scale != 1.0f) {
    if (!row.unconditional) return DRAFTPROOF_ROW_BAD_GUIDANCE;
    try {
      combine_guidance(raw, floats_of(*row.unconditional), row.parameters.guidance_scale, row.row, raw);
    } catch (const Error&) {
      return DRAFTPROOF_ROW_BAD_GUIDANCE;
    }
  }
  const bool has_nan = std::any_of(raw.begin(), raw.end(), [](float x) { return std::isnan(x); });
  if (has_nan && row.parameters.nan_policy == NanPolicy::error) return DRAFTPROOF_ROW_NAN_LOGIT;
  const bool infinite = std::find(raw.begin(), raw.end(), std::numeric_limits<float>::infinity()) != raw.end();
  return infinite ? DRAFTPROOF_ROW_INFINITE_LOGIT : DRAFTPROOF_ROW_OK;
}

}  // namespace

RowView row_view(const draftproof_rows& rows, std::int64_t row, std::int64_t vocab_size) {
  const DType dtype = rows.dtype == DRAFTPROOF_F32   ? DType::f32
                      : rows.dtype == DRAFTPROOF_F16 ? DType::f16
                                                     : DType::bf16;
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

RowParameters parameters_of(const draftproof_parameters& parameters, std::int64_t request) {
  RowParameters out;
  out.temperature = value_of(parameters.temperature, request, 1.0f);
  out.filters.top_k = value_of<std::int32_t>(parameters.top_k, request, 0);
  out.filters.top_p = value_of(parameters.top_p, request, 1.0f);
  out.filters.min_p = value_of(parameters.min_p, request, 0.0f);
  out.filters.order = static_cast<FilterOrder>(value_of<std::uint8_t>(parameters.filter_order, request, 0));
  out.filters.ties = static_cast<Ties>(value_of<std::uint8_t>(parameters.ties, request, 0));
  out.repetition_penalty = value_of(parameters.repetition_penalty, request, 1.0f);
  out.frequency_penalty = value_of(parameters.frequency_penalty, request, 0.0f);
  out.presence_penalty = value_of(parameters.presence_penalty, request, 0.0f);
  out.guidance_scale = value_of(parameters.guidance_scale, request, 1.0f);
  out.nan_policy = static_cast<NanPolicy>(value_of<std::uint8_t>(parameters.nan_policy, request, 0));
  return out;
}

std::int32_t RowDistributions::process(std::int64_t row, std::int64_t request, const GuardedList<Token>& drafted,
                                       Distribution& distribution) {
  if (request < 0) return DRAFTPROOF_ROW_BAD_ID;
  if (!parameters_valid(input_.parameters, request)) return DRAFTPROOF_ROW_BAD_PARAMETER;
  RowInput in;
  in.parameters = parameters_of(input_.parameters, request);
  RequestConstraints constraints(input_, row, request, drafted);
  std::int32_t status = constraints.status(in.parameters);
  if (status != DRAFTPROOF_ROW_OK) return status;
  in.logits = row_view(input_.logits, row, input_.vocab_size);
  if (input_.unconditional.data != nullptr) in.unconditional = row_view(input_.unconditional, row, input_.vocab_size);
  in.row = row;
  status = status_of_raw(in);
  if (status != DRAFTPROOF_ROW_OK) return status;
  in.constraints = constraints.row();
  in.history = constraints.history();
  try {
    pipeline_.run(in, distribution);
  } catch (const Error&) {
    status = status_of_logits(pipeline_.processed_logits(), in.parameters.temperature != 0.0f);
    if (status == DRAFTPROOF_ROW_OK) throw;
  }
  return status;
}

}  // namespace draftproof::reference_executor

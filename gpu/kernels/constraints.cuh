// The constraints of requests on the device: lists of ids, histories, and whether they are valid (twin:
// validate in reference/logits/edits.cpp and History).
#pragma once

#include <cstdint>

#include "base/token.hpp"
#include "gpu/kernels/block.cuh"
#include "gpu/kernels/parameters.cuh"
#include "gpu/kernels/row_requests.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

// List `list` of an array of `count` elements; null offsets are empty lists.
__device__ inline ListRange list_of(Global<const std::int64_t> offsets, std::int64_t list, std::int64_t count) {
  if (offsets == nullptr) return {0, 0, true};
  return list_range(offsets[list], offsets[list + 1], count);
}

// As draftproof_constraints.
struct ConstraintsView {
  Global<const std::uint32_t> allowed_mask;  // [rows, allowed_mask_stride]
  std::int64_t allowed_mask_stride;
  Global<const Token> allowed_ids;
  std::int64_t allowed_ids_count;
  Global<const std::int64_t> allowed_offsets;
  Global<const Token> history_tokens;
  std::int64_t history_tokens_count;
  Global<const std::int64_t> history_offsets;
  Global<const std::int64_t> prompt_len;
  std::int64_t history_len_max;
  Global<const Token> row_draft_tokens;
  std::int64_t row_draft_tokens_count;
  Global<const std::int64_t> row_draft_begin;
  Global<const std::int32_t> row_draft_len;
  Global<const Token> bad_word_tokens;
  std::int64_t bad_word_tokens_count;
  Global<const std::int64_t> bad_word_offsets;
  std::int64_t bad_word_sequences_count;
  Global<const std::int64_t> bad_word_sequences;
  Global<const std::int64_t> min_tokens;
  Global<const Token> stop_ids;
  std::int64_t stop_ids_count;
  Global<const std::int64_t> stop_offsets;
  Global<const Token> bias_tokens;
  Global<const float> bias_values;
  std::int64_t bias_count;
  Global<const std::int64_t> bias_offsets;

  __device__ ListRange allowed(std::int64_t request) const {
    return list_of(allowed_offsets, request, allowed_ids_count);
  }
  __device__ ListRange stops(std::int64_t request) const { return list_of(stop_offsets, request, stop_ids_count); }
  __device__ ListRange bias(std::int64_t request) const { return list_of(bias_offsets, request, bias_count); }
  __device__ ListRange bad_words(std::int64_t request) const {
    return list_of(bad_word_sequences, request, bad_word_sequences_count);
  }
  __device__ ListRange bad_word(std::int64_t sequence) const {
    return list_of(bad_word_offsets, sequence, bad_word_tokens_count);
  }
};

// Committed tokens, then those drafted before the row.
struct RowHistory {
  Global<const Token> committed_tokens;
  Global<const Token> drafted_tokens;
  ListRange committed;
  ListRange drafted;
  std::int64_t prompt_len;

  __device__ bool valid() const { return committed.valid && drafted.valid; }
  __device__ std::int64_t count() const { return committed.count() + drafted.count(); }
  __device__ std::int64_t output_len() const { return count() - prompt_len; }
  __device__ Token token(std::int64_t i) const {
    if (i < committed.count()) return committed_tokens[committed.begin + i];
    return drafted_tokens[drafted.begin + (i - committed.count())];
  }
};

__device__ inline RowHistory history_of(const ConstraintsView& c, std::int64_t row, std::int64_t request) {
  RowHistory history{c.history_tokens,
                     c.row_draft_tokens,
                     list_of(c.history_offsets, request, c.history_tokens_count),
                     {0, 0, true},
                     value_of<std::int64_t>(c.prompt_len, request, 0)};
  if (c.row_draft_begin != nullptr)
    history.drafted = list_range_of_length(c.row_draft_begin[row], static_cast<std::int32_t>(c.row_draft_len[row]),
                                           c.row_draft_tokens_count);
  return history;
}

__device__ inline bool looks_at_history(const ConstraintsView& c, const Parameters& parameters, std::int64_t request) {
  return parameters.penalises() || value_of<std::int64_t>(c.min_tokens, request, 0) > 0 ||
         c.bad_words(request).count() > 0;
}

// Is a list invalid, or an id in this thread's share of its elements?
__device__ inline bool has_bad_id(Global<const Token> ids, const ListRange& range, std::int64_t vocab_size) {
  bool bad = !range.valid;
  for (std::int64_t i = range.begin + threadIdx.x; i < range.end; i += blockDim.x)
    bad = bad || !is_index(static_cast<Token>(ids[i]), vocab_size);
  return bad;
}

// DRAFTPROOF_ROW_BAD_PARAMETER, DRAFTPROOF_ROW_BAD_ID or DRAFTPROOF_ROW_OK, by all threads of the block. Only a history
// that is looked at can refuse a row. After it, every list of the row is valid and its ids may be used as indices.
__device__ inline std::int32_t status_of_constraints(const ConstraintsView& c, const Parameters& parameters,
                                                     const RowHistory& history, std::int64_t request,
                                                     std::int64_t vocab_size) {
  bool bad_parameter = !parameters.valid || value_of<std::int64_t>(c.min_tokens, request, 0) < 0;
  bool bad_id = has_bad_id(c.allowed_ids, c.allowed(request), vocab_size);
  bad_id = has_bad_id(c.stop_ids, c.stops(request), vocab_size) || bad_id;
  const ListRange bias = c.bias(request);
  bad_id = has_bad_id(c.bias_tokens, bias, vocab_size) || bad_id;
  for (std::int64_t i = bias.begin + threadIdx.x; i < bias.end; i += blockDim.x)
    bad_parameter = bad_parameter || !is_finite(c.bias_values[i]);
  const ListRange sequences = c.bad_words(request);
  bad_id = bad_id || !sequences.valid;
  for (std::int64_t s = sequences.begin + threadIdx.x; s < sequences.end; s += blockDim.x) {
    const ListRange words = c.bad_word(s);
    bad_id = bad_id || !words.valid;
    bad_parameter = bad_parameter || (words.valid && words.count() < 1);
    for (std::int64_t i = words.begin; i < words.end; ++i)
      bad_id = bad_id || !is_index(static_cast<Token>(c.bad_word_tokens[i]), vocab_size);
  }
  if (looks_at_history(c, parameters, request)) {
    bad_parameter = bad_parameter ||
                    (history.valid() && (history.prompt_len < 0 || history.prompt_len > history.committed.count() ||
                                         history.count() > c.history_len_max));
    bad_id = has_bad_id(history.committed_tokens, history.committed, vocab_size) || bad_id;
    bad_id = has_bad_id(history.drafted_tokens, history.drafted, vocab_size) || bad_id;
  }
  const std::uint32_t worst =
      bad_parameter ? DRAFTPROOF_ROW_BAD_PARAMETER : (bad_id ? DRAFTPROOF_ROW_BAD_ID : DRAFTPROOF_ROW_OK);
  return static_cast<std::int32_t>(block_reduce(worst, Max{}));
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

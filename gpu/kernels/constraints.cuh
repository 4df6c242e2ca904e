// The constraints of requests on the device: lists of ids, histories, and whether they are as they must be (twin:
// validate in reference/logits/edits.cpp and History).
#pragma once

#include <cstdint>

#include "gpu/kernels/block.cuh"
#include "gpu/kernels/parameters.cuh"
#include "reference/token.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct ConstraintsView {
  Global<const std::uint32_t> allowed_mask;  // [rows, allowed_mask_stride]
  std::int64_t allowed_mask_stride;
  Global<const Token> allowed_ids;
  Global<const std::int64_t> allowed_offsets;
  Global<const Token> history_tokens;
  Global<const std::int64_t> history_offsets;
  Global<const std::int64_t> prompt_len;
  std::int64_t history_len_max;
  Global<const Token> row_draft_tokens;
  Global<const std::int64_t> row_draft_begin;
  Global<const std::int32_t> row_draft_len;
  Global<const Token> bad_word_tokens;
  Global<const std::int64_t> bad_word_offsets;
  Global<const std::int64_t> bad_word_sequences;
  Global<const std::int64_t> min_tokens;
  Global<const Token> stop_ids;
  Global<const std::int64_t> stop_offsets;
  Global<const Token> bias_tokens;
  Global<const float> bias_values;
  Global<const std::int64_t> bias_offsets;
};

// List b of a list of lists: elements [begin, end).
struct Range {
  std::int64_t begin;
  std::int64_t end;

  __device__ std::int64_t count() const { return end - begin; }
};
__device__ inline Range range_of(Global<const std::int64_t> offsets, std::int64_t list) {
  if (offsets == nullptr) return {0, 0};
  return {offsets[list], offsets[list + 1]};
}

// Committed tokens, then those drafted before the row.
struct RowHistory {
  Global<const Token> committed_tokens;
  Global<const Token> drafted_tokens;
  Range committed;
  Range drafted;
  std::int64_t prompt_len;

  __device__ std::int64_t count() const { return committed.count() + drafted.count(); }
  __device__ std::int64_t output_len() const { return count() - prompt_len; }
  __device__ Token token(std::int64_t i) const {
    if (i < committed.count()) return committed_tokens[committed.begin + i];
    return drafted_tokens[drafted.begin + (i - committed.count())];
  }
};

__device__ inline RowHistory history_of(const ConstraintsView& c, std::int64_t row, std::int64_t request) {
  RowHistory history{
      c.history_tokens, c.row_draft_tokens, {0, 0}, {0, 0}, value_of<std::int64_t>(c.prompt_len, request, 0)};
  if (c.history_tokens != nullptr) history.committed = range_of(c.history_offsets, request);
  if (c.row_draft_begin != nullptr) {
    history.drafted.begin = c.row_draft_begin[row];
    history.drafted.end = history.drafted.begin + static_cast<std::int32_t>(c.row_draft_len[row]);
  }
  return history;
}

__device__ inline bool looks_at_history(const ConstraintsView& c, const Parameters& parameters, std::int64_t request) {
  return parameters.penalises() || value_of<std::int64_t>(c.min_tokens, request, 0) > 0 ||
         range_of(c.bad_word_sequences, request).count() > 0;
}

// What a thread finds in its share of the elements of a list.
__device__ inline bool has_bad_id(Global<const Token> ids, const Range& range, std::int64_t vocab_size) {
  bool bad = false;
  for (std::int64_t i = range.begin + threadIdx.x; i < range.end; i += blockDim.x) {
    const Token id = ids[i];
    bad = bad || id < 0 || id >= vocab_size;
  }
  return bad;
}

// DRAFTPROOF_ROW_BAD_PARAMETER, DRAFTPROOF_ROW_BAD_ID or DRAFTPROOF_ROW_OK, by all threads of the block. Only a history
// that is looked at can be wrong. After it, every id of the row's lists may be used as an index.
__device__ inline std::int32_t status_of_constraints(const ConstraintsView& c, const Parameters& parameters,
                                                     const RowHistory& history, std::int64_t request,
                                                     std::int64_t vocab_size) {
  bool bad_parameter = !parameters.right || value_of<std::int64_t>(c.min_tokens, request, 0) < 0;
  bool bad_id = has_bad_id(c.allowed_ids, range_of(c.allowed_offsets, request), vocab_size) ||
                has_bad_id(c.stop_ids, range_of(c.stop_offsets, request), vocab_size);
  const Range bias = range_of(c.bias_offsets, request);
  bad_id = has_bad_id(c.bias_tokens, bias, vocab_size) || bad_id;
  for (std::int64_t i = bias.begin + threadIdx.x; i < bias.end; i += blockDim.x)
    bad_parameter = bad_parameter || !is_finite(c.bias_values[i]);
  const Range sequences = range_of(c.bad_word_sequences, request);
  if (sequences.count() > 0) {
    for (std::int64_t s = sequences.begin + threadIdx.x; s < sequences.end; s += blockDim.x)
      bad_parameter = bad_parameter || range_of(c.bad_word_offsets, s).count() < 1;
    const Range words{c.bad_word_offsets[sequences.begin], c.bad_word_offsets[sequences.end]};
    bad_id = has_bad_id(c.bad_word_tokens, words, vocab_size) || bad_id;
  }
  if (looks_at_history(c, parameters, request)) {
    bad_parameter = bad_parameter || history.prompt_len < 0 || history.prompt_len > history.committed.count() ||
                    history.count() > c.history_len_max;
    bad_id = has_bad_id(history.committed_tokens, history.committed, vocab_size) || bad_id;
    bad_id = has_bad_id(history.drafted_tokens, history.drafted, vocab_size) || bad_id;
  }
  const std::uint32_t worst =
      bad_parameter ? DRAFTPROOF_ROW_BAD_PARAMETER : (bad_id ? DRAFTPROOF_ROW_BAD_ID : DRAFTPROOF_ROW_OK);
  return static_cast<std::int32_t>(block_reduce(worst, Max{}));
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

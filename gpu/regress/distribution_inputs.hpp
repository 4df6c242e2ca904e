// Rows of logits with all that the pipeline may do to them, for cases of the calls that run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/regress/inputs.hpp"

namespace draftproof::regress {

// Arrays as in draftproof.h; an empty one is a null pointer.
struct DistributionInputs : ParameterLists {
  std::int64_t rows = 0;
  std::int64_t requests = 0;
  std::int64_t vocab_size = 0;
  std::int64_t row_stride = 0;
  std::int32_t dtype = DRAFTPROOF_F32;
  std::vector<std::int32_t> row_request;
  std::vector<float> logits;
  std::vector<float> unconditional;
  std::int64_t unconditional_stride = 0;              // 0: as the logits
  std::int32_t unconditional_dtype = DRAFTPROOF_F32;  // where the stride is not 0

  std::vector<std::uint32_t> allowed_mask;
  std::int64_t allowed_mask_stride = 0;
  std::vector<std::int32_t> allowed_ids;
  std::vector<std::int64_t> allowed_offsets;
  std::vector<std::int32_t> history_tokens;
  std::vector<std::int64_t> history_offsets;
  std::vector<std::int64_t> prompt_len;
  std::int64_t history_len_max = 0;
  std::vector<std::int32_t> row_draft_tokens;
  std::vector<std::int64_t> row_draft_begin;
  std::vector<std::int32_t> row_draft_len;
  std::vector<std::int32_t> bad_word_tokens;
  std::vector<std::int64_t> bad_word_offsets;
  std::vector<std::int64_t> bad_word_sequences;
  std::vector<std::int64_t> min_tokens;
  std::vector<std::int32_t> stop_ids;
  std::vector<std::int64_t> stop_offsets;
  std::vector<std::int32_t> bias_tokens;
  std::vector<float> bias_values;
  std::vector<std::int64_t> bias_offsets;

  draftproof_rows logits_in(CaseRun& run) const;
  draftproof_rows unconditional_in(CaseRun& run) const;
  draftproof_constraints constraints_in(CaseRun& run) const;

  // Sets the arguments that every call on rows of logits has.
  template <class Arguments>
  void put_into(CaseRun& run, Arguments& a) const {
    a.rows = rows;
    a.requests = requests;
    a.vocab_size = vocab_size;
    a.row_request = run.optional(row_request);
    a.logits = logits_in(run);
    a.unconditional = unconditional_in(run);
    a.parameters = parameters_in(run);
    a.constraints = constraints_in(run);
  }

  float& logit(std::int64_t row, std::int64_t token) {
    return logits[static_cast<std::size_t>(row * row_stride + token)];
  }
};

// Normal logits, one request a row.
DistributionInputs normal_rows(std::int64_t rows, std::int64_t vocab_size, std::int32_t dtype, float spread,
                               std::int64_t row_stride);

// All that requests may ask for at once, each request something else: filters, penalties, bias, bad words, min_tokens,
// allowed ids, bitmask, guidance; some of them off. Rows belong to requests in a shuffled order.
DistributionInputs everything(std::uint64_t seed, std::int64_t rows, std::int64_t requests, std::int64_t vocab_size,
                              std::int32_t dtype);

// Rows that the offsets and indices of a call refuse, each among others that are valid: what the lie is about, and all
// inputs.
struct InvalidRows {
  std::string what;
  DistributionInputs inputs;
};
std::vector<InvalidRows> invalid_rows();

}  // namespace draftproof::regress

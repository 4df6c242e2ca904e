// One verification step of one request as engines hold it, and what the step emits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/logits/parameters.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {

// A view of rows of one tensor, `row_stride` elements apart.
struct RowMatrix {
  DType dtype = DType::f32;
  const void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t vocab_size = 0;
  std::int64_t row_stride = 0;

  RowView row(std::int64_t i) const {
    const auto offset = static_cast<std::size_t>(i * row_stride) * element_bytes();
    return {dtype, static_cast<const std::byte*>(data) + offset, vocab_size};
  }
  RowMatrix slice(std::int64_t first, std::int64_t count) const {
    return {dtype, row(first).data, count, vocab_size, row_stride};
  }

 private:
  std::size_t element_bytes() const { return dtype == DType::f32 ? 4 : 2; }
};

// What the draft tokens were drawn from. A verifier that assumes another distribution than the drafter used is biased.
enum class ProposalKind : std::uint8_t {
  one_hot,        // no probabilities: prompt lookup, argmax drafting
  probabilities,  // [K, V], as they were sampled from
  logits,         // [K, V]; go through the pipeline with draft_parameters
};

struct VerifyRequest {
  std::span<const Token> draft;  // [K], K >= 0

  bool target_is_probabilities = false;    // then taken as processed: no pipeline
  RowMatrix target;                        // [K + 1, V]: the rows of the drafts, then the bonus row
  std::optional<RowMatrix> unconditional;  // [K + 1, V], for guidance
  RowParameters parameters;
  RowConstraints constraints;                    // of every row, but for the mask
  std::span<const std::uint32_t> allowed_masks;  // [K + 1, ceil(V/32)] or empty

  ProposalKind proposal_kind = ProposalKind::one_hot;
  RowMatrix proposal;              // [K, V]
  RowParameters draft_parameters;  // for ProposalKind::logits; temperature 0 means argmax drafting: one-hot proposals

  std::span<const Token> prompt_tokens;
  std::span<const Token> output_tokens;  // committed before this step
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::int64_t first_row = 0;  // number of the request's first target row; errors print it
};

struct VerifyOptions {
  Sampler sampler = Sampler::inverse;
  Convention convention = Convention::draftproof;
  bool raw_logprobs = true;  // costs one more mass pass per emitted token whose row is edited, tempered or filtered
  bool all_rows = false;     // kept_mass and kept_count of rows after the first rejection too
};

// What one step emits.
struct Emission {
  std::uint32_t num_accepted = 0;   // tau
  std::vector<Token> tokens;        // [tau + 1]: accepted drafts, then the recovered or bonus token
  std::vector<float> logprobs;      // [tau + 1], natural log under the processed distribution
  std::vector<float> raw_logprobs;  // [tau + 1], or empty
  std::vector<float> kept_mass;     // of logits rows that were looked at: [tau + 1], or [K + 1] with all_rows;
                                    // of probability rows only with all_rows
  std::vector<std::int64_t> kept_count;
};

// Checks shapes, ids and parameters of a request. Errors name the request and what would be right.
void validate(const VerifyRequest& request, std::int64_t request_index);

}  // namespace draftproof

// One verification step of one request as engines hold it, and what the step emits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "reference/logits/parameters.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/chance.hpp"
#include "reference/verify/draft_tree.hpp"
#include "reference/verify/recorded_randomness.hpp"

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

// Source of the draft tokens. A verifier that assumes another distribution than the drafter used is biased.
enum class ProposalKind : std::uint8_t {
  one_hot,        // no probabilities: prompt lookup, argmax drafting
  probabilities,  // [K, V], as they were sampled from
  logits,         // [K, V]; go through the pipeline with draft_parameters
};

// Rows of a step: row 0 is that of the committed context, row i + 1 that after draft node i (DraftTree::row_after). Of
// a chain of K drafts, row i judges draft i and row K is the bonus row.
struct VerifyRequest {
  DraftTree draft;  // K >= 0 nodes; a chain is a tree

  bool target_is_probabilities = false;    // then taken as processed: no pipeline
  RowMatrix target;                        // [K + 1, V]
  std::optional<RowMatrix> unconditional;  // [K + 1, V], for guidance
  RowParameters parameters;
  RowConstraints constraints;                    // of every row, but for the mask
  std::span<const std::uint32_t> allowed_masks;  // [K + 1, allowed_mask_stride] or empty
  std::int64_t allowed_mask_stride = 0;          // words from one row's mask to the next; 0: ceil(V/32)

  ProposalKind proposal_kind = ProposalKind::one_hot;
  RowMatrix proposal;  // row r proposes the children of its node: [K, V] of a chain, else [K + 1, V]
  // For ProposalKind::logits; temperature 0 means argmax drafting: one-hot proposals, of a chain at its drafts, of rows
  // as of a tree at their argmaxes.
  RowParameters draft_parameters;

  std::span<const Token> prompt_tokens;
  std::span<const Token> output_tokens;           // committed before this step
  std::span<const Token> logprob_token_ids = {};  // at most kLogprobTokenIdsMax
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::optional<std::uint32_t> position;  // coupled: tokens emitted before this step; absent: output_tokens.size()

  RecordedRandomness recorded;  // where there are any: in place of addressed randomness (step/replay.hpp)

  // For errors: the numbers of the first rows in their tensors.
  std::int64_t first_row = 0;
  std::int64_t first_proposal_row = 0;
  // A fault around the rows, found by a caller that cannot throw; reported when a row of logits is asked for.
  RowStatus target_fault = RowStatus::ok;
  RowStatus proposal_fault = RowStatus::ok;
  std::int64_t history_len_max = std::numeric_limits<std::int64_t>::max();  // a longer one is a bad_parameter

  std::uint32_t rows() const { return static_cast<std::uint32_t>(draft.size()) + 1; }
  // Proposal rows as of a tree, one after every node: of a chain among trees, too.
  bool has_tree_rows() const { return proposal.rows == static_cast<std::int64_t>(draft.size()) + 1; }
  std::uint32_t position_or_default() const {
    return position.value_or(static_cast<std::uint32_t>(output_tokens.size()));
  }
};

struct VerifyOptions {
  VerifierChoice verifier = Verifier::chain;
  Sampler sampler = Sampler::inverse;
  Convention convention = Convention::draftproof;
  bool logprobs = true;
  bool raw_logprobs = true;  // needs logprobs; one more mass pass for a row that is edited, tempered or filtered
  bool all_rows = false;     // kept_mass and kept_count of rows off the accepted path too
};

// Output of one step.
struct Emission {
  std::uint32_t num_accepted = 0;   // tau
  std::vector<std::int32_t> path;   // [tau] accepted nodes, from the context down; of a chain 0, 1, ...
  std::vector<Token> tokens;        // [tau + 1]: accepted drafts, then the recovered or bonus token
  std::vector<float> logprobs;      // [tau + 1], natural log under the processed distribution, or empty
  std::vector<float> raw_logprobs;  // [tau + 1], or empty
  std::vector<float> kept_mass;     // of the rows of the path [tau + 1], or of all rows [K + 1] with all_rows; of
                                    // probability rows only with all_rows
  std::vector<std::int64_t> kept_count;
  // [tau + 1, ids]: with logprobs and raw_logprobs, those of the logprob_token_ids in the row of each token.
  std::vector<float> token_id_logprobs = {};
  std::vector<float> raw_token_id_logprobs = {};
};

// Checks shapes, ids and parameters of a request, and that the verifier takes its draft. Errors name the request and
// what is expected.
void validate(const VerifyRequest& request, const VerifierChoice& verifier, std::int64_t request_index);

}  // namespace draftproof

// Regression cases for somebody else's kernels: the inputs of a case as the calls of draftproof_kernels.h take
// them, on the host. Rows of 16 bits become f32, which is exact; padding becomes NaN; what a case refuses is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/token.hpp"
#include "gpu/regress/case.hpp"

namespace draftproof::regress {

// Rows of logits and what is drawn from them: "filter" and "sample".
struct RowInputs {
  std::int64_t vocab_size = 0;
  std::int64_t row_stride = 0;
  std::vector<float> logits;  // [rows, row_stride]
  std::vector<float> temperature;
  std::vector<std::int32_t> top_k;
  std::vector<float> top_p;
  std::vector<float> min_p;
  std::vector<std::uint64_t> seeds;  // [rows], as all above
  std::vector<std::uint32_t> steps;

  std::int64_t rows() const { return static_cast<std::int64_t>(temperature.size()); }
  // Adds a row of another with its parameters, seed and step.
  void add(const RowInputs& from, std::int64_t row, std::uint64_t seed, std::uint32_t step);
};

// Drafts with the probabilities of target and proposal: "verify_chain", "verify_block" and "verify_tree".
struct DraftInputs {
  std::int64_t vocab_size = 0;
  std::int64_t row_stride = 0;
  bool is_tree = false;       // then proposal rows are laid out as target rows are
  bool has_proposals = true;  // else without draft_probs: one-hot chains, trees judged by the target alone
  std::vector<Token> draft_tokens;
  std::vector<std::int32_t> parents;                    // [drafts] of trees
  std::vector<std::int32_t> cu_num_draft_tokens = {0};  // [requests + 1]
  std::vector<float> target_probs;                      // [drafts + requests, row_stride]
  std::vector<float> draft_probs;    // [drafts, row_stride], of trees [drafts + requests, row_stride]
  std::vector<std::uint64_t> seeds;  // [requests]
  std::vector<std::uint32_t> steps;

  std::int64_t requests() const { return static_cast<std::int64_t>(seeds.size()); }
  std::int64_t drafts() const { return static_cast<std::int64_t>(draft_tokens.size()); }
  std::int64_t rows() const { return drafts() + requests(); }
  std::int64_t draft_len_max() const;
  std::int64_t begin(std::int64_t request) const { return cu_num_draft_tokens[static_cast<std::size_t>(request)]; }
  std::int64_t draft_len(std::int64_t request) const { return begin(request + 1) - begin(request); }
  std::int64_t proposal_rows(std::int64_t request) const { return draft_len(request) + (is_tree ? 1 : 0); }
  // Row `place` of a request, [row_stride]; the last target row of a chain is the bonus row.
  const float* target(std::int64_t request, std::int64_t place) const {
    return target_probs.data() + (begin(request) + request + place) * row_stride;
  }
  const float* draft(std::int64_t request, std::int64_t place) const {
    return draft_probs.data() + (begin(request) + (is_tree ? request : 0) + place) * row_stride;
  }
  // An empty batch of the same kind.
  DraftInputs none() const;
  // Adds a request of another with these drafts; its row r is row `rows[r]` of the other's, with empty `rows` row r.
  void add(const DraftInputs& from, std::int64_t request, const std::vector<Token>& drafts, std::uint64_t seed,
           std::uint32_t step, const std::vector<std::int64_t>& rows = {});
};

struct GuidanceInputs {
  std::int64_t vocab_size = 0;
  std::int64_t row_stride = 0;
  std::vector<float> conditional, unconditional;  // [rows, row_stride]
  std::vector<float> scale;                       // [rows]

  std::int64_t rows() const { return static_cast<std::int64_t>(scale.size()); }
};

struct TreeInputs {
  std::int64_t words_per_row = 0;
  std::vector<std::int32_t> cu_num_draft_tokens = {0};  // [requests + 1]
  std::vector<std::int32_t> parents;

  std::int64_t requests() const { return static_cast<std::int64_t>(cu_num_draft_tokens.size()) - 1; }
  std::int64_t draft_len_max() const;
};

using LibraryInputs = std::variant<RowInputs, DraftInputs, GuidanceInputs, TreeInputs>;

// The inputs of a case of sample, verification, guidance or tree_mask, which the reference answers to see what it
// refuses. Nothing where the case asks for what draftproof_kernels.h has not (penalties, constraints, rows of logits in
// verification, other orders and ties of filters), or where nothing of it is left.
std::optional<LibraryInputs> library_inputs(const RegressCase& one);

// The parameters that these inputs set, by their names in draftproof_kernels.h, as "top_p": what a kernel that is equal
// on them was tested with.
std::vector<std::string> parameters_set(const LibraryInputs& inputs);

}  // namespace draftproof::regress

// Host side of kernels/distribution.cuh: the launches that make the distributions of rows, for the operations that need
// them.
#pragma once

#include "gpu/kernels/distribution.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

inline std::int64_t tiles_of(std::int64_t vocab_size) {
  return (vocab_size + kTileTokens - 1) / kTileTokens;
}
// Several for each multiprocessor: a tile is then best given to few threads.
inline constexpr std::int64_t kManyTiles = 2048;

// Memory for the distributions of `rows` rows.
struct DistributionScratch {
  Global<std::uint64_t> tile_sum;
  Global<std::int32_t> tile_exponent;
  Global<DistributionRow> rows;

  static DistributionScratch in(OperationMemory& memory, std::int64_t rows, std::int64_t vocab_size) {
    const std::int64_t tiles = tiles_of(vocab_size);
    return {memory.scratch<std::uint64_t>("tile_sum", rows * tiles),
            memory.scratch<std::int32_t>("tile_exponent", rows * tiles),
            memory.scratch<DistributionRow>("distribution_rows", rows)};
  }
};

// Only the masses of their tiles; a tile that is refused says so (kernels/distribution.cuh).
void launch_tile_masses(const draftproof_settings& settings, const RowsView& logits, std::int64_t rows,
                        std::int64_t vocab_size, Global<const float> temperature, RowRequests row_requests,
                        const DistributionScratch& distribution);

// The distributions of rows that no filter cuts and no constraint edits. temperature [requests] or null.
LogitsDistribution launch_unfiltered_distribution(const draftproof_settings& settings, const RowsView& logits,
                                                  std::int64_t rows, std::int64_t vocab_size,
                                                  Global<const float> temperature, RowRequests row_requests,
                                                  const DistributionScratch& distribution);

// The same of rows whose sums the caller gives: nothing of them is read.
LogitsDistribution launch_given_distribution(const draftproof_settings& settings, OperationMemory& memory,
                                             const RowsView& logits, std::int64_t rows, std::int64_t vocab_size,
                                             Global<const float> temperature, RowRequests row_requests,
                                             const draftproof_row_sums& sums, const DistributionScratch& distribution);

// Rows of logits and all that the pipeline (reference/logits/pipeline.hpp) does to them. Pointers of `parameters` and
// `constraints` are the caller's; what an operation may have made itself comes as a device pointer.
struct PipelineInput {
  std::int64_t rows = 0;
  std::int64_t requests = 0;
  std::int64_t vocab_size = 0;
  draftproof_rows logits{};
  draftproof_rows unconditional{};
  draftproof_parameters parameters{};
  draftproof_constraints constraints{};                   // but for the row_draft_* pointers:
  Global<const std::int32_t> row_draft_tokens = nullptr;  // [row_draft_tokens_count]
  std::int64_t row_draft_tokens_count = 0;
  Global<const std::int64_t> row_draft_begin = nullptr;  // [rows]
  Global<const std::int32_t> row_draft_len = nullptr;    // [rows]
  RowRequests row_requests{};
  draftproof_row_sums sums{};  // of rows that nothing edits or cuts; null: to be made
  bool counts_kept = false;    // DistributionRow::kept_count is wanted of every row
};

// Adds the requests of the rows, and the drafted tokens among the constraints.
template <class Arguments>
void add_rows(OperationMemory& memory, const Arguments& a, PipelineInput& input) {
  const draftproof_constraints& c = a.constraints;
  input.row_requests = {memory.input("row_request", a.row_request, a.rows), a.requests};
  input.row_draft_tokens = memory.input("row_draft_tokens", c.row_draft_tokens, c.row_draft_tokens_count);
  input.row_draft_tokens_count = c.row_draft_tokens_count;
  input.row_draft_begin = memory.input("row_draft_begin", c.row_draft_begin, input.rows);
  input.row_draft_len = memory.input("row_draft_len", c.row_draft_len, input.rows);
}

// The pipeline of a call's rows of logits, without their requests and drafted tokens (add_rows).
template <class Arguments>
PipelineInput pipeline_input(const Arguments& a, std::int64_t rows, const draftproof_rows& logits) {
  PipelineInput input;
  input.rows = rows;
  input.requests = a.requests;
  input.vocab_size = a.vocab_size;
  input.logits = logits;
  input.unconditional = a.unconditional;
  input.parameters = a.parameters;
  input.constraints = a.constraints;
  return input;
}

// Scratch of the pipeline; made in the same order when measuring.
struct PipelineScratch {
  DistributionScratch distribution;

  // Null where nothing is edited.
  Global<float> edited;                // [rows, vocab_size rounded up to 8]
  Global<std::int32_t> tile_status;    // [rows, tiles]
  Global<std::int32_t> row_status;     // [rows]
  Global<std::uint32_t> allowed_bits;  // [requests, words]; null: no allowed ids
  Global<std::int32_t> slot_token;     // [rows, slots] of the history; null: no penalties
  Global<std::int32_t> slot_count;

  static PipelineScratch in(OperationMemory& memory, const PipelineInput& input);
};

// The distributions of all rows. Nothing is launched for what the input does not ask for: rows without constraints and
// filters cost one mass pass.
LogitsDistribution launch_pipeline(const draftproof_settings& settings, OperationMemory& memory,
                                   const PipelineInput& input, const PipelineScratch& scratch);

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

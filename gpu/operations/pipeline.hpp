// The pipeline from raw logits to the distributions of rows: kernels/edit_rows.cuh, edit_tokens.cuh, mass.cuh,
// filters.cuh.
#include "gpu/kernels/edit_rows.cuh"
#include "gpu/kernels/edit_tokens.cuh"
#include "gpu/kernels/filters.cuh"
#include "gpu/operations/instances.hpp"
#include "gpu/operations/launch_distribution.hpp"

namespace draftproof::DRAFTPROOF_EXECUTOR {
namespace {

// The edits that a call asks for show in which arrays it has: the host does not look into them.
bool has_penalties(const draftproof_parameters& p) {
  return p.repetition_penalty != nullptr || p.frequency_penalty != nullptr || p.presence_penalty != nullptr;
}
bool has_edits(const PipelineInput& input) {
  const draftproof_constraints& c = input.constraints;
  return input.parameters.guidance_scale != nullptr || input.parameters.nan_policy != nullptr ||
         has_penalties(input.parameters) || c.allowed_mask != nullptr || c.allowed_ids != nullptr ||
         c.bad_word_sequences != nullptr || c.min_tokens != nullptr || c.stop_ids != nullptr ||
         c.bias_tokens != nullptr;
}
bool has_filters(const draftproof_parameters& p) {
  return p.top_k != nullptr || p.top_p != nullptr || p.min_p != nullptr || p.filter_order != nullptr ||
         p.ties != nullptr || p.top_p_rule != nullptr;
}

std::int64_t edited_stride(std::int64_t vocab_size) {
  return (vocab_size + 7) / 8 * 8;  // so that every row is read 16 bytes at a time
}
std::int64_t mask_words(std::int64_t vocab_size) {
  return (vocab_size + 31) / 32;
}

ConstraintsView constraints_of(OperationMemory& memory, const PipelineInput& input) {
  const draftproof_constraints& c = input.constraints;
  const std::int64_t n = input.requests;
  ConstraintsView v{};
  v.allowed_mask_stride = c.allowed_mask_stride;
  v.allowed_mask = memory.input("allowed_mask", c.allowed_mask,
                                (input.rows - 1) * c.allowed_mask_stride + mask_words(input.vocab_size));
  v.allowed_ids = memory.input("allowed_ids", c.allowed_ids, c.allowed_ids_count);
  v.allowed_ids_count = c.allowed_ids_count;
  v.allowed_offsets = memory.input("allowed_offsets", c.allowed_offsets, n + 1);
  v.history_tokens = memory.input("history_tokens", c.history_tokens, c.history_tokens_count);
  v.history_tokens_count = c.history_tokens_count;
  v.history_offsets = memory.input("history_offsets", c.history_offsets, n + 1);
  v.prompt_len = memory.input("prompt_len", c.prompt_len, n);
  v.history_len_max = c.history_len_max;
  v.row_draft_tokens = input.row_draft_tokens;
  v.row_draft_tokens_count = input.row_draft_tokens_count;
  v.row_draft_begin = input.row_draft_begin;
  v.row_draft_len = input.row_draft_len;
  v.bad_word_tokens = memory.input("bad_word_tokens", c.bad_word_tokens, c.bad_word_tokens_count);
  v.bad_word_tokens_count = c.bad_word_tokens_count;
  v.bad_word_offsets = memory.input("bad_word_offsets", c.bad_word_offsets, c.bad_word_sequences_count + 1);
  v.bad_word_sequences_count = c.bad_word_sequences_count;
  v.bad_word_sequences = memory.input("bad_word_sequences", c.bad_word_sequences, n + 1);
  v.min_tokens = memory.input("min_tokens", c.min_tokens, n);
  v.stop_ids = memory.input("stop_ids", c.stop_ids, c.stop_ids_count);
  v.stop_ids_count = c.stop_ids_count;
  v.stop_offsets = memory.input("stop_offsets", c.stop_offsets, n + 1);
  v.bias_tokens = memory.input("bias_tokens", c.bias_tokens, c.bias_count);
  v.bias_values = memory.input("bias_values", c.bias_values, c.bias_count);
  v.bias_count = c.bias_count;
  v.bias_offsets = memory.input("bias_offsets", c.bias_offsets, n + 1);
  return v;
}

// The edited rows, in scratch.
RowsView launch_edits(const draftproof_settings& settings, OperationMemory& memory, const PipelineInput& input,
                      const RowsView& logits, const ParametersView& parameters, const PipelineScratch& scratch) {
  const std::int64_t tiles = tiles_of(input.vocab_size);
  const ConstraintsView constraints = constraints_of(memory, input);
  const std::uint32_t threads = block_threads(settings, 256);
  if (scratch.allowed_bits != nullptr) {
    launch(describe(settings, "allowed_bits_of_ids", input.requests, threads), allowed_bits_of_ids,
           constraints.allowed_ids, constraints.allowed_ids_count, constraints.allowed_offsets, input.vocab_size,
           mask_words(input.vocab_size), scratch.allowed_bits);
  }
  DenseEdits dense{};
  dense.logits = logits;
  dense.has_unconditional = input.unconditional.data != nullptr;
  if (dense.has_unconditional)
    dense.unconditional = view_of(memory, "unconditional", input.unconditional, input.rows, input.vocab_size);
  dense.parameters = parameters;
  dense.constraints = constraints;
  dense.allowed_bits = scratch.allowed_bits;
  dense.row_requests = input.row_requests;
  dense.vocab_size = input.vocab_size;
  dense.tiles = tiles;
  dense.edited = scratch.edited;
  dense.edited_stride = edited_stride(input.vocab_size);
  dense.tile_status = scratch.tile_status;
  launch(describe(settings, "edit_rows", input.rows * tiles, threads), edit_rows, dense);

  SparseEdits sparse{};
  sparse.parameters = parameters;
  sparse.constraints = constraints;
  sparse.row_requests = input.row_requests;
  sparse.tile_status = scratch.tile_status;
  sparse.vocab_size = input.vocab_size;
  sparse.tiles = tiles;
  sparse.edited = scratch.edited;
  sparse.edited_stride = dense.edited_stride;
  sparse.slot_token = scratch.slot_token;
  sparse.slot_count = scratch.slot_count;
  sparse.slots = slots_for(input.constraints.history_len_max);
  sparse.row_status = scratch.row_status;
  launch(describe(settings, "edit_tokens", input.rows, threads), edit_tokens, sparse);

  RowsView edited{};
  edited.f32 = scratch.edited;
  edited.row_stride = dense.edited_stride;
  edited.dtype = DRAFTPROOF_F32;
  edited.aligned = 1;
  return edited;
}

}  // namespace

PipelineScratch PipelineScratch::in(OperationMemory& memory, const PipelineInput& input) {
  PipelineScratch scratch{};
  scratch.distribution = DistributionScratch::in(memory, input.rows, input.vocab_size);
  if (!has_edits(input)) return scratch;
  scratch.edited = memory.scratch<float>("edited", CheckedSize(input.rows) * edited_stride(input.vocab_size));
  scratch.tile_status = memory.scratch<std::int32_t>("tile_status", input.rows * tiles_of(input.vocab_size));
  scratch.row_status = memory.scratch<std::int32_t>("row_status", input.rows);
  if (input.constraints.allowed_ids != nullptr)
    scratch.allowed_bits =
        memory.scratch<std::uint32_t>("allowed_bits", CheckedSize(input.requests) * mask_words(input.vocab_size));
  if (has_penalties(input.parameters)) {
    const CheckedSize slots = CheckedSize(input.rows) * slots_for(input.constraints.history_len_max);
    scratch.slot_token = memory.scratch<std::int32_t>("slot_token", slots);
    scratch.slot_count = memory.scratch<std::int32_t>("slot_count", slots);
  }
  return scratch;
}

LogitsDistribution launch_pipeline(const draftproof_settings& settings, OperationMemory& memory,
                                   const PipelineInput& input, const PipelineScratch& scratch) {
  const bool edits = has_edits(input);
  const ParametersView parameters = view_of(memory, input.parameters, input.requests);
  RowsView logits = view_of(memory, "logits", input.logits, input.rows, input.vocab_size);
  if (input.sums.row_exponent != nullptr)
    return launch_given_distribution(settings, memory, logits, input.rows, input.vocab_size, parameters.temperature,
                                     input.row_requests, input.sums, scratch.distribution);
  if (!edits && !has_filters(input.parameters) && !input.counts_kept)
    return launch_unfiltered_distribution(settings, logits, input.rows, input.vocab_size, parameters.temperature,
                                          input.row_requests, scratch.distribution);
  if (edits) logits = launch_edits(settings, memory, input, logits, parameters, scratch);

  const DistributionScratch& distribution = scratch.distribution;
  launch_tile_masses(settings, logits, input.rows, input.vocab_size, parameters.temperature, input.row_requests,
                     distribution);
  FilterRows filter{};
  filter.logits = logits;
  filter.parameters = parameters;
  filter.row_requests = input.row_requests;
  if (edits) filter.row_status = scratch.row_status;
  filter.vocab_size = input.vocab_size;
  filter.tiles = tiles_of(input.vocab_size);
  filter.counts_kept = input.counts_kept;
  filter.tile_sum = distribution.tile_sum;
  filter.tile_exponent = distribution.tile_exponent;
  filter.rows = distribution.rows;
  with_element(logits.dtype, [&](auto element) {
    const auto threads = block_threads(settings, 512);
    const auto run = [&](auto by_rule) {
      launch(describe(settings, "filter_rows", input.rows, threads), filter_rows<decltype(element), by_rule.value>,
             filter);
    };
    if (input.parameters.top_p_rule == nullptr)
      run(std::false_type{});
    else
      run(std::true_type{});
  });
  return {logits,
          parameters.temperature,
          input.row_requests,
          distribution.tile_sum,
          distribution.tile_exponent,
          distribution.rows,
          input.vocab_size,
          filter.tiles};
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

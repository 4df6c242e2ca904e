// Sparse edits of rows of logits: bad words, min_tokens, bias, repetition, frequency and presence penalty, one block a
// row (twin: reference/logits/edits.cpp). Also the status of a row before its temperature.
//
//   edited [rows, edited_stride] f32, tile_status [rows, tiles] -> edited, row_status [rows]
//
// Ladder (bytes that must move: the lists and the history, once; 8 a distinct token that is edited):
//   v1 (this)  a hash table of the row's history in scratch, which L2 holds; a thread a list element.
//   next: the table of the committed history made once a request, in shared memory where it fits.
#pragma once

#include "gpu/kernels/constraints.cuh"
#include "gpu/kernels/mass_tile.cuh"

namespace draftproof::DRAFTPROOF_EXECUTOR {

struct SparseEdits {
  ParametersView parameters;
  ConstraintsView constraints;
  RowRequests row_requests;
  Global<const std::int32_t> tile_status;
  std::int64_t vocab_size;
  std::int64_t tiles;
  Global<float> edited;
  std::int64_t edited_stride;
  Global<Token> slot_token;         // [rows, slots]; null: no request has penalties
  Global<std::int32_t> slot_count;  // [rows, slots]: how often the token stands in the output
  std::int64_t slots;               // a power of two
  Global<std::int32_t> row_status;
};

// A power of two at least twice as large as the history, so that a search for a free slot ends soon.
__host__ __device__ inline std::int64_t slots_for(std::int64_t history_len) {
  std::int64_t slots = 32;
  while (slots < 2 * history_len) slots *= 2;
  return slots;
}

// Several threads may mask one token: an atomic exchange, so that this is no race.
__device__ inline void mask_token(Global<float> row, Token token) {
  atomicExch(&view_as<std::uint32_t>(row)[token], bit_cast<std::uint32_t>(negative_infinity()));
}

__device__ inline void mask_bad_words(const ConstraintsView& c, const RowHistory& history, std::int64_t request,
                                      Global<float> row) {
  const ListRange sequences = c.bad_words(request);
  for (std::int64_t s = sequences.begin + threadIdx.x; s < sequences.end; s += blockDim.x) {
    const ListRange words = c.bad_word(s);
    const std::int64_t before = words.count() - 1;
    if (before > history.count()) continue;
    std::int64_t matched = 0;
    while (matched < before &&
           c.bad_word_tokens[words.begin + matched] == history.token(history.count() - before + matched))
      ++matched;
    if (matched == before) mask_token(row, c.bad_word_tokens[words.end - 1]);
  }
}

// The thread of a token's first bias adds all of its biases, in the order of the list.
__device__ inline void add_bias(const ConstraintsView& c, std::int64_t request, Global<float> row) {
  const ListRange list = c.bias(request);
  for (std::int64_t i = list.begin + threadIdx.x; i < list.end; i += blockDim.x) {
    const Token token = c.bias_tokens[i];
    std::int64_t first = list.begin;
    while (c.bias_tokens[first] != token) ++first;
    if (first != i) continue;
    float x = row[token];
    for (std::int64_t j = i; j < list.end; ++j)
      if (c.bias_tokens[j] == token) x += c.bias_values[j];
    row[token] = x;
  }
}

__device__ inline float penalised(float x, const Parameters& p, std::int32_t count) {
  if (x == negative_infinity()) return x;  // a penalty that overflows would make a NaN of it
  x = x > 0.0f ? x / p.repetition_penalty : x * p.repetition_penalty;
  if (count == 0) return x;
  x -= p.frequency_penalty * static_cast<float>(count);
  return x - p.presence_penalty;
}

// Counts how often each token of the history stands in the output, then edits each once. The table is open addressing
// over [0, slots); which slot a token gets depends on the order of threads, what becomes of its logit does not.
__device__ inline void penalise(const Parameters& p, const RowHistory& history, Global<Token> slot_token,
                                Global<std::int32_t> slot_count, Global<float> row) {
  const std::int64_t slots = slots_for(history.count());
  for (std::int64_t s = threadIdx.x; s < slots; s += blockDim.x) {
    slot_token[s] = kPaddingToken;
    slot_count[s] = 0;
  }
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < history.count(); i += blockDim.x) {
    const Token token = history.token(i);
    std::int64_t slot = (static_cast<std::uint32_t>(token) * 0x9e3779b1u >> 7) & (slots - 1);
    for (;; slot = (slot + 1) & (slots - 1)) {
      const Token found = atomicCAS(&slot_token[slot], kPaddingToken, token);
      if (found == kPaddingToken || found == token) break;
    }
    if (i >= history.prompt_len) atomicAdd(&slot_count[slot], 1);
  }
  __syncthreads();
  for (std::int64_t s = threadIdx.x; s < slots; s += blockDim.x) {
    const Token token = slot_token[s];
    if (token == kPaddingToken) continue;
    const float x = row[token];
    row[token] = penalised(x, p, slot_count[s]);
  }
}

// Grid: rows blocks.
__global__ void edit_tokens(SparseEdits e) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t request = e.row_requests.of(row);
  const Parameters parameters = parameters_of(e.parameters, request);
  const RowHistory history = history_of(e.constraints, row, request);
  std::int32_t status = status_of_constraints(e.constraints, parameters, history, request, e.vocab_size);
  std::int32_t worst = DRAFTPROOF_ROW_OK;
  for (std::int64_t t = threadIdx.x; t < e.tiles; t += blockDim.x)
    worst = Max{}(worst, static_cast<std::int32_t>(e.tile_status[row * e.tiles + t]));
  status = Max{}(status, block_reduce(worst, Max{}));
  if (!e.row_requests.valid(row)) status = DRAFTPROOF_ROW_BAD_ID;
  if (threadIdx.x == 0) e.row_status[row] = status;
  if (status != DRAFTPROOF_ROW_OK) return;  // the same in all threads

  const Global<float> logits = e.edited + row * e.edited_stride;
  mask_bad_words(e.constraints, history, request, logits);
  const std::int64_t min_tokens = value_of<std::int64_t>(e.constraints.min_tokens, request, 0);
  if (min_tokens > 0 && history.output_len() < min_tokens) {  // else nothing has looked at the history's length
    const ListRange stops = e.constraints.stops(request);
    for (std::int64_t i = stops.begin + threadIdx.x; i < stops.end; i += blockDim.x)
      mask_token(logits, e.constraints.stop_ids[i]);
  }
  __syncthreads();
  add_bias(e.constraints, request, logits);
  __syncthreads();
  if (e.slot_token != nullptr && parameters.penalises())
    penalise(parameters, history, e.slot_token + row * e.slots, e.slot_count + row * e.slots, logits);
}

}  // namespace draftproof::DRAFTPROOF_EXECUTOR

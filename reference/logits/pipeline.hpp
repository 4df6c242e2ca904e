// From raw logits to the distribution of a row:
//   guidance -> NaN policy -> masks (allowed ids, bitmask, bad words, min_tokens, n-grams) -> logit_bias -> repetition,
//   frequency, presence penalty, DRY -> temperature (0: greedy) -> smoothing, top_n_sigma -> min_p, top_k, top_p ->
//   typical_p, epsilon and eta cutoffs, p-less, top-H, XTC, Mirostat (samplers.hpp) -> adaptive-p -> distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reference/logits/history.hpp"
#include "reference/logits/parameters.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof {

struct RowInput {
  RowView logits;                        // [V], f32, f16 or bf16
  std::optional<RowView> unconditional;  // [V]; needed when guidance_scale is not 1
  RowParameters parameters;              // validated
  RowConstraints constraints;            // validated
  const History* history = nullptr;      // may be null when needs_history() is false
  RowName row;                           // as errors name it
  Token first_token = 0;  // of the logits: above 0 for a part of a row; parameters and history are the row's
};

// Holds the buffers of one row at a time; a thread reuses one Pipeline over all its rows. The distribution that run()
// fills refers to these buffers (or to the caller's row, where nothing had to be changed) until the next run().
class Pipeline {
 public:
  // RowError: see LogitsDistribution and guidance.hpp.
  void run(const RowInput& input, Distribution& distribution);

  // The steps of run() before it needs the row as a whole, for a part of a row that one device holds
  // (shard/row_shard.hpp): guidance, NaN policy, edits. RowError: columns count from the part's first token.
  void edit(const RowInput& input);
  // Then the part's distribution (LogitsDistribution::try_assign_part), or its first token by the greedy choice.
  bool try_assign_part(LogitsDistribution& part, bool weighs) const {
    return part.try_assign_part(edited_, temperature_, weighs);
  }
  RankedLogit largest_of_part() { return largest_logit(processed_logits(), row_); }
  // RowErrors of a row that was not assigned: a bad logit as it came in, if there is one; else as the kernels met it.
  void check_as_given();
  [[noreturn]] void throw_bad_row(LogitsDistribution& row);

  // Log-softmax of the row as it came in (after guidance, before any edit): what engines report as raw logprobs.
  float raw_log_probability(Token token);

  // The logits of the last row: as they came in, and as the temperature left them (before it, for a greedy row) and
  // what comes between it and the filters. Made when they are asked for: the distribution converts and divides tile by
  // tile.
  std::span<const float> raw_logits();
  std::span<const float> processed_logits();

 private:
  static std::span<const float> load(const RowView& view, std::vector<float>& buffer);
  void check_raw(NanPolicy policy);

  std::vector<float> conditional_buffer_;
  std::vector<float> unconditional_buffer_;
  std::vector<float> edited_buffer_;
  std::vector<float> divided_buffer_;
  std::vector<float> adapted_buffer_;
  RowView raw_;     // f32 in conditional_buffer_, or the caller's row
  RowView edited_;  // f32 in edited_buffer_, or raw_
  float temperature_ = 1.0f;
  bool is_edited_ = false;
  bool is_divided_ = false;  // divided_buffer_ is of the last row
  RowName row_;
  std::optional<LogNormaliser> raw_normaliser_;  // of the last row, once it is known
  LogitsDistribution raw_logits_distribution_;
};

}  // namespace draftproof

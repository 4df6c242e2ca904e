// From raw logits to the distribution of a row:
//   guidance -> NaN policy -> masks (allowed ids, bitmask, bad words, min_tokens) -> logit_bias -> repetition,
//   frequency, presence penalty, DRY -> temperature (0: greedy) -> smoothing, top_n_sigma -> min_p, top_k, top_p ->
//   typical_p, epsilon and eta cutoffs, XTC, Mirostat (samplers.hpp) -> distribution.
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
};

// Holds the buffers of one row at a time; a thread reuses one Pipeline over all its rows. The distribution that run()
// fills refers to these buffers (or to the caller's row, where nothing had to be changed) until the next run().
class Pipeline {
 public:
  // RowError: see LogitsDistribution and guidance.hpp.
  void run(const RowInput& input, Distribution& distribution);

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
  RowView raw_;     // f32 in conditional_buffer_, or the caller's row
  RowView edited_;  // f32 in edited_buffer_, or raw_
  float temperature_ = 1.0f;
  bool is_divided_ = false;  // divided_buffer_ is of the last row
  RowName row_;
  std::optional<LogNormaliser> raw_normaliser_;  // of the last row, once it is known
  LogitsDistribution raw_logits_distribution_;
};

}  // namespace draftproof

// Inputs of regression cases: functions of a seed, from integers and correctly rounded operations alone, so that they
// are the same bits on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/draftproof.h"
#include "gpu/regress/case.hpp"

namespace draftproof::regress {

// Addressed random words: as many independent streams as there are seeds.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t word(std::uint64_t index) const;
  double uniform(std::uint64_t index) const;  // [0, 1)
  double normal(std::uint64_t index) const;   // sum of 12 uniforms, less 6: about N(0, 1), within 6
  std::int64_t below(std::uint64_t index, std::int64_t n) const;

 private:
  std::uint64_t seed_;
};

// The vocabularies that every kernel is tried on: around the tile of 4,096 tokens, around a warp, and those of models.
inline constexpr std::int64_t kSmallVocabularies[] = {1, 7, 31, 32, 33, 4095, 4096, 4097};
inline constexpr std::int64_t kModelVocabularies[] = {32000, 50257, 128256, 151936};

// Normal logits [rows, row_stride] with standard deviation `spread`; columns from vocab_size on hold what must never be
// read: NaN, +infinity and 1e30 in turns.
std::vector<float> normal_logits(std::uint64_t seed, std::int64_t rows, std::int64_t vocab_size,
                                 std::int64_t row_stride, float spread);

// Replaces each logit with probability `share` by -infinity; the first of a row stays.
void mask_some(std::uint64_t seed, std::vector<float>& logits, std::int64_t rows, std::int64_t vocab_size,
               std::int64_t row_stride, double share);

// Rows of probabilities [rows, row_stride] as a softmax makes them; padding as above. The share of zeros comes from
// logits masked before.
std::vector<float> probability_rows(std::uint64_t seed, std::int64_t rows, std::int64_t vocab_size,
                                    std::int64_t row_stride, float spread, double masked_share = 0.0);

// Parameters of requests, [requests] each or empty.
struct ParameterLists {
  std::vector<float> temperature;
  std::vector<std::int32_t> top_k;
  std::vector<float> top_p;
  std::vector<float> min_p;
  std::vector<std::uint8_t> filter_order;
  std::vector<std::uint8_t> ties;
  std::vector<std::uint8_t> top_p_rule;
  std::vector<float> repetition_penalty;
  std::vector<float> frequency_penalty;
  std::vector<float> presence_penalty;
  std::vector<float> guidance_scale;
  std::vector<std::uint8_t> nan_policy;

  draftproof_parameters parameters_in(CaseRun& run) const;
};

// "f32", "f16", "bf16".
std::string dtype_text(std::int32_t dtype);
// vocab_size rounded up to a multiple of 64, as engines pad.
std::int64_t padded(std::int64_t vocab_size);

}  // namespace draftproof::regress

#include "gpu/regress/inputs.hpp"

#include <limits>
#include <span>

#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/sampling/logits_distribution.hpp"

namespace draftproof::regress {
namespace {

float padding(std::int64_t column) {
  constexpr float kKinds[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30f};
  return kKinds[column % 3];
}

}  // namespace

std::uint32_t Noise::word(std::uint64_t index) const {
  const RandomBlock block =
      philox_block(seed_, static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(index >> 34), 0, 0);
  return block.word[index % 4];
}

double Noise::uniform(std::uint64_t index) const {
  return static_cast<double>(word(index)) * 0x1p-32;
}

double Noise::normal(std::uint64_t index) const {
  // Three blocks hold twelve words.
  double sum = 0.0;
  for (std::uint32_t part = 0; part < 3; ++part) {
    const RandomBlock block =
        philox_block(seed_, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), part, 1);
    for (const std::uint32_t word : block.word) sum += static_cast<double>(word) * 0x1p-32;
  }
  return sum - 6.0;
}

std::int64_t Noise::below(std::uint64_t index, std::int64_t n) const {
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(word(index)) * static_cast<std::uint64_t>(n)) >> 32);
}

std::vector<float> normal_logits(std::uint64_t seed, std::int64_t rows, std::int64_t vocab_size,
                                 std::int64_t row_stride, float spread) {
  const Noise noise(seed);
  std::vector<float> logits(static_cast<std::size_t>(rows * row_stride));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < row_stride; ++i) {
      const std::int64_t at = row * row_stride + i;
      logits[static_cast<std::size_t>(at)] =
          i < vocab_size ? spread * static_cast<float>(noise.normal(static_cast<std::uint64_t>(at))) : padding(i);
    }
  }
  return logits;
}

void mask_some(std::uint64_t seed, std::vector<float>& logits, std::int64_t rows, std::int64_t vocab_size,
               std::int64_t row_stride, double share) {
  const Noise noise(seed);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 1; i < vocab_size; ++i) {
      const auto at = static_cast<std::size_t>(row * row_stride + i);
      if (noise.uniform(at) < share) logits[at] = -std::numeric_limits<float>::infinity();
    }
  }
}

std::vector<float> probability_rows(std::uint64_t seed, std::int64_t rows, std::int64_t vocab_size,
                                    std::int64_t row_stride, float spread, double masked_share) {
  std::vector<float> values = normal_logits(seed, rows, vocab_size, row_stride, spread);
  mask_some(seed + 1, values, rows, vocab_size, row_stride, masked_share);
  LogitsDistribution distribution;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::span<float> out(values.data() + row * row_stride, static_cast<std::size_t>(vocab_size));
    const std::vector<float> logits(out.begin(), out.end());
    distribution.assign(logits, row);
    for (std::int64_t i = 0; i < vocab_size; ++i)
      out[static_cast<std::size_t>(i)] = distribution.probability(static_cast<Token>(i));
  }
  return values;
}

draftproof_parameters ParameterLists::parameters_in(CaseRun& run) const {
  draftproof_parameters p{};
  p.temperature = run.optional(temperature);
  p.top_k = run.optional(top_k);
  p.top_p = run.optional(top_p);
  p.min_p = run.optional(min_p);
  p.filter_order = run.optional(filter_order);
  p.ties = run.optional(ties);
  p.top_p_rule = run.optional(top_p_rule);
  p.repetition_penalty = run.optional(repetition_penalty);
  p.frequency_penalty = run.optional(frequency_penalty);
  p.presence_penalty = run.optional(presence_penalty);
  p.guidance_scale = run.optional(guidance_scale);
  p.nan_policy = run.optional(nan_policy);
  return p;
}

std::string dtype_text(std::int32_t dtype) {
  return dtype == DRAFTPROOF_F32 ? "f32" : dtype == DRAFTPROOF_F16 ? "f16" : "bf16";
}

std::int64_t padded(std::int64_t vocab_size) {
  return (vocab_size + 63) / 64 * 64;
}

}  // namespace draftproof::regress

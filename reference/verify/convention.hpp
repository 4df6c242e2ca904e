// The acceptance decision, one scalar rule, and the rules that six engines and some texts use instead.
//
// Ours, in double: accept iff q > 0 and (p >= q or u q < p), u of 53 bits in [0, 1). So p = 0 is never accepted, p >= q
// > 0 always is, for every u, and a zero residual is never reached but by rounding. The others are here so that a user
// can see what theirs does at the endpoints; each is the engine's rule on the engine's uniform.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {

enum class Convention : std::uint8_t {
  draftproof,    // [0,1) f64, u q < p or p >= q
  vllm_v1,       // [0,1) f64, p / q >= u: u = 0 accepts p = 0
  vllm_v2,       // (0,1) f32, log p > log u + log q: may reject p = q
  flashinfer,    // (0,1] f32, u q < p: u = 1 rejects p = q, and the residual is empty
  sglang,        // [0,1) f32, u q < p and p > 0 (as fixed; the rule before the fix was <=)
  tensorrt_llm,  // (0,1] f32, p > u q: as flashinfer; its empty residual is 0/0
  huggingface,   // [0,1) f32, u <= p / q: u = 0 accepts p = 0
  textbook,      // [0,1) f64, u < alpha, alpha = p / q, but 1 where q = 0: accepts p = q = 0
};

struct ConventionInfo {
  Convention convention;
  std::string_view name;
  std::string_view rule;
  std::string_view degenerate_case;
};

inline constexpr std::array<ConventionInfo, 8> kConventions = {{
    {Convention::draftproof, "draftproof", "u in [0,1) f64; q > 0 and (p >= q or u*q < p)", "none"},
    {Convention::vllm_v1, "vllm_v1", "u in [0,1) f64; p/q >= u", "u = 0 accepts p = 0"},
    {Convention::vllm_v2, "vllm_v2", "u in (0,1) f32; log p > log u + log q", "p = q can be rejected by rounding"},
    {Convention::flashinfer, "flashinfer", "u in (0,1] f32; u*q < p", "u = 1 and p = q: rejected, empty residual"},
    {Convention::sglang, "sglang", "u in [0,1) f32; u*q < p and p > 0", "none since its fix"},
    {Convention::tensorrt_llm, "tensorrt_llm", "u in (0,1] f32; p > u*q", "u = 1 and p = q: rejected, residual 0/0"},
    {Convention::huggingface, "huggingface", "u in [0,1) f32; u <= p/q", "u = 0 accepts p = 0"},
    {Convention::textbook, "textbook", "u in [0,1) f64; u < p/q, or q = 0", "q = 0 is accepted, of p = 0 too"},
}};

// u in [0, 1) with 24 bits and u in (0, 1] as cuRAND makes it: both from the block's first word.
DRAFTPROOF_HD inline float uniform_24(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}
DRAFTPROOF_HD inline float uniform_open_closed(std::uint32_t word) {
  return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
}

// Does the draft token with target probability p and proposal probability q stand?
DRAFTPROOF_HD inline bool accepts(Convention convention, double p, double q, const RandomBlock& block) {
  const float p32 = static_cast<float>(p);
  const float q32 = static_cast<float>(q);
  switch (convention) {
    case Convention::vllm_v1:
      return q > 0.0 && p / q >= uniform_53(high_half(block));
    case Convention::vllm_v2: {
      if (p <= 0.0 || q <= 0.0) return false;
      const float u = static_cast<float>(block.word[0] >> 9) * 0x1p-23f + 0x1p-24f;
      const float log_u = static_cast<float>(natural_log(static_cast<double>(u)));
      return static_cast<float>(natural_log(p)) > log_u + static_cast<float>(natural_log(q));
    }
    case Convention::flashinfer:
    case Convention::tensorrt_llm:
      return uniform_open_closed(block.word[0]) * q32 < p32;
    case Convention::sglang:
      return p32 > 0.0f && uniform_24(block.word[0]) * q32 < p32;
    case Convention::huggingface:
      return q32 > 0.0f && uniform_24(block.word[0]) <= p32 / q32;
    case Convention::textbook:
      return !(q > 0.0) || uniform_53(high_half(block)) < p / q;
    case Convention::draftproof:
      break;
  }
  return q > 0.0 && (p >= q || uniform_53(high_half(block)) * q < p);
}

}  // namespace draftproof

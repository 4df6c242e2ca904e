// The random numbers of one verification step as an engine recorded them, for ReplayingChance. Which of them a verifier
// asks for, and which go together, is checked by step/replay.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/token.hpp"

namespace draftproof {

// Numbers as they were recorded, 32 bits or 64 each, not copied.
struct RecordedNumbers {
  std::span<const float> of_32_bits;
  std::span<const double> of_64_bits;

  std::size_t size() const { return of_32_bits.size() + of_64_bits.size(); }
  double operator[](std::size_t i) const {
    return of_64_bits.empty() ? static_cast<double>(of_32_bits[i]) : of_64_bits[i];
  }
};

enum class NoiseKind : std::uint8_t {
  exponential,  // the token with the largest mass / noise wins
  gumbel,       // the token with the largest log mass + noise wins
};

// K drafts, V tokens. "One for the step" is a number, or a row of noise, that whichever row needs it uses.
struct RecordedRandomness {
  std::optional<RecordedNumbers> uniforms;       // [K] acceptance coins of the drafts; [K + 1] of the rows, where a
                                                 // verifier throws one coin for all siblings of a row
  std::optional<RecordedNumbers> draw_uniforms;  // [K + 1] of the rows, or [1]: draws by inverse mass
  std::optional<RecordedNumbers> noise;          // [(K + 1) V] or [V]: draws by race
  NoiseKind noise_kind = NoiseKind::exponential;
  std::optional<std::span<const Token>> recovered_tokens;  // [K] what a rejection of each draft would emit
  std::optional<Token> bonus_token;

  bool any() const { return uniforms || draw_uniforms || noise || recovered_tokens || bonus_token; }
};

}  // namespace draftproof

// A Chance that answers with the random numbers that an engine recorded, the twin of AddressedChance and
// RecordingChance: the verifier's template then decides what the engine should have decided with them.
//
// Numbers are compared exactly, as the fractions that they are:
//   coin               u q against p, with the endpoints of a convention (accepts_exactly)
//   draw by a uniform  the first token at which the running sum of the masses RNE(x 2^62), in order of id, passes u
//                      times their total; at u = 1, which nothing passes, the last token with a mass
//   exponential noise  the largest mass / noise, as cross products; of equal ones the lowest id. Noise 0 wins
//   Gumbel noise       the largest log mass + noise in double, of equal ones the lowest id: logarithms are no fractions
//   recorded tokens    as they are
// Masses are the probabilities of the row, of a residual the floats max(p - q, 0). Whatever convention, tokens without
// mass do not come out but as a recorded token. A greedy row needs no numbers: its token is the only one with a mass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "reference/random/address.hpp"
#include "reference/verify/convention.hpp"
#include "reference/verify/dense_rows.hpp"
#include "reference/verify/recorded_randomness.hpp"

namespace draftproof {

// Does the draft stand by a convention's rule with this uniform number in [0, 1]? The engine's endpoints, and u q
// against p as the fractions that they are, where engines round p / q, u q or logarithms.
//
//   draftproof                        q > 0 and (p >= q or u q < p)
//   vllm_v1, huggingface              q > 0 and u q <= p
//   vllm_v2                           q > 0 and u q < p
//   sglang, flashinfer, tensorrt_llm  u q < p
// u q < p is never true of p = 0.
bool accepts_exactly(Convention convention, double p, double q, double u);

struct ReplayedDecision {
  bool is_coin;
  std::uint32_t row;  // of a coin that of the draft, which is its index; of a draw that of its prefix
  Purpose purpose = Purpose::accept;
  double p = 0.0, q = 0.0;       // coin
  double u = -1.0;               // coin, draw by a uniform; below 0: none
  bool accepted = false;         // coin
  std::vector<double> masses{};  // draw, unnormalised: [V], or of the outcomes that the verifier names
  Token token = kPaddingToken;   // draw
};

class ReplayingChance {
 public:
  // `draft_len`: K. `position`: of row 0, which coupled verifiers count from. `decisions`, where given, receives every
  // decision in order.
  ReplayingChance(const RecordedRandomness& recorded, std::uint32_t draft_len, Convention convention,
                  bool greedy_target, std::uint32_t position = 0, std::vector<ReplayedDecision>* decisions = nullptr)
      : recorded_(recorded),
        draft_len_(draft_len),
        convention_(convention),
        greedy_target_(greedy_target),
        position_(position),
        decisions_(decisions) {}

  bool accept(double p, double q, std::uint32_t row) {
    const double u = greedy_target_ ? 0.5 : (*recorded_.uniforms)[row];
    const bool accepted = greedy_target_ ? p > 0.0 : accepts_exactly(convention_, p, q, u);
    if (decisions_) decisions_->push_back({true, row, Purpose::accept, p, q, u, accepted});
    return accepted;
  }

  // Masses: DistributionMasses, ResidualMasses (distribution.hpp) or a vector of doubles.
  template <class Masses>
  Token draw(const Masses& masses, std::uint32_t row, Purpose purpose) {
    return draw(masses.values(), row, purpose);
  }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose) {
    double u = -1.0;
    const Token token = token_of(masses, row, purpose, u);
    if (decisions_) decisions_->push_back({false, row, purpose, 0.0, 0.0, u, false, masses, token});
    return token;
  }

  template <class Masses>
  Token coupled_race(const Masses& masses, std::uint32_t position, std::uint32_t = 0) {
    return draw(masses, position - position_, Purpose::gumbel_noise);
  }
  template <class Masses>
  Token coupled_list_race(const Masses&, std::uint32_t, std::uint32_t) {
    throw Error(ErrorKind::internal, "replay", "races over lists of noise are refused before");
  }

  // A recorded token that its distribution cannot produce: a fault of the engine, or of the recording.
  struct ImpossibleToken {
    std::uint32_t row;
    Token token;
  };
  const std::optional<ImpossibleToken>& impossible_token() const { return impossible_token_; }

 private:
  Token token_of(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose, double& u);
  Token checked(Token recorded, const DenseMasses<double>& masses, std::uint32_t row);

  const RecordedRandomness& recorded_;
  std::uint32_t draft_len_;
  Convention convention_;
  bool greedy_target_;
  std::uint32_t position_;
  std::vector<ReplayedDecision>* decisions_;
  std::optional<ImpossibleToken> impossible_token_;
};

// The token of masses [V] that a uniform number in [0, 1] draws, and that a row of noise [V] draws: as at the top.
// Error (internal): every mass is 0.
Token draw_by_uniform(const DenseMasses<double>& masses, double u);
Token draw_by_noise(const DenseMasses<double>& masses, const RecordedNumbers& noise, std::size_t first, NoiseKind kind);

}  // namespace draftproof

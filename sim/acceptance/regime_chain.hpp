// Texts with regimes, easy and hard stretches: each token has a regime, which follows that of the token before it as a
// Markov chain, and is drafted with that regime's rate. Every token has a random word of its own, whichever step drafts
// it: so a draft that starts at a place meets what an earlier one met there.
#pragma once

#include <array>
#include <vector>

#include "sim/acceptance/acceptance_model.hpp"

namespace draftproof {

struct Regimes {
  std::vector<double> rates;                    // [R] P(a draft is accepted)
  std::vector<double> start;                    // [R] the stationary distribution
  std::vector<std::vector<double>> transition;  // [R][R] to the next token's regime
};

// Two regimes, good (0) and bad (1): to_bad and to_good are the probabilities to change with the next token.
Regimes two_state_regimes(double good, double bad, double to_bad, double to_good);

// Driven by the entropy of the target's rows: H is exponentially distributed with this mean (nats), sorted into 16
// equally probable classes; the next token keeps the class with probability `memory`, or draws a new one. A draft is
// accepted with probability max(0, 1 - sqrt(gamma H)), the entropy-based bound of AdaEDL (Agrawal et al. 2410.18351).
Regimes entropy_regimes(double mean_nats, double gamma, double memory);

class RegimeChain final : public AcceptanceModel {
 public:
  // At most 128 regimes.
  RegimeChain(Regimes regimes, std::uint64_t seed);

  AcceptanceState begin(std::uint64_t request) const override;
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;
  std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                      std::int32_t context_len = 0) const override;

 private:
  // Decisions of one token's word in a regime: is a draft of it accepted, and which regime has the next token? Cell c
  // of 2 R: accepted if c < R, next regime c mod R.
  struct Outcomes {
    std::array<std::uint8_t, 256> first{};  // a cell at or before that of the words with this first byte
    std::vector<std::uint64_t> below;       // [2 R] cumulative
    std::uint32_t cell(std::uint32_t word) const {
      std::uint32_t c = first[word >> 24];
      while (word >= below[c]) ++c;
      return c;
    }
  };

  std::int32_t first_regime(std::uint64_t request_seed) const;
  std::vector<double> survival_from(std::vector<double> regime_distribution, std::int32_t depth) const;
  // One step with `depth` drafts: the distribution of the regime where the next step begins.
  std::vector<double> after_step(std::vector<double> regime_distribution, std::int32_t depth) const;
  std::vector<double> after_token(const std::vector<double>& regime_distribution) const;

  Regimes regimes_;
  std::uint64_t seed_;
  std::vector<std::uint64_t> start_below_;  // [R] cumulative
  std::vector<Outcomes> outcomes_;          // [R]
};

}  // namespace draftproof

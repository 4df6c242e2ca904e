// Chain verification of one draft at a large vocabulary, fast enough for the usual tests: the distributions are fixed,
// so every draw is a binary search in a table that is made once. A fault is a field that differs from what it should
// be.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reference/exactness/mutants/mutant.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

// All [V]; the residual is unnormalised.
struct LargeChain {
  std::vector<double> requested;  // what tokens should follow
  std::vector<double> drafted;    // what drafts are drawn from
  std::vector<double> target;     // what the coin takes for p
  std::vector<double> proposal;   // what the coin takes for q
  std::vector<double> residual;   // what recovered tokens are drawn from
};

// The distributions of usual_tests.hpp and no fault.
LargeChain sound_large_chain();

// Does the draft stand? Our convention.
using CoinRule = std::function<bool(double p, double q, const RandomBlock& coin)>;
bool sound_coin(double p, double q, const RandomBlock& coin);

LargeSampler large_chain_sampler(const LargeChain& chain, CoinRule coin = sound_coin);

}  // namespace draftproof

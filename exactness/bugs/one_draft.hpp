// Chain verification of one draft over fixed distributions, at a vocabulary of any size: every draw is a binary search
// in a table that is made once. A fault is a field that differs from what it should be.
#pragma once

#include <functional>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "exactness/bugs/fixed_rows.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

// All [V]; the residual is unnormalised.
struct OneDraft {
  std::vector<double> requested;  // what tokens should follow
  std::vector<double> drafted;    // what drafts are drawn from
  std::vector<double> target;     // what the coin takes for p
  std::vector<double> proposal;   // what the coin takes for q
  std::vector<double> residual;   // what recovered tokens are drawn from
};

// Does the draft stand? Our convention.
using CoinRule = std::function<bool(double p, double q, const RandomBlock& coin)>;
bool sound_coin(double p, double q, const RandomBlock& coin);

// rows_sampler of a bug whose fault is in one draft: what `fault` does to the sound one, or another coin.
using RowsSampler = std::function<LargeSampler(const FixedRowsPointer&)>;
RowsSampler sampler_with(std::function<void(OneDraft&)> fault);
RowsSampler sampler_with_coin(CoinRule coin);

}  // namespace draftproof

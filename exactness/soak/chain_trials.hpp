// Many independent trials of drafting and verifying a chain, counted by what they emit. Trial number t of a seed is
// step t of a request with that seed, so that its outcome is the one that production has there, bit for bit, whichever
// implementation runs it: the templates of production one by one, or vectors of trials over tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exactness/soak/chain_model.hpp"

namespace draftproof {

// The decisions of a model as borders on the grid of u (grid_chance.hpp), which vectors compare with. Indices: position
// i, previous token c and token x are all below 8.
class ChainTables {
 public:
  explicit ChainTables(const ChainModel& model);

  static constexpr std::size_t kWidth = 8;

  const ChainModel& model() const { return model_; }
  std::size_t draft_len() const { return static_cast<std::size_t>(model_.draft_len()); }
  std::size_t border_count() const { return static_cast<std::size_t>(model_.vocab_size() - 1); }

  // A draw of 64-bit word r is the first token plus the number of borders below r.
  // [8] over c: of border b at position i, and the first token.
  const std::uint64_t* draft_border(std::size_t i, std::size_t b) const {
    return &draft_borders_[(i * kWidth + b) * kWidth];
  }
  const std::uint64_t* draft_first(std::size_t i) const { return &draft_first_[i * kWidth]; }
  // [K + 1][8] over i and c: the recovered token, or the bonus token for i = K.
  const std::uint64_t* last_border(std::size_t b) const { return &last_borders_[b * (draft_len() + 1) * kWidth]; }
  const std::uint64_t* last_first() const { return last_first_.data(); }
  // [8][8] over c and x: how many of the 2^53 coins accept.
  const std::uint64_t* coins(std::size_t i) const { return &coins_[i * kWidth * kWidth]; }

 private:
  const ChainModel& model_;
  std::vector<std::uint64_t> draft_borders_, draft_first_, last_borders_, last_first_, coins_;
};

// Adds trials first_trial .. first_trial + count - 1 of `seed` to counts [model.cell_count()]. first_trial + count
// must not exceed 2^32.
using ChainTrials = void (*)(const ChainTables& tables, std::uint64_t seed, std::uint32_t first_trial,
                             std::uint64_t count, std::span<std::uint64_t> counts);

// verify_chain over AddressedChance and Philox, trial by trial.
void run_chain_trials_one_by_one(const ChainTables& tables, std::uint64_t seed, std::uint32_t first_trial,
                                 std::uint64_t count, std::span<std::uint64_t> counts);

struct ChainTrialKernel {
  const char* target;  // instruction set
  ChainTrials run;
};
// The first runs trials one by one; then one for every instruction set of this processor that has vectors for it.
std::vector<ChainTrialKernel> available_chain_trials();
// The best of this processor.
ChainTrials chain_trials();

}  // namespace draftproof

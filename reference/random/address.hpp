// Randomness is addressed, never streamed: every random word is a pure function of the request's seed and of an
// address. There is no generator object and no state, so no batch neighbour, thread or retry can change what a request
// draws.
//
//   key     = the request's 64-bit seed
//   counter = (index, row, step, purpose)
//
// `step` counts the verification steps of the request, so consecutive steps never share a key (a shipped engine that
// keyed on the position alone was biased). `row` is the draft position within the step. `index` counts blocks of four
// words. Coupled (drafter-invariant) noise is addressed by absolute position instead: (index, position, list, purpose),
// where list is 0 but for coupled drafts in several lists, each with noise of its own.
// Plain decoding uses step = tokens emitted so far and row = 0.
#pragma once

#include <cstdint>

namespace draftproof {

// One enum for the whole project: two uses with one purpose and one address would share their randomness. The numbers
// are part of the contract (tests/vectors/schedule.txt pins them).
enum class Purpose : std::uint32_t {
  draft_sample = 1,     // drawing a draft token from q
  accept = 2,           // the acceptance coin of a draft position
  residual = 3,         // drawing the recovered token
  target_sample = 4,    // drawing from p: bonus token, plain decoding
  sibling_coin = 5,     // acceptance coins of siblings in a tree; index = sibling
  gumbel_noise = 6,     // noise shared by draft and target in coupled verification
  seed_derivation = 7,  // a request seed from a run seed
  choice = 8,           // uniform choice below n
  simulator = 9,        // arrivals, lengths and acceptances of the simulator
};

struct Address {
  std::uint32_t index = 0;
  std::uint32_t row = 0;
  std::uint32_t step = 0;
  Purpose purpose = Purpose::accept;

  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace draftproof

// How much of a draft is accepted: what stands for models and verifier in the simulator. The same request and place
// give the same answer in every run with the same seed, whatever the policy and the batch around it (common random
// numbers): with more drafts at the same place, the first ones fare as they did before. (Not with the drafts of a
// verifier that judges them together, as block verification does, not beyond the block that a head was trained for, and
// not between trees and chains.)
//
// Models of chains alone (mixtures, regimes, recordings) take a tree for the chain of its depth: what siblings would
// have added is not known there.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {

inline constexpr std::int32_t kAcceptanceDepthMax = 64;  // levels of a draft
inline constexpr std::int32_t kAcceptanceNodesMax = 256;

// State that a model keeps for a request between its steps.
struct AcceptanceState {
  std::uint64_t seed = 0;     // of the request's random numbers
  std::int32_t choice = 0;    // what the request was given: a class of rates, a row of a recording, a regime
  std::int32_t position = 0;  // of the text where it has that regime
};

// Where a step stands.
struct AcceptancePlace {
  std::int32_t output_len = 0;   // tokens emitted before the step
  std::int32_t context_len = 0;  // prompt and output
};

class AcceptanceModel {
 public:
  virtual ~AcceptanceModel() = default;
  virtual AcceptanceState begin(std::uint64_t request) const = 0;
  // Drafted tokens accepted along one path, 0 .. depth, of a draft of `nodes` nodes and `depth` levels (a chain:
  // nodes = depth). Errors (usage): more levels or nodes than the maxima above.
  virtual std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                std::int32_t depth) const = 0;
  // Does the drafter say of each draft how likely it is accepted?
  virtual bool gives_confidences() const { return false; }
  // accepted() of a chain, and [depth] what the drafter said of each draft before it was drawn: the probability that it
  // is accepted where those before it are. A model without confidences leaves none.
  virtual std::int32_t accepted_with_confidences(AcceptanceState& state, AcceptancePlace place, std::int32_t depth,
                                                 std::vector<float>& confidences) const {
    confidences.clear();
    return accepted(state, place, depth, depth);
  }
  // Expected survival: s_i = P(the first i drafts are accepted), i = 1 .. depth, over requests and fresh places with
  // this context.
  virtual std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const = 0;
  // The same over the steps of requests that draft so in every step and produce equally many tokens: what a server's
  // counters show, and 1 + its sum is the tokens of a step. It differs where places or requests do: whoever has low
  // rates takes more steps, and steps begin behind rejections.
  virtual std::vector<double> survival_in_run(std::int32_t nodes, std::int32_t depth,
                                              std::int32_t context_len = 0) const {
    return survival(nodes, depth, context_len);
  }
};

// Errors (usage): outside the maxima, or fewer nodes than levels.
inline void require_draft_shape(std::int32_t nodes, std::int32_t depth) {
  if (depth < 0 || depth > kAcceptanceDepthMax || nodes < depth ||
      (nodes != depth && (nodes > kAcceptanceNodesMax || depth == 0)))
    throw usage_error("acceptance", "the draft has " + std::to_string(nodes) + " nodes on " + std::to_string(depth) +
                                        " levels; expected at most " + std::to_string(kAcceptanceNodesMax) +
                                        " nodes, " + std::to_string(kAcceptanceDepthMax) +
                                        " levels, and a node for every level");
}

// The random words of acceptances: key = the request's seed, counter = (index, row, place, Purpose::simulator).
// (Arrivals and lengths have the seed of the run as their key.)
enum class AcceptanceWords : std::uint32_t { request, step, text, context, block, confidence, ahead };

inline RandomBlock acceptance_block(std::uint64_t request_seed, AcceptanceWords row, std::int32_t place,
                                    std::uint32_t index = 0) {
  return philox_block(request_seed, index, static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(place),
                      static_cast<std::uint32_t>(Purpose::simulator));
}

}  // namespace draftproof

// How much of a draft is accepted: what stands for models and verifier in the simulator. The same request and place
// give the same answer in every run with the same seed, whatever the batch around it (common random numbers).
#pragma once

#include <cstdint>
#include <vector>

namespace draftproof {

// What a model remembers of a request between its steps.
struct AcceptanceState {
  std::uint64_t request = 0;  // of the seed's random numbers
  float rate = 0.0f;          // of this request, where rates differ between requests
  std::int32_t regime = 0;    // of a Markov chain; a row of a recording
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
  // nodes = depth).
  virtual std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                std::int32_t depth) const = 0;
  // Expected survival: s_i = P(the first i drafts are accepted), i = 1 .. depth, over requests at a fresh place.
  virtual std::vector<double> survival(std::int32_t nodes, std::int32_t depth) const = 0;
};

}  // namespace draftproof

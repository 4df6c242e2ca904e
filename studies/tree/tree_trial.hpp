// One verification step over a pair of models: a draft by a plan, its rows, and the verifier by name.
#pragma once

#include <vector>

#include "reference/step/request.hpp"
#include "reference/step/step_rows.hpp"
#include "studies/lab/draft_pair.hpp"
#include "studies/tree/tree_building.hpp"
#include "studies/tree/verification_walk.hpp"

namespace draftproof {

// The draft of a plan, drawn with the addresses of the engine's drafts (Purpose::draft_sample, step 0).
DraftTree drawn_tree(const DraftPlan& plan, DraftPair& pair, std::uint64_t seed);

// Holds the buffers.
class TreeTrial {
 public:
  // Accepted drafts of one step. `target` [n + 1]: DraftPair::targets() of the tree.
  std::size_t accepted(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair,
                       const VerifierChoice& verifier, std::uint64_t seed);
  // The same step with every decision.
  struct Recorded {
    Emission emission;
    std::vector<RecordedDecision> decisions;
    std::vector<std::int32_t> selected;  // WalkInputs::selected
  };
  Recorded record(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair,
                  const VerifierChoice& verifier, std::uint64_t seed);

 private:
  void fill(const DraftTree& tree, const std::vector<PairRow>& target, DraftPair& pair, std::uint64_t seed);

  std::vector<float> target_, proposal_;
  VerifyRequest request_;
  StepWorkspace workspace_;
};

}  // namespace draftproof

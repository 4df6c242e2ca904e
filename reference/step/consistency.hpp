// Do draft and target agree on the sampling parameters? Two different faults hide here.
//
//   The drafts were drawn with other parameters than the target uses. The output stays exact, since q is what it is,
//   and only acceptance suffers: the report measures by how much. The verifier assumes another proposal distribution
//   than the drafts were drawn from (argmax drafts verified with softmax probabilities, filtered drafts with unfiltered
//   ones). Then the output distribution is wrong: the report measures by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/step/request.hpp"

namespace draftproof {

// The distribution that a drafter really used, where it is known to differ from the requests' draft_parameters.
struct DraftedWith {
  std::optional<float> temperature = std::nullopt;  // 0: argmax drafts
  std::optional<std::int32_t> top_k = std::nullopt;
  std::optional<float> top_p = std::nullopt;
  std::optional<float> min_p = std::nullopt;

  bool any() const { return temperature || top_k || top_p || min_p; }
};

struct ParameterDifference {
  std::string parameter;
  double draft;
  double target;
};

struct ConsistencyReport {
  std::int64_t rows = 0;                         // draft rows that were measured; 0 where no request has draft logits
  std::vector<ParameterDifference> differences;  // of the first request that has any
  double acceptance = 0.0;                       // mean over the rows of sum_x drafted(x) min(1, p(x) / q(x))
  double acceptance_if_equal = 0.0;              // the same with the drafts drawn like the target, and verified so
  double total_variation = 0.0;                  // largest over the rows: distribution of the emitted token against p
  bool distribution_changes = false;             // total_variation is more than rounding (1e-5)
  std::string sentence;                          // says all this to a person
};

// Measures on at most `rows_max` draft rows, spread evenly. Only requests with ProposalKind::logits can be measured.
// The requests must have been validated. Error (usage): a value of `drafted_with` that is out of range.
ConsistencyReport check_consistency(std::span<const VerifyRequest> requests, const DraftedWith& drafted_with = {},
                                    std::int64_t rows_max = 256);

}  // namespace draftproof

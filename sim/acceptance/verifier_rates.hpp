// The acceptance of any verifier of the reference on synthetic pairs of distributions, so that the verification
// algorithm is a switch: the verifier itself runs on drafts as it needs them, some thousand times for each shape of
// draft, and what it accepted is then sampled.
//
//   target p   Zipf: p_i proportional to i^-zipf
//   draft q    the same with noise in its logits, normal with standard deviation `noise`, new in every row
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "reference/step/draft_plan.hpp"
#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/survival_table.hpp"

namespace draftproof {

struct SyntheticPairs {
  std::int32_t vocab_size = 128;
  double zipf = 1.0;
  double noise = 1.0;
};

struct VerifierRatesOptions {
  VerifierChoice verifier;
  SyntheticPairs pairs;
  std::int32_t drafts_max = 8;    // chains of 1 to so many drafts; of verifiers that draw paths, so long ones
  std::optional<TreeShape> tree;  // and this tree
  std::int32_t samples = 2000;    // of each
};

// Row [V] of the draft model, `row` of `seed`; with noise 0 the target's.
std::vector<double> synthetic_row(const SyntheticPairs& pairs, std::uint64_t seed, std::uint32_t row);

class VerifierRates final : public AcceptanceModel {
 public:
  // Errors (usage) at `where`: a tree that the verifier does not take.
  VerifierRates(const VerifierRatesOptions& options, std::uint64_t seed, const std::string& where);

  AcceptanceState begin(std::uint64_t request) const override { return {derive_seed(seed_, request), 0, 0}; }
  // Errors (usage): a draft that is neither the tree nor a chain of at most drafts_max.
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;

 private:
  // Tried when it is first asked for, from any thread.
  struct Tabulated {
    explicit Tabulated(const DraftPlan& draft)
        : plan(draft), nodes(draft.num_paths * draft.shape.size()), depth(draft.draft_len_max()) {}
    DraftPlan plan;
    std::int32_t nodes, depth;
    std::once_flag once;
    std::vector<double> survival;  // [depth]
    SurvivalTable<10> table;
  };
  void add(const DraftPlan& plan);
  const Tabulated& tabulated(std::int32_t nodes, std::int32_t depth) const;

  VerifierRatesOptions options_;
  std::string where_;
  std::uint64_t seed_;
  mutable std::deque<Tabulated> tables_;  // of chains (paths) of 0, 1, ... drafts, then of the tree
};

}  // namespace draftproof

// Rates that are the same in every step: by position of the draft, or by rank of siblings.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "sim/acceptance/acceptance_model.hpp"
#include "sim/acceptance/survival_table.hpp"
#include "sim/acceptance/tree_survival.hpp"

namespace draftproof {

class PositionRates final : public AcceptanceModel {
 public:
  // conditional [K]: a_1 .. a_K; positions behind K have a_K. One rate alone: constant. Errors (usage) at `where`:
  // none, a rate outside [0, 1].
  PositionRates(std::span<const double> conditional, std::uint64_t seed, const std::string& where);
  // Sequoia's vector, at every node: a chain has the first of them at every position. Errors (usage): those of
  // SequoiaTrees.
  static std::shared_ptr<const PositionRates> of_ranks(std::span<const double> rank_rates, std::uint64_t seed,
                                                       const std::string& where);

  AcceptanceState begin(std::uint64_t request) const override { return {derive_seed(seed_, request), 0, 0}; }
  std::int32_t accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                        std::int32_t depth) const override;
  std::vector<double> survival(std::int32_t nodes, std::int32_t depth, std::int32_t context_len = 0) const override;

 private:
  PositionRates(std::span<const double> conditional, TreeSurvivalsOfDepth trees, std::uint64_t seed,
                const std::string& where);

  std::uint64_t seed_;
  std::vector<double> conditional_;  // [kAcceptanceDepthMax]
  std::vector<double> survival_;     // [kAcceptanceDepthMax]
  SurvivalTable<10> chain_;
  TreeSurvivalTables trees_;
};

}  // namespace draftproof

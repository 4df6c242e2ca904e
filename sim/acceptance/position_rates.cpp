#include "sim/acceptance/position_rates.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/draft/tree_builders/sequoia_tree.hpp"
#include "sim/acceptance/rates.hpp"

namespace draftproof {
namespace {

std::vector<double> to_all_positions(std::span<const double> conditional, const std::string& where) {
  if (conditional.empty()) throw usage_error(where, "has no rate; expected one or more");
  for (std::size_t i = 0; i < conditional.size(); ++i)
    if (!(conditional[i] >= 0.0 && conditional[i] <= 1.0))
      throw usage_error(where, "rate " + std::to_string(i + 1) + " is " + std::to_string(conditional[i]) +
                                   "; expected a number in [0, 1]");
  std::vector<double> all(conditional.begin(), conditional.end());
  all.resize(kAcceptanceDepthMax, conditional.back());
  return all;
}

}  // namespace

PositionRates::PositionRates(std::span<const double> conditional, TreeSurvivalsOfDepth trees, std::uint64_t seed,
                             const std::string& where)
    : seed_(seed),
      conditional_(to_all_positions(conditional, where)),
      survival_(survival_of(conditional_)),
      chain_(survival_),
      trees_(std::move(trees)) {}

PositionRates::PositionRates(std::span<const double> conditional, std::uint64_t seed, const std::string& where)
    : PositionRates(
          conditional, [this](std::int32_t depth) { return position_survivals(conditional_, depth); }, seed, where) {}

std::shared_ptr<const PositionRates> PositionRates::of_ranks(std::span<const double> rank_rates, std::uint64_t seed,
                                                             const std::string& where) {
  if (rank_rates.empty()) throw usage_error(where, "has no rate; expected one or more");
  SequoiaTrees check(rank_rates, 0, 0);
  std::vector<double> ranks(rank_rates.begin(), rank_rates.end());
  auto trees = [ranks](std::int32_t depth) { return sequoia_survivals(ranks, depth); };
  return std::shared_ptr<const PositionRates>(new PositionRates(rank_rates.first(1), std::move(trees), seed, where));
}

std::int32_t PositionRates::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                                     std::int32_t depth) const {
  require_draft_shape(nodes, depth);
  const std::uint32_t word = acceptance_block(state.seed, AcceptanceWords::step, place.output_len).word[0];
  if (nodes == depth) return std::min(chain_.accepted(word), depth);
  return trees_.accepted(word, nodes, depth);
}

std::vector<double> PositionRates::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  if (nodes == depth) return {survival_.begin(), survival_.begin() + depth};
  return trees_.survival(nodes, depth);
}

}  // namespace draftproof

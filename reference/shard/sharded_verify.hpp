// Verification of rows that lie on several devices: the templates of verify/ over ShardedRow. Probabilities come from
// their owner, coins are addressed and so the same on every device, and residuals are integers summed over tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "reference/shard/sharded_masses.hpp"
#include "reference/step/verifiers.hpp"
#include "reference/verify/block.hpp"
#include "reference/verify/chain.hpp"
#include "reference/verify/coupled.hpp"
#include "reference/verify/sampler_match.hpp"
#include "reference/verify/sibling_rules/target_only.hpp"
#include "reference/verify/tree.hpp"

namespace draftproof {

// A dense row of doubles, a part on each device: DenseMasses for the rules that need no more than is here. 8 bytes a
// total, a probability or a token taken out; 8 t + 8 a draw, and the draw's own.
class ShardedDense {
 public:
  using value_type = double;

  explicit ShardedDense(const ShardedRow& row);

  double at(Token token) const;
  Token draw(const RandomBlock& block) const;
  template <class Race>
  RaceWinner merged_race(const Race& race) const {
    return winner_across(row_->devices(), [&](std::size_t d) { return race(PartWeights{parts_[d], base(d)}); });
  }

  friend ShardedDense scaled(ShardedDense masses, double factor);
  friend ShardedDense positive_difference(ShardedDense p, const ShardedDense& q);
  friend double total_of(const ShardedDense& masses);
  friend double taken_out(ShardedDense& masses, Token token);

 private:
  struct PartWeights {
    const DenseMasses<double>& part;
    Token base;
    void for_each_log_weight(const LogWeightSink& sink) const {
      DenseDraw(part).for_each_log_weight(
          [&](Token first, std::span<const double> log_weights) { sink(first + base, log_weights); });
    }
  };
  Token base(std::size_t device) const { return row_->shard(device).base(); }

  const ShardedRow* row_;
  std::vector<DenseMasses<double>> parts_;  // [devices]
};

// The rows of one side of a step, row r of the prefix r, as the templates ask for them.
struct ShardedRows {
  std::span<const ShardedRow> rows;

  float probability(std::uint32_t r, Token token) const { return rows[r].probability(token); }
  ShardedMasses masses(std::uint32_t r) const { return ShardedMasses(rows[r]); }
};
inline ShardedMasses residual_masses(const ShardedRows& target, const ShardedRows& proposal, std::uint32_t row) {
  return ShardedMasses(target.rows[row], &proposal.rows[row]);
}
struct ShardedDenseRows {
  std::span<const ShardedRow> rows;

  double probability(std::uint32_t r, Token token) const { return static_cast<double>(rows[r].probability(token)); }
  ShardedDense masses(std::uint32_t r) const { return ShardedDense(rows[r]); }
  ShardedDense row(std::uint32_t r) const { return ShardedDense(rows[r]); }
};

// target [K + 1], proposal [K], as of VerifyRequest. Verifiers: chain, block, sampler_match, coupled, target_only (of
// trees, too; no proposal). Error (usage): another verifier.
template <class Source>
TreeOutcome verify_across(Verifier verifier, const DraftTree& draft, std::span<const ShardedRow> target,
                          std::span<const ShardedRow> proposal, std::uint32_t position,
                          AddressedChance<Source>& chance) {
  const auto as_path = [](const ChainOutcome& chain) {
    TreeOutcome outcome{{}, chain.last_token};
    for (std::uint32_t i = 0; i < chain.num_accepted; ++i) outcome.path.push_back(static_cast<std::int32_t>(i));
    return outcome;
  };
  const std::span<const Token> tokens = draft.tokens;
  ShardedRows p{target};
  ShardedRows q{proposal};
  switch (verifier) {
    case Verifier::chain:
      return as_path(verify_chain(tokens, p, q, chance));
    case Verifier::block: {
      ShardedDenseRows dense_p{target};
      ShardedDenseRows dense_q{proposal};
      return as_path(verify_block(tokens, dense_p, dense_q, chance));
    }
    case Verifier::sampler_match:
      return as_path(verify_sampler_match(tokens, p, chance));
    case Verifier::coupled:
      return as_path(verify_coupled(tokens, p, position, chance));
    case Verifier::target_only: {
      struct NoRows {
        int row(std::uint32_t) const { return 0; }
      };
      return verify_tree(
          draft, ShardedDenseRows{target}, NoRows{}, [](auto&&... a) { return accept_sibling_target_only(a...); },
          chance);
    }
    default:
      throw usage_error("shards", "verifier " + std::string(info_of(verifier).name) +
                                      "; expected chain, block, sampler_match, coupled or target_only");
  }
}

}  // namespace draftproof

// Samplers at a large vocabulary: rows that are the same everywhere, so that their cumulative sums are computed once
// and the production verifiers run over them at the speed of a binary search.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "exactness/bugs/coupling/key_faults.hpp"
#include "reference/sampling/distribution.hpp"

namespace draftproof {

// Masses [V] that are drawn by the inverse of their cumulative sums, at the uniform of a block's first half.
class CumulativeTable {
 public:
  explicit CumulativeTable(std::vector<double> masses);

  const std::vector<double>& masses() const { return masses_; }
  double mass(Token token) const { return masses_[static_cast<std::size_t>(token)]; }
  Token draw(const RandomBlock& block) const;
  Token draw_without(Token excluded, const RandomBlock& block) const;
  void for_each_log_weight(const LogWeightSink& sink) const;

 private:
  Token at(double sum) const;  // the token whose part of the line holds `sum`

  std::vector<double> masses_;
  std::vector<double> cumulative_;
  Token last_ = 0;  // of positive mass
};

// The target and the proposal of every row, and their residual: max(p - q, 0), or p where that is zero everywhere.
struct FixedRows {
  // p and q: probabilities [V], zeros allowed.
  FixedRows(std::vector<double> p, std::vector<double> q);

  CumulativeTable target, proposal, residual;
};
using FixedRowsPointer = std::shared_ptr<const FixedRows>;

struct FixedTarget {
  const FixedRows& rows;
  double probability(std::uint32_t, Token token) const { return rows.target.mass(token); }
  const CumulativeTable& masses(std::uint32_t) const { return rows.target; }
};
struct FixedProposal {
  const FixedRows& rows;
  double probability(std::uint32_t, Token token) const { return rows.proposal.mass(token); }
};
inline const CumulativeTable& residual_masses(const FixedTarget& target, const FixedProposal&, std::uint32_t) {
  return target.rows.residual;
}

using FixedChance = AddressedChance<MappedSource<PhiloxSource>>;

// Judges a draft over such rows.
using FixedVerify =
    std::function<ChainOutcome(std::span<const Token> draft, const FixedRows& rows, FixedChance& chance)>;
ChainOutcome verify_fixed_chain(std::span<const Token> draft, const FixedRows& rows, FixedChance& chance);

struct SpeculativeOptions {
  std::uint32_t draft_len = 1;
  std::size_t position = 0;  // of the token of the request that is drawn
  FixedVerify verify = verify_fixed_chain;
  Convention convention = Convention::draftproof;
  Sampler sampler = Sampler::inverse;
};

// Token number `position` of a request that is decoded in steps of draft_len drafts. Draw i is the request with seed
// derive_seed(0, i).
LargeSampler speculative_sampler(const FixedRowsPointer& rows, KeyFault keys, const SpeculativeOptions& options);

// Plain draws from the rows' target: draw i is the one at key_of(i).
LargeSampler plain_sampler(const FixedRowsPointer& rows, std::function<RandomKey(std::uint64_t)> key_of);

}  // namespace draftproof

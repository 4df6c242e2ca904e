#include "exactness/bugs/fixed_block.hpp"

#include <algorithm>
#include <memory>
#include <numeric>

#include "reference/verify/block.hpp"

namespace draftproof {
namespace {

struct BlockRow {
  const CumulativeTable& table;
  const FixedRows& rows;
  const ResidualSums& sums;
  double probability(std::uint32_t, Token token) const { return table.mass(token); }
  FixedMasses masses(std::uint32_t) const { return {table, rows, sums}; }
};

}  // namespace

ResidualSums::ResidualSums(const FixedRows& rows) : target_{0.0}, proposal_{0.0} {
  const std::vector<double>& p = rows.target.masses();
  const std::vector<double>& q = rows.proposal.masses();
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t token) { return !(p[token] > 0.0); });
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return q[a] * p[b] < q[b] * p[a]; });
  for (const std::size_t token : order) {
    ratios_.push_back(q[token] / p[token]);
    target_.push_back(target_.back() + p[token]);
    proposal_.push_back(proposal_.back() + q[token]);
  }
}

double ResidualSums::at(double weight) const {
  const auto count =
      static_cast<std::size_t>(std::lower_bound(ratios_.begin(), ratios_.end(), weight) - ratios_.begin());
  return std::max(weight * target_[count] - proposal_[count], 0.0);
}

FixedResidual::operator DenseMasses<double>() const {
  DenseMasses<double> masses = rows.target.masses();
  for (std::size_t i = 0; i < masses.size(); ++i)
    masses[i] = std::max(weight * masses[i] - rows.proposal.masses()[i], 0.0);
  return masses;
}

FixedVerify verify_fixed_block(const FixedRowsPointer& rows_of_sums) {
  const auto sums = std::make_shared<const ResidualSums>(*rows_of_sums);
  return [sums](std::span<const Token> draft, const FixedRows& rows, FixedChance& chance) {
    BlockRow target{rows.target, rows, *sums};
    BlockRow proposal{rows.proposal, rows, *sums};
    return verify_block(draft, target, proposal, chance);
  };
}

}  // namespace draftproof

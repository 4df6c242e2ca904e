// Rows of probabilities as plain vectors of any number type: exact rationals in proofs, doubles where a verifier needs
// whole rows (multi-draft and block rules). What production computes with doubles and a proof with fractions is one
// template.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "reference/numerics/fixed_point.hpp"

namespace draftproof {

// Unnormalised masses [V] over tokens.
template <class Number>
using DenseMasses = std::vector<Number>;

// Row r is the distribution at prefix r: of a chain, after the first r drafts; of a tree, row 0 at the root and row i +
// 1 after node i.
template <class Number>
struct DenseRows {
  std::vector<DenseMasses<Number>> rows;

  const DenseMasses<Number>& row(std::uint32_t r) const { return rows[r]; }
  const Number& probability(std::uint32_t r, Token token) const { return rows[r][static_cast<std::size_t>(token)]; }
  const DenseMasses<Number>& masses(std::uint32_t r) const { return rows[r]; }
};

// The sum of non-negative numbers. Exact for rationals; for doubles (a row that sums to less than 4) through fixed
// point, so that it has no order: RNE(x 2^62) each, an integer sum, and one rounding at the end.
template <class Number>
Number total_of(std::span<const Number> masses) {
  if constexpr (std::is_floating_point_v<Number>) {
    std::uint64_t sum = 0;
    for (const Number x : masses) sum += residual_mass(static_cast<double>(x));
    return static_cast<Number>(sum) * static_cast<Number>(0x1p-62);
  } else {
    Number sum(0);
    for (const Number& x : masses) sum += x;
    return sum;
  }
}
template <class Number>
Number total_of(const DenseMasses<Number>& masses) {
  return total_of(std::span<const Number>(masses));
}

// The tokens of positive mass by (mass descending, id ascending), at most `count`.
template <class Number>
std::vector<Token> most_probable_tokens(const DenseMasses<Number>& masses, std::size_t count) {
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < masses.size(); ++i)
    if (masses[i] > 0) tokens.push_back(static_cast<Token>(i));
  // Only a few of the vocabulary are asked for: no need to sort the others.
  const std::size_t kept = std::min(tokens.size(), count);
  std::partial_sort(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(kept), tokens.end(),
                    [&](Token a, Token b) {
                      const Number& of_a = masses[static_cast<std::size_t>(a)];
                      const Number& of_b = masses[static_cast<std::size_t>(b)];
                      return of_a > of_b || (of_a == of_b && a < b);
                    });
  tokens.resize(kept);
  return tokens;
}

// A token's mass, which becomes 0.
template <class Number>
Number taken_out(DenseMasses<Number>& masses, Token token) {
  return std::exchange(masses[static_cast<std::size_t>(token)], Number(0));
}

// max(p - q, 0) for every token.
template <class Number>
DenseMasses<Number> positive_difference(const DenseMasses<Number>& p, const DenseMasses<Number>& q) {
  DenseMasses<Number> masses(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) masses[i] = positive_part_of_difference(p[i], q[i]);
  return masses;
}

// The masses divided by their sum, which must not be zero.
template <class Number>
DenseMasses<Number> normalised(DenseMasses<Number> masses) {
  const Number total = total_of(masses);
  for (Number& x : masses) x = x / total;
  return masses;
}

// The residual max(p - q, 0), or p where that is zero everywhere.
template <class Number>
DenseMasses<Number> residual_masses(const DenseRows<Number>& target, const DenseRows<Number>& proposal,
                                    std::uint32_t row) {
  DenseMasses<Number> masses = positive_difference(target.rows[row], proposal.rows[row]);
  return total_of(masses) > 0 ? masses : target.rows[row];
}

}  // namespace draftproof

// Verification on exact numbers: rows as vectors of any number type (rationals in proofs), and a Chance that
// enumerates. With these the very templates that run in production are explored over every outcome, and their output
// law is compared as fractions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "reference/numerics/fixed_point.hpp"
#include "reference/random/address.hpp"
#include "reference/token.hpp"

namespace draftproof {

// Rows of probabilities, one vector [V] a row, as Target or Proposal.
template <class Number>
struct ExactRows {
  std::vector<std::vector<Number>> rows;

  const Number& probability(std::uint32_t row, Token token) const { return rows[row][static_cast<std::size_t>(token)]; }
  const std::vector<Number>& masses(std::uint32_t row) const { return rows[row]; }
};

// max(p - q, 0), or p where that is zero everywhere.
template <class Number>
std::vector<Number> residual_masses(const ExactRows<Number>& target, const ExactRows<Number>& proposal,
                                    std::uint32_t row) {
  const std::vector<Number>& p = target.rows[row];
  std::vector<Number> masses(p.size());
  bool any = false;
  for (std::size_t i = 0; i < p.size(); ++i) {
    masses[i] = positive_part_of_difference(p[i], proposal.rows[row][i]);
    any = any || masses[i] > 0;
  }
  return any ? masses : p;
}

// Walks the tree of all outcomes depth first by running the code again for every leaf:
//
//   EnumeratingChance<Rational> chance;
//   do { outcome = code(chance);  law[outcome] += chance.probability(); } while (chance.next());
//
// Branches of probability zero are not entered.
template <class Number>
class EnumeratingChance {
 public:
  bool accept(const Number& p, const Number& q, std::uint32_t) {
    // min(1, p / q); a draft token that q cannot produce is never accepted.
    const Number rate = q > 0 ? (p >= q ? Number(1) : Number(p / q)) : Number(0);
    return branch({rate, Number(1 - rate)}) == 0;
  }

  Token draw(const std::vector<Number>& masses, std::uint32_t, Purpose) {
    Number total(0);
    for (const Number& mass : masses) total += mass;
    if (!(total > 0)) throw std::logic_error("a draw from masses that are all zero");
    std::vector<Number> shares(masses.size());
    for (std::size_t i = 0; i < masses.size(); ++i) shares[i] = masses[i] / total;
    return static_cast<Token>(branch(shares));
  }

  std::uint64_t below(std::uint64_t n, std::uint32_t) {
    return branch(std::vector<Number>(n, Number(Number(1) / Number(n))));
  }

  // Probability of the path just taken.
  const Number& probability() const { return probability_; }

  // Steps to the next path; false when all have been taken.
  bool next() {
    while (!choices_.empty()) {
      Choice& last = choices_.back();
      if (advance(last, last.taken + 1)) {
        depth_ = 0;
        probability_ = Number(1);
        return true;
      }
      choices_.pop_back();
    }
    return false;
  }

 private:
  struct Choice {
    std::vector<Number> shares;
    std::size_t taken;
  };

  static bool advance(Choice& choice, std::size_t from) {
    for (choice.taken = from; choice.taken < choice.shares.size(); ++choice.taken)
      if (choice.shares[choice.taken] > 0) return true;
    return false;
  }

  std::size_t branch(std::vector<Number> shares) {
    if (depth_ == choices_.size()) {
      choices_.push_back({std::move(shares), 0});
      advance(choices_.back(), 0);
    }
    const Choice& choice = choices_[depth_++];
    probability_ *= choice.shares[choice.taken];
    return choice.taken;
  }

  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  Number probability_{1};
};

}  // namespace draftproof

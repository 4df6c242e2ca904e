// A Chance that integrates the float code of production exactly. Every decision there is a function of a uniform number
// on a finite grid: 2^53 values for an acceptance coin, 2^64 for a draw. GridChance asks the production decision itself
// for which of them it says what (they are monotone, so bisection finds the border), and explores every outcome with
// the share of the grid as its probability. The distribution of a float verifier thus comes out as fractions, without a
// sample and without a tolerance, and can be compared with the distribution that was proved.
//
// Races are no function of one word; they are left to statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "exactness/rational.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/sampling/dense_draw.hpp"
#include "reference/verify/convention.hpp"
#include "reference/verify/enumerating_chance.hpp"

namespace draftproof {

inline constexpr int kCoinBits = 53;  // of an acceptance coin: the top bits of a block's high half

// The block that makes uniform_53 answer n 2^-53, n < 2^53.
inline RandomBlock block_of_coin(std::uint64_t n) {
  const std::uint64_t bits = n << (64 - kCoinBits);
  return {{static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits), 0, 0}};
}
// The block that a draw within one tile reads `r` from.
inline RandomBlock block_of_draw(std::uint64_t r) {
  return {{0, 0, static_cast<std::uint32_t>(r >> 32), static_cast<std::uint32_t>(r)}};
}

// The greatest n in [0, last] for which `holds`, which must hold at 0 and, once it fails, fail for all greater ones.
template <class Holds>
std::uint64_t last_that_holds(std::uint64_t last, Holds holds) {
  std::uint64_t low = 0;
  while (low < last) {
    const std::uint64_t middle = last - (last - low) / 2;
    if (holds(middle))
      low = middle;
    else
      last = middle - 1;
  }
  return low;
}

// How many of the 2^53 coins accept a draft with target probability p and proposal probability q: the lowest ones.
inline std::uint64_t accepting_coins(double p, double q) {
  const auto stands = [&](std::uint64_t n) { return accepts(Convention::draftproof, p, q, block_of_coin(n)); };
  return stands(0) ? last_that_holds((std::uint64_t{1} << kCoinBits) - 1, stands) + 1 : 0;
}

// Which of the 2^64 words draw which token from masses of one tile (V <= kTileTokens): token first + i those above
// last[i - 1] up to last[i].
struct DrawnWords {
  Token first = 0;
  std::vector<std::uint64_t> last;  // ends with 2^64 - 1

  DenseMasses<Rational> shares(std::size_t vocab_size) const {
    DenseMasses<Rational> counts(vocab_size, Rational(0));
    Rational before(0);
    for (std::size_t i = 0; i < last.size(); ++i) {
      const Rational up_to = Rational(last[i]) + 1;
      counts[static_cast<std::size_t>(first) + i] = up_to - before;
      before = up_to;
    }
    return counts;
  }
};

// `draw` maps a block to a token.
template <class Draw>
DrawnWords drawn_words(const Draw& draw) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  DrawnWords words{draw(block_of_draw(0)), {}};
  for (Token token = words.first; words.last.empty() || words.last.back() != kLast; ++token)
    words.last.push_back(last_that_holds(kLast, [&](std::uint64_t r) { return draw(block_of_draw(r)) <= token; }));
  return words;
}

class GridChance {
 public:
  // vocab_size: at most kTileTokens, so that a draw reads one word.
  explicit GridChance(std::size_t vocab_size) : vocab_size_(vocab_size) {
    if (vocab_size == 0 || vocab_size > static_cast<std::size_t>(kTileTokens))
      throw usage_error("grid of u", "a vocabulary of " + std::to_string(vocab_size) + " tokens; draws of 1 to " +
                                         std::to_string(kTileTokens) + " tokens read one word");
  }

  bool accept(double p, double q, std::uint32_t row) {
    return decide(row, Purpose::accept, [&]() -> DenseMasses<Rational> {
             const Rational coins(accepting_coins(p, q));
             return {coins, kCoins - coins};
           }) == 0;
  }
  template <class Masses>
  Token draw(const Masses& masses, std::uint32_t row, Purpose purpose) {
    return decide(row, purpose, [&] {
      return drawn_words([&](const RandomBlock& block) { return masses.draw(block); }).shares(vocab_size_);
    });
  }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose) {
    return draw(DenseDraw(masses), row, purpose);
  }
  std::uint64_t below(std::uint64_t n, std::uint32_t row) {
    const auto shares = [&] {
      const auto choose = [&](const RandomBlock& block) {
        return static_cast<Token>(multiply_high(low_half(block), n));
      };
      return drawn_words(choose).shares(n);
    };
    return static_cast<std::uint64_t>(decide(row, Purpose::choice, shares));
  }

  const Rational& probability() const { return outcomes_.probability(); }  // of the path just taken
  std::size_t reused() const { return outcomes_.reused(); }
  bool next() {
    const bool more = outcomes_.next();
    shares_.resize(outcomes_.replayed());
    depth_ = 0;
    return more;
  }

 private:
  // Borders are searched for when a decision is first met, not again on each path that passes it.
  template <class Shares>
  Token decide(std::uint32_t row, Purpose purpose, const Shares& shares) {
    if (depth_ == shares_.size()) shares_.push_back(shares());
    return outcomes_.draw(shares_[depth_++], row, purpose);
  }

  static inline const Rational kCoins{std::uint64_t{1} << kCoinBits};

  std::size_t vocab_size_;
  EnumeratingChance<Rational> outcomes_;
  std::vector<DenseMasses<Rational>> shares_;  // of the decisions on this path so far, and of those it replays
  std::size_t depth_ = 0;
};

}  // namespace draftproof

// A Chance that explores every outcome with exact numbers. The very templates that run in production are run with it,
// over rationals, and their output distribution is compared as fractions.
//
//   EnumeratingChance<Rational> chance;
//   do { outcome = code(chance);  distribution[outcome] += chance.probability(); } while (chance.next());
//
// Every address holds one uniform number u of [0, 1), known so far to lie in an interval. A decision cuts the interval
// and branches: a coin of rate r is u < r, a draw is u in the inverse of the cumulative masses. An address that is used
// once gives an independent decision; one that is used twice gives just the dependence that a shared random word would
// have, so that shared keys show as a wrong distribution, and `reused` counts them. Races do the same with a vector of
// exponentials per address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "reference/random/address.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// Probability that with shared exponentials E the race argmin E/a is won by `first` and the race argmin E/b by
// `second`. Masses are normalised or not. Derivation: docs/exactness.md. For first == second it is 1 / sum_z
// max(a_z/a_x, b_z/b_x) (Daliri, Musco, Suresh 2408.07978).
template <class Number>
Number joint_race_probability(const DenseMasses<Number>& a, Token first, const DenseMasses<Number>& b, Token second);

template <class Number>
class EnumeratingChance {
 public:
  explicit EnumeratingChance(std::uint32_t step = 0) : step_(step) {}

  // Verification steps of one request that are enumerated jointly: addresses of different steps differ.
  void set_step(std::uint32_t step) { step_ = step; }

  bool accept(const Number& p, const Number& q, std::uint32_t row) {
    return accept_at({0, row, step_, Purpose::accept}, p, q);
  }
  Token draw(const DenseMasses<Number>& masses, std::uint32_t row, Purpose purpose) {
    return draw_at({0, row, step_, purpose}, masses);
  }
  std::uint64_t below(std::uint64_t n, std::uint32_t row) {
    return static_cast<std::uint64_t>(
        draw_at({0, row, step_, Purpose::choice}, DenseMasses<Number>(static_cast<std::size_t>(n), Number(1))));
  }
  // The race over the noise of an absolute position (coupled verification), or one of its lists of noise.
  Token coupled_race(const DenseMasses<Number>& masses, std::uint32_t position, std::uint32_t list = 0) {
    refuse_mixed_lists(kJointNoise, position);
    return race_at({kListNoise, position, list, Purpose::gumbel_noise}, masses);
  }
  // The race over the least of several lists of exponentials. That is an exponential again, so the race is an ordinary
  // one over noise of its own as long as no single list of the position is raced over too: then it throws.
  Token coupled_list_race(const DenseMasses<Number>& masses, std::uint32_t position, std::uint32_t num_lists) {
    if (num_lists == 1) return coupled_race(masses, position);
    refuse_mixed_lists(kListNoise, position);
    return race_at({kJointNoise, position, num_lists, Purpose::gumbel_noise}, masses);
  }

  // The same at any address: what faulty code does with a wrong one.
  bool accept_at(const Address& address, const Number& p, const Number& q);
  Token draw_at(const Address& address, const DenseMasses<Number>& masses);
  Token race_at(const Address& address, const DenseMasses<Number>& masses);

  const Number& probability() const { return probability_; }  // of the path just taken
  std::size_t reused() const {
    return reused_;
  }  // decisions at an address used before, on this path (coupled noise is shared on purpose)

  // Decisions of the path just taken, in their order: the outcome (of a coin 0: accepted), and its share of the
  // probability before.
  struct Decision {
    Address address;
    std::size_t outcome;
    Number share;
    std::size_t branches;  // outcomes of positive share
  };
  std::vector<Decision> decisions() const {
    std::vector<Decision> path;
    for (std::size_t i = 0; i < depth_; ++i) {
      const Part& part = choices_[i].parts[choices_[i].taken];
      path.push_back({choices_[i].address, part.outcome, part.share, choices_[i].parts.size()});
    }
    return path;
  }

  // Steps to the next path; false when all have been taken.
  bool next();
  // After next(): how many decisions at the start of the coming path have the masses they had on the last one.
  std::size_t replayed() const { return choices_.size(); }

 private:
  struct Interval {
    Number low, high;
  };
  struct Part {
    std::size_t outcome;
    Number share;  // of the probability before the decision
    Interval interval;
  };
  struct Choice {
    Address address;
    std::vector<Part> parts;  // those of positive share
    std::size_t taken = 0;
  };
  struct Known {
    Address address;
    Interval interval;           // of a uniform
    DenseMasses<Number> masses;  // of a race: the first that was run
    Token winner = kPaddingToken;
    int races = 0;
  };

  static constexpr std::uint32_t kListNoise = 0;   // address index of a list's own noise
  static constexpr std::uint32_t kJointNoise = 1;  // of the least over several lists

  void refuse_mixed_lists(std::uint32_t other_index, std::uint32_t position) const {
    for (const Known& variable : known_)
      if (variable.address.purpose == Purpose::gumbel_noise && variable.address.row == position &&
          variable.address.index == other_index)
        throw std::logic_error(
            "races over one list and over several at one position: their joint distribution is not known here");
  }
  Known& known(const Address& address);
  Choice& decide(const Address& address);
  std::size_t settle(Known& variable, const Choice& choice);

  std::uint32_t step_;
  std::vector<Choice> choices_;
  std::size_t depth_ = 0;
  std::vector<Known> known_;
  std::size_t reused_ = 0;
  Number probability_{1};
};

template <class Number>
Number joint_race_probability(const DenseMasses<Number>& a, Token first, const DenseMasses<Number>& b, Token second) {
  const auto x = static_cast<std::size_t>(first);
  const auto y = static_cast<std::size_t>(second);
  if (!(a[x] > 0) || !(b[y] > 0)) return Number(0);
  if (x == y) {
    Number sum(0);
    for (std::size_t z = 0; z < a.size(); ++z) sum += std::max(Number(a[z] / a[x]), Number(b[z] / b[x]));
    return Number(1) / sum;
  }
  // With s = E_x and t = E_y: x wins the first race, so t >= s a_y / a_x; y wins the second, so s >= t b_x / b_y. In
  // the direction u = t / s, u runs over [a_y/a_x, b_y/b_x], and every other z must have E_z >= s max(a_z/a_x, u
  // b_z/b_y). So the probability is the integral over u of 1 / (1 + u + sum_z max(alpha_z, u beta_z))^2, which is
  // piecewise 1 / (A + B u)^2 with antiderivative -1 / (B (A + B u)).
  const Number from = a[y] / a[x];
  if (b[x] > 0 && !(b[y] / b[x] > from)) return Number(0);
  const bool bounded = b[x] > 0;
  const Number to = bounded ? Number(b[y] / b[x]) : Number(0);
  std::vector<Number> cuts{from};
  for (std::size_t z = 0; z < a.size(); ++z) {
    if (z == x || z == y || !(b[z] > 0)) continue;
    const Number cut = (a[z] / a[x]) / (b[z] / b[y]);
    if (cut > from && (!bounded || cut < to)) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  Number sum(0);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Number& low = cuts[i];
    const bool last = i + 1 == cuts.size();
    Number constant(1);
    Number slope(1);
    for (std::size_t z = 0; z < a.size(); ++z) {
      if (z == x || z == y) continue;
      // Just above `low`, which of the two is larger?
      if (a[z] / a[x] > low * (b[z] / b[y]))
        constant += a[z] / a[x];
      else
        slope += b[z] / b[y];
    }
    const auto antiderivative = [&](const Number& u) { return Number(Number(-1) / (slope * (constant + slope * u))); };
    const Number upper = last ? (bounded ? antiderivative(to) : Number(0)) : antiderivative(cuts[i + 1]);
    sum += upper - antiderivative(low);
  }
  return sum;
}

template <class Number>
typename EnumeratingChance<Number>::Known& EnumeratingChance<Number>::known(const Address& address) {
  for (Known& variable : known_) {
    if (variable.address == address) {
      if (address.purpose != Purpose::gumbel_noise) ++reused_;
      return variable;
    }
  }
  known_.push_back({address, {Number(0), Number(1)}, {}, kPaddingToken, 0});
  return known_.back();
}

// The choice of this decision: an empty new one, to be filled by the caller, or the one that the replay passes again.
template <class Number>
typename EnumeratingChance<Number>::Choice& EnumeratingChance<Number>::decide(const Address& address) {
  if (depth_ == choices_.size()) choices_.push_back({address, {}, 0});
  return choices_[depth_++];
}

template <class Number>
std::size_t EnumeratingChance<Number>::settle(Known& variable, const Choice& choice) {
  if (choice.parts.empty()) throw std::logic_error("a draw from masses that are all zero");
  const Part& part = choice.parts[choice.taken];
  variable.interval = part.interval;
  probability_ *= part.share;
  return part.outcome;
}

template <class Number>
bool EnumeratingChance<Number>::accept_at(const Address& address, const Number& p, const Number& q) {
  // The product form of Leviathan et al.: u q < p. A draft token that q cannot produce is never accepted.
  const Number rate = q > 0 ? (p >= q ? Number(1) : Number(p / q)) : Number(0);
  return draw_at(address, {rate, Number(1) - rate}) == 0;
}

template <class Number>
Token EnumeratingChance<Number>::draw_at(const Address& address, const DenseMasses<Number>& masses) {
  Known& variable = known(address);
  Choice& choice = decide(address);
  if (choice.parts.empty()) {
    const Number total = total_of(masses);
    const Interval& whole = variable.interval;
    const Number length = whole.high - whole.low;
    Number cumulative(0);
    for (std::size_t i = 0; i < masses.size(); ++i) {
      if (!(masses[i] > 0)) continue;
      const Number low = std::max(whole.low, Number(cumulative / total));
      cumulative += masses[i];
      const Number high = std::min(whole.high, Number(cumulative / total));
      if (low < high) choice.parts.push_back({i, Number((high - low) / length), {low, high}});
    }
  }
  return static_cast<Token>(settle(variable, choice));
}

template <class Number>
Token EnumeratingChance<Number>::race_at(const Address& address, const DenseMasses<Number>& masses) {
  Known& variable = known(address);
  if (++variable.races > 2)
    throw std::logic_error("three races over one noise vector: their joint distribution is not known here");
  Choice& choice = decide(address);
  if (choice.parts.empty()) {
    const bool first = variable.winner == kPaddingToken;
    const Number total = total_of(first ? masses : variable.masses);
    for (std::size_t i = 0; i < masses.size(); ++i) {
      const Token token = static_cast<Token>(i);
      const Number share = first ? Number(masses[i] / total)
                                 : Number(joint_race_probability(variable.masses, variable.winner, masses, token) /
                                          (variable.masses[static_cast<std::size_t>(variable.winner)] / total));
      if (share > 0) choice.parts.push_back({i, share, variable.interval});
    }
  }
  const auto winner = static_cast<Token>(settle(variable, choice));
  if (variable.winner == kPaddingToken) {
    variable.masses = masses;
    variable.winner = winner;
  }
  return winner;
}

template <class Number>
bool EnumeratingChance<Number>::next() {
  choices_.resize(std::min(choices_.size(), depth_));
  while (!choices_.empty() && ++choices_.back().taken == choices_.back().parts.size()) choices_.pop_back();
  depth_ = 0;
  known_.clear();
  reused_ = 0;
  probability_ = Number(1);
  return !choices_.empty();
}

}  // namespace draftproof

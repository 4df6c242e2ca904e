// A Chance that writes down what a verifier asks it and what it answers: the numbers that were compared, by the
// verifier itself. Random words are addressed, so the answers are those of AddressedChance with the same seed and
// step, and looking at a word again changes nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "reference/numerics/natural_exp.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {

struct RecordedDecision {
  enum class Kind : std::uint8_t {
    accept,  // the acceptance coin: stands iff q > 0 and (p >= q or u q < p)
    draw,    // a token by inverse mass: that at which the running sum of the masses passes u times their total
    race,    // a token by shared noise (coupled verification)
  };
  Kind kind;
  std::uint32_t row;             // of the address; of a race its position
  Purpose purpose;               // of the address
  double p = 0.0, q = 0.0;       // accept: as the verifier gave them, not always normalised
  double u = 0.0;                // accept, draw: the uniform number, in [0, 1)
  bool accepted = false;         // accept
  std::vector<double> masses{};  // draw, race: normalised [V], or of the outcomes that the verifier names
  Token token = kPaddingToken;   // draw, race: what came out
};

// Convention draftproof and sampling by inverse mass, as in proofs.
template <class Source = PhiloxSource>
class RecordingChance {
 public:
  RecordingChance(Source& source, std::uint64_t seed, std::uint32_t step)
      : chance_(source, seed, step), source_(source), seed_(seed), step_(step) {}

  bool accept(double p, double q, std::uint32_t row) {
    RecordedDecision& decision = add(RecordedDecision::Kind::accept, row, Purpose::accept);
    decision.p = p;
    decision.q = q;
    decision.u = uniform_53(high_half(source_.block(seed_, {0, row, step_, Purpose::accept})));
    return decision.accepted = chance_.accept(p, q, row);
  }

  template <class Masses>
  Token draw(const Masses& masses, std::uint32_t row, Purpose purpose) {
    RecordedDecision& decision = add(RecordedDecision::Kind::draw, row, purpose);
    decision.masses = normalised_masses(masses);
    decision.u = uniform_of_draw(decision.masses, source_.block(seed_, {0, row, step_, purpose}));
    return decision.token = chance_.draw(masses, row, purpose);
  }

  std::uint64_t below(std::uint64_t n, std::uint32_t row) { return chance_.below(n, row); }

  template <class Masses>
  Token coupled_race(const Masses& masses, std::uint32_t position, std::uint32_t list = 0) {
    RecordedDecision& decision = add(RecordedDecision::Kind::race, position, Purpose::gumbel_noise);
    decision.masses = normalised_masses(masses);
    return decision.token = chance_.coupled_race(masses, position, list);
  }
  template <class Masses>
  Token coupled_list_race(const Masses& masses, std::uint32_t position, std::uint32_t num_lists) {
    RecordedDecision& decision = add(RecordedDecision::Kind::race, position, Purpose::gumbel_noise);
    decision.masses = normalised_masses(masses);
    return decision.token = chance_.coupled_list_race(masses, position, num_lists);
  }

  const std::vector<RecordedDecision>& decisions() const { return decisions_; }

 private:
  RecordedDecision& add(RecordedDecision::Kind kind, std::uint32_t row, Purpose purpose) {
    decisions_.push_back({kind, row, purpose});
    return decisions_.back();
  }
  // The first half of the block chooses a tile, the second a token in it (sampling/dense_draw.hpp): as one number, that
  // of the running sum over all tokens.
  static double uniform_of_draw(std::span<const double> masses, const RandomBlock& block) {
    const double u = uniform_53(high_half(block));
    double before = 0.0;
    constexpr std::size_t kTile = kTileTokens;
    for (std::size_t begin = 0;; begin += kTile) {
      const std::span<const double> tile = masses.subspan(begin, std::min(kTile, masses.size() - begin));
      const double mass = std::accumulate(tile.begin(), tile.end(), 0.0);
      if (u < before + mass || begin + kTile >= masses.size())
        return std::min(before + uniform_53(low_half(block)) * mass, 1.0);
      before += mass;
    }
  }

  static std::vector<double> normalised_masses(const DenseMasses<double>& masses) { return normalised(masses); }
  template <class Masses>
  static std::vector<double> normalised_masses(const Masses& masses) {
    std::vector<double> log_weights;
    masses.for_each_log_weight([&](Token first, std::span<const double> tile) {
      log_weights.resize(static_cast<std::size_t>(first));
      log_weights.insert(log_weights.end(), tile.begin(), tile.end());
    });
    const double largest = *std::ranges::max_element(log_weights);
    for (double& weight : log_weights) weight = natural_exp(weight - largest);
    double total = 0.0;
    for (const double weight : log_weights) total += weight;
    for (double& weight : log_weights) weight /= total;
    return log_weights;
  }

  AddressedChance<Source> chance_;
  Source& source_;
  std::uint64_t seed_;
  std::uint32_t step_;
  std::vector<RecordedDecision> decisions_;
};

}  // namespace draftproof

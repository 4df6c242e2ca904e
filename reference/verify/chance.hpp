// Chance: the only source of randomness that a verification algorithm sees. An algorithm is a template over it, so that
// the code that runs in production (AddressedChance over Philox) is the code that is proved (EnumeratingChance over
// exact rationals), injected with endpoints and audited for shared keys. A Chance offers
//
//   bool accept(p, q, row)             the acceptance coin of draft position `row`
//   Token draw(masses, row, purpose)   a token, by unnormalised masses
//   std::uint64_t below(n, row)        a uniform integer in [0, n)
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>

#include "base/token.hpp"
#include "reference/random/philox.hpp"
#include "reference/random/uniform.hpp"
#include "reference/row_kernels/row_kernels.hpp"
#include "reference/sampling/dense_draw.hpp"
#include "reference/verify/convention.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

enum class Sampler : std::uint8_t {
  inverse,  // inverse mass: one block of 128 bits, exact for the integer masses
  race,     // argmax of log mass + Gumbel noise, one 32-bit word per token
};

template <class Source = PhiloxSource>
class AddressedChance {
 public:
  AddressedChance(Source& source, std::uint64_t seed, std::uint32_t step, Sampler sampler = Sampler::inverse,
                  Convention convention = Convention::draftproof)
      : source_(source), seed_(seed), step_(step), sampler_(sampler), convention_(convention) {}

  bool accept(double p, double q, std::uint32_t row) {
    return accepts(convention_, p, q, block({0, row, step_, Purpose::accept}));
  }

  // Masses: DistributionMasses, ResidualMasses (distribution.hpp) or a vector of doubles.
  template <class Masses>
  Token draw(const Masses& masses, std::uint32_t row, Purpose purpose) {
    const Address address{0, row, step_, purpose};
    return sampler_ == Sampler::inverse ? masses.draw(block(address)) : race(masses, address);
  }
  Token draw(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose) {
    return draw(DenseDraw(masses), row, purpose);
  }

  std::uint64_t below(std::uint64_t n, std::uint32_t row) {
    return multiply_high(high_half(block({0, row, step_, Purpose::choice})), n);
  }

  // The race over the noise of an absolute position, which draft and target share in coupled verification. `list` names
  // one of several noise vectors of that position (coupled_list.hpp).
  template <class Masses>
  Token coupled_race(const Masses& masses, std::uint32_t position, std::uint32_t list = 0) {
    return race(masses, {0, position, list, Purpose::gumbel_noise});
  }
  Token coupled_race(const DenseMasses<double>& masses, std::uint32_t position, std::uint32_t list = 0) {
    return coupled_race(DenseDraw(masses), position, list);
  }

  // The race over the least exponential (the largest Gumbel noise) of the position's first num_lists noise vectors:
  // whoever wins it wins the race of one list with the best score of all.
  template <class Masses>
  Token coupled_list_race(const Masses& masses, std::uint32_t position, std::uint32_t num_lists) {
    RaceWinner best = RaceWinner::none();
    for (std::uint32_t list = 0; list < num_lists; ++list) {
      const RaceWinner winner = race_winner(masses, {0, position, list, Purpose::gumbel_noise});
      if (winner.score > best.score || (winner.score == best.score && winner.token < best.token)) best = winner;
    }
    return static_cast<Token>(best.token);
  }
  Token coupled_list_race(const DenseMasses<double>& masses, std::uint32_t position, std::uint32_t num_lists) {
    return coupled_list_race(DenseDraw(masses), position, num_lists);
  }

 private:
  RandomBlock block(const Address& address) { return source_.block(seed_, address); }

  // Token i uses word i % 4 of the block with index i / 4 at the address.
  template <class Masses>
  Token race(const Masses& masses, const Address& address) {
    return static_cast<Token>(race_winner(masses, address).token);
  }
  // Masses on several devices: each device finds its own winner (shard/sharded_masses.hpp).
  template <class Masses>
  RaceWinner race_winner(const Masses& masses, const Address& address) {
    const auto winner_of = [&](const auto& of_one_device) {
      RaceWinner best = RaceWinner::none();
      of_one_device.for_each_log_weight([&](Token first, std::span<const double> log_weights) {
        best = race_tile(log_weights, static_cast<std::uint32_t>(first), address, best);
      });
      return best;
    };
    if constexpr (requires { masses.merged_race(winner_of); })
      return masses.merged_race(winner_of);
    else
      return winner_of(masses);
  }

  // The winner of this tile and of `best`, the winner of those before it: tiles come in order of id, so ties keep the
  // lowest.
  RaceWinner race_tile(std::span<const double> log_weights, std::uint32_t first, Address address, RaceWinner best) {
    if constexpr (std::same_as<Source, PhiloxSource>) {
      const NoiseAddress noise{{static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)},
                               address.row,
                               address.step,
                               static_cast<std::uint32_t>(address.purpose)};
      return row_kernels().race(log_weights.data(), log_weights.size(), first, noise, best);
    } else {
      RandomBlock words{};
      for (std::size_t i = 0; i < log_weights.size(); ++i) {
        const std::uint32_t token = first + static_cast<std::uint32_t>(i);
        if (i % 4 == 0) {
          address.index = token / 4;
          words = block(address);
        }
        const double score = log_weights[i] + gumbel_noise(words.word[token % 4]);
        if (score > best.score) best = {score, static_cast<std::int64_t>(token)};
      }
      return best;
    }
  }

  Source& source_;
  std::uint64_t seed_;
  std::uint32_t step_;
  Sampler sampler_;
  Convention convention_;
};

}  // namespace draftproof

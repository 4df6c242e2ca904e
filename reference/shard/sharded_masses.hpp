// What is drawn from a row on several devices, or from the residual of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/shard/sharded_row.hpp"
#include "reference/verify/chance.hpp"

namespace draftproof {

// Draws among masses over the tiles of a row: sums [tiles] over all devices, in_row(tile) in the scale of the row,
// adding up to `total`, above 0. part(device, tile) is a device's share of a tile's sum, token(device, tile, before)
// the token of the whole row at which that share exceeds `before`; tiles are those of the whole row.
Token draw_across(const Devices& devices, const RandomBlock& block, std::uint64_t total,
                  std::span<const std::uint64_t> sums, const std::function<std::uint64_t(std::size_t)>& in_row,
                  const std::function<std::uint64_t(std::size_t, std::size_t)>& part,
                  const std::function<Token(std::size_t, std::size_t, std::uint64_t)>& token);

// The winner among the devices' winners: the best score, and the first device that has it, since devices hold tokens in
// order.
RaceWinner winner_across(const Devices& devices, const std::function<RaceWinner(std::size_t)>& winner);

// The masses of a row, or of its residual max(p - q, 0) over a proposal (p where that is zero everywhere): as
// DistributionMasses and ResidualMasses. Both rows lie on the same devices.
class ShardedMasses {
 public:
  explicit ShardedMasses(const ShardedRow& p, const ShardedRow* q = nullptr) : p_(p), q_(q) {}

  Token draw(const RandomBlock& block) const;
  // race(masses) -> RaceWinner runs the race of one device's masses.
  template <class Race>
  RaceWinner merged_race(const Race& race) const {
    const PartsOf parts = parts_for_race();
    return winner_across(p_.devices(), [&](std::size_t d) {
      return race(LogWeightsOfShard{parts, d, p_.shard(d).base()});
    });
  }

 private:
  using PartsOf = std::function<void(std::size_t, const LogWeightSink&)>;  // of a device
  struct LogWeightsOfShard {
    const PartsOf& parts;
    std::size_t device;
    Token base;
    void for_each_log_weight(const LogWeightSink& sink) const {
      parts(device, [&](Token first, std::span<const double> log_weights) { sink(first + base, log_weights); });
    }
  };
  PartsOf parts_for_race() const;
  Token draw_logits(const RandomBlock& block, Token excluded) const;
  std::vector<std::uint64_t> sums_without(Token excluded) const;
  std::uint64_t total_of_row(std::span<const std::uint64_t> sums) const;

  const ShardedRow& p_;
  const ShardedRow* q_;
};

}  // namespace draftproof

#include "reference/shard/sharded_masses.hpp"

#include <memory>

#include "reference/sampling/difference_masses.hpp"
#include "reference/sampling/tile_draw.hpp"

namespace draftproof {

Token draw_across(const Devices& devices, const RandomBlock& block, std::uint64_t total,
                  std::span<const std::uint64_t> sums, const std::function<std::uint64_t(std::size_t)>& in_row,
                  const std::function<std::uint64_t(std::size_t, std::size_t)>& part,
                  const std::function<Token(std::size_t, std::size_t, std::uint64_t)>& token) {
  TilePlace place = place_of_draw(block, total, in_row, [&](std::size_t t) { return sums[t]; });
  std::size_t owner = devices.first_of_tile(place.tile);
  const std::size_t last = devices.last_of_tile(place.tile);
  if (owner != last) {
    const std::size_t first = owner;
    const std::vector<std::uint64_t> shares = devices.sum(last - first + 1, [&](std::size_t d, auto words) {
      if (d >= first && d <= last && devices.range(d).size() > 0) words[d - first] = part(d, place.tile);
    });
    for (; place.before >= shares[owner - first]; ++owner) place.before -= shares[owner - first];
  }
  return devices.token_from(owner, [&] { return token(owner, place.tile, place.before); });
}

RaceWinner winner_across(const Devices& devices, const std::function<RaceWinner(std::size_t)>& winner) {
  std::vector<RaceWinner> winners(devices.count(), RaceWinner::none());
  const std::vector<std::uint64_t> scores = devices.gather([&](std::size_t d) {
    winners[d] = winner(d);
    return bit_cast<std::uint64_t>(winners[d].score);
  });
  std::size_t best = 0;
  for (std::size_t d = 1; d < scores.size(); ++d)
    if (bit_cast<double>(scores[d]) > bit_cast<double>(scores[best])) best = d;
  const Token token = devices.token_from(best, [&] { return static_cast<Token>(winners[best].token); });
  return {bit_cast<double>(scores[best]), token};
}

namespace {

// max(p - q, 0) on each device, added up; what speaks of tiles counts those of the whole row.
class DifferenceAcross {
 public:
  DifferenceAcross(const ShardedRow& p, const ShardedRow* q) : devices_(p.devices()), p_(p), parts_(devices_.count()) {
    for (std::size_t d = devices_.begin_here(); d < devices_.end_here(); ++d)
      parts_[d] = std::make_unique<DifferenceMasses>(p.shard(d).distribution(),
                                                     q == nullptr ? nullptr : &q->shard(d).distribution());
    const auto add_up = [&](std::size_t d) { parts_[d]->add_up(); };
    if (p.is_probabilities() || (q != nullptr && q->is_probabilities()))
      p.agree(add_up, q);
    else
      for (std::size_t d = devices_.begin_here(); d < devices_.end_here(); ++d) add_up(d);
    const std::size_t tiles = devices_.tile_count();
    sums_ = devices_.sum(tiles + 2, [&](std::size_t d, auto words) {
      const std::vector<std::uint64_t>& own = parts_[d]->tile_sums();
      for (std::size_t t = 0; t < own.size(); ++t) words[p.shard(d).first_tile() + t] += own[t];
      words[tiles] += parts_[d]->total() >> 32;
      words[tiles + 1] += parts_[d]->total() & 0xffffffffu;
    });
    const std::uint64_t high = sums_[tiles] + (sums_[tiles + 1] >> 32);
    const std::uint64_t low = sums_[tiles + 1] & 0xffffffffu;
    constexpr std::uint64_t kThree = std::uint64_t{3} << 30;
    if (high > kThree || (high == kThree && low != 0)) throw bad_sum(p.name());
    total_ = (high << 32) + low;
    sums_.resize(tiles);
    if (total_ == 0 && q == nullptr) throw all_zero(p.name());
  }

  std::uint64_t total() const { return total_; }
  Token draw(const RandomBlock& block) {
    const auto place_in = [&](std::size_t d, std::size_t tile) { return tile - p_.shard(d).first_tile(); };
    return draw_across(
        devices_, block, total_, sums_, [&](std::size_t t) { return sums_[t]; },
        [&](std::size_t d, std::size_t t) { return parts_[d]->tile_sums()[place_in(d, t)]; },
        [&](std::size_t d, std::size_t t, std::uint64_t before) {
          return parts_[d]->token_at(place_in(d, t), before) + p_.shard(d).base();
        });
  }
  void for_each_log_weight(std::size_t device, const LogWeightSink& sink) { parts_[device]->for_each_log_weight(sink); }

 private:
  const Devices& devices_;
  const ShardedRow& p_;
  std::vector<std::unique_ptr<DifferenceMasses>> parts_;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_ = 0;
};

}  // namespace

std::vector<std::uint64_t> ShardedMasses::sums_without(Token excluded) const {
  std::vector<std::uint64_t> sums = p_.tile_sums();
  if (excluded < 0) return sums;
  const std::size_t owner = p_.devices().owner(excluded);
  const RowShard& shard = p_.shard(owner);
  sums[static_cast<std::size_t>(excluded / kTileTokens)] -=
      p_.devices().from(owner, [&] { return shard.logits().mass_in_tile(excluded - shard.base()); });
  return sums;
}

std::uint64_t ShardedMasses::total_of_row(std::span<const std::uint64_t> sums) const {
  std::uint64_t total = 0;
  for (std::size_t t = 0; t < sums.size(); ++t) total += p_.row_mass_of(t, sums[t]);
  return total;
}

Token ShardedMasses::draw_logits(const RandomBlock& block, Token excluded) const {
  const std::vector<std::uint64_t> sums = sums_without(excluded);
  const std::uint64_t total = total_of_row(sums);
  if (total == 0) return excluded;
  // Index among the device's own tokens: -1 where it does not hold the excluded one.
  const auto excluded_of = [&](std::size_t d) {
    return excluded >= 0 && p_.devices().owner(excluded) == d ? excluded - p_.shard(d).base() : kPaddingToken;
  };
  return draw_across(
      p_.devices(), block, total, sums, [&](std::size_t t) { return p_.row_mass_of(t, sums[t]); },
      [&](std::size_t d, std::size_t t) {
        const LogitsDistribution& part = p_.shard(d).logits();
        const std::size_t tile = t - p_.shard(d).first_tile();
        const Token without = excluded_of(d);
        const bool is_in_tile = without >= 0 && static_cast<std::size_t>(without / kTileTokens) == tile;
        return part.tiles()[tile].sum - (is_in_tile ? part.mass_in_tile(without) : 0);
      },
      [&](std::size_t d, std::size_t t, std::uint64_t before) {
        const RowShard& shard = p_.shard(d);
        return shard.logits().token_at(t - shard.first_tile(), before, excluded_of(d)) + shard.base();
      });
}

Token ShardedMasses::draw(const RandomBlock& block) const {
  if (p_.one_hot()) return *p_.one_hot();
  const bool is_one_hot = q_ != nullptr && q_->one_hot().has_value();
  if (p_.is_logits() && (q_ == nullptr || is_one_hot))
    return draw_logits(block, is_one_hot ? *q_->one_hot() : kPaddingToken);
  DifferenceAcross masses(p_, q_);
  return masses.total() == 0 ? ShardedMasses(p_).draw(block) : masses.draw(block);
}

ShardedMasses::PartsOf ShardedMasses::parts_for_race() const {
  const auto logits_without = [&p = p_](Token excluded) {
    return [&p, excluded](std::size_t d, const LogWeightSink& sink) {
      const bool is_own = excluded >= 0 && p.devices().owner(excluded) == d;
      send_log_weights(p.shard(d).logits(), is_own ? excluded - p.shard(d).base() : kPaddingToken, sink);
    };
  };
  if (p_.is_logits() && q_ == nullptr) return logits_without(kPaddingToken);
  if (p_.is_logits() && q_->one_hot()) {
    const bool alone = total_of_row(sums_without(*q_->one_hot())) == 0;
    return logits_without(alone ? kPaddingToken : *q_->one_hot());
  }
  const auto masses = std::make_shared<DifferenceAcross>(p_, q_);
  if (masses->total() == 0) return ShardedMasses(p_).parts_for_race();
  return [masses](std::size_t d, const LogWeightSink& sink) { masses->for_each_log_weight(d, sink); };
}

}  // namespace draftproof

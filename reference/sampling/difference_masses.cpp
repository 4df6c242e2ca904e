#include "reference/sampling/difference_masses.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "reference/sampling/tile_draw.hpp"

namespace draftproof {
namespace {

constexpr std::size_t kRunTokens = 128;
// Two rows, and weights of which one is made, are worked on in parts that fit a first-level cache of 32 KiB together.
constexpr std::size_t kPartTokens = 2048;

}  // namespace

void DifferenceMasses::add_up() {
  sums_.resize(p_.tile_count());
  total_ = 0;
  std::uint64_t high_total = 0;
  std::uint64_t low_total = 0;
  for (std::size_t t = 0; t < sums_.size(); ++t) {
    sums_[t] = 0;
    for (std::size_t i = 0; i < p_.tile_size(t); i += kPartTokens) {
      const std::size_t count = std::min(kPartTokens, p_.tile_size(t) - i);
      load(t, i, count);
      const TileResidual sum = row_kernels().residual(p_part_, q_part_, count);
      if (!sum.valid) {
        throw_bad_probability(t);
        throw Error(ErrorKind::internal, "residual", "a kernel refused a tile without a bad probability");
      }
      high_total += sum.high;
      low_total += sum.low;
      // Above 3, exactly: 64 bits may have wrapped by then.
      const std::uint64_t carried = high_total + (low_total >> 32);
      constexpr std::uint64_t kThree = std::uint64_t{3} << 30;
      if (carried > kThree || (carried == kThree && (low_total & 0xffffffffu) != 0)) throw_bad_sum();
      sums_[t] += (sum.high << 32) + sum.low;
    }
    total_ += sums_[t];
  }
}

Token DifferenceMasses::draw(const RandomBlock& block) {
  const auto sum_of = [&](std::size_t tile) { return sums_[tile]; };
  const TilePlace place = place_of_draw(block, total_, sum_of, sum_of);
  return token_at(place.tile, place.before);
}

Token DifferenceMasses::token_at(std::size_t tile, std::uint64_t before) {
  std::uint64_t left = before;
  load(tile);
  std::size_t i = 0;
  // Runs of tokens are passed over by their sums, which a kernel finds sooner than this loop could.
  for (; i + kRunTokens < p_.tile_size(tile); i += kRunTokens) {
    const std::uint64_t sum = sum_of_run(i);
    if (left < sum) break;
    left -= sum;
  }
  for (std::uint64_t mass = mass_at(i); left >= mass; mass = mass_at(++i)) left -= mass;
  return static_cast<Token>(tile * kTileTokens + i);
}

void DifferenceMasses::for_each_log_weight(const LogWeightSink& sink) {
  std::array<double, kTileTokens> log_weights;
  for (std::size_t t = 0; t < p_.tile_count(); ++t) {
    load(t);
    const std::size_t count = p_.tile_size(t);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = difference_at(i);
      log_weights[i] = x > 0.0f ? natural_log(static_cast<double>(x)) : -std::numeric_limits<double>::infinity();
    }
    sink(static_cast<Token>(t * kTileTokens), {log_weights.data(), count});
  }
}

std::vector<double> DifferenceMasses::values() {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(p_.vocab_size()));
  for (std::size_t t = 0; t < p_.tile_count(); ++t) {
    load(t);
    for (std::size_t i = 0; i < p_.tile_size(t); ++i) values.push_back(static_cast<double>(difference_at(i)));
  }
  return values;
}

void DifferenceMasses::load(std::size_t tile, std::size_t first, std::size_t count) {
  const std::size_t begin = tile * kTileTokens + first;
  p_part_ = p_.probabilities_in(begin, count, p_scratch_.data());
  q_part_ = has_proposal(tile) ? q_->probabilities_in(begin, count, q_scratch_.data()) : nullptr;
}

// A one-hot proposal has mass in a single tile only.
bool DifferenceMasses::has_proposal(std::size_t tile) const {
  if (q_ == nullptr) return false;
  const OneHot* one = q_->one_hot();
  return one == nullptr || static_cast<std::size_t>(one->token / kTileTokens) == tile;
}

std::uint64_t DifferenceMasses::sum_of_run(std::size_t i) const {
  const float* q = q_part_ == nullptr ? nullptr : q_part_ + i;
  const TileResidual sum = row_kernels().residual(p_part_ + i, q, kRunTokens);
  return (sum.high << 32) + sum.low;
}

// A bad probability anywhere counts for more than a bad sum.
void DifferenceMasses::throw_bad_probability(std::size_t tile) const {
  for (const Distribution* distribution : {&p_, q_}) {
    if (distribution == nullptr || distribution->probabilities() == nullptr) continue;
    for (std::size_t i = 0; i < distribution->tile_size(tile); ++i)
      distribution->probability(static_cast<Token>(tile * kTileTokens + i));  // names the column
  }
}

void DifferenceMasses::throw_bad_sum() const {
  for (std::size_t tile = 0; tile < p_.tile_count(); ++tile) throw_bad_probability(tile);
  throw bad_sum(p_.probabilities() != nullptr ? p_.probabilities()->row() : RowName(-1));
}

}  // namespace draftproof

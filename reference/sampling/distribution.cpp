#include "reference/sampling/distribution.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

using TileScratch = std::array<float, kTileTokens>;
constexpr std::size_t kRunTokens = 128;
// Two rows, and weights of which one is made, are worked on in parts that fit a first-level cache of 32 KiB together.
constexpr std::size_t kPartTokens = 2048;

std::size_t tile_size(const Distribution& distribution, std::size_t tile) {
  const std::int64_t left = distribution.vocab_size() - static_cast<std::int64_t>(tile) * kTileTokens;
  return static_cast<std::size_t>(std::min<std::int64_t>(left, kTileTokens));
}

// Masses of max(p - q, 0) over tiles, or of p alone where q is null. The two scratch tiles live here.
class DifferenceMasses {
 public:
  DifferenceMasses(const Distribution& p, const Distribution* q) : p_(p), q_(q) {}

  // The sum of one tile in units of 2^-62; p rows sum to 1, so the row's sum stays below 2^63. Errors: a probability
  // outside [0, 1], or a row whose sum would overflow.
  void add_up() {
    sums_.resize(p_.tile_count());
    total_ = 0;
    std::uint64_t high_total = 0;
    std::uint64_t low_total = 0;
    for (std::size_t t = 0; t < sums_.size(); ++t) {
      sums_[t] = 0;
      for (std::size_t i = 0; i < tile_size(p_, t); i += kPartTokens) {
        const std::size_t count = std::min(kPartTokens, tile_size(p_, t) - i);
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

  std::uint64_t total() const { return total_; }

  Token draw(const RandomBlock& block) {
    std::uint64_t left = multiply_high(high_half(block), total_);
    std::size_t tile = 0;
    while (left >= sums_[tile]) left -= sums_[tile++];
    left = multiply_high(low_half(block), sums_[tile]);
    load(tile);
    std::size_t i = 0;
    // Runs of tokens are passed over by their sums, which a kernel finds sooner than this loop could.
    for (; i + kRunTokens < tile_size(p_, tile); i += kRunTokens) {
      const std::uint64_t sum = sum_of_run(i);
      if (left < sum) break;
      left -= sum;
    }
    for (std::uint64_t mass = mass_at(i); left >= mass; mass = mass_at(++i)) left -= mass;
    return static_cast<Token>(tile * kTileTokens + i);
  }

  void for_each_log_weight(const LogWeightSink& sink) {
    std::array<double, kTileTokens> log_weights;
    for (std::size_t t = 0; t < p_.tile_count(); ++t) {
      load(t);
      const std::size_t count = tile_size(p_, t);
      for (std::size_t i = 0; i < count; ++i) {
        const float x = difference_at(i);
        log_weights[i] = x > 0.0f ? natural_log(static_cast<double>(x)) : kNoWeight;
      }
      sink(static_cast<Token>(t * kTileTokens), {log_weights.data(), count});
    }
  }

  std::vector<double> values() {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(p_.vocab_size()));
    for (std::size_t t = 0; t < p_.tile_count(); ++t) {
      load(t);
      for (std::size_t i = 0; i < tile_size(p_, t); ++i) values.push_back(static_cast<double>(difference_at(i)));
    }
    return values;
  }

 private:
  void load(std::size_t tile, std::size_t first, std::size_t count) {
    const std::size_t begin = tile * kTileTokens + first;
    p_part_ = p_.probabilities_in(begin, count, p_scratch_.data());
    q_part_ = has_proposal(tile) ? q_->probabilities_in(begin, count, q_scratch_.data()) : nullptr;
  }
  void load(std::size_t tile) { load(tile, 0, tile_size(p_, tile)); }
  // A one-hot proposal has mass in a single tile only.
  bool has_proposal(std::size_t tile) const {
    if (q_ == nullptr) return false;
    const OneHot* one = q_->one_hot();
    return one == nullptr || static_cast<std::size_t>(one->token / kTileTokens) == tile;
  }
  float difference_at(std::size_t i) const {
    return positive_part_of_difference(p_part_[i], q_part_ == nullptr ? 0.0f : q_part_[i]);
  }
  std::uint64_t mass_at(std::size_t i) const { return residual_mass(difference_at(i)); }
  std::uint64_t sum_of_run(std::size_t i) const {
    const float* q = q_part_ == nullptr ? nullptr : q_part_ + i;
    const TileResidual sum = row_kernels().residual(p_part_ + i, q, kRunTokens);
    return (sum.high << 32) + sum.low;
  }

  // A bad probability anywhere counts for more than a bad sum.
  void throw_bad_probability(std::size_t tile) const {
    for (const Distribution* distribution : {&p_, q_}) {
      if (distribution == nullptr || distribution->probabilities() == nullptr) continue;
      for (std::size_t i = 0; i < tile_size(*distribution, tile); ++i)
        distribution->probability(static_cast<Token>(tile * kTileTokens + i));  // names the column
    }
  }
  [[noreturn]] void throw_bad_sum() const {
    for (std::size_t tile = 0; tile < p_.tile_count(); ++tile) throw_bad_probability(tile);
    throw RowError(RowStatus::bad_sum, p_.probabilities() != nullptr ? p_.probabilities()->row() : RowName(-1), -1,
                   "the probabilities sum to more than 3; expected 1");
  }

  const Distribution& p_;
  const Distribution* q_;
  const float* p_part_ = nullptr;
  const float* q_part_ = nullptr;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_ = 0;
  TileScratch p_scratch_;
  TileScratch q_scratch_;
};

RowError all_zero(const ProbabilityRow& distribution) {
  return {RowStatus::all_zero, distribution.row(), -1, "every probability is 0; expected a sum of 1"};
}

void send_logits(const Distribution& distribution, Token excluded, const LogWeightSink& sink) {
  const LogitsDistribution& row = *distribution.logits_distribution();
  std::array<double, kTileTokens> log_weights;
  for (std::size_t t = 0; t < row.tile_count(); ++t) {
    row.log_weights_of_tile(t, log_weights.data());
    const Token first = static_cast<Token>(t * kTileTokens);
    if (excluded >= first && excluded < first + kTileTokens)
      log_weights[static_cast<std::size_t>(excluded - first)] = kNoWeight;
    sink(first, {log_weights.data(), tile_size(distribution, t)});
  }
}

}  // namespace

LogitsDistribution& Distribution::make_logits_distribution() {
  if (LogitsDistribution* existing = std::get_if<LogitsDistribution>(&distribution_)) return *existing;
  return distribution_.emplace<LogitsDistribution>();
}

std::int64_t Distribution::vocab_size() const {
  if (const OneHot* distribution = one_hot()) return distribution->vocab_size;
  if (const ProbabilityRow* distribution = probabilities()) return distribution->vocab_size();
  return logits_distribution()->vocab_size();
}

float Distribution::probability(Token token) const {
  if (const OneHot* distribution = one_hot()) return token == distribution->token ? 1.0f : 0.0f;
  if (const ProbabilityRow* distribution = probabilities()) return distribution->probability(token);
  return logits_distribution()->probability(token);
}

float Distribution::log_probability(Token token) const {
  if (const LogitsDistribution* distribution = logits_distribution()) return distribution->log_probability(token);
  const float p = probability(token);
  return static_cast<float>(p > 0.0f ? natural_log(static_cast<double>(p)) : kNoWeight);
}

std::int64_t Distribution::kept_count() const {
  if (one_hot() != nullptr) return 1;
  if (const LogitsDistribution* distribution = logits_distribution()) return distribution->kept_count();
  std::int64_t count = 0;
  for (Token i = 0; i < vocab_size(); ++i) count += probability(i) > 0.0f ? 1 : 0;
  return count;
}

double Distribution::kept_mass() const {
  return logits_distribution() != nullptr ? logits_distribution()->kept_mass() : 1.0;
}

const float* Distribution::probabilities_in(std::size_t begin, std::size_t count, float* scratch) const {
  if (const LogitsDistribution* distribution = logits_distribution())
    return distribution->probabilities_in(begin, count, scratch);
  if (const ProbabilityRow* distribution = probabilities())
    return distribution->probabilities_in(begin, count, scratch);
  std::fill_n(scratch, count, 0.0f);
  const auto token = static_cast<std::size_t>(one_hot()->token);
  if (token >= begin && token < begin + count) scratch[token - begin] = 1.0f;
  return scratch;
}

const float* Distribution::tile_probabilities(std::size_t tile, float* scratch) const {
  return probabilities_in(tile * kTileTokens, tile_size(*this, tile), scratch);
}

Token DistributionMasses::draw(const RandomBlock& block) const {
  if (const OneHot* distribution = distribution_.one_hot()) return distribution->token;
  if (const LogitsDistribution* distribution = distribution_.logits_distribution()) return distribution->draw(block);
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(*distribution_.probabilities());
  return masses.draw(block);
}

void DistributionMasses::for_each_log_weight(const LogWeightSink& sink) const {
  if (distribution_.logits_distribution() != nullptr) return send_logits(distribution_, kPaddingToken, sink);
  // Added up for the checks alone: a race would pass over a bad row in silence.
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(*distribution_.probabilities());
  masses.for_each_log_weight(sink);
}

std::vector<double> DistributionMasses::values() const {
  DifferenceMasses masses(distribution_, nullptr);
  masses.add_up();
  if (masses.total() == 0) throw all_zero(*distribution_.probabilities());
  return masses.values();
}

Token ResidualMasses::draw(const RandomBlock& block) const {
  if (const OneHot* target = p_.one_hot()) return target->token;
  const OneHot* proposal = q_.one_hot();
  if (p_.logits_distribution() != nullptr && proposal != nullptr)
    return p_.logits_distribution()->draw(block, proposal->token);
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  return masses.total() == 0 ? DistributionMasses(p_).draw(block) : masses.draw(block);
}

void ResidualMasses::for_each_log_weight(const LogWeightSink& sink) const {
  const OneHot* proposal = q_.one_hot();
  if (p_.logits_distribution() != nullptr && proposal != nullptr) {
    // As in LogitsDistribution::draw: where nothing else has mass, rounding alone led here and the token itself is
    // right.
    const bool alone = p_.logits_distribution()->total_without(proposal->token) == 0;
    const Token excluded = alone ? kPaddingToken : proposal->token;
    return send_logits(p_, excluded, sink);
  }
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  if (masses.total() == 0) return DistributionMasses(p_).for_each_log_weight(sink);
  masses.for_each_log_weight(sink);
}

std::vector<double> ResidualMasses::values() const {
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  return masses.total() == 0 ? DistributionMasses(p_).values() : masses.values();
}

}  // namespace draftproof

#include "reference/sampling/row_law.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "reference/error.hpp"
#include "reference/random/uniform.hpp"

namespace draftproof {
namespace {

constexpr double kNoWeight = -std::numeric_limits<double>::infinity();

using TileScratch = std::array<float, kTileTokens>;

std::size_t tile_size(const RowLaw& law, std::size_t tile) {
  const std::int64_t left = law.vocab_size() - static_cast<std::int64_t>(tile) * kTileTokens;
  return static_cast<std::size_t>(std::min<std::int64_t>(left, kTileTokens));
}

// Masses of max(p - q, 0) over tiles, or of p alone where q is null. The two scratch tiles live here.
class DifferenceMasses {
 public:
  DifferenceMasses(const RowLaw& p, const RowLaw* q) : p_(p), q_(q) {}

  // The sum of one tile in units of 2^-62; p rows sum to 1, so the row's sum stays below 2^63. Errors: a probability
  // outside [0, 1], or a row whose sum would overflow.
  void add_up() {
    sums_.resize(p_.tile_count());
    total_ = 0;
    std::uint64_t high_total = 0;
    for (std::size_t t = 0; t < sums_.size(); ++t) {
      load(t);
      const TileResidual sum = row_kernels().residual(p_tile_, q_tile_, tile_size(p_, t));
      if (!sum.valid) throw_bad_probability(t);
      high_total += sum.high + (sum.low >> 32);
      if (high_total > (std::uint64_t{3} << 30)) throw_bad_sum();
      sums_[t] = (sum.high << 32) + sum.low;
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
    for (std::uint64_t mass = mass_at(0); left >= mass; mass = mass_at(++i)) left -= mass;
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

 private:
  void load(std::size_t tile) {
    p_tile_ = p_.tile_probabilities(tile, p_scratch_.data());
    q_tile_ = has_proposal(tile) ? q_->tile_probabilities(tile, q_scratch_.data()) : nullptr;
  }
  // A one-hot proposal has mass in a single tile only.
  bool has_proposal(std::size_t tile) const {
    if (q_ == nullptr) return false;
    const OneHot* one = q_->one_hot();
    return one == nullptr || static_cast<std::size_t>(one->token / kTileTokens) == tile;
  }
  float difference_at(std::size_t i) const {
    return positive_part_of_difference(p_tile_[i], q_tile_ == nullptr ? 0.0f : q_tile_[i]);
  }
  std::uint64_t mass_at(std::size_t i) const { return residual_mass(difference_at(i)); }

  [[noreturn]] void throw_bad_probability(std::size_t tile) const {
    for (const RowLaw* law : {&p_, q_}) {
      if (law == nullptr || law->probabilities() == nullptr) continue;
      for (std::size_t i = 0; i < tile_size(*law, tile); ++i)
        law->probability(static_cast<Token>(tile * kTileTokens + i));  // names the column
    }
    throw Error(ErrorKind::internal, "residual", "a kernel refused a tile without a bad probability");
  }
  [[noreturn]] void throw_bad_sum() const {
    const std::int64_t row = p_.probabilities() != nullptr ? p_.probabilities()->row() : -1;
    throw input_error("row " + std::to_string(row), "the probabilities sum to more than 3; they must sum to 1");
  }

  const RowLaw& p_;
  const RowLaw* q_;
  const float* p_tile_ = nullptr;
  const float* q_tile_ = nullptr;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_ = 0;
  TileScratch p_scratch_;
  TileScratch q_scratch_;
};

void send_logits(const RowLaw& law, Token excluded, const LogWeightSink& sink) {
  const Distribution& row = *law.distribution();
  std::array<double, kTileTokens> log_weights;
  for (std::size_t t = 0; t < row.tile_count(); ++t) {
    const Token first = static_cast<Token>(t * kTileTokens);
    const std::size_t count = tile_size(law, t);
    for (std::size_t i = 0; i < count; ++i) {
      const Token token = first + static_cast<Token>(i);
      const bool counts = row.is_kept(token) && token != excluded;
      log_weights[i] = counts ? static_cast<double>(row.logits()[static_cast<std::size_t>(token)]) : kNoWeight;
    }
    sink(first, {log_weights.data(), count});
  }
}

}  // namespace

Distribution& RowLaw::make_distribution() {
  if (Distribution* existing = std::get_if<Distribution>(&law_)) return *existing;
  return law_.emplace<Distribution>();
}

std::int64_t RowLaw::vocab_size() const {
  if (const OneHot* law = one_hot()) return law->vocab_size;
  if (const ProbabilityRow* law = probabilities()) return law->vocab_size();
  return distribution()->vocab_size();
}

float RowLaw::probability(Token token) const {
  if (const OneHot* law = one_hot()) return token == law->token ? 1.0f : 0.0f;
  if (const ProbabilityRow* law = probabilities()) return law->probability(token);
  return distribution()->probability(token);
}

float RowLaw::log_probability(Token token) const {
  if (const Distribution* law = distribution()) return law->log_probability(token);
  const float p = probability(token);
  return static_cast<float>(p > 0.0f ? natural_log(static_cast<double>(p)) : kNoWeight);
}

std::int64_t RowLaw::kept_count() const {
  if (one_hot() != nullptr) return 1;
  if (const Distribution* law = distribution()) return law->kept_count();
  std::int64_t count = 0;
  for (Token i = 0; i < vocab_size(); ++i) count += probability(i) > 0.0f ? 1 : 0;
  return count;
}

double RowLaw::kept_mass() const {
  return distribution() != nullptr ? distribution()->kept_mass() : 1.0;
}

const float* RowLaw::tile_probabilities(std::size_t tile, float* scratch) const {
  if (const Distribution* law = distribution()) return law->tile_probabilities(tile, scratch);
  if (const ProbabilityRow* law = probabilities()) return law->tile_probabilities(tile, scratch);
  std::fill_n(scratch, tile_size(*this, tile), 0.0f);
  const auto token = static_cast<std::size_t>(one_hot()->token);
  if (token / kTileTokens == tile) scratch[token % kTileTokens] = 1.0f;
  return scratch;
}

Token LawMasses::draw(const RandomBlock& block) const {
  if (const OneHot* law = law_.one_hot()) return law->token;
  if (const Distribution* law = law_.distribution()) return law->draw(block);
  DifferenceMasses masses(law_, nullptr);
  masses.add_up();
  if (masses.total() == 0)
    throw input_error("row " + std::to_string(law_.probabilities()->row()),
                      "every probability is 0; they must sum to 1");
  return masses.draw(block);
}

void LawMasses::for_each_log_weight(const LogWeightSink& sink) const {
  if (law_.distribution() != nullptr) return send_logits(law_, kPaddingToken, sink);
  DifferenceMasses(law_, nullptr).for_each_log_weight(sink);
}

Token ResidualMasses::draw(const RandomBlock& block) const {
  if (const OneHot* target = p_.one_hot()) return target->token;
  const OneHot* proposal = q_.one_hot();
  if (p_.distribution() != nullptr && proposal != nullptr) return p_.distribution()->draw(block, proposal->token);
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  return masses.total() == 0 ? LawMasses(p_).draw(block) : masses.draw(block);
}

void ResidualMasses::for_each_log_weight(const LogWeightSink& sink) const {
  const OneHot* proposal = q_.one_hot();
  if (p_.distribution() != nullptr && proposal != nullptr) {
    // As in Distribution::draw: where nothing else has mass, rounding alone led here and the token itself is right.
    const bool alone = p_.distribution()->total_without(proposal->token) == 0;
    const Token excluded = alone ? kPaddingToken : proposal->token;
    return send_logits(p_, excluded, sink);
  }
  DifferenceMasses masses(p_, &q_);
  masses.add_up();
  if (masses.total() == 0) return LawMasses(p_).for_each_log_weight(sink);
  masses.for_each_log_weight(sink);
}

}  // namespace draftproof

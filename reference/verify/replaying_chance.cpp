#include "reference/verify/replaying_chance.hpp"

#include "reference/numerics/exact_product.hpp"
#include "reference/numerics/fixed_point.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

[[noreturn]] void throw_no_mass() {
  throw Error(ErrorKind::internal, "replay", "every mass is 0");
}

}  // namespace

bool accepts_exactly(Convention convention, double p, double q, double u) {
  const auto order = compare_products(u, q, p, 1.0);
  switch (convention) {
    case Convention::vllm_v1:
    case Convention::huggingface:
      return q > 0.0 && std::is_lteq(order);
    case Convention::vllm_v2:
      return q > 0.0 && std::is_lt(order);
    case Convention::sglang:
    case Convention::flashinfer:
    case Convention::tensorrt_llm:
      return std::is_lt(order);
    case Convention::textbook:
      return q == 0.0 || std::is_lt(order);
    case Convention::draftproof:
      break;
  }
  return q > 0.0 && (p >= q || std::is_lt(order));
}

Token draw_by_uniform(const DenseMasses<double>& masses, double u) {
  std::uint64_t total = 0;
  Token last = kPaddingToken;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    const std::uint64_t mass = residual_mass(masses[i]);
    total += mass;
    if (mass > 0) last = static_cast<Token>(i);
  }
  if (last == kPaddingToken) throw_no_mass();
  // A whole number is above u total if and only if it is above its floor.
  const std::uint64_t passed = floor_of_product(u, total);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    sum += residual_mass(masses[i]);
    if (sum > passed) return static_cast<Token>(i);
  }
  return last;
}

Token draw_by_noise(const DenseMasses<double>& masses, const RecordedNumbers& noise, std::size_t first,
                    NoiseKind kind) {
  Token best = kPaddingToken;
  double best_mass = 0.0;
  double best_noise = 0.0;
  double best_score = 0.0;
  for (std::size_t i = 0; i < masses.size(); ++i) {
    if (!(masses[i] > 0.0)) continue;
    const double x = noise[first + i];
    bool wins = best == kPaddingToken;
    if (kind == NoiseKind::exponential) {
      wins = wins || std::is_gt(compare_products(masses[i], best_noise, best_mass, x));
    } else {
      const double score = natural_log(masses[i]) + x;
      wins = wins || score > best_score;
      if (wins) best_score = score;
    }
    if (!wins) continue;
    best = static_cast<Token>(i);
    best_mass = masses[i];
    best_noise = x;
  }
  if (best == kPaddingToken) throw_no_mass();
  return best;
}

Token ReplayingChance::checked(Token recorded, const DenseMasses<double>& masses, std::uint32_t row) {
  if (recorded == kPaddingToken || !(masses[static_cast<std::size_t>(recorded)] > 0.0))
    impossible_token_ = ImpossibleToken{row, recorded};
  return recorded;
}

Token ReplayingChance::token_of(const DenseMasses<double>& masses, std::uint32_t row, Purpose purpose, double& u) {
  if (greedy_target_) return draw_by_uniform(masses, 0.0);
  if (purpose == Purpose::sibling_coin) {
    u = (*recorded_.uniforms)[row];
    return draw_by_uniform(masses, u);
  }
  if (row < draft_len_ && recorded_.recovered_tokens) return checked((*recorded_.recovered_tokens)[row], masses, row);
  if (row == draft_len_ && recorded_.bonus_token) return checked(*recorded_.bonus_token, masses, row);
  if (recorded_.noise) {
    const std::size_t first = recorded_.noise->size() == masses.size() ? 0 : row * masses.size();
    return draw_by_noise(masses, *recorded_.noise, first, recorded_.noise_kind);
  }
  u = (*recorded_.draw_uniforms)[recorded_.draw_uniforms->size() == 1 ? 0 : row];
  return draw_by_uniform(masses, u);
}

}  // namespace draftproof

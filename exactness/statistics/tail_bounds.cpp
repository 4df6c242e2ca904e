#include "exactness/statistics/tail_bounds.hpp"

#include "reference/numerics/boost_math.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <optional>
#include <vector>

#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

constexpr double kBerryEsseen = 0.56;
constexpr double kCantelliMax = 3.0;  // standard deviations
constexpr int kTiltsMax = 4;

// exp(a^2 / 2) P(N >= a) for a standard normal N.
double scaled_normal_tail(double a) {
  if (a > 25.0) return 0.3989422804014327 / a;  // above by a factor of 1 + 1 / a^2
  return 0.5 * std::exp(0.5 * a * a) * boost::math::erfc(a * 0.70710678118654752);
}

// The bound of tail_bounds.hpp at one tilt, on the side of its sign.
double bound_at(double tilt, double s, const TiltedSum& tilted) {
  if (!(tilted.variance > 0.0)) return std::min(1.0, std::exp(tilted.log_mgf - tilt * s));
  const double deviation = std::sqrt(tilted.variance);
  const double t = std::abs(tilt);
  const double d = (tilt > 0.0 ? tilted.mean - s : s - tilted.mean) / deviation;
  const double a = t * deviation - d;
  const double normal = a < -30.0 ? 1.0 : std::exp(-0.5 * d * d) * scaled_normal_tail(a);
  const double excess = 2.0 * kBerryEsseen * tilted.third / (tilted.variance * deviation);
  return std::min(1.0, std::exp(tilted.log_mgf - tilt * s) * std::min(1.0, normal + excess));
}

TiltedSum tilted_events(std::span<const EventDraws> draws, double tilt) {
  TiltedSum sum;
  for (const auto& [p, n] : draws) {
    const double mgf = 1.0 + p * std::expm1(tilt);
    const double q = p * std::exp(tilt) / mgf;
    const double variance = q * (1.0 - q);
    sum.add({natural_log(mgf), q, variance, variance * (q * q + (1.0 - q) * (1.0 - q))}, static_cast<double>(n));
  }
  return sum;
}

// All draws as of one probability; empty where they differ.
std::optional<EventDraws> as_binomial(std::span<const EventDraws> draws) {
  EventDraws all{draws.front().probability, 0};
  for (const EventDraws& d : draws) {
    if (d.probability != all.probability) return std::nullopt;
    all.draws += d.draws;
  }
  return all;
}

std::int64_t all_draws(std::span<const EventDraws> draws) {
  std::int64_t n = 0;
  for (const EventDraws& d : draws) n += d.draws;
  return n;
}

// [states + 1]: probability of 0, 1, ... states - 1 events, and of `states` or more.
std::vector<double> event_counts(std::span<const EventDraws> draws, std::int64_t states) {
  std::vector<double> mass(static_cast<std::size_t>(states) + 1, 0.0);
  mass[0] = 1.0;
  for (const auto& [p, n] : draws) {
    for (std::int64_t i = 0; i < n; ++i) {
      mass.back() += p * mass[mass.size() - 2];
      for (std::size_t k = mass.size() - 2; k > 0; --k) mass[k] += p * (mass[k - 1] - mass[k]);
      mass[0] *= 1.0 - p;
    }
  }
  return mass;
}

bool is_cheap(std::int64_t n, std::int64_t states) {
  return static_cast<double>(n) * static_cast<double>(states + 1) <= kExactTailOperations;
}

}  // namespace

void TiltedSum::add(const TiltedSum& terms, double times) {
  log_mgf += times * terms.log_mgf;
  mean += times * terms.mean;
  variance += times * terms.variance;
  third += times * terms.third;
}

TiltedSum tilted_score(std::span<const double> distribution, double tilt) {
  double centre = 0.0;
  double greatest = 0.0;
  for (const double p : distribution) {
    if (p > 0.0) centre += p * natural_log(p);
    greatest = std::max(greatest, p);
  }
  if (!(greatest > 0.0)) return {};
  std::vector<std::pair<double, double>> terms;  // weight, score
  double least = 0.0;
  for (const double p : distribution) {
    if (!(p > 0.0)) continue;
    terms.emplace_back(p, natural_log(p) - centre);
    least = std::min(least, terms.back().second);
  }
  // The largest exponent is taken out of the weights.
  const double shift = tilt >= 0.0 ? tilt * (natural_log(greatest) - centre) : tilt * least;
  double total = 0.0;
  TiltedSum sum;
  for (auto& [weight, score] : terms) {
    if (tilt != 0.0) weight *= std::exp(tilt * score - shift);
    total += weight;
    sum.mean += weight * score;
  }
  sum.log_mgf = tilt == 0.0 ? 0.0 : shift + natural_log(total);
  sum.mean = tilt == 0.0 ? 0.0 : sum.mean / total;
  for (const auto& [weight, score] : terms) {
    const double off = std::abs(score - sum.mean);
    sum.variance += weight / total * off * off;
    sum.third += weight / total * off * off * off;
  }
  return sum;
}

double tail_bound(double s, const std::function<TiltedSum(double)>& at) {
  const TiltedSum plain = at(0.0);
  const double off = s - plain.mean;
  if (!(plain.variance > 0.0)) return std::abs(off) < 1e-9 ? 1.0 : 0.0;  // a sum of constants, rounded
  const double z_squared = off * off / plain.variance;
  double best = 1.0 / (1.0 + z_squared);
  if (z_squared < kCantelliMax * kCantelliMax) return best;
  double tilt = off / plain.variance;
  for (int i = 0; i < kTiltsMax; ++i) {
    const TiltedSum tilted = at(tilt);
    best = std::min(best, bound_at(tilt, s, tilted));
    const double miss = tilted.mean - s;
    if (miss * miss < 1e-3 * tilted.variance) break;
    const double step = tilted.variance > 0.0 ? miss / tilted.variance / tilt : -3.0;  // Newton's, of the mean
    tilt *= std::clamp(1.0 - step, 0.25, 4.0);
  }
  return best;
}

double expected_events(std::span<const EventDraws> draws) {
  double sum = 0.0;
  for (const EventDraws& d : draws) sum += d.probability * static_cast<double>(d.draws);
  return sum;
}

double at_most(std::span<const EventDraws> draws, std::int64_t count) {
  const std::int64_t n = all_draws(draws);
  if (count >= n) return 1.0;
  if (count < 0) return 0.0;
  if (const std::optional<EventDraws> all = as_binomial(draws))
    return boost::math::ibetac(static_cast<double>(count + 1), static_cast<double>(n - count), all->probability);
  if (is_cheap(n, count + 1)) {
    const std::vector<double> mass = event_counts(draws, count + 1);
    double sum = 0.0;
    for (std::size_t k = 0; k + 1 < mass.size(); ++k) sum += mass[k];
    return std::min(1.0, sum);
  }
  const auto seen = static_cast<double>(count);
  if (seen >= expected_events(draws)) return 1.0;
  return tail_bound(seen, [&](double tilt) { return tilted_events(draws, tilt); });
}

double at_least(std::span<const EventDraws> draws, std::int64_t count) {
  const std::int64_t n = all_draws(draws);
  if (count <= 0) return 1.0;
  if (count > n) return 0.0;
  if (const std::optional<EventDraws> all = as_binomial(draws))
    return boost::math::ibeta(static_cast<double>(count), static_cast<double>(n - count + 1), all->probability);
  if (is_cheap(n, count)) return std::min(1.0, event_counts(draws, count).back());
  const auto seen = static_cast<double>(count);
  if (seen <= expected_events(draws)) return 1.0;
  return tail_bound(seen, [&](double tilt) { return tilted_events(draws, tilt); });
}

double correlation_bound(double r, std::int64_t n) {
  const double size = std::abs(r);
  // ln of the bound over n: -ln(1 - g) / 2 - sqrt(g (1 - g)) |r|. It falls while sqrt(g) < |r| (1 - 2 g) sqrt(1 - g).
  double low = 0.0;
  double high = 0.5;
  for (int i = 0; i < 60; ++i) {
    const double g = 0.5 * (low + high);
    (std::sqrt(g) < size * (1.0 - 2.0 * g) * std::sqrt(1.0 - g) ? low : high) = g;
  }
  const double exponent = -0.5 * std::log1p(-low) - std::sqrt(low * (1.0 - low)) * size;
  return std::min(1.0, 2.0 * std::exp(static_cast<double>(n) * exponent));
}

}  // namespace draftproof

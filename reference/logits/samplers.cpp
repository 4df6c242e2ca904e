#include "reference/logits/samplers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "reference/logits/p_less.hpp"
#include "reference/logits/ranked_tokens.hpp"
#include "reference/logits/top_h.hpp"
#include "reference/numerics/fraction.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/numerics/unsigned_128.hpp"

namespace draftproof {
namespace {

constexpr float kDropped = -std::numeric_limits<float>::infinity();
constexpr double kLn2 = 0.6931471805599453;

float largest_of(std::span<const float> logits) {
  float largest = kDropped;
  for (const float x : logits) largest = std::max(largest, x);
  return largest;
}

void smooth(const SamplerParameters& p, std::span<float> logits) {
  const auto largest = static_cast<double>(largest_of(logits));
  const double k = static_cast<double>(p.smoothing_factor) * (3.0 - static_cast<double>(p.smoothing_curve)) / 2.0;
  const double s = static_cast<double>(p.smoothing_factor) * (static_cast<double>(p.smoothing_curve) - 1.0) / 2.0;
  for (float& x : logits) {
    if (x == kDropped) continue;
    const double d = largest - static_cast<double>(x);
    // No further than the least logit that is a number: a token that was not masked stays possible by name.
    const double lowered = largest - d * d * (k + s * d);
    x = static_cast<float>(std::max(lowered, static_cast<double>(std::numeric_limits<float>::lowest())));
  }
}

// Distances from the largest logit as integers of at most 43 bits, on a grid that the largest distance alone decides;
// then sums of up to 2^19 squares, times their number, stay within 128 bits.
void keep_n_sigma(float n, std::span<float> logits) {
  const auto largest = static_cast<double>(largest_of(logits));
  const auto distance = [&](float x) { return largest - static_cast<double>(x); };
  double farthest = 0.0;
  for (const float x : logits)
    if (x != kDropped) farthest = std::max(farthest, distance(x));
  if (!(farthest > 0.0)) return;
  const double grid = std::ldexp(1.0, std::min(32, 42 - std::ilogb(farthest)));
  const auto steps = [&](float x) { return static_cast<std::uint64_t>(std::llrint(distance(x) * grid)); };
  Unsigned128 sum = 0;
  Unsigned128 squares = 0;
  std::uint64_t count = 0;
  for (const float x : logits) {
    if (x == kDropped) continue;
    const std::uint64_t d = steps(x);
    sum += d;
    squares += static_cast<Unsigned128>(d) * d;
    ++count;
  }
  const Unsigned128 variance = squares * count - sum * sum;  // times count^2
  const double limit = static_cast<double>(n) * std::sqrt(static_cast<double>(variance)) / static_cast<double>(count);
  for (float& x : logits)
    if (x != kDropped && static_cast<double>(steps(x)) > limit) x = kDropped;
}

void keep_typical(float typical_p, std::size_t least, Ranked& tokens) {
  const std::uint64_t total = total_mass(tokens);
  const Unsigned128 mean = weighted_steps(tokens);  // times S
  const auto distance = [&](const RankedToken& t) {
    const Unsigned128 d = static_cast<Unsigned128>(steps_below(tokens, t)) * total;
    return d > mean ? d - mean : mean - d;
  };
  std::vector<std::pair<Unsigned128, std::size_t>> order;  // by distance, then by rank
  for (std::size_t i = 0; i < tokens.size(); ++i) order.emplace_back(distance(tokens[i]), i);
  std::sort(order.begin(), order.end());
  const std::uint64_t limit = std::max<std::uint64_t>(1, ceil_of_fraction(typical_p, total));
  std::vector<std::uint8_t> keeps(tokens.size(), 0);
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < order.size() && (before < limit || i < least); ++i) {
    keeps[order[i].second] = 1;
    before += tokens[order[i].second].mass;
  }
  Ranked kept;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (keeps[i] != 0) kept.push_back(tokens[i]);
  tokens = std::move(kept);
}

void keep_from_epsilon(float epsilon, std::size_t least, Ranked& tokens) {
  const std::uint64_t least_mass = ceil_of_fraction(epsilon, total_mass(tokens));
  keep_if(tokens, least, [&](const RankedToken& t) { return t.mass >= least_mass; });
}

void keep_from_eta(float eta, std::size_t least, Ranked& tokens) {
  const auto total = static_cast<double>(total_mass(tokens));
  // exp(-H) = p_1 exp(-mean d).
  const double mean = static_cast<double>(weighted_steps(tokens)) / total * 0x1p-32;
  const double inverse_perplexity = static_cast<double>(tokens.front().mass) / total * natural_exp(-mean);
  const auto e = static_cast<double>(eta);
  const double least_mass = std::min(e, std::sqrt(e) * inverse_perplexity) * total;
  keep_if(tokens, least, [&](const RankedToken& t) { return static_cast<double>(t.mass) >= least_mass; });
}

void exclude_top(const SamplerParameters& p, Ranked& tokens) {
  if (p.xtc_probability < 1.0f && !(p.xtc_uniform < p.xtc_probability)) return;
  const std::uint64_t least = std::max<std::uint64_t>(1, ceil_of_fraction(p.xtc_threshold, total_mass(tokens)));
  std::size_t last = tokens.size();
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i].mass >= least) last = i;
  if (last == tokens.size()) return;
  Ranked kept;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (i == last || tokens[i].mass < least) kept.push_back(tokens[i]);
  tokens = std::move(kept);
}

void keep_below_surprise(float mu, Ranked& tokens) {
  const double least = natural_exp(-static_cast<double>(mu) * kLn2) * static_cast<double>(total_mass(tokens));
  keep_if(tokens, 1, [&](const RankedToken& t) { return static_cast<double>(t.mass) >= least; });
}

// log of k; infinite for "all".
double log_mirostat_k(const Ranked& tokens, double vocab_size, double mu) {
  constexpr std::size_t kFittedRanks = 100;
  double product = 0.0;
  double square = 0.0;
  for (std::size_t i = 0; i + 1 < std::min(kFittedRanks, tokens.size()); ++i) {
    const double t = natural_log(static_cast<double>(i + 2) / static_cast<double>(i + 1));
    product += t * (static_cast<double>(tokens[i].value) - static_cast<double>(tokens[i + 1].value));
    square += t * t;
  }
  const double s = square > 0.0 ? product / square : 0.0;
  const double e = s - 1.0;
  const double log_v = natural_log(vocab_size);
  // e / (1 - V^-e), which is 1 / log V at e = 0.
  const double ratio = std::abs(e) < 1e-9 ? 1.0 / log_v : e / (1.0 - natural_exp(-e * log_v));
  const double log_base = natural_log(ratio) + mu * kLn2;
  if (s > 0.0) return log_base / s;
  return log_base >= 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
}

void keep_mirostat_1(float mu, std::int64_t vocab_size, Ranked& tokens) {
  if (tokens.size() < 2) return;
  const double log_k = log_mirostat_k(tokens, static_cast<double>(vocab_size), static_cast<double>(mu));
  if (!(log_k < natural_log(static_cast<double>(tokens.size())))) return;
  const auto k = static_cast<std::size_t>(std::max(1.0, std::floor(natural_exp(log_k))));
  if (k < tokens.size()) tokens.resize(k);
}

}  // namespace

std::span<const SamplerParameterName> sampler_parameter_names() {
  using P = SamplerParameters;
  constexpr float kSmallest = std::numeric_limits<float>::denorm_min();
  constexpr float kLargest = std::numeric_limits<float>::max();
  constexpr float kBelowOne = 0x1.fffffep-1f;
  constexpr float kCountMax = 16777216.0f;
  constexpr const char* kOffOrAbove = "0 (off) or a finite number above";
  constexpr const char* kShare = "a number in [0, 1]";
  constexpr const char* kShareBelowOne = "a number in [0, 1)";
  static constexpr SamplerParameterName kNames[] = {
      {"smoothing_factor", &P::smoothing_factor, "Quadratic smoothing of the logits (0: off)", 0.0f, kLargest, false,
       kOffOrAbove},
      {"smoothing_curve", &P::smoothing_curve, "Curve of the smoothing, 1 to 3 (1: quadratic)", 1.0f, 3.0f, false,
       "a number in [1, 3]"},
      {"top_n_sigma", &P::top_n_sigma, "Keep logits within n standard deviations of the largest (0: off)", 0.0f,
       kLargest, false, kOffOrAbove},
      {"typical_p", &P::typical_p, "Locally typical sampling: mass that is kept (1: off)", kSmallest, 1.0f, false,
       "a number in (0, 1]"},
      {"epsilon_cutoff", &P::epsilon_cutoff, "Keep probabilities of at least this (0: off)", 0.0f, kBelowOne, false,
       kShareBelowOne},
      {"eta_cutoff", &P::eta_cutoff, "Keep probabilities of at least this, less where the entropy is high (0: off)",
       0.0f, kBelowOne, false, kShareBelowOne},
      {"xtc_threshold", &P::xtc_threshold, "XTC: probability from which a token is a top choice", 0.0f, 1.0f, false,
       kShare},
      {"xtc_probability", &P::xtc_probability, "XTC: how often all top choices but the last are dropped (0: off)", 0.0f,
       1.0f, false, kShare},
      {"xtc_uniform", &P::xtc_uniform, "XTC: the random number that decided it, as an engine recorded it", 0.0f,
       kBelowOne, false, "the number in [0, 1) that the coin was, as xtc_probability is neither 0 nor 1"},
      {"mirostat", &P::mirostat, "Mirostat version 1 or 2 (0: off)", 0.0f, 2.0f, true, "0 (off), 1 or 2"},
      {"mirostat_mu", &P::mirostat_mu, "Mirostat: largest surprise, in bits", -kLargest, kLargest, false,
       "a finite number of bits"},
      {"dry_multiplier", &P::dry_multiplier, "DRY repetition penalty: strength (0: off)", 0.0f, kLargest, false,
       kOffOrAbove},
      {"dry_base", &P::dry_base, "DRY: growth with each token of a repeated sequence", 1.0f, kLargest, false,
       "a finite number of 1 or more"},
      {"dry_allowed_length", &P::dry_allowed_length, "DRY: repeated tokens that are not penalised", 1.0f, kCountMax,
       true, "a whole number of 1 or more"},
      {"dry_range", &P::dry_range, "DRY: tokens of the context that are looked at (0: all)", 0.0f, kCountMax, true,
       "a whole number (0: the whole context)"},
      {"penalty_last_n", &P::penalty_last_n,
       "Tokens that repetition, frequency and presence penalties look at (-1: all)", -1.0f, kCountMax, true,
       "a whole number (-1: all)"},
      {"no_repeat_ngram_size", &P::no_repeat_ngram_size, "Tokens of which no sequence comes twice (0: off)", 0.0f,
       kCountMax, true, "a whole number (0: off)"},
      {"min_tokens_to_keep", &P::min_tokens_to_keep,
       "Tokens that top_k, top_p, min_p, typical_p and the cutoffs each leave at least (1: off)", 1.0f, kCountMax, true,
       "a whole number of 1 or more"},
      {"top_p_rule", &P::top_p_rule,
       "top_p keeps a token if the mass before it is below top_p (0) or at most that (1), if the mass through it is "
       "(2), "
       "or ascending from the last (3)",
       0.0f, 3.0f, true, "0 (before), 1 (up to), 2 (through) or 3 (ascending)"},
      {"p_less", &P::p_less, "Keep probabilities of at least the sum of their squares (1), or p-less-norm (2; 0: off)",
       0.0f, 2.0f, true, "0 (off), 1 or 2 (normalised)"},
      {"top_h", &P::top_h, "Longest prefix with at most this share of the entropy (1: off)", kSmallest, 1.0f, false,
       "a number in (0, 1]"},
      {"adaptive_target", &P::adaptive_target, "Adaptive-p: probability that is favoured (below 0: off)", -1.0f, 1.0f,
       false, "a number in [0, 1] (below 0: off)"},
      {"adaptive_mean", &P::adaptive_mean,
       "Adaptive-p: mean probability of what was drawn before (below 0: the target)", -1.0f, 1.0f, false,
       "a number in [0, 1] (below 0: the target)"},
  };
  return kNames;
}

void validate(const SamplerParameters& p, const std::string& where) {
  const bool needs_coin = p.xtc_probability > 0.0f && p.xtc_probability < 1.0f;
  for (const SamplerParameterName& sampler : sampler_parameter_names()) {
    const float value = p.*sampler.value;
    if (sampler.value == &SamplerParameters::xtc_uniform && !needs_coin) continue;
    if (!(value >= sampler.least && value <= sampler.most) || (sampler.whole && std::floor(value) != value))
      throw usage_error(where,
                        std::string(sampler.name) + " is " + std::to_string(value) + "; expected " + sampler.expected);
  }
}

void apply_before_filters(const SamplerParameters& parameters, std::span<float> logits) {
  if (parameters.smoothing_factor != 0.0f) smooth(parameters, logits);
  if (parameters.top_n_sigma != 0.0f) keep_n_sigma(parameters.top_n_sigma, logits);
}

void apply_after_filters(const SamplerParameters& p, LogitsDistribution& distribution) {
  if (!p.after_filters()) return;
  Ranked tokens = ranked_tokens(distribution);
  const std::size_t before = tokens.size();
  const auto least = static_cast<std::size_t>(p.min_tokens_to_keep);
  if (p.typical_p != 1.0f) keep_typical(p.typical_p, least, tokens);
  if (p.epsilon_cutoff != 0.0f) keep_from_epsilon(p.epsilon_cutoff, least, tokens);
  if (p.eta_cutoff != 0.0f) keep_from_eta(p.eta_cutoff, least, tokens);
  if (p.p_less != 0.0f) keep_p_less(p.p_less == 2.0f, distribution.vocab_size(), tokens);
  if (p.top_h != 1.0f) keep_top_h(p.top_h, tokens);
  if (p.xtc_probability != 0.0f) exclude_top(p, tokens);
  if (p.mirostat == 1.0f) keep_mirostat_1(p.mirostat_mu, distribution.vocab_size(), tokens);
  if (p.mirostat == 2.0f) keep_below_surprise(p.mirostat_mu, tokens);
  if (tokens.size() == before) return;
  std::vector<std::uint8_t> kept(static_cast<std::size_t>(distribution.vocab_size()), 0);
  for (const RankedToken& t : tokens) kept[static_cast<std::size_t>(t.token)] = 1;
  distribution.keep_only(kept);
}

double next_mirostat_mu(double mu, double tau, double rate, double probability) {
  return mu - rate * (-natural_log(probability) / kLn2 - tau);
}

}  // namespace draftproof

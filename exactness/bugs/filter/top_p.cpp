// Top-p: where the cut falls, and of which mass p is the share.
#include <algorithm>
#include <cmath>

#include "exactness/bugs/distribution_sampler.hpp"
#include "exactness/bugs/families.hpp"
#include "exactness/bugs/filter/hunts.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

RowParameters with_both(float top_p, std::int32_t top_k) {
  RowParameters parameters = with_top_p(top_p);
  parameters.filters.top_k = top_k;
  return parameters;
}

std::vector<RowParameters> top_p_settings(std::span<const std::int32_t> top_ks) {
  std::vector<RowParameters> settings;
  for (const float top_p : {0.1f, 0.3f, 0.5f, 0.7f, 0.8f, 0.9f, 0.95f, 0.99f})
    for (const std::int32_t k : top_ks) settings.push_back(with_both(top_p, k));
  return settings;
}
const std::vector<RowParameters>& plain_settings() {
  static const std::vector<RowParameters> settings = top_p_settings(std::vector<std::int32_t>{0});
  return settings;
}

// Rows whose first token has slightly less or more mass than a top_p: the edges of every setting.
std::vector<Logits> rows_near_the_cut() {
  constexpr int kTail = 30;
  std::vector<Logits> rows;
  for (const RowParameters& parameters : plain_settings()) {
    for (const double distance : {-1e-3, -1e-4, -1e-5, -1e-6, 1e-6, 1e-5, 1e-4, 1e-3}) {
      const double first = static_cast<double>(parameters.filters.top_p) + distance;
      Logits& row = rows.emplace_back(Logits{static_cast<float>(natural_log(first))});
      for (int i = 0; i < kTail; ++i) row.push_back(static_cast<float>(natural_log((1.0 - first) / kTail)));
    }
  }
  return rows;
}

std::vector<Logits> rows_of_many_tokens() {
  constexpr std::int32_t kVocabSize = 512;
  std::vector<Logits> rows = peaked_rows(kVocabSize);
  for (Logits& row : rows_near_the_cut()) rows.push_back(std::move(row));
  return rows;
}

// A bug whose sound twin is the production filter: `faulty_rule` on small rows or on rows of many tokens.
Hunt small_row_hunt(std::vector<RowParameters> settings, const KeptRule& faulty_rule) {
  return {Detector::enumeration, [settings = std::move(settings), faulty_rule](bool faulty) {
            return find_wrong_row_distribution(settings, row_code_of(faulty ? faulty_rule : kept_by_production));
          }};
}
Hunt many_token_hunt(const KeptRule& faulty_rule) {
  return {Detector::differential, [faulty_rule](bool faulty) {
            return find_wrong_kept_tokens(rows_of_many_tokens(), plain_settings(),
                                          faulty ? faulty_rule : kept_by_production);
          }};
}

KeptTokens kept_of_renormalised(const LogitsDistribution& row, const FilterParameters& parameters) {
  FilterParameters in_sequence = parameters;
  in_sequence.order = FilterOrder::top_k_first;
  return kept_by_production(row, in_sequence);
}

// Bisects a pivot among the probabilities and stops when the interval is small, not when it holds one value.
KeptTokens kept_by_approximate_pivot(const LogitsDistribution& row, const FilterParameters& parameters) {
  constexpr int kRounds = 12;
  const auto probability = [&](std::size_t i) { return row.probability(static_cast<Token>(i)); };
  KeptTokens kept(static_cast<std::size_t>(row.vocab_size()));
  float low = 0.0f;
  float high = 0.0f;
  for (std::size_t i = 0; i < kept.size(); ++i) high = std::max(high, probability(i));
  for (int round = 0; round < kRounds; ++round) {
    const float pivot = (low + high) / 2.0f;
    float mass = 0.0f;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (probability(i) >= pivot) mass += probability(i);
    (mass >= parameters.top_p ? low : high) = pivot;
  }
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = probability(i) >= low;
  return kept;
}

// Walks down the order; `ends(before, p)` says whether the walk ends before a token of probability p that has the
// mass `before` in front of it.
template <class Ends>
KeptTokens kept_by_walk(const LogitsDistribution& row, Ends ends) {
  KeptTokens kept(static_cast<std::size_t>(row.vocab_size()), false);
  float before = 0.0f;
  for (const Token token : ids_in_order(row)) {
    const float p = row.probability(token);
    if (before > 0.0f && ends(before, p)) break;
    kept[static_cast<std::size_t>(token)] = true;
    before += p;
  }
  return kept;
}

KeptTokens kept_one_short(const LogitsDistribution& row, const FilterParameters& parameters) {
  return kept_by_walk(row, [&](float before, float p) { return before + p >= parameters.top_p; });
}

KeptTokens kept_within_tolerance(const LogitsDistribution& row, const FilterParameters& parameters) {
  constexpr float kTolerance = 1e-5f;
  return kept_by_walk(row, [&](float before, float) { return before >= parameters.top_p - kTolerance; });
}

// Probabilities are taken relative to the mean and ten standard deviations, which a row of low temperature never
// reaches: all of them underflow, their shares are 0/0, and a comparison with NaN drops nothing.
KeptTokens kept_unless_nan(const LogitsDistribution& row, const FilterParameters& parameters) {
  const auto size = static_cast<std::size_t>(row.vocab_size());
  const auto logit = [&](std::size_t i) { return row.logit(static_cast<Token>(i)); };
  float mean = 0.0f;
  float square = 0.0f;
  for (std::size_t i = 0; i < size; ++i) mean += logit(i) / static_cast<float>(size);
  for (std::size_t i = 0; i < size; ++i) square += (logit(i) - mean) * (logit(i) - mean) / static_cast<float>(size);
  const float reference = mean + 10.0f * std::sqrt(square);
  const auto weight = [&](std::size_t i) {
    return static_cast<float>(natural_exp(static_cast<double>(logit(i) - reference)));
  };
  float sum = 0.0f;
  for (std::size_t i = 0; i < size; ++i) sum += weight(i);
  KeptTokens kept(size, true);
  float before = 0.0f;
  for (const Token token : ids_in_order(row)) {
    kept[static_cast<std::size_t>(token)] = !(before >= parameters.top_p);
    before += weight(static_cast<std::size_t>(token)) / sum;
  }
  return kept;
}

// Logits of standard deviation 3, as models have them, at temperatures down to 0.1.
Finding find_top_p_off_when_cold(bool faulty) {
  std::vector<Logits> rows;
  for (std::uint64_t i = 0; i < 8; ++i) {
    Logits& row = rows.emplace_back();
    for (std::uint32_t token = 0; token < 64; ++token) {
      const RandomBlock block = PhiloxSource().block(derive_seed(76, i), {token, 0, 0, Purpose::choice});
      float sum = 0.0f;  // of twelve uniform numbers: normal but for its tails
      for (const std::uint32_t word : block.word)
        for (const std::uint32_t shift : {0u, 8u, 16u}) sum += static_cast<float>(word >> shift & 0xffu) / 256.0f;
      row.push_back(3.0f * (sum - 6.0f));
    }
  }
  std::vector<RowParameters> settings;
  for (const float temperature : {1.0f, 0.3f, 0.1f}) {
    settings.push_back(with_top_p(0.9f));
    settings.back().temperature = temperature;
  }
  return find_wrong_kept_tokens(rows, settings, faulty ? kept_unless_nan : kept_by_production);
}

// Engines skip a top-p of 1.
KeptRule where_top_p_is_on(KeptRule rule) {
  return [rule = std::move(rule)](const LogitsDistribution& row, const FilterParameters& parameters) {
    return parameters.top_p == 1.0f ? kept_by_production(row, parameters) : rule(row, parameters);
  };
}

}  // namespace

std::vector<Bug> top_p_bugs() {
  return {
      {.id = "B49",
       .source = "sglang #36173",
       .fault = "with top-k on, one path takes top-p as a share of the mass that top-k left, the other as one of the "
                "whole row",
       .hunts = {small_row_hunt(top_p_settings(std::vector<std::int32_t>{0, 2, 3}), kept_of_renormalised)},
       .filter_sampler = filter_sampler_of(kept_of_renormalised)},
      {.id = "B50",
       .source = "vllm #48928",
       .fault = "top-p bisects a pivot and stops at a small interval, within which whole groups of tokens stay or go "
                "together",
       .hunts = {many_token_hunt(kept_by_approximate_pivot)}},
      {.id = "B51",
       .source = "llama.cpp #1953",
       .fault = "top-p drops the token that reaches the share",
       .hunts = {small_row_hunt(plain_settings(), kept_one_short)},
       .filter_sampler = filter_sampler_of(where_top_p_is_on(kept_one_short))},
      {.id = "B52",
       .source = "flashinfer #2202",
       .fault = "top-p stops at a kept mass of p - 1e-5, so that the boundary token is lost",
       .hunts = {many_token_hunt(kept_within_tolerance)}},
      {.id = "B76",
       .source = "vLLM 0.33.0, Triton top-k/top-p for batches above 64",
       .fault = "top-p takes probabilities relative to mean + 10 standard deviations: at low temperature they are 0/0, "
                "and nothing is dropped",
       .hunts = {{Detector::differential, find_top_p_off_when_cold}},
       .filter_sampler = filter_sampler_of(where_top_p_is_on(kept_unless_nan))},
  };
}

}  // namespace draftproof

// Top-p: where the cut falls, and of which mass p is the share.
#include <algorithm>

#include "reference/exactness/mutants/distribution_sampler.hpp"
#include "reference/exactness/mutants/filter/family.hpp"
#include "reference/exactness/mutants/filter/hunts.hpp"
#include "reference/numerics/natural_log.hpp"

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

// A mutant whose sound twin is the production filter: `faulty_rule` on small rows or on rows of many tokens.
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

std::function<LargeSampler()> sampler_with(RowParameters parameters, const KeptRule& rule) {
  return [parameters, rule] { return sampler_of_rule(usual_target_logits(), parameters, rule); };
}

}  // namespace

std::vector<Mutant> top_p_mutants() {
  return {
      {"B49",
       "sglang #36173",
       "with top-k on, one path takes top-p as a share of the mass that top-k left, the other as one of the whole row",
       {small_row_hunt(top_p_settings(std::vector<std::int32_t>{0, 2, 3}), kept_of_renormalised)},
       sampler_with(with_both(0.7f, 1500), kept_of_renormalised)},
      {"B50",
       "vllm #48928",
       "top-p bisects a pivot and stops at a small interval, within which whole groups of tokens stay or go together",
       {many_token_hunt(kept_by_approximate_pivot)},
       sampler_with(with_top_p(0.9f), kept_by_approximate_pivot)},
      {"B51",
       "llama.cpp #1953",
       "top-p drops the token that reaches the share",
       {small_row_hunt(plain_settings(), kept_one_short)},
       sampler_with(with_top_p(0.9f), kept_one_short)},
      {"B52",
       "flashinfer #2202",
       "top-p stops at a kept mass of p - 1e-5, so that the boundary token is lost",
       {many_token_hunt(kept_within_tolerance)},
       sampler_with(with_top_p(0.9f), kept_within_tolerance)},
  };
}

}  // namespace draftproof

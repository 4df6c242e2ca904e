// Parts that the hunts of filter and row bugs share: the distribution of a row by definition, with exact numbers, and
// the searches for a row whose distribution, kept tokens or drawn token is another.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "exactness/bugs/bug.hpp"
#include "exactness/rational.hpp"
#include "reference/logits/history.hpp"
#include "reference/logits/parameters.hpp"
#include "reference/logits/pipeline.hpp"
#include "reference/sampling/distribution.hpp"
#include "reference/verify/dense_rows.hpp"

namespace draftproof {

// Probabilities [V] of a row, which sum to 1.
using ExactDistribution = DenseMasses<Rational>;
using Logits = std::vector<float>;

// The distribution of a row under its parameters, by some code.
using RowCode = std::function<ExactDistribution(std::span<const float> logits, const RowParameters& parameters)>;

// The tokens [V] that the filters keep of a tempered row, by some rule.
using KeptTokens = std::vector<bool>;
using KeptRule = std::function<KeptTokens(const LogitsDistribution& row, const FilterParameters& parameters)>;

// The definition: the tokens sorted by (value descending, id ascending), exactly k of them, masses added up as integers
// and compared with fractions.
KeptTokens kept_by_definition(const LogitsDistribution& row, const FilterParameters& parameters);
ExactDistribution distribution_by_definition(std::span<const float> logits, const RowParameters& parameters);

// The code that production runs.
KeptTokens kept_by_production(const LogitsDistribution& row, const FilterParameters& parameters);
ExactDistribution distribution_by_production(std::span<const float> logits, const RowParameters& parameters);

// The ids of positive mass in the total order.
std::vector<Token> ids_in_order(const LogitsDistribution& row);

// Softmax at the parameters' temperature, restricted to what the rule keeps.
ExactDistribution distribution_of_kept(const KeptRule& rule, std::span<const float> logits,
                                       const RowParameters& parameters);
RowCode row_code_of(KeptRule rule);

// A row that has gone through production's pipeline. The distribution views the pipeline's buffers, or `logits`.
struct ProcessedRow {
  ProcessedRow(std::span<const float> logits, const RowParameters& parameters, const History* history = nullptr);
  ProcessedRow(const ProcessedRow&) = delete;
  ProcessedRow& operator=(const ProcessedRow&) = delete;

  Pipeline pipeline;
  Distribution distribution;
};

// Parameters with one thing on.
RowParameters with_top_k(std::int32_t top_k);
RowParameters with_top_p(float top_p);
RowParameters with_temperature(float temperature);

// Softmax of logits / temperature, with the logits that the LogitsDistribution is a view of.
struct TemperedRow {
  TemperedRow(std::span<const float> raw, float temperature);
  TemperedRow(const TemperedRow&) = delete;
  TemperedRow& operator=(const TemperedRow&) = delete;

  Logits logits;
  LogitsDistribution distribution;
};
ExactDistribution exact_distribution(const Distribution& distribution);

// Every row of `vocab_size` tokens with masses 0, 1, ..., mass_max, some of them positive: ties, zeros and one-hot
// rows.
std::vector<Logits> small_rows(std::int32_t vocab_size, std::int32_t mass_max);
// Rows of `vocab_size` different values: one token of up to 0.92 of the mass before a long tail, and Zipf rows.
std::vector<Logits> peaked_rows(std::int32_t vocab_size);

// "top_k = 2, top_p = 0.9": those that are on.
std::string text_of(const RowParameters& parameters);
// "(0.5, 0.5, 0)"
std::string text_of_probabilities(std::span<const Rational> distribution);

// E: the distribution of every small row under every setting, by the code and by definition. Cases are rows.
Finding find_wrong_row_distribution(std::span<const RowParameters> settings, const RowCode& code);

// D: the kept tokens of every row under every setting, by the rule and by definition. Cases are rows.
Finding find_wrong_kept_tokens(std::span<const Logits> rows, std::span<const RowParameters> settings,
                               const KeptRule& rule);

// V, X: one draw that must be a token of the support. Refusing the row with an Error is right as well.
struct SupportCase {
  std::string name;
  std::vector<bool> support;  // [V]
  std::function<Token()> draw;
};
Finding find_impossible_token(std::span<const SupportCase> cases);

// B, R: what the code makes of every item alone, against the same item within batches of every size, in this order and
// in reverse. code(items) -> one result for every item; results are compared by ==. Cases are rows.
template <class Item, class BatchCode>
Finding find_batch_dependence(const std::vector<Item>& items, const BatchCode& code) {
  Finding finding{false, 0, "rows", {}};
  std::vector<decltype(code(items))> alone;
  for (const Item& item : items) alone.push_back(code(std::vector<Item>{item}));
  for (std::size_t size = 2; size <= items.size() && !finding.caught; ++size) {
    for (const bool reversed : {false, true}) {
      std::vector<Item> batch;
      for (std::size_t i = 0; i < size; ++i) batch.push_back(items[reversed ? size - 1 - i : i]);
      const auto together = code(batch);
      for (std::size_t i = 0; i < size && !finding.caught; ++i) {
        const std::size_t item = reversed ? size - 1 - i : i;
        ++finding.cases;
        if (together[i] == alone[item].front()) continue;
        finding.caught = true;
        finding.evidence = "row " + std::to_string(item) + " has one result alone and another at place " +
                           std::to_string(i) + " of a batch of " + std::to_string(size);
      }
      if (finding.caught) break;
    }
  }
  return finding;
}

}  // namespace draftproof

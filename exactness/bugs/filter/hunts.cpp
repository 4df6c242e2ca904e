#include "exactness/bugs/filter/hunts.hpp"

#include <algorithm>
#include <limits>

#include "exactness/statistics/battery.hpp"
#include "reference/logits/filters.hpp"
#include "reference/numerics/natural_exp.hpp"
#include "reference/numerics/natural_log.hpp"

namespace draftproof {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

float log_of(double mass) {
  return mass > 0.0 ? static_cast<float>(natural_log(mass)) : kMasked;
}

ExactDistribution one_hot_distribution(Token token, std::size_t vocab_size) {
  ExactDistribution distribution(vocab_size, Rational(0));
  distribution[static_cast<std::size_t>(token)] = 1;
  return distribution;
}

// Mass strictly before each token, in the order of `order`, over those of them that `among` holds.
void keep_top_p(const LogitsDistribution& row, std::span<const Token> order, float top_p, const KeptTokens& among,
                KeptTokens& kept) {
  Rational total(0);
  for (const Token token : order)
    if (among[static_cast<std::size_t>(token)]) total += row.mass(token);
  const Rational limit = Rational(static_cast<double>(top_p)) * total;
  Rational before(0);
  for (const Token token : order) {
    if (!among[static_cast<std::size_t>(token)]) continue;
    if (before >= limit) kept[static_cast<std::size_t>(token)] = false;
    before += row.mass(token);
  }
}

}  // namespace

std::vector<Token> ids_in_order(const LogitsDistribution& row) {
  std::vector<Token> ids;
  for (Token token = 0; token < row.vocab_size(); ++token)
    if (row.is_kept(token)) ids.push_back(token);
  const auto value = [&](Token token) { return row.logit(token); };
  std::stable_sort(ids.begin(), ids.end(), [&](Token a, Token b) { return value(a) > value(b); });
  return ids;
}

KeptTokens kept_by_definition(const LogitsDistribution& row, const FilterParameters& parameters) {
  const std::vector<Token> order = ids_in_order(row);
  KeptTokens all(static_cast<std::size_t>(row.vocab_size()), false);
  for (const Token token : order) all[static_cast<std::size_t>(token)] = true;
  KeptTokens kept = all;
  const Rational least = Rational(static_cast<double>(parameters.min_p)) * row.mass(order.front());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const bool beyond_k = parameters.top_k != 0 && rank >= static_cast<std::size_t>(parameters.top_k);
    if (beyond_k || row.mass(order[rank]) < least) kept[static_cast<std::size_t>(order[rank])] = false;
  }
  if (parameters.top_p != 1.0f) {
    const KeptTokens among = parameters.order == FilterOrder::joint ? all : kept;
    keep_top_p(row, order, parameters.top_p, among, kept);
  }
  return kept;
}

KeptTokens kept_by_production(const LogitsDistribution& row, const FilterParameters& parameters) {
  LogitsDistribution filtered = row;
  apply_filters(parameters, filtered);
  KeptTokens kept;
  for (Token token = 0; token < row.vocab_size(); ++token) kept.push_back(filtered.is_kept(token));
  return kept;
}

ProcessedRow::ProcessedRow(std::span<const float> logits, const RowParameters& parameters, const History* history) {
  RowInput input;
  input.logits = {DType::f32, logits.data(), static_cast<std::int64_t>(logits.size())};
  input.parameters = parameters;
  input.history = history;
  pipeline.run(input, distribution);
}

RowParameters with_top_k(std::int32_t top_k) {
  RowParameters parameters;
  parameters.filters.top_k = top_k;
  return parameters;
}

RowParameters with_top_p(float top_p) {
  RowParameters parameters;
  parameters.filters.top_p = top_p;
  return parameters;
}

RowParameters with_temperature(float temperature) {
  RowParameters parameters;
  parameters.temperature = temperature;
  return parameters;
}

TemperedRow::TemperedRow(std::span<const float> raw, float temperature) : logits(raw.begin(), raw.end()) {
  for (float& l : logits) l /= temperature;
  distribution.assign(logits, 0);
}

ExactDistribution distribution_of_kept(const KeptRule& rule, std::span<const float> logits,
                                       const RowParameters& parameters) {
  const TemperedRow tempered(logits, parameters.temperature);
  const LogitsDistribution& row = tempered.distribution;
  const KeptTokens kept = rule(row, parameters.filters);
  ExactDistribution distribution(logits.size(), Rational(0));
  for (std::size_t i = 0; i < distribution.size(); ++i)
    if (kept[i]) distribution[i] = row.mass(static_cast<Token>(i));
  return normalised(std::move(distribution));
}

RowCode row_code_of(KeptRule rule) {
  return [rule = std::move(rule)](std::span<const float> logits, const RowParameters& parameters) {
    return distribution_of_kept(rule, logits, parameters);
  };
}

ExactDistribution distribution_by_definition(std::span<const float> logits, const RowParameters& parameters) {
  if (parameters.temperature == 0.0f) {
    const auto first = std::max_element(logits.begin(), logits.end());
    return one_hot_distribution(static_cast<Token>(first - logits.begin()), logits.size());
  }
  return distribution_of_kept(kept_by_definition, logits, parameters);
}

ExactDistribution exact_distribution(const Distribution& distribution) {
  const auto vocab_size = static_cast<std::size_t>(distribution.vocab_size());
  if (distribution.one_hot() != nullptr) return one_hot_distribution(distribution.one_hot()->token, vocab_size);
  ExactDistribution masses;
  for (std::size_t i = 0; i < vocab_size; ++i)
    masses.emplace_back(distribution.logits_distribution()->mass(static_cast<Token>(i)));
  return normalised(std::move(masses));
}

ExactDistribution distribution_by_production(std::span<const float> logits, const RowParameters& parameters) {
  return exact_distribution(ProcessedRow(logits, parameters).distribution);
}

std::vector<Logits> small_rows(std::int32_t vocab_size, std::int32_t mass_max) {
  std::vector<Logits> rows;
  std::vector<std::int32_t> masses(static_cast<std::size_t>(vocab_size), 0);
  const auto next = [&] {
    for (std::int32_t& mass : masses) {
      mass = mass == mass_max ? 0 : mass + 1;
      if (mass != 0) return true;
    }
    return false;
  };
  while (next()) {
    Logits& row = rows.emplace_back();
    for (const std::int32_t mass : masses) row.push_back(log_of(mass));
  }
  return rows;
}

std::vector<Logits> peaked_rows(std::int32_t vocab_size) {
  std::vector<Logits> rows;
  const auto zipf = [](std::int32_t i, double power) { return natural_exp(-power * natural_log(i + 1.0)); };
  for (const double peak : {0.92, 0.85, 0.75, 0.45}) {
    double tail = 0.0;
    for (std::int32_t i = 1; i < vocab_size; ++i) tail += zipf(i, 0.25);
    Logits& row = rows.emplace_back(Logits{log_of(peak)});
    for (std::int32_t i = 1; i < vocab_size; ++i) row.push_back(log_of((1.0 - peak) * zipf(i, 0.25) / tail));
  }
  for (const double power : {0.5, 0.75, 1.0, 1.25}) {
    Logits& row = rows.emplace_back();
    for (std::int32_t i = 0; i < vocab_size; ++i) row.push_back(log_of(zipf(i, power)));
  }
  return rows;
}

std::string text_of(const RowParameters& parameters) {
  std::string text;
  const auto add = [&](bool is_on, const std::string& name, double value) {
    if (is_on) text += (text.empty() ? "" : ", ") + name + " = " + short_number(value);
  };
  add(parameters.temperature != 1.0f, "temperature", static_cast<double>(parameters.temperature));
  add(parameters.filters.min_p != 0.0f, "min_p", static_cast<double>(parameters.filters.min_p));
  add(parameters.filters.top_k != 0, "top_k", parameters.filters.top_k);
  add(parameters.filters.top_p != 1.0f, "top_p", static_cast<double>(parameters.filters.top_p));
  return text.empty() ? "no filters" : text;
}

std::string text_of_probabilities(std::span<const Rational> distribution) {
  std::string text;
  for (const Rational& p : distribution) text += (text.empty() ? "(" : ", ") + short_number(static_cast<double>(p));
  return text + ")";
}

Finding find_wrong_row_distribution(std::span<const RowParameters> settings, const RowCode& code) {
  Finding finding{false, 0, "rows", {}};
  for (const Logits& row : small_rows(4, 4)) {
    for (const RowParameters& parameters : settings) {
      ++finding.cases;
      const ExactDistribution distribution = code(row, parameters);
      const ExactDistribution expected = distribution_by_definition(row, parameters);
      if (distribution == expected) continue;
      finding.caught = true;
      RowParameters unfiltered;
      finding.evidence = "the row " + text_of_probabilities(distribution_by_definition(row, unfiltered)) + " with " +
                         text_of(parameters) + " has the distribution " + text_of_probabilities(distribution) +
                         ", not " + text_of_probabilities(expected);
      return finding;
    }
  }
  return finding;
}

Finding find_wrong_kept_tokens(std::span<const Logits> rows, std::span<const RowParameters> settings,
                               const KeptRule& rule) {
  Finding finding{false, 0, "rows", {}};
  for (const Logits& logits : rows) {
    for (const RowParameters& parameters : settings) {
      ++finding.cases;
      const TemperedRow tempered(logits, parameters.temperature);
      const LogitsDistribution& row = tempered.distribution;
      const KeptTokens kept = rule(row, parameters.filters);
      const KeptTokens expected = kept_by_definition(row, parameters.filters);
      if (kept == expected) continue;
      const auto mass_of = [&](const KeptTokens& tokens) {
        double mass = 0.0;
        for (std::size_t i = 0; i < tokens.size(); ++i)
          if (tokens[i]) mass += static_cast<double>(row.probability(static_cast<Token>(i)));
        return mass;
      };
      const auto count_of = [](const KeptTokens& tokens) { return std::count(tokens.begin(), tokens.end(), true); };
      finding.caught = true;
      finding.evidence = "with " + text_of(parameters) + " it keeps " + std::to_string(count_of(kept)) +
                         " tokens of mass " + std::to_string(mass_of(kept)) + ", not " +
                         std::to_string(count_of(expected)) + " of mass " + std::to_string(mass_of(expected));
      return finding;
    }
  }
  return finding;
}

Finding find_impossible_token(std::span<const SupportCase> cases) {
  return first_evidence("draws", cases, [](const SupportCase& c) {
    Token token = 0;
    try {
      token = c.draw();
    } catch (const Error&) {
      return std::string();  // a row that is refused emits nothing
    }
    const bool known = token >= 0 && static_cast<std::size_t>(token) < c.support.size();
    if (known && c.support[static_cast<std::size_t>(token)]) return std::string();
    return c.name + ": token " + std::to_string(token) +
           (known ? " is impossible" : " is outside the vocabulary of " + std::to_string(c.support.size()));
  });
}

}  // namespace draftproof

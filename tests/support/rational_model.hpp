// Small random language models in exact rationals, and the distributions that proofs compare.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/token.hpp"
#include "exactness/rational.hpp"
#include "reference/verify/dense_rows.hpp"
#include "tests/support/test_random.hpp"

namespace draftproof {

using Text = std::vector<Token>;
using TextDistribution = std::map<Text, Rational>;  // strings of probability zero are left out

// The distribution of the next token, a function of the whole context up to `context_len_max` tokens.
class RationalModel {
 public:
  // Each row has weights 0..`weight_max`; a weight is 0 with the probability `zeros` besides. At least one is not.
  RationalModel(TestRandom& random, int vocab_size, int context_len_max, double zeros, int weight_max = 5) {
    add(random, vocab_size, context_len_max, zeros, weight_max, {});
  }
  // The same row in every context.
  RationalModel(const std::vector<Rational>& row, int context_len_max) { add_constant(row, context_len_max, {}); }

  const std::vector<Rational>& row(const Text& context) const { return rows_.at(context); }

 private:
  void add(TestRandom& random, int vocab_size, int left, double zeros, int weight_max, const Text& context) {
    std::vector<Rational> row(static_cast<std::size_t>(vocab_size));
    Rational total = 0;
    while (total == 0) {
      for (Rational& x : row) {
        x = random.chance(zeros) ? 0 : static_cast<int>(1 + random.below(weight_max));
        total += x;
      }
    }
    for (Rational& x : row) x /= total;
    rows_[context] = row;
    for (Token t = 0; left > 0 && t < vocab_size; ++t)
      add(random, vocab_size, left - 1, zeros, weight_max, with(context, t));
  }
  void add_constant(const std::vector<Rational>& row, int left, const Text& context) {
    rows_[context] = row;
    for (std::size_t t = 0; left > 0 && t < row.size(); ++t)
      add_constant(row, left - 1, with(context, static_cast<Token>(t)));
  }
  static Text with(Text context, Token t) {
    context.push_back(t);
    return context;
  }

  std::map<Text, std::vector<Rational>> rows_;
};

// The rows of a draft after `context`: one a position, `count` of them.
inline DenseRows<Rational> rows_along(const RationalModel& model, Text context, std::span<const Token> draft,
                                      std::size_t count) {
  DenseRows<Rational> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.rows.push_back(model.row(context));
    if (i < draft.size()) context.push_back(draft[i]);
  }
  return out;
}

// The distribution of the model's own text of `length` tokens: the product of its rows.
inline TextDistribution text_distribution(const RationalModel& model, std::size_t length) {
  TextDistribution distribution{{Text{}, Rational(1)}};
  for (std::size_t i = 0; i < length; ++i) {
    TextDistribution longer;
    for (const auto& [text, probability] : distribution) {
      const std::vector<Rational>& row = model.row(text);
      for (std::size_t t = 0; t < row.size(); ++t) {
        if (row[t] == 0) continue;
        Text next = text;
        next.push_back(static_cast<Token>(t));
        longer[next] = probability * row[t];
      }
    }
    distribution = std::move(longer);
  }
  return distribution;
}

// Texts of any length up to `length`, completed to it by the model; longer ones are cut.
inline TextDistribution completed(const TextDistribution& distribution, const RationalModel& model,
                                  std::size_t length) {
  TextDistribution out;
  std::vector<std::pair<Text, Rational>> open(distribution.begin(), distribution.end());
  while (!open.empty()) {
    auto [text, probability] = open.back();
    open.pop_back();
    if (text.size() >= length) {
      text.resize(length);
      out[text] += probability;
      continue;
    }
    const std::vector<Rational>& row = model.row(text);
    for (std::size_t t = 0; t < row.size(); ++t) {
      if (row[t] == 0) continue;
      Text next = text;
      next.push_back(static_cast<Token>(t));
      open.emplace_back(std::move(next), probability * row[t]);
    }
  }
  return out;
}

inline Rational total_variation(const TextDistribution& a, const TextDistribution& b) {
  Rational sum = 0;
  const auto at = [](const TextDistribution& distribution, const Text& text) {
    const auto found = distribution.find(text);
    return found == distribution.end() ? Rational(0) : found->second;
  };
  for (const auto& [text, p] : a) sum += abs(p - at(b, text));
  for (const auto& [text, p] : b)
    if (a.find(text) == a.end()) sum += p;
  return sum / 2;
}

}  // namespace draftproof

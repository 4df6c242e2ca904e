// The production path of a verifier, doubles and addressed Philox words under the key audit, over several steps: its
// texts against the distribution of the target, by chi-squared.
#pragma once

#include <cstdint>
#include <vector>

#include "exactness/model_pair.hpp"
#include "exactness/proof/output_distribution.hpp"
#include "exactness/statistics/chi_squared.hpp"
#include "reference/random/audit.hpp"
#include "reference/verify/chance.hpp"
#include "tests/reference/verify/small_step.hpp"

namespace draftproof::small_step {

using AuditedChance = AddressedChance<AuditedSource<>>;

struct MeasuredDistribution {
  std::int64_t trials = 20000;
  std::uint32_t steps = 3;
  std::size_t length = 5;  // of the texts that are compared: cut, or completed by plain decoding
};

// Probability of every text of `length` tokens; the first token is the most significant digit of its index.
inline std::vector<double> text_distribution(const ModelPair<double>& models, std::size_t length,
                                             const TokenString& prefix = {}, double probability = 1.0) {
  if (prefix.size() == length) return {probability};
  std::vector<double> distribution;
  for (Token token = 0; token < models.vocab_size(); ++token) {
    const std::vector<double> part =
        text_distribution(models, length, joined(prefix, std::vector<Token>{token}),
                          probability * models.target(prefix)[static_cast<std::size_t>(token)]);
    distribution.insert(distribution.end(), part.begin(), part.end());
  }
  return distribution;
}

// step(text so far, chance) -> tokens emitted. A word that is drawn twice throws.
template <class Step>
ChiSquaredTest measure(const ModelPair<double>& models, const MeasuredDistribution& options, const Step& step) {
  const std::vector<double> distribution = text_distribution(models, options.length);
  std::vector<std::int64_t> counts(distribution.size(), 0);
  for (std::int64_t trial = 0; trial < options.trials; ++trial) {
    AuditedSource source;
    const std::uint64_t seed = derive_seed(models.seed(), static_cast<std::uint64_t>(trial));
    TokenString text;
    std::uint32_t step_number = 0;
    for (; step_number < options.steps; ++step_number) {
      AuditedChance chance(source, seed, step_number);
      text = joined(text, step(text, chance));
    }
    for (; text.size() < options.length; ++step_number) {
      AuditedChance chance(source, seed, step_number);
      text.push_back(chance.draw(models.target(text), 0, Purpose::target_sample));
    }
    std::size_t cell = 0;
    for (std::size_t i = 0; i < options.length; ++i)
      cell = cell * static_cast<std::size_t>(models.vocab_size()) + static_cast<std::size_t>(text[i]);
    ++counts[cell];
  }
  return goodness_of_fit(counts, distribution, kExpectedCountMinOfAudits);
}

}  // namespace draftproof::small_step

#include "exactness/bugs/hunting.hpp"

#include <algorithm>

#include "exactness/proof/distribution_text.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/chi_squared.hpp"

namespace draftproof {
namespace {

constexpr double kLevelOfDraws = 1e-9;
constexpr std::int64_t kFirstLook = 1024;

}  // namespace

Finding find_wrong_distribution(const EnumerationHunt& hunt, const EnumeratedStep& step) {
  Finding finding{false, 0, "outcomes", {}};
  for (std::int32_t instance = 0; instance < hunt.instances; ++instance) {
    const Models models(hunt.vocab_size, derive_seed(0, static_cast<std::uint64_t>(instance)),
                        kModelKinds[static_cast<std::size_t>(instance) % kModelKinds.size()]);
    OutputDistribution distribution;
    ExactChance chance;
    do {
      TokenString string;
      for (std::int32_t s = 0; s < hunt.steps; ++s) {
        chance.set_step(static_cast<std::uint32_t>(s));
        const ProofStep outcome = step(models, string, hunt.draft_len, chance);
        string.insert(string.end(), outcome.emitted.begin(), outcome.emitted.end());
      }
      distribution[string] += chance.probability();
      ++finding.cases;
    } while (chance.next());
    const auto target = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
      return models.target(prefix);
    };
    const auto difference = first_difference(distribution, target, hunt.vocab_size);
    if (!difference) continue;
    TokenString string = difference->prefix;
    string.push_back(difference->token);
    finding.caught = true;
    finding.evidence = "after " + text_of(difference->prefix) +
                       " with p = " + text_of(models.target(difference->prefix)) +
                       ", q = " + text_of(models.draft(difference->prefix)) + ", " + text_of(string) +
                       " has probability " + text_of(difference->emitted) + ", not " + text_of(difference->expected);
    return finding;
  }
  return finding;
}

Finding find_wrong_token_distribution(std::span<const Rational> expected,
                                      const std::function<Token(ExactChance&)>& draw) {
  Finding finding{false, 0, "outcomes", {}};
  DenseMasses<Rational> distribution(expected.size());
  Rational elsewhere(0);
  ExactChance chance;
  do {
    const Token token = draw(chance);
    const bool known = token >= 0 && static_cast<std::size_t>(token) < distribution.size();
    (known ? distribution[static_cast<std::size_t>(token)] : elsewhere) += chance.probability();
    ++finding.cases;
  } while (chance.next());
  finding.caught = elsewhere > 0 || !std::equal(distribution.begin(), distribution.end(), expected.begin());
  if (finding.caught) {
    finding.evidence = "tokens have the distribution " + text_of(distribution) + ", not " + text_of(expected);
    if (elsewhere > 0) finding.evidence += "; outside the vocabulary " + text_of(elsewhere);
  }
  return finding;
}

Finding find_wrong_draws(std::span<const double> distribution, const std::function<Token(std::uint64_t draw)>& draw,
                         std::int64_t draws_max) {
  Finding finding{false, 0, "draws", {}};
  int looks = 1;
  for (std::int64_t n = kFirstLook; n < draws_max; n *= 2) ++looks;
  std::vector<std::int64_t> counts(distribution.size(), 0);
  for (std::int64_t next_look = std::min(kFirstLook, draws_max);; next_look = std::min(2 * next_look, draws_max)) {
    for (; finding.cases < next_look; ++finding.cases) {
      const Token token = draw(static_cast<std::uint64_t>(finding.cases));
      if (token < 0 || static_cast<std::size_t>(token) >= counts.size()) {
        ++finding.cases;
        finding.caught = true;
        finding.evidence =
            "token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(distribution.size());
        return finding;
      }
      ++counts[static_cast<std::size_t>(token)];
    }
    const ChiSquaredTest test = goodness_of_fit(counts, distribution, kExpectedCountMinOfAudits);
    if (test.impossible_cell) {
      finding.caught = true;
      finding.evidence = "token " + std::to_string(*test.impossible_cell) + " has probability 0 and came " +
                         std::to_string(test.impossible_count) + " times";
    } else if (test.p_value < kLevelOfDraws / looks) {
      finding.caught = true;
      finding.evidence = "X^2 = " + short_number(test.statistic) + " at df = " + std::to_string(test.df) +
                         ", p = " + short_number(test.p_value);
    }
    if (finding.caught || finding.cases == draws_max) return finding;
  }
}

}  // namespace draftproof

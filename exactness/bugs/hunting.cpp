#include "exactness/bugs/hunting.hpp"

#include <algorithm>
#include <map>

#include "exactness/proof/distribution_text.hpp"
#include "exactness/statistics/battery.hpp"
#include "exactness/statistics/binomial_interval.hpp"

namespace draftproof {
namespace {

constexpr double kLevel = 1e-9;  // of all looks together
constexpr std::int64_t kFirstLook = 32;

Models models_of(const EnumerationHunt& hunt, std::int32_t instance) {
  return Models(hunt.vocab_size, derive_seed(0, static_cast<std::uint64_t>(instance)),
                kModelKinds[static_cast<std::size_t>(instance) % kModelKinds.size()], hunt.draft_tokens);
}

}  // namespace

Finding find_wrong_distribution(const EnumerationHunt& hunt, const EnumeratedStep& step,
                                const decltype(ProofCase::output_distribution)& expected) {
  Finding finding{false, 0, "outcomes", {}};
  for (std::int32_t instance = 0; instance < hunt.instances && !finding.caught; ++instance) {
    const Models models = models_of(hunt, instance);
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
    std::map<TokenString, DenseMasses<Rational>> transformed;
    const auto target = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
      const DenseMasses<Rational>& p = models.target(prefix);
      return expected ? transformed.try_emplace(prefix, expected(p, prefix)).first->second : p;
    };
    const auto difference = first_difference(distribution, target, hunt.vocab_size);
    if (!difference) continue;
    TokenString string = difference->prefix;
    string.push_back(difference->token);
    finding.caught = true;
    finding.evidence = "after " + text_of(difference->prefix) + " with p = " + text_of(target(difference->prefix)) +
                       ", q = " + text_of(models.draft(difference->prefix)) + ", " + text_of(string) +
                       " has probability " + text_of(difference->emitted) + ", not " + text_of(difference->expected);
  }
  return finding;
}

Finding find_wrong_mean_accepted(const EnumerationHunt& hunt, const EnumeratedStep& step, AcceptanceOracle oracle) {
  Finding finding{false, 0, "outcomes", {}};
  for (std::int32_t instance = 0; instance < hunt.instances && !finding.caught; ++instance) {
    const Models models = models_of(hunt, instance);
    Rational mean(0);
    ExactChance chance;
    do {
      mean += step(models, {}, hunt.draft_len, chance).accepted * chance.probability();
      ++finding.cases;
    } while (chance.next());
    const Rational expected = oracle(models, {}, hunt.draft_len);
    if (mean == expected) continue;
    finding.caught = true;
    finding.evidence = "on " + std::string(name_of(models.kind())) + " models " + text_of(mean) + " of " +
                       std::to_string(hunt.draft_len) + " drafts are accepted in the mean, not " + text_of(expected);
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

Finding find_wrong_rate(double probability, const std::function<bool(std::uint64_t draw)>& happens,
                        std::int64_t draws_max, const std::string& event) {
  int looks = 1;
  for (std::int64_t n = kFirstLook; n < draws_max; n *= 2) ++looks;
  std::int64_t count = 0;
  Finding finding{false, 0, "draws", {}};
  for (std::int64_t next_look = std::min(kFirstLook, draws_max); !finding.caught;
       next_look = std::min(2 * next_look, draws_max)) {
    while (finding.cases < next_look) count += happens(static_cast<std::uint64_t>(finding.cases++)) ? 1 : 0;
    const Interval interval = clopper_pearson(count, finding.cases, 1.0 - kLevel / looks);
    finding.caught = !(interval.low <= probability && probability <= interval.high);
    if (finding.caught)
      finding.evidence = std::to_string(count) + " " + event + " where " +
                         short_number(probability * static_cast<double>(finding.cases)) + " are expected";
    if (finding.cases == draws_max) break;
  }
  return finding;
}

}  // namespace draftproof

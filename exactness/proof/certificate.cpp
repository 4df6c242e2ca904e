#include "exactness/proof/certificate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json_values.hpp"
#include "exactness/proof/distribution_text.hpp"
#include "reference/random/philox.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::ordered_json;

const char* purpose_name(Purpose purpose) {
  switch (purpose) {
    case Purpose::draft_sample:
      return "draft_sample";
    case Purpose::accept:
      return "accept";
    case Purpose::residual:
      return "residual";
    case Purpose::target_sample:
      return "target_sample";
    case Purpose::sibling_coin:
      return "sibling_coin";
    case Purpose::gumbel_noise:
      return "gumbel_noise";
    default:
      return "choice";
  }
}

Json fractions_json(const DenseMasses<Rational>& masses) {
  return json_list(masses, [](const Rational& x) { return text_of(x); });
}

void require_size(std::int64_t outcomes) {
  if (outcomes > kCertificateOutcomesMax)
    throw usage_error("--certificate", "would hold more than " + std::to_string(kCertificateOutcomesMax) +
                                           " outcomes; expected fewer --instances, or a smaller --vocab or "
                                           "--num-speculative-tokens");
}

// The outcomes of one step, and the distribution that they make.
struct Outcomes {
  Json paths = Json::array();
  OutputDistribution distribution;
};

Outcomes outcomes_of(const ProofCase& proof_case, const Models& models, std::int32_t draft_len) {
  Outcomes out;
  ExactChance chance;
  do {
    const ProofStep step = proof_case.step.exact(models, {}, draft_len, chance);
    out.distribution[step.emitted] += chance.probability();
    Json decisions = Json::array();
    for (const ExactChance::Decision& decision : chance.decisions())
      decisions.push_back({purpose_name(decision.address.purpose), decision.address.row, decision.address.index,
                           decision.outcome, text_of(decision.share)});
    out.paths.push_back({{"decisions", std::move(decisions)}, {"emitted", step.emitted}});
    require_size(std::ssize(out.paths));
  } while (chance.next());
  return out;
}

// Every string of fewer than `longest` tokens, with what the models say behind it.
Json rows_of(const ProofCase& proof_case, const Models& models, std::size_t longest) {
  Json rows = Json::array();
  std::vector<TokenString> level{{}};
  for (std::size_t length = 0; length < longest; ++length) {
    std::vector<TokenString> next;
    for (const TokenString& prefix : level) {
      const DenseMasses<Rational>& p = models.target(prefix);
      rows.push_back({{"prefix", prefix},
                      {"p", fractions_json(proof_case.output_distribution ? proof_case.output_distribution(p) : p)},
                      {"q", fractions_json(models.draft(prefix))}});
      for (Token token = 0; token < models.vocab_size(); ++token) {
        next.push_back(prefix);
        next.back().push_back(token);
      }
      require_size(std::ssize(rows) + std::ssize(next));
    }
    level = std::move(next);
  }
  return rows;
}

Json difference_json(const std::optional<DistributionDifference>& difference) {
  if (!difference) return nullptr;
  TokenString string = difference->prefix;
  string.push_back(difference->token);
  return {{"string", string}, {"emitted", text_of(difference->emitted)}, {"expected", text_of(difference->expected)}};
}

std::string in_latex(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += std::string("&%$#_{}").find(c) == std::string::npos ? std::string(1, c) : std::string("\\") + c;
  return out;
}

std::string latex_fraction(const Rational& x) {
  const std::string text = text_of(x);
  const std::size_t slash = text.find('/');
  return slash == std::string::npos ? "$" + text + "$"
                                    : "$\\frac{" + text.substr(0, slash) + "}{" + text.substr(slash + 1) + "}$";
}

}  // namespace

Json certificate_of(const ProofCase& proof_case, const ProofOptions& options) {
  const ProofDepths& limit = proof_case.draft_len_max;
  const std::int32_t draft_len = std::min(options.draft_len, options.long_run ? limit.long_run : limit.usual);
  const std::int32_t vocab_size =
      proof_case.draft_tokens == DraftTokens::half ? 2 * options.vocab_size : options.vocab_size;
  Json json{{"verifier", proof_case.name},
            {"source", proof_case.source},
            {"claim", proof_case.lossless           ? "lossless"
                      : proof_case.receives_drawn_q ? "lossy"
                                                    : "biased"},
            {"vocab", vocab_size},
            {"draft", draft_len}};
  json["instances"] = Json::array();
  std::int64_t outcomes = 0;
  for (std::int32_t i = 0; i < options.instances; ++i) {
    const Models models(vocab_size, derive_seed(options.seed, static_cast<std::uint64_t>(i)),
                        kModelKinds[static_cast<std::size_t>(i) % kModelKinds.size()], proof_case.draft_tokens);
    Outcomes step = outcomes_of(proof_case, models, draft_len);
    require_size(outcomes += std::ssize(step.paths));
    auto longest = static_cast<std::size_t>(draft_len);  // drafts are drawn behind prefixes that may never be emitted
    for (const auto& [string, probability] : step.distribution) longest = std::max(longest, string.size());
    std::map<TokenString, DenseMasses<Rational>> transformed;
    const TargetDistribution target = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
      const DenseMasses<Rational>& p = models.target(prefix);
      if (!proof_case.output_distribution) return p;
      return transformed.try_emplace(prefix, proof_case.output_distribution(p)).first->second;
    };
    Json emitted = Json::array();
    for (const auto& [string, probability] : step.distribution)
      emitted.push_back({{"string", string}, {"probability", text_of(probability)}});
    json["instances"].push_back(
        {{"models", std::string(name_of(models.kind()))},
         {"rows", rows_of(proof_case, models, longest)},
         {"outcomes", std::move(step.paths)},
         {"emitted", std::move(emitted)},
         {"difference", difference_json(first_difference(step.distribution, target, vocab_size))}});
  }
  return json;
}

std::string counterexample_table(const ProofResult& result) {
  const Counterexample& found = result.counterexample.value();
  const auto texts = [](const DenseMasses<Rational>& masses) {
    std::string row;
    for (const Rational& x : masses) row += " & " + latex_fraction(x);
    return row + " \\\\\n";
  };
  TokenString string = found.difference.prefix;
  string.push_back(found.difference.token);
  std::string tokens;
  for (std::size_t i = 0; i < found.p.size(); ++i) tokens += " & " + std::to_string(i);
  return "\\begin{table}\n\\centering\n\\caption{" + in_latex(result.name) + " (" + in_latex(result.source) +
         ") is refuted: after " + text_of(found.difference.prefix) + " the string " + text_of(string) +
         " is emitted with probability " + latex_fraction(found.difference.emitted) + "; the target has " +
         latex_fraction(found.difference.expected) + ".}\n\\begin{tabular}{l" + std::string(found.p.size(), 'r') +
         "}\n\\toprule\ntoken" + tokens + " \\\\\n\\midrule\n$p$" + texts(found.p) + "$q$" + texts(found.q) +
         "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

}  // namespace draftproof

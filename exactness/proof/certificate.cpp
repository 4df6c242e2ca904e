#include "exactness/proof/certificate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/json_values.hpp"
#include "base/latex.hpp"
#include "base/printable.hpp"
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

[[noreturn]] void refuse_size(const std::string& outcomes) {
  throw usage_error("--certificate", "would hold " + outcomes +
                                         " outcomes; expected fewer --instances, or a smaller --vocab or "
                                         "--num-speculative-tokens");
}

void require_size(std::int64_t outcomes) {
  if (outcomes > kCertificateOutcomesMax) refuse_size("more than " + std::to_string(kCertificateOutcomesMax));
}

// Refuses a step long before its outcomes are all enumerated: where every decision's branches are taken to be of one
// size, those seen so far are this share of all.
class SizeEstimate {
 public:
  void add(const std::vector<ExactChance::Decision>& decisions) {
    double share = 1.0;
    for (const ExactChance::Decision& decision : decisions) share /= static_cast<double>(decision.branches);
    share_ += share;
    if (++outcomes_ % kOften != 0) return;
    const double all = static_cast<double>(outcomes_) / share_;
    if (all > kMargin * static_cast<double>(kCertificateOutcomesMax)) refuse_size("about " + number("%.0f", all));
  }

 private:
  static constexpr std::int64_t kOften = 2000;
  static constexpr double kMargin = 1.25;  // branches differ in size
  std::int64_t outcomes_ = 0;
  double share_ = 0.0;
};

// The outcomes of one step, and the distribution that they make.
struct Outcomes {
  Json paths = Json::array();
  OutputDistribution distribution;
};

Outcomes outcomes_of(const ProofCase& proof_case, const Models& models, std::int32_t draft_len) {
  Outcomes out;
  SizeEstimate size;
  ExactChance chance;
  do {
    const ProofStep step = proof_case.step.exact(models, {}, draft_len, chance);
    out.distribution[step.emitted] += chance.probability();
    Json decisions = Json::array();
    const std::vector<ExactChance::Decision> taken = chance.decisions();
    size.add(taken);
    for (const ExactChance::Decision& decision : taken)
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
      rows.push_back(
          {{"prefix", prefix},
           {"p", fractions_json(proof_case.output_distribution ? proof_case.output_distribution(p, prefix) : p)},
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
    // Drafts are drawn behind prefixes that may never be emitted, and rules look at the row behind the last one.
    auto longest = static_cast<std::size_t>(draft_len) + 1;
    for (const auto& [string, probability] : step.distribution) longest = std::max(longest, string.size());
    std::map<TokenString, DenseMasses<Rational>> transformed;
    const TargetDistribution target = [&](const TokenString& prefix) -> const DenseMasses<Rational>& {
      const DenseMasses<Rational>& p = models.target(prefix);
      if (!proof_case.output_distribution) return p;
      return transformed.try_emplace(prefix, proof_case.output_distribution(p, prefix)).first->second;
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
    for (const Rational& x : masses) row += " & " + latex_fraction(text_of(x));
    return row + " \\\\\n";
  };
  TokenString string = found.difference.prefix;
  string.push_back(found.difference.token);
  std::string tokens;
  for (std::size_t i = 0; i < found.p.size(); ++i) tokens += " & " + std::to_string(i);
  return "\\begin{table}\n\\centering\\small\n\\caption{" + latex_text(result.name) + " (" + latex_text(result.source) +
         ") is refuted: after " + latex_text(text_of(found.difference.prefix)) + " the string " +
         latex_text(text_of(string)) + " is emitted with probability " +
         latex_fraction(text_of(found.difference.emitted)) + "; the target has " +
         latex_fraction(text_of(found.difference.expected)) + ".}\n\\begin{tabular}{l" +
         std::string(found.p.size(), 'r') + "}\n\\toprule\ntoken" + tokens + " \\\\\n\\midrule\n$p$" + texts(found.p) +
         "$q$" + texts(found.q) + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

}  // namespace draftproof

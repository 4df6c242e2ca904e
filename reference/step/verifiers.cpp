#include "reference/step/verifiers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/near_names.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kExact = "distribution-exact";
constexpr std::string_view kSamePlain =
    "equals plain decoding by race with the same seed, token for token, hence distribution-exact";
constexpr VerifierParameter kPaths{"paths", 2.0, 1.0, 64.0, true, false, "number of draft paths"};

const std::vector<VerifierInfo>& table() {
  static const std::vector<VerifierInfo> infos{
      {Verifier::chain,
       "chain",
       DraftForm::chain,
       DraftSampling::drawn,
       true,
       kExact,
       "Leviathan et al. 2211.17192, Chen et al. 2302.01318",
       {}},
      {Verifier::block, "block", DraftForm::chain, DraftSampling::drawn, true, kExact, "Sun et al. 2403.10444", {}},
      {Verifier::sampler_match,
       "sampler_match",
       DraftForm::chain,
       DraftSampling::any,
       true,
       kExact,
       "Miao et al. 2305.09781, naive sampling of a chain",
       {}},
      {Verifier::coupled,
       "coupled",
       DraftForm::chain,
       DraftSampling::any,
       true,
       kSamePlain,
       "Daliri, Musco, Suresh 2408.07978",
       {}},
      {Verifier::naive, "naive", DraftForm::tree, DraftSampling::any, true, kExact, "Miao et al. 2305.09781", {}},
      {Verifier::target_only,
       "target_only",
       DraftForm::tree,
       DraftSampling::any,
       true,
       kExact,
       "SGLang's tree kernel at thresholds 1; EAGLE, Li et al. 2401.15077",
       {}},
      {Verifier::rrs,
       "rrs",
       DraftForm::siblings,
       DraftSampling::independent,
       true,
       kExact,
       "Miao et al. 2305.09781",
       {}},
      {Verifier::rrsw,
       "rrsw",
       DraftForm::siblings,
       DraftSampling::without_replacement,
       true,
       kExact,
       "Jeon et al. 2402.14160, Chen et al. 2402.12374, Yang et al. 2401.06706",
       {}},
      {Verifier::k_seq,
       "k_seq",
       DraftForm::siblings,
       DraftSampling::independent,
       true,
       kExact,
       "SpecTr, Sun et al. 2310.15141, with rho*",
       {}},
      {Verifier::greedy_draft,
       "greedy_draft",
       DraftForm::siblings,
       DraftSampling::greedy,
       true,
       kExact,
       "Hu et al. 2502.18779",
       {}},
      {Verifier::traversal,
       "traversal",
       DraftForm::tree,
       DraftSampling::without_replacement,
       true,
       kExact,
       "Weng et al. 2505.12398",
       {}},
      {Verifier::greedy_multipath,
       "greedy_multipath",
       DraftForm::tree,
       DraftSampling::independent_paths,
       true,
       kExact,
       "Thomas, Pal 2602.16961",
       {kPaths}},
      {Verifier::coupled_list,
       "coupled_list",
       DraftForm::tree,
       DraftSampling::any,
       true,
       kSamePlain,
       "Rowan, Phan, Khisti 2506.05632",
       {kPaths}},
      {Verifier::typical,
       "typical",
       DraftForm::tree,
       DraftSampling::any,
       false,
       "lossy: one position is off by q(A) TV(q given A, p), A the tokens that pass",
       "Medusa, Cai et al. 2401.10774",
       {{"epsilon", 0.09, 0.0, 1.0, false, false, "hard threshold"},
        {"delta", 0.3, 0.0, 1e6, false, false, "factor of the threshold that falls with the entropy"}}},
      {Verifier::thresholds,
       "thresholds",
       DraftForm::tree,
       DraftSampling::any,
       false,
       "lossy below 1: siblings get min(1, C_j / acc) of the probability",
       "SGLang's tree kernel",
       {{"acc", 0.9, 0.0, 1.0, false, true, "threshold of the cumulative probability; 1 is exact"},
        {"single", 0.9, 0.0, 1.0, false, true, "probability from which a sibling is taken for certain; 1 is exact"}}},
      {Verifier::top_k_resample,
       "top_k_resample",
       DraftForm::chain,
       DraftSampling::drawn,
       false,
       "lossy: off by the residual's mass outside the k most probable tokens",
       "kernels that keep k candidates a row",
       {{"k", 16.0, 1.0, 524288.0, true, false, "candidates that the recovered token is drawn from"}}},
      {Verifier::synthetic,
       "synthetic",
       DraftForm::chain,
       DraftSampling::any,
       false,
       "lossy: off by rate TV(p, q); measures speed, not text",
       "synthetic acceptance of serving engines",
       {{"rate", 0.7, 0.0, 1.0, false, false, "probability with which every draft is accepted"}}},
  };
  return infos;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

std::string range_text(const VerifierParameter& parameter) {
  std::string text = parameter.whole ? "a whole number in " : "a number in ";
  text.append(parameter.above_least ? "(" : "[").append(number_text(parameter.least)).append(", ");
  return text.append(number_text(parameter.most)).append("]");
}

double parse_parameter(const VerifierParameter& parameter, std::string_view text, const std::string& where) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = !text.empty() && error == std::errc{} && end == text.data() + text.size();
  const bool inside = read && value <= parameter.most &&
                      (parameter.above_least ? value > parameter.least : value >= parameter.least) &&
                      (!parameter.whole || value == std::floor(value));
  if (!inside)
    throw usage_error(
        where, std::string(parameter.name) + " is \"" + std::string(text) + "\"; expected " + range_text(parameter));
  return value;
}

template <class Fits>
std::string names_where(Fits fits) {
  std::string names;
  for (const VerifierInfo& info : verifiers())
    if (fits(info)) names.append(names.empty() ? "" : ", ").append(info.name);
  return names;
}

}  // namespace

std::span<const VerifierInfo> verifiers() {
  return table();
}

const VerifierInfo& info_of(Verifier verifier) {
  return *std::find_if(table().begin(), table().end(), [&](const auto& info) { return info.verifier == verifier; });
}

std::string_view name_of(DraftForm form) {
  constexpr std::array<std::string_view, 3> kNames{"chain", "siblings", "tree"};
  return kNames[static_cast<std::size_t>(form)];
}

std::string_view name_of(DraftSampling sampling) {
  constexpr std::array<std::string_view, 6> kNames{
      "any", "drawn", "independent", "without_replacement", "greedy", "independent_paths"};
  return kNames[static_cast<std::size_t>(sampling)];
}

std::string verifier_names() {
  return names_where([](const VerifierInfo&) { return true; });
}

VerifierChoice::VerifierChoice(Verifier chosen) : verifier(chosen) {
  for (const VerifierParameter& parameter : info_of(chosen).parameters) parameters.push_back(parameter.standard);
}

double VerifierChoice::parameter(std::string_view name) const {
  const std::vector<VerifierParameter>& known = info().parameters;
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i].name == name) return parameters[i];
  throw Error(ErrorKind::internal, std::string(info().name), "has no parameter " + std::string(name));
}

VerifierChoice parse_verifier(std::string_view text, const std::string& where) {
  const std::string_view name = text.substr(0, text.find(':'));
  const auto found = std::find_if(table().begin(), table().end(), [&](const auto& info) { return info.name == name; });
  if (found == table().end()) {
    std::vector<std::string> names;
    for (const VerifierInfo& info : table()) names.emplace_back(info.name);
    throw usage_error(where, "the verifier is \"" + std::string(name) + "\"; expected one of " + verifier_names() +
                                 did_you_mean(name, names));
  }
  VerifierChoice choice(found->verifier);
  if (name.size() == text.size()) return choice;
  std::vector<bool> given(choice.parameters.size());
  for (std::string_view rest = text.substr(name.size() + 1);;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::string_view key = part.substr(0, part.find('='));
    const auto known = std::find_if(found->parameters.begin(), found->parameters.end(),
                                    [&](const VerifierParameter& p) { return p.name == key; });
    if (known == found->parameters.end()) {
      std::string names;
      for (const VerifierParameter& p : found->parameters) names.append(names.empty() ? "" : ", ").append(p.name);
      throw usage_error(where, "verifier " + std::string(name) + " has no parameter \"" + std::string(key) +
                                   "\"; expected " + (names.empty() ? "none" : "one of " + names));
    }
    const auto index = static_cast<std::size_t>(known - found->parameters.begin());
    if (given[index]) throw usage_error(where, std::string(key) + " is given twice; expected once");
    given[index] = true;
    const std::string_view value = part.size() > key.size() ? part.substr(key.size() + 1) : std::string_view();
    choice.parameters[index] = parse_parameter(*known, value, where);
    if (part.size() == rest.size()) return choice;
    rest.remove_prefix(part.size() + 1);
  }
}

std::string text_of(const VerifierChoice& choice) {
  std::string text(choice.info().name);
  for (std::size_t i = 0; i < choice.parameters.size(); ++i)
    text.append(i == 0 ? ":" : ",")
        .append(choice.info().parameters[i].name)
        .append("=")
        .append(number_text(choice.parameters[i]));
  return text;
}

void require_fit(const VerifierChoice& choice, const DraftTree& draft, bool has_probabilities,
                 const std::string& where) {
  const VerifierInfo& info = choice.info();
  const bool is_chain = draft.is_chain();
  if (!is_chain && info.draft == DraftForm::chain)
    throw usage_error(where, "verifier " + std::string(info.name) +
                                 " takes a chain, and the draft is a tree; expected " +
                                 names_where([](const VerifierInfo& i) { return i.draft != DraftForm::chain; }));
  // One proposal row cannot be one-hot at several siblings: without probabilities only a chain is known to be drawn.
  if (!is_chain && !has_probabilities && info.proposal != DraftSampling::any)
    throw usage_error(where, "verifier " + std::string(info.name) +
                                 " needs the probabilities that siblings were drawn with; expected them, or one of " +
                                 names_where([](const VerifierInfo& i) {
                                   return i.draft != DraftForm::chain && i.proposal == DraftSampling::any;
                                 }));
}

}  // namespace draftproof

#include "reference/step/verifiers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/named_values.hpp"
#include "base/near_names.hpp"
#include "base/split.hpp"

namespace draftproof {
namespace {

constexpr std::string_view kExact = "distribution-exact";
constexpr std::string_view kSamePlain =
    "equals plain decoding by race with the same seed, token for token, hence distribution-exact";
constexpr VerifierParameter kPaths{"paths", 2.0, 1.0, 64.0, true, false, "number of draft paths"};

const std::vector<VerifierInfo>& table() {
  static const std::vector<VerifierInfo> infos{
      {.verifier = Verifier::chain,
       .name = "chain",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::drawn,
       .lossless = true,
       .guarantee = kExact,
       .source = "Leviathan et al. 2211.17192, Chen et al. 2302.01318",
       .coins = Coins::of_drafts,
       .decisions = Decisions::coin_per_draft},
      {.verifier = Verifier::block,
       .name = "block",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::drawn,
       .lossless = true,
       .guarantee = kExact,
       .source = "Sun et al. 2403.10444",
       .coins = Coins::of_drafts,
       .decisions = Decisions::last_passing,
       .joint = true},
      {.verifier = Verifier::sampler_match,
       .name = "sampler_match",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::any,
       .lossless = true,
       .guarantee = kExact,
       .source = "Miao et al. 2305.09781, naive sampling of a chain",
       .decisions = Decisions::target_draw},
      {.verifier = Verifier::coupled,
       .name = "coupled",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::any,
       .lossless = true,
       .guarantee = kSamePlain,
       .source = "Daliri, Musco, Suresh 2408.07978",
       .noise = SharedNoise::one_row},
      {.verifier = Verifier::naive,
       .name = "naive",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::any,
       .lossless = true,
       .guarantee = kExact,
       .source = "Miao et al. 2305.09781",
       .decisions = Decisions::target_draw},
      {.verifier = Verifier::target_only,
       .name = "target_only",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::any,
       .lossless = true,
       .guarantee = kExact,
       .source = "SGLang's tree kernel at thresholds 1; EAGLE, Li et al. 2401.15077",
       .coins = Coins::of_rows,
       .decisions = Decisions::target_draw},
      {.verifier = Verifier::rrs,
       .name = "rrs",
       .draft = DraftForm::siblings,
       .proposal = DraftSampling::independent,
       .lossless = true,
       .guarantee = kExact,
       .source = "Miao et al. 2305.09781",
       .coins = Coins::of_drafts,
       .decisions = Decisions::coin_per_sibling,
       .takes_first_of_equals = true},
      {.verifier = Verifier::rrsw,
       .name = "rrsw",
       .draft = DraftForm::siblings,
       .proposal = DraftSampling::without_replacement,
       .lossless = true,
       .guarantee = kExact,
       .source = "Jeon et al. 2402.14160, Chen et al. 2402.12374, Yang et al. 2401.06706",
       .coins = Coins::of_drafts,
       .decisions = Decisions::coin_per_sibling},
      {.verifier = Verifier::k_seq,
       .name = "k_seq",
       .draft = DraftForm::siblings,
       .proposal = DraftSampling::independent,
       .lossless = true,
       .guarantee = kExact,
       .source = "SpecTr, Sun et al. 2310.15141, with rho*",
       .coins = Coins::of_drafts,
       .decisions = Decisions::coin_per_sibling,
       .recovered = Recovered::rejected},
      {.verifier = Verifier::importance,
       .name = "importance",
       .draft = DraftForm::siblings,
       .proposal = DraftSampling::independent,
       .lossless = true,
       .guarantee = kExact,
       .source = "Khisti et al. 2410.18234; the optimum of Thomas, Pal 2511.15898",
       .parameters =
           {{"weighed", 16.0, 0.0, 256.0, true, false,
             "tokens most probable under q whose sets are weighed, fewer of five siblings or more; others go by p/q"}},
       .coins = Coins::of_drafts,
       .recovered = Recovered::rejected,
       .takes_first_of_equals = true},
      {.verifier = Verifier::greedy_draft,
       .name = "greedy_draft",
       .draft = DraftForm::siblings,
       .proposal = DraftSampling::greedy,
       .lossless = true,
       .guarantee = kExact,
       .source = "Hu et al. 2502.18779",
       .coins = Coins::of_drafts,
       .decisions = Decisions::coin_per_sibling,
       .recovered = Recovered::sibling},
      {.verifier = Verifier::traversal,
       .name = "traversal",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::without_replacement,
       .lossless = true,
       .guarantee = kExact,
       .source = "Weng et al. 2505.12398",
       .coins = Coins::of_drafts,
       .decisions = Decisions::leaf_by_leaf,
       .joint = true},
      {.verifier = Verifier::greedy_multipath,
       .name = "greedy_multipath",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::independent_paths,
       .lossless = true,
       .guarantee = kExact,
       .source = "Thomas, Pal 2602.16961",
       .parameters = {kPaths},
       .coins = Coins::of_selected_path,
       .joint = true},
      {.verifier = Verifier::coupled_list,
       .name = "coupled_list",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::any,
       .lossless = true,
       .guarantee = kSamePlain,
       .source = "Rowan, Phan, Khisti 2506.05632",
       .parameters = {kPaths},
       .noise = SharedNoise::row_per_path},
      {.verifier = Verifier::typical,
       .name = "typical",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::any,
       .lossless = false,
       .guarantee = "lossy: one position is off by q(A) TV(q given A, p), A the tokens that pass",
       .source = "Medusa, Cai et al. 2401.10774",
       .parameters = {{"epsilon", 0.09, 0.0, 1.0, false, false, "hard threshold"},
                      {"delta", 0.3, 0.0, 1e6, false, false, "factor of the threshold that falls with the entropy"}}},
      {.verifier = Verifier::thresholds,
       .name = "thresholds",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::any,
       .lossless = false,
       .guarantee = "lossy below 1: siblings get min(1, C_j / acc) of the probability",
       .source = "SGLang's tree kernel",
       .parameters = {{"acc", 0.9, 0.0, 1.0, false, true, "threshold of the cumulative probability; 1 is exact", 1.0},
                      {"single", 0.9, 0.0, 1.0, false, true,
                       "probability from which a sibling is taken for certain; 1 is exact", 1.0}},
       .coins = Coins::of_rows},
      {.verifier = Verifier::top_k_resample,
       .name = "top_k_resample",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::drawn,
       .lossless = false,
       .guarantee = "lossy: off by the residual's mass outside the k most probable tokens",
       .source = "kernels that keep k candidates a row",
       .parameters = {{"k", 16.0, 1.0, 524288.0, true, false, "candidates that the recovered token is drawn from"}},
       .coins = Coins::of_drafts},
      {.verifier = Verifier::synthetic,
       .name = "synthetic",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::any,
       .lossless = false,
       .guarantee = "lossy: off by rate TV(p, q); measures speed, not text",
       .source = "synthetic acceptance of serving engines",
       .parameters = {{"rate", 0.7, 0.0, 1.0, false, false, "probability with which every draft is accepted"}},
       .coins = Coins::of_drafts,
       .keeps_support = false},
      {.verifier = Verifier::spectr_gbv,
       .name = "spectr_gbv",
       .draft = DraftForm::tree,
       .proposal = DraftSampling::independent_paths,
       .lossless = false,
       .guarantee = "lossy: of one path it accepts the joint minimum, of several the first token is off",
       .source = "SpecTr-GBV, Lin et al. 2604.25925, as in its code",
       .parameters = {kPaths},
       .coins = Coins::of_drafts,
       .joint = true},
      {.verifier = Verifier::ensemble,
       .name = "ensemble",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::drawn,
       .lossless = false,
       .guarantee = "lossy below 1: off by (1 - weight) TV(p, q)",
       .source = "DIVERSED 2604.07622, static; transformers' assistant_ensemble_weight",
       .parameters = {{"weight", 0.7, 0.0, 1.0, false, false,
                       "of the target in the mixture that drafts are judged by; 1 is exact", 1.0}},
       .coins = Coins::of_drafts,
       .keeps_support = false},
      {.verifier = Verifier::fly,
       .name = "fly",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::drawn,
       .lossless = false,
       .guarantee = "lossy: off by the rejected mass whose window passes, at most TV(p, q), where the target is unsure",
       .source = "FLy, Li et al. 2511.22972; vLLM's rejection_sample_method=fly",
       .parameters = {{"window", 6.0, 1.0, 64.0, true, false, "accepted drafts that must follow a rejected one"},
                      {"entropy", 0.3, 0.0, 16.0, false, false, "least entropy of a row, in nats"},
                      {"top", 3.0, 1.0, 524288.0, true, false, "most probable tokens that the entropy is taken of"}},
       .coins = Coins::of_drafts},
      {.verifier = Verifier::relaxed,
       .name = "relaxed",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::any,
       .lossless = false,
       .guarantee = "lossy: decodes by argmax, off that by q of the other tokens near it",
       .source = "TensorRT-LLM's relaxed acceptance while thinking",
       .parameters = {{"top_k", 10.0, 1.0, 1024.0, true, false, "most probable tokens that a draft may be among"},
                      {"delta", 0.6, 0.0, 1.0, false, false, "how far below the greatest probability it may be"},
                      {"begin", -1.0, -1.0, 524287.0, true, false, "token that opens the thinking phase; -1: open"},
                      {"end", -1.0, -1.0, 524287.0, true, false, "token that closes it; -1: none"}}},
      {.verifier = Verifier::accept_k,
       .name = "accept_k",
       .draft = DraftForm::chain,
       .proposal = DraftSampling::any,
       .lossless = false,
       .guarantee = "lossy: decodes by argmax, off that by q of the other tokens near it",
       .source = "verifier_accept_k and accept_tolerance of speculators",
       .parameters = {{"k", 5.0, 1.0, 1024.0, true, false, "most probable tokens that a draft may be among"},
                      {"tolerance", 5.0, 0.0, 100.0, false, false, "nats that it may be below the most probable"}}},
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

std::string_view name_of(Coins coins) {
  constexpr std::array<std::string_view, 4> kNames{"none", "of_drafts", "of_rows", "of_selected_path"};
  return kNames[static_cast<std::size_t>(coins)];
}

std::string_view name_of(SharedNoise noise) {
  constexpr std::array<std::string_view, 3> kNames{"none", "one_row", "row_per_path"};
  return kNames[static_cast<std::size_t>(noise)];
}

std::string_view name_of(Decisions decisions) {
  constexpr std::array<std::string_view, 6> kNames{"unknown",      "coin_per_draft", "last_passing",
                                                   "leaf_by_leaf", "target_draw",    "coin_per_sibling"};
  return kNames[static_cast<std::size_t>(decisions)];
}

std::string_view name_of(Recovered recovered) {
  constexpr std::array<std::string_view, 3> kNames{"undrafted", "sibling", "rejected"};
  return kNames[static_cast<std::size_t>(recovered)];
}

bool VerifierInfo::takes_paths() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const VerifierParameter& parameter) { return parameter.name == kPaths.name; });
}

std::string verifier_names(const std::function<bool(const VerifierInfo&)>& fits) {
  std::vector<std::string_view> names;
  for (const VerifierInfo& info : verifiers())
    if (!fits || fits(info)) names.push_back(info.name);
  return joined(names, ", ");
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

bool VerifierChoice::is_lossless() const {
  const std::vector<VerifierParameter>& known = info().parameters;
  bool exact = !known.empty();
  for (std::size_t i = 0; i < known.size(); ++i) exact = exact && known[i].exact == parameters[i];
  return info().lossless || exact;
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
  NamedValues values("verifier " + std::string(name), where);
  for (std::size_t i = 0; i < found->parameters.size(); ++i) {
    values.add(found->parameters[i].name, [&, i](std::string_view value) {
      choice.parameters[i] = parse_parameter(found->parameters[i], value, where);
    });
  }
  const std::string_view parameters = text.substr(name.size() + 1);
  if (parameters.empty()) throw usage_error(where, "ends with a colon; expected NAME=VALUE behind it, or no colon");
  values.read(parameters);
  return choice;
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
                                 verifier_names([](const VerifierInfo& i) { return i.draft != DraftForm::chain; }));
  // One proposal row cannot be one-hot at several siblings: without probabilities only a chain is known to be drawn.
  if (!is_chain && !has_probabilities && info.proposal != DraftSampling::any)
    throw usage_error(where, "verifier " + std::string(info.name) +
                                 " needs the probabilities that siblings were drawn with; expected them, or one of " +
                                 verifier_names([](const VerifierInfo& i) {
                                   return i.draft != DraftForm::chain && i.proposal == DraftSampling::any;
                                 }));
}

}  // namespace draftproof

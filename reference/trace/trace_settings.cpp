#include "reference/trace/trace_settings.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

template <class Value>
using Names = std::vector<std::pair<std::string, Value>>;

const Names<Sampler> kSamplers = {{"inverse", Sampler::inverse}, {"race", Sampler::race}};
const Names<FilterOrder> kFilterOrders = {{"joint", FilterOrder::joint}, {"top_k_first", FilterOrder::top_k_first}};
const Names<Ties> kTies = {{"exact_k", Ties::exact_k}, {"keep_all", Ties::keep_all}};
const Names<PenaltyWindow> kPenaltyWindows = {{"whole_prompt", PenaltyWindow::whole_prompt},
                                              {"alike", PenaltyWindow::alike},
                                              {"output", PenaltyWindow::output},
                                              {"joint", PenaltyWindow::joint}};
const Names<GuidanceForm> kGuidanceForms = {{"logits", GuidanceForm::logits},
                                            {"probabilities", GuidanceForm::probabilities}};
const Names<NanPolicy> kNanPolicies = {{"error", NanPolicy::error}, {"as_minus_inf", NanPolicy::as_minus_inf}};
const Names<bool> kFlags = {{"0", false}, {"1", true}};

Names<Convention> convention_names() {
  Names<Convention> names;
  for (const ConventionInfo& info : kConventions) names.emplace_back(info.name, info.convention);
  return names;
}

template <class Value>
std::vector<std::string> first_of(const Names<Value>& names) {
  std::vector<std::string> texts;
  for (const auto& [text, value] : names) texts.push_back(text);
  return texts;
}

template <class Value>
Value parse(const Names<Value>& names, std::string_view text, const std::string& where) {
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.first == text; });
  if (found != names.end()) return found->second;
  std::string known;
  for (const auto& [name, value] : names) known.append(known.empty() ? "" : ", ").append(name);
  throw usage_error(where, "is " + in_quotes(text) + "; known: " + known);
}

template <class Value>
std::string text_of(const Names<Value>& names, Value value) {
  return std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.second == value; })->first;
}

std::uint64_t parse_seed(std::string_view text, const std::string& where) {
  if (const std::optional<std::uint64_t> seed = read_unsigned(text)) return *seed;
  throw usage_error(where, "is " + in_quotes(text) + "; expected a whole number in [0, 2^64)");
}

}  // namespace

const std::vector<TraceSettingInfo>& trace_settings() {
  static const std::vector<TraceSettingInfo> kSettings = {
      {"verifier", {}, "Verification algorithm, NAME or NAME:PARAMETER=VALUE,...; see `draftproof verifiers`"},
      {"sampler", first_of(kSamplers), "Draw by inverse mass, or by exponential race"},
      {"filter_order", first_of(kFilterOrders), "top-p sees the whole row, or what top-k left of it"},
      {"ties", first_of(kTies), "Drop or keep tokens as good as the last one kept"},
      {"penalty_window", first_of(kPenaltyWindows),
       "penalty_last_n is of the output beside the whole prompt, of both counted alike, of the output alone, or of "
       "both"},
      {"guidance_form", first_of(kGuidanceForms), "Guidance combines logits, or log(p + 1e-10)"},
      {"convention", first_of(convention_names()), "Acceptance rule, ours or another engine's"},
      {"draft_processed", first_of(kFlags), "draft_logits are final (1), or go through temperature and filters (0)"},
      {"nan_policy", first_of(kNanPolicies), "A NaN logit is an error, or a masked token"},
      {"seed", {}, "Seed of the run, for traces without request seeds: a whole number in [0, 2^64)"},
  };
  return kSettings;
}

const std::vector<std::string>& values_of_setting(std::string_view name) {
  return std::ranges::find(trace_settings(), name, &TraceSettingInfo::name)->values;
}

void TraceSettings::set(std::string_view name, std::string_view value, const std::string& where) {
  if (name == "verifier") {
    verifier = parse_verifier(value, where);
  } else if (name == "sampler") {
    sampler = parse(kSamplers, value, where);
  } else if (name == "filter_order") {
    filter_order = parse(kFilterOrders, value, where);
  } else if (name == "ties") {
    ties = parse(kTies, value, where);
  } else if (name == "penalty_window") {
    penalty_window = parse(kPenaltyWindows, value, where);
  } else if (name == "guidance_form") {
    guidance_form = parse(kGuidanceForms, value, where);
  } else if (name == "convention") {
    convention = parse(convention_names(), value, where);
  } else if (name == "draft_processed") {
    draft_processed = parse(kFlags, value, where);
  } else if (name == "nan_policy") {
    nan_policy = parse(kNanPolicies, value, where);
  } else if (name == "seed") {
    seed = parse_seed(value, where);
  } else {
    throw usage_error(where, in_quotes(name) + " is not a setting of a trace");
  }
}

std::map<std::string, std::string> texts_of(const TraceSettings& settings) {
  return {{"verifier", text_of(settings.verifier)},
          {"sampler", text_of(kSamplers, settings.sampler)},
          {"filter_order", text_of(kFilterOrders, settings.filter_order)},
          {"ties", text_of(kTies, settings.ties)},
          {"penalty_window", text_of(kPenaltyWindows, settings.penalty_window)},
          {"guidance_form", text_of(kGuidanceForms, settings.guidance_form)},
          {"convention", text_of(convention_names(), settings.convention)},
          {"draft_processed", text_of(kFlags, settings.draft_processed)},
          {"nan_policy", text_of(kNanPolicies, settings.nan_policy)},
          {"seed", std::to_string(settings.seed)}};
}

}  // namespace draftproof

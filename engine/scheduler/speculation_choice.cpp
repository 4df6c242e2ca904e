#include "engine/scheduler/speculation_choice.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.hpp"
#include "base/named_values.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "reference/step/draft_plan.hpp"

namespace draftproof {
namespace {

constexpr std::array<std::string_view, 11> kNames{"off",     "fixed",      "threshold",        "schedule",
                                                  "goodput", "tree",       "likely",           "confidence",
                                                  "auto",    "cumulative", "target_efficiency"};
constexpr std::int32_t kBatchMax = 1 << 20;

// A parameter and where it lies.
struct Parameter {
  std::string_view name;
  double least, most;
  std::int32_t SpeculationChoice::*whole;  // null: a number with a fraction
  double SpeculationChoice::*number;
};

std::vector<Parameter> parameters_of(SpeculationRule rule) {
  using C = SpeculationChoice;
  switch (rule) {
    case SpeculationRule::threshold:
      return {{"min", 1, kDraftLenMax, &C::least, nullptr},
              {"max", 1, kDraftLenMax, &C::most, nullptr},
              {"start", 1, kDraftLenMax, &C::start, nullptr},
              {"raise", 0, 1, nullptr, &C::raise},
              {"lower", 0, 1, nullptr, &C::lower},
              {"weight", 0.001, 1, nullptr, &C::weight}};
    case SpeculationRule::cumulative:
      return {{"min", 1, kDraftLenMax, &C::least, nullptr},
              {"max", 1, kDraftLenMax, &C::most, nullptr},
              {"start", 1, kDraftLenMax, &C::start, nullptr},
              {"raise", 0, 1, nullptr, &C::raise},
              {"lower", 0, 1, nullptr, &C::lower}};
    case SpeculationRule::target_efficiency:
      return {{"share", 0, 1, nullptr, &C::share},
              {"max", 1, kDraftLenMax, &C::most, nullptr},
              {"start", 1, kDraftLenMax, &C::start, nullptr}};
    case SpeculationRule::goodput:
      return {{"max", 1, kDraftLenMax, &C::most, nullptr},
              {"prior", 0, 1000, nullptr, &C::prior},
              {"memory", 0, 1, nullptr, &C::memory},
              {"probe", 1, kBatchMax, &C::probe, nullptr}};
    case SpeculationRule::tree:
      return {{"nodes", 1, kDraftNodesMax, &C::nodes, nullptr}, {"budget", 0, kBatchMax, &C::budget, nullptr}};
    case SpeculationRule::confidence:
      return {{"max", 1, kDraftLenMax, &C::most, nullptr},
              {"threshold", 0, 1, nullptr, &C::threshold},
              {"budget", 0, kBatchMax, &C::row_budget, nullptr}};
    case SpeculationRule::off:
    case SpeculationRule::fixed:
    case SpeculationRule::schedule:
    case SpeculationRule::likely:
    case SpeculationRule::automatic:
      break;
  }
  return {};
}

void read_parameters(std::string_view text, const std::string& where, SpeculationChoice& choice) {
  NamedValues values("speculation policy " + std::string(kNames[static_cast<std::size_t>(choice.rule)]), where);
  for (const Parameter& p : parameters_of(choice.rule)) {
    if (p.whole != nullptr)
      values.whole(p.name, {static_cast<std::int64_t>(p.least), static_cast<std::int64_t>(p.most)}, choice.*(p.whole));
    else
      values.number(p.name, {p.least, p.most}, choice.*(p.number));
  }
  values.read(text);
}

void read_schedule(std::string_view text, const std::string& where, SpeculationChoice& choice) {
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto batch = read_integer(part.substr(0, equals), 1, kBatchMax);
    const auto drafts = read_integer(part.substr(std::min(equals + 1, part.size())), 0, kDraftLenMax);
    if (!batch || !drafts)
      throw usage_error(where, "has " + in_quotes(part) + "; expected BATCH=DRAFTS with a batch from 1 and 0 to " +
                                   std::to_string(kDraftLenMax) + " drafts");
    const std::int32_t before = choice.schedule.empty() ? 0 : choice.schedule.back().first;
    if (choice.schedule.empty() ? *batch != 1 : *batch <= before)
      throw usage_error(where, "has batch size " + std::to_string(*batch) + " after " + std::to_string(before) +
                                   "; expected ascending sizes, the first 1");
    choice.schedule.emplace_back(static_cast<std::int32_t>(*batch), static_cast<std::int32_t>(*drafts));
  }
}

void check_order(const SpeculationChoice& choice, const std::string& where) {
  if (choice.rule != SpeculationRule::threshold && choice.rule != SpeculationRule::cumulative &&
      choice.rule != SpeculationRule::target_efficiency)
    return;
  if (choice.start < choice.least || choice.start > choice.most)
    throw usage_error(where, "start is " + std::to_string(choice.start) + "; expected a number from min (" +
                                 std::to_string(choice.least) + ") to max (" + std::to_string(choice.most) + ")");
  if (choice.lower > choice.raise)
    throw usage_error(where, "lower is " + number("%g", choice.lower) + "; expected at most raise (" +
                                 number("%g", choice.raise) + ")");
}

}  // namespace

SpeculationChoice parse_speculation(std::string_view text, const std::string& where) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::optional<std::string_view> rest =
      colon == std::string_view::npos ? std::nullopt : std::optional(text.substr(colon + 1));
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    throw usage_error(where, "the speculation policy is " + in_quotes(name) + "; expected one of " +
                                 joined(kNames, ", ") + did_you_mean(name, {kNames.begin(), kNames.end()}));
  }
  SpeculationChoice choice;
  choice.rule = static_cast<SpeculationRule>(found - kNames.begin());
  switch (choice.rule) {
    case SpeculationRule::off:
    case SpeculationRule::likely:
    case SpeculationRule::automatic:
      if (rest)
        throw usage_error(
            where, "speculation policy " + std::string(name) + " has no parameters; expected " + std::string(name));
      break;
    case SpeculationRule::fixed: {
      const auto drafts =
          rest ? read_integer(*rest, 0, kDraftNodesMax) : std::optional<std::int64_t>(choice.num_drafts);
      if (!drafts)
        throw usage_error(
            where, "is " + in_quotes(text) + "; expected fixed:K with K from 0 to " + std::to_string(kDraftNodesMax));
      choice.num_drafts = static_cast<std::int32_t>(*drafts);
      break;
    }
    case SpeculationRule::schedule:
      read_schedule(rest ? *rest : "1=5,8=3,32=0", where, choice);
      break;
    case SpeculationRule::confidence:
    case SpeculationRule::cumulative:
    case SpeculationRule::target_efficiency:
      if (choice.rule == SpeculationRule::confidence)
        choice.most = 7;
      else
        choice.start = 5;
      [[fallthrough]];
    case SpeculationRule::threshold:
    case SpeculationRule::goodput:
    case SpeculationRule::tree:
      if (rest && rest->empty()) throw usage_error(where, "ends with a colon; expected NAME=VALUE behind it");
      if (rest) read_parameters(*rest, where, choice);
      check_order(choice, where);
  }
  return choice;
}

std::string text_of(const SpeculationChoice& choice) {
  std::string text(kNames[static_cast<std::size_t>(choice.rule)]);
  if (choice.rule == SpeculationRule::fixed) return text + ":" + std::to_string(choice.num_drafts);
  char separator = ':';
  for (const auto& [batch, drafts] : choice.schedule) {
    text += separator + std::to_string(batch) + "=" + std::to_string(drafts);
    separator = ',';
  }
  for (const Parameter& p : parameters_of(choice.rule)) {
    text += separator + std::string(p.name) + "=" +
            (p.whole != nullptr ? std::to_string(choice.*(p.whole)) : number("%g", choice.*(p.number)));
    separator = ',';
  }
  return text;
}

}  // namespace draftproof

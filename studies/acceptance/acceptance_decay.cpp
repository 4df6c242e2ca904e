#include "studies/acceptance/acceptance_decay.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "sim/acceptance/acceptance_choice.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/cost/drafter.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/speculate_table.hpp"
#include "sim/predict/acceptance_estimate.hpp"
#include "studies/acceptance/counted_rate.hpp"

namespace draftproof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDrafter = "drafter:";
constexpr std::uint64_t kTableBytesMax = std::uint64_t{1} << 28;
constexpr const char* kResult = "result.json";         // of a run of demo
constexpr double kNormalQuantile = 1.959963984540054;  // of kDecayLevel, both sides
constexpr std::int32_t kCosts = 41;                    // points of the axis of draft costs
constexpr double kCostLeast = 0.01;
constexpr double kCostMost = 1.0;

void require(const AcceptanceDecaySettings& s) {
  if (s.sources.empty()) throw usage_error("sources", "there is none; expected a file, a folder or a model");
  if (!(s.draft_cost >= 0.0 && s.draft_cost <= 100.0))
    throw usage_error("draft cost", "is " + std::to_string(s.draft_cost) + "; expected a number in [0, 100]");
  if (s.drafts_max < 1 || s.drafts_max > kDecayDraftsMax)
    throw usage_error("drafts", "at most " + std::to_string(s.drafts_max) + " are asked for; expected 1 to " +
                                    std::to_string(kDecayDraftsMax));
}

// A source before its curve is drawn.
struct Source {
  std::string name;
  std::string format;
  AcceptanceEstimate estimate;
  std::optional<AcceptanceData> data;
};

std::vector<Source> open_file(const std::string& source, const AcceptanceDecaySettings& settings) {
  std::error_code ignored;
  const std::string of_run = (fs::path(source) / kResult).string();  // a folder without it is that of a sweep
  const std::string path = fs::is_regular_file(of_run, ignored) ? of_run : source;
  const auto drafts = settings.drafts > 0 ? std::optional(settings.drafts) : std::nullopt;
  if (fs::path(path).extension() == ".json") {
    const InputFile file(path, kTableBytesMax);
    const nlohmann::json document = parse_json<nlohmann::json>(file.text(), path);
    if (is_speculate_table(document)) {
      std::vector<Source> sources;
      for (const DrafterAcceptance& acceptance : acceptances_of_speculate(document, path))
        sources.push_back({source + ": " + acceptance.drafter, acceptance.data.format,
                           AcceptanceEstimate::of_data(acceptance.data, drafts), acceptance.data});
      return sources;
    }
  }
  AcceptanceData data = read_acceptance(path, {settings.name, settings.rates, false, settings.drafts});
  return {{source, data.format, AcceptanceEstimate::of_data(data, drafts), data}};
}

std::vector<Source> open_source(const std::string& source, const AcceptanceDecaySettings& settings) {
  std::error_code ignored;
  if (fs::exists(source, ignored) || names_two_dumps(source)) return open_file(source, settings);
  if (source.starts_with(kDrafter)) {
    // Rates go by the drafter's kind: the target's shape, which a drafter has a cost from, plays no part.
    const DrafterShape drafter = find_drafter(source.substr(kDrafter.size()), find_model("Llama-3.1-8B-Instruct"));
    return {{source, "published rates", AcceptanceEstimate::typical_of(drafter), std::nullopt}};
  }
  if (source.find(':') == std::string::npos)
    throw input_error(source,
                      "there is no such file or folder; expected one, drafter:NAME or an acceptance model as "
                      "constant:0.8");
  return {{source, "acceptance model", AcceptanceEstimate::of_model(make_acceptance(source, 0, source), source),
           std::nullopt}};
}

void add_counted_interval(DecayValue& rate, double trials, double independent_share) {
  const Interval interval = counted_interval(rate.value, trials, independent_share, kDecayLevel);
  rate.low = interval.low;
  rate.high = interval.high;
}

void add_intervals(DecayCurve& curve, const AcceptanceData& data) {
  const std::size_t known = std::min(data.survival.size(), curve.unconditional.size());
  double reached = data.drafts ? static_cast<double>(*data.drafts) : 0.0;
  for (std::size_t i = 0; i < known; ++i) {
    DecayValue& survival = curve.unconditional[i];
    std::optional<double> error;
    if (i < data.survival_error.size()) error = data.survival_error[i];
    if (data.drafts) {
      const double reach = data.reach.empty() ? 1.0 : std::midpoint(data.reach[i].low, data.reach[i].high);
      const double trials = reach * static_cast<double>(*data.drafts);
      const double share = independent_share_of(survival.value, trials, error);
      add_counted_interval(survival, trials, share);
      if (reached * share >= 1.0) add_counted_interval(curve.conditional[i], reached, share);
      reached = survival.value * trials;
    } else if (error) {
      survival.low = std::max(0.0, survival.value - kNormalQuantile * *error);
      survival.high = std::min(1.0, survival.value + kNormalQuantile * *error);
    }
  }
}

// E(K) at one end of the intervals of its K positions; nothing where one has none, and of K = 0, where it is 1. The
// ends go together, since whoever accepts the second draft has accepted the first: the interval covers at least as
// often as those of the positions.
std::optional<double> tokens_at_end(const DecayCurve& curve, std::size_t drafts,
                                    std::optional<double> DecayValue::*end) {
  if (drafts == 0) return std::nullopt;
  std::vector<double> survival;
  for (std::size_t i = 0; i < drafts; ++i) {
    const std::optional<double>& limit = curve.unconditional[i].*end;
    if (!limit) return std::nullopt;
    survival.push_back(*limit);
  }
  return chain_tokens_per_step(survival, curve.draft_share);
}

std::optional<std::int32_t> best_at_end(const DecayCurve& curve, const ChainCost& cost,
                                        std::optional<double> DecayValue::*end) {
  std::vector<double> tokens{1.0};
  for (std::size_t k = 1; k < curve.tokens_per_step.size() && curve.tokens_per_step[k].*end; ++k)
    tokens.push_back(*(curve.tokens_per_step[k].*end));
  if (tokens.size() <= 1) return std::nullopt;
  return best_chain(tokens, cost).drafts;
}

void fill_curve(DecayCurve& curve, const Source& source, const AcceptanceDecaySnapshot& snapshot) {
  const AcceptanceDecaySettings& settings = snapshot.settings;
  const std::int32_t drafts_max = settings.drafts_max;
  const AcceptanceEstimate& estimate = source.estimate;
  curve.format = source.format;
  curve.notes = estimate.notes();
  curve.draft_share = estimate.draft_share();
  curve.positions_known = std::min(drafts_max, estimate.positions_known().value_or(drafts_max));
  const std::vector<double> survival = estimate.survival(drafts_max, settings.context);
  for (const double s : survival) curve.unconditional.push_back({s, {}, {}});
  for (const double a : conditional_of(survival, curve.source)) curve.conditional.push_back({a, {}, {}});
  double product = 1.0;
  for (const DecayValue& a : curve.conditional) curve.survival_product.push_back(product *= a.value);
  if (source.data) {
    curve.drafts = source.data->drafts;
    curve.acceptance_length = source.data->acceptance_length;
    curve.acceptance_length_error = source.data->acceptance_length_error;
    if (const std::int32_t k = settings.drafts > 0 ? settings.drafts : source.data->draft_len;
        k > 0 && source.data->tree_nodes == 0 && source.data->survival_bounds.empty() &&
        (settings.drafts > 0 || !source.data->draft_len_is_least))
      curve.running_k = k;
    add_intervals(curve, *source.data);
  }

  const ChainCost cost{settings.draft_cost, curve.draft_share};
  for (std::int32_t k = 0; k <= drafts_max; ++k) {
    // Values of drafts of this length: verifiers that judge a draft as a whole, and recordings, have rates of their own
    // at each.
    DecayValue tokens{chain_tokens_per_step(estimate.survival(k, settings.context), curve.draft_share), {}, {}};
    tokens.low = tokens_at_end(curve, static_cast<std::size_t>(k), &DecayValue::low);
    tokens.high = tokens_at_end(curve, static_cast<std::size_t>(k), &DecayValue::high);
    DecayValue speedup{chain_speedup(tokens.value, k, cost), {}, {}};
    if (tokens.low) speedup.low = chain_speedup(*tokens.low, k, cost);
    if (tokens.high) speedup.high = chain_speedup(*tokens.high, k, cost);
    curve.tokens_per_step.push_back(tokens);
    curve.speedup.push_back(speedup);
  }
  std::vector<double> tokens;
  for (const DecayValue& value : curve.tokens_per_step) tokens.push_back(value.value);
  if (estimate.rates_are_bounds())  // which say nothing of the positions behind them
    tokens.resize(static_cast<std::size_t>(curve.positions_known) + 1);
  const BestChain best = best_chain(tokens, cost);
  curve.best_k = best.drafts;
  curve.best_speedup = best.speedup;
  curve.best_k_low = best_at_end(curve, cost, &DecayValue::low);
  curve.best_k_high = best_at_end(curve, cost, &DecayValue::high);
  for (std::size_t k = 1; k < tokens.size() && curve.draft_share > 0.0; ++k)
    curve.pays_below = std::max(curve.pays_below, (tokens[k] - 1.0) / (curve.draft_share * static_cast<double>(k)));
  for (const double c : snapshot.costs)
    curve.best_k_by_cost.push_back(best_chain(tokens, {c, curve.draft_share}).drafts);
}

}  // namespace

void compute(const AcceptanceDecaySettings& settings, Job& job,
             const std::function<void(AcceptanceDecaySnapshot)>& publish) {
  require(settings);
  AcceptanceDecaySnapshot snapshot;
  snapshot.settings = settings;
  for (std::int32_t i = 0; i < kCosts; ++i)
    snapshot.costs.push_back(kCostLeast * std::pow(kCostMost / kCostLeast, static_cast<double>(i) / (kCosts - 1)));
  double done = 0.0;
  for (const std::string& source : settings.sources) {
    job.check();
    job.report(done++ / static_cast<double>(settings.sources.size()), "reading " + source);
    try {
      for (const Source& opened : open_source(source, settings)) {
        if (opened.data) {
          snapshot.holds_file = true;
          snapshot.takes_name = snapshot.takes_name || opened.data->takes_choice;
          snapshot.takes_rates = snapshot.takes_rates || opened.data->takes_rates;
        }
        DecayCurve curve;
        curve.name = opened.name;
        curve.source = source;
        fill_curve(curve, opened, snapshot);
        snapshot.curves.push_back(std::move(curve));
      }
    } catch (const Error& error) {
      DecayCurve curve;
      curve.name = curve.source = source;
      curve.error = error;
      snapshot.curves.push_back(std::move(curve));
    }
  }
  publish(snapshot);
}

std::vector<std::string> command_arguments(const AcceptanceDecaySettings& settings) {
  const AcceptanceDecaySettings standard;
  std::vector<std::string> arguments{"draftproof", "acceptance"};
  arguments.insert(arguments.end(), settings.sources.begin(), settings.sources.end());
  const auto add = [&](const std::string& name, const std::string& value) {
    arguments.push_back(name);
    arguments.push_back(value);
  };
  add("--draft-cost", nlohmann::json(settings.draft_cost).dump());
  add("--drafts-max", std::to_string(settings.drafts_max));
  if (settings.context != standard.context) add("--context", std::to_string(settings.context));
  if (!settings.name.empty()) add("--name", settings.name);
  if (!settings.rates.empty()) add("--rates", settings.rates);
  if (settings.drafts > 0) add("--num-speculative-tokens", std::to_string(settings.drafts));
  return arguments;
}

}  // namespace draftproof

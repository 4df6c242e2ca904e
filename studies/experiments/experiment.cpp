#include "studies/experiments/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/strict_number.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/cost/gpu.hpp"
#include "sim/serving/comparison.hpp"

namespace draftproof {
namespace {

// A number, or a list of two.
ValueRange read_range(const TomlValue& value) {
  if (value.kind() != TomlValue::Kind::array) return {value.number(), value.number()};
  if (value.items().size() != 2) throw input_error(value.where(), "it is no pair; expected [low, high]");
  return {value.items()[0].number(), value.items()[1].number()};
}

double accepted_tokens(double rate, int drafts) {
  const std::vector<double> rates(static_cast<std::size_t>(drafts), rate);
  return acceptance_length_of(survival_of(rates)) - 1.0;
}

// The x in [low, high] at which a rising function has a value.
double solve(double low, double high, double value, const std::function<double(double)>& rising) {
  for (int i = 0; i < 100; ++i) {
    const double middle = 0.5 * (low + high);
    (rising(middle) < value ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// The x in [low, high] that makes the largest relative deviation smallest, by a grid over its logarithm.
double best_of(double low, double high, const std::function<double(double)>& deviation) {
  double best = low;
  double least = deviation(low);
  constexpr int kSteps = 20'000;
  for (int i = 1; i <= kSteps; ++i) {
    const double x = low * std::pow(high / low, static_cast<double>(i) / kSteps);
    const double found = deviation(x);
    if (found < least) {
      least = found;
      best = x;
    }
  }
  return best;
}

class Experiment {
 public:
  Experiment(std::string folder, ExperimentResult& result, const TomlValue& file, int threads)
      : folder_(std::move(folder)),
        result_(result),
        file_(file),
        claims_(file.at("claim").items()),
        threads_(threads) {}

  void run() {
    for (const TomlValue& claim : claims_) {
      ClaimVerdict& out = result_.claims.emplace_back();
      out.what = claim.at("what").text();
      if (!result_.x_name.empty()) out.x = claim.at("x").number();
      out.claimed = read_range(claim.at("claimed"));
    }
    if (result_.kind == "chain_formula") {
      chain_formula();
    } else if (result_.kind == "draft_cost") {
      draft_cost();
    } else if (result_.kind == "target_latency") {
      target_latency();
    } else if (result_.kind == "draft_passes") {
      draft_passes();
    } else if (result_.kind == "bytes") {
      bytes();
    } else if (result_.kind == "scenario") {
      scenario();
    } else {
      throw input_error(file_.at("kind").where(), "it is '" + result_.kind +
                                                      "'; expected one of chain_formula, draft_cost, target_latency, "
                                                      "draft_passes, bytes, scenario");
    }
    const ClaimOutcome holds = result_.kind == "bytes" ? ClaimOutcome::possible : ClaimOutcome::consistent;
    for (ClaimVerdict& claim : result_.claims)
      if (lies_in(claim.claimed, claim.model) || lies_in(claim.model, claim.claimed)) claim.outcome = holds;
  }

 private:
  bool lies_in(ValueRange inner, ValueRange outer) const {
    return inner.low >= outer.low * (1.0 - result_.tolerance) && inner.high <= outer.high * (1.0 + result_.tolerance);
  }

  static int drafts_of(const TomlValue& claim) { return static_cast<int>(claim.at("drafts").integer(1, 64)); }
  static double rate_of(const TomlValue& claim) { return claim.at("rate").number(0.0, 1.0); }

  void chain_formula() {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const TomlValue& claim = claims_[i];
      claim.allow_only({"what", "x", "claimed", "rate", "drafts", "bonus"});
      const double bonus = claim.flag_or("bonus", false) ? 1.0 : 0.0;
      const int drafts = drafts_of(claim);
      const ValueRange rate = read_range(claim.at("rate"));
      ClaimVerdict& out = result_.claims[i];
      out.model = {accepted_tokens(rate.low, drafts) + bonus, accepted_tokens(rate.high, drafts) + bonus};
      const auto rate_for = [&](double tokens) {
        return 100.0 * solve(0.0, 1.0, tokens - bonus, [&](double a) { return accepted_tokens(a, drafts); });
      };
      if (lies_in(out.claimed, out.model) || lies_in(out.model, out.claimed))
        out.why = "follows from the rate";
      else if (out.claimed.high - bonus > drafts)
        out.why = "no rate gives more than " + std::to_string(drafts) + " accepted tokens";
      else
        out.why = "it takes a rate of " + text_of({rate_for(out.claimed.low), rate_for(out.claimed.high)}) +
                  " % at every position, not " + text_of({100.0 * rate.low, 100.0 * rate.high}) + " %";
    }
  }

  void draft_cost() {
    const auto tokens = [&](std::size_t i) {
      return 1.0 + accepted_tokens(rate_of(claims_[i]), drafts_of(claims_[i]));
    };
    const auto speedup = [&](std::size_t i, double cost) { return tokens(i) / (1.0 + drafts_of(claims_[i]) * cost); };
    const double cost = fit(1e-4, 10.0, speedup);
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      claims_[i].allow_only({"what", "x", "claimed", "rate", "drafts"});
      ClaimVerdict& out = result_.claims[i];
      out.model.low = out.model.high = speedup(i, cost);
      const double own = (tokens(i) / out.claimed.low - 1.0) / drafts_of(claims_[i]);
      out.why = "a draft pass of " + number("%.3f", own) + " target steps would give it; " + number("%.3f", cost) +
                " fits all rows best";
    }
  }

  void target_latency() {
    const auto draft_ms = [&](std::size_t i) {
      return claims_[i].at("passes").number() * claims_[i].at("draft_ms").number();
    };
    const auto tokens = [&](std::size_t i) { return claims_[i].at("tokens").number(); };
    const auto speedup = [&](std::size_t i, double target_ms) {
      return tokens(i) * target_ms / (draft_ms(i) + target_ms);
    };
    const double target_ms = fit(0.1, 1000.0, speedup);
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      claims_[i].allow_only({"what", "x", "claimed", "draft_ms", "tokens", "passes"});
      ClaimVerdict& out = result_.claims[i];
      out.model.low = out.model.high = speedup(i, target_ms);
      const double own = draft_ms(i) * out.claimed.low / (tokens(i) - out.claimed.low);
      out.why = "a target step of " + number("%.1f", own) + " ms would give it; " + number("%.1f", target_ms) +
                " ms fits all rows best";
    }
  }

  void draft_passes() {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      claims_[i].allow_only({"what", "x", "claimed", "accepted", "draft_cost"});
      const double accepted = claims_[i].at("accepted").number(0.0, 64.0);
      const double cost = claims_[i].at("draft_cost").number(0.0, 10.0);
      ClaimVerdict& out = result_.claims[i];
      out.model.low = out.model.high = (accepted + 1.0) / (accepted * cost + 1.0);
      out.why = "with one draft pass for all of them it is " + number("%.2f", (accepted + 1.0) / (cost + 1.0)) +
                "; drafts that see each other need " + number("%.0f", accepted);
    }
  }

  void bytes() {
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      claims_[i].allow_only({"what", "x", "claimed", "rows", "vocab", "value_bytes", "gpu"});
      const Gpu gpu = find_gpu(claims_[i].at("gpu").text());
      const double bytes = claims_[i].at("rows").number(1.0, 1e12) * claims_[i].at("vocab").number(1.0, 1e9) *
                           claims_[i].at("value_bytes").number(0.5, 16.0);
      ClaimVerdict& out = result_.claims[i];
      const double floor_ms = bytes / gpu.bandwidth * 1e3;
      // Slower is always possible: the floor is all that bytes say.
      out.model = {floor_ms, std::max(out.claimed.high, floor_ms)};
      out.why = number("%.0f", bytes * 1e-6) + " MB take " + number("%.3f", floor_ms) + " ms of the bandwidth of one " +
                gpu.name + "; the claim is " + text_of({out.claimed.low / floor_ms, out.claimed.low / floor_ms}) +
                " times that";
    }
  }

  void scenario() {
    const TomlValue scenario = read_toml((std::filesystem::path(folder_) / file_.at("scenario").text()).string());
    std::map<std::string, std::vector<PolicyReport>> runs;  // by what is set; claims often share one
    const auto reports_with = [&](const TomlValue* set) -> const std::vector<PolicyReport>& {
      TomlValue changed = scenario;
      std::string key_of_run;
      if (set != nullptr) {
        key_of_run = set->where();
        for (const std::string& key : set->keys()) changed = changed.with(key, set->at(key));
      }
      const auto found = runs.find(key_of_run);
      return found != runs.end() ? found->second
                                 : runs.emplace(key_of_run, compare(read_scenario(changed), threads_)).first->second;
    };
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      const TomlValue& claim = claims_[i];
      claim.allow_only({"what", "x", "claimed", "policy", "over", "over_set", "figure", "set"});
      const std::vector<PolicyReport>& reports = reports_with(claim.find("set"));
      const auto report_of = [](const std::vector<PolicyReport>& of, const TomlValue& policy) -> const PolicyReport& {
        const auto report = std::ranges::find(of, policy.text(), &PolicyReport::name);
        if (report == of.end()) throw input_error(policy.where(), "the scenario has no policy '" + policy.text() + "'");
        return *report;
      };
      const PolicyReport* report = &report_of(reports, claim.at("policy"));
      ClaimVerdict& out = result_.claims[i];
      if (const TomlValue* figure = claim.find("figure")) {
        const double own = figure_of(*report, *figure);
        const TomlValue* over = claim.find("over");
        const TomlValue* over_set = claim.find("over_set");
        const double other =
            over == nullptr
                ? 1.0
                : figure_of(report_of(over_set != nullptr ? reports_with(over_set) : reports, *over), *figure);
        if (!std::isfinite(own / other))
          throw input_error(figure->where(),
                            "the runs have no such figure: " + number("%g", own) + " over " + number("%g", other));
        out.model.low = out.model.high = own / other;
        out.why = over == nullptr ? counted(*report)
                                  : figure->text() + " " + text_of({own, own}) + " over " + text_of({other, other});
        continue;
      }
      if (const TomlValue* over = claim.find("over"))
        throw input_error(over->where(),
                          "it stands without figure; expected one, since the speedup is over the first "
                          "policy");
      out.model.low = out.model.high = report->speedup.mean;
      out.why = number("%.2f", report->figure(Figure::tokens_per_step).mean) + " tokens a step of " +
                number("%.1f", report->figure(Figure::step_ms).mean) + " ms, " +
                number("%.0f", 100.0 * report->figure(Figure::draft_share).mean) + " % of it drafting; " +
                number("%.1f", reports.front().figure(Figure::step_ms).mean) + " ms a step without speculation";
    }
  }

  // A figure of a run by its name (sim/serving/comparison.hpp); acceptance_at:i is the conditional rate of slot i, as
  // counted.
  static double figure_of(const PolicyReport& report, const TomlValue& figure) {
    const std::string& name = figure.text();
    for (std::size_t f = 0; f < kFigures; ++f)
      if (name == name_of(static_cast<Figure>(f))) return report.figures[f].mean;
    constexpr std::string_view kSlot = "acceptance_at:";
    if (!name.starts_with(kSlot))
      throw input_error(figure.where(), "it is " + in_quotes(name) +
                                            "; expected a figure of a run (throughput, tokens_per_step, tpot_ms_p99, "
                                            "...) or acceptance_at:SLOT");
    const auto slot = read_integer(std::string_view(name).substr(kSlot.size()), 1, 64);
    const AcceptanceCounts& counts = report.acceptance;
    if (!slot || static_cast<std::size_t>(*slot) > counts.reached.size())
      throw input_error(figure.where(), "it is " + in_quotes(name) + "; expected a slot from 1 to " +
                                            std::to_string(counts.reached.size()) + ", the longest draft");
    const auto at = static_cast<std::size_t>(*slot - 1);
    return static_cast<double>(counts.accepted[at]) / static_cast<double>(counts.reached[at]);
  }

  // Conditional rates by slot of a run, in words.
  static std::string counted(const PolicyReport& report) {
    const AcceptanceCounts& counts = report.acceptance;
    std::string rates;
    for (std::size_t i = 0; i < counts.reached.size(); ++i)
      rates += (i == 0 ? "" : ", ") +
               number("%.2f", static_cast<double>(counts.accepted[i]) / static_cast<double>(counts.reached[i]));
    return "counted by slot: " + rates + "; " + number("%.2f", report.figure(Figure::tokens_per_step).mean) +
           " tokens a step";
  }

  // The one unknown of all rows.
  double fit(double low, double high, const std::function<double(std::size_t, double)>& model) const {
    return best_of(low, high, [&](double x) {
      double worst = 0.0;
      for (std::size_t i = 0; i < claims_.size(); ++i)
        worst = std::max(worst, std::abs(std::log(model(i, x) / result_.claims[i].claimed.low)));
      return worst;
    });
  }

  std::string folder_;
  ExperimentResult& result_;
  const TomlValue& file_;
  const std::vector<TomlValue>& claims_;
  int threads_;
};

}  // namespace

const char* name_of(ClaimOutcome outcome) {
  return outcome == ClaimOutcome::consistent ? "yes" : outcome == ClaimOutcome::possible ? "possible" : "no";
}

int ExperimentResult::count(ClaimOutcome outcome) const {
  return static_cast<int>(std::ranges::count(claims, outcome, &ClaimVerdict::outcome));
}

std::vector<std::string> experiment_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::directory_iterator entries(folder, error);
  if (error) throw input_error(folder, "cannot be read as a folder of experiments: " + error.message());
  for (const auto& entry : entries)
    if (std::filesystem::exists(entry.path() / "experiment.toml")) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

ExperimentResult run_experiment(const std::string& folder, const std::string& name, int threads) {
  const std::filesystem::path own = std::filesystem::path(folder) / name;
  const TomlValue file = read_toml((own / "experiment.toml").string());
  file.allow_only(
      {"title", "question", "source", "kind", "quantity", "reading", "tolerance", "x", "log_x", "scenario", "claim"});
  ExperimentResult result;
  result.name = name;
  result.title = file.at("title").text();
  result.question = file.at("question").text();
  result.source = file.at("source").text();
  result.kind = file.at("kind").text();
  result.quantity = file.at("quantity").text();
  result.reading = file.at("reading").text();
  result.tolerance = file.at("tolerance").number(0.0, 1.0);
  result.x_name = file.text_or("x", "");
  result.log_x = file.flag_or("log_x", false);
  Experiment(own.string(), result, file, threads).run();
  return result;
}

std::string text_of(ValueRange range) {
  const auto one = [](double value) {
    // Three digits, no exponent.
    const int digits = std::clamp(2 - static_cast<int>(std::floor(std::log10(std::max(std::abs(value), 1e-9)))), 0, 4);
    std::string text = number(("%." + std::to_string(digits) + "f").c_str(), value);
    if (text.find('.') != std::string::npos) {
      text.erase(text.find_last_not_of('0') + 1);
      if (text.back() == '.') text.pop_back();
    }
    return text;
  };
  const std::string low = one(range.low);
  const std::string high = one(range.high);
  return low == high ? low : low + " to " + high;
}

}  // namespace draftproof

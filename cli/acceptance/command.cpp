// draftproof acceptance: how does acceptance fall along a draft, drafter by drafter, and how many drafts pay? Of a head
// also how its state drifts, and whether its confidence can be relied on.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/acceptance/heads.hpp"
#include "cli/shared/acceptance_terms.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/model_path.hpp"
#include "sim/predict/prediction_request.hpp"
#include "studies/acceptance/acceptance_decay.hpp"
#include "studies/heads/heads.hpp"
#include "studies/job.hpp"

namespace draftproof {
namespace {

struct AcceptanceArguments {
  AcceptanceDecaySettings settings;
  std::vector<std::string> sources;
  std::string rates = "as said";
  std::vector<std::string> cost_of;  // MODEL,GPU,DRAFTER: the machine that a draft's cost is of
  std::int64_t batch = 1;            // there
  HeadsSettings heads;
  Artefacts artefacts;
  bool no_download = false;
  bool json = false;

  bool of_head() const { return std::ranges::any_of(sources, is_head_source); }
  static bool is_head_source(const std::string& source) {
    return source.starts_with("head:") || source.starts_with("head@");
  }
};

std::string interval(const DecayValue& value) {
  if (!value.low || !value.high) return "";
  return number("%.3f", *value.low) + " to " + number("%.3f", *value.high);
}

void print_curve(std::ostream& out, const DecayCurve& curve) {
  out << printable_line(curve.name) << " (" << curve.format;
  if (curve.drafts) out << ", " << *curve.drafts << " steps counted";
  if (curve.draft_share < 1.0) out << number(", a draft in %.0f %% of the steps", 100.0 * curve.draft_share);
  out << ")\n";
  for (const std::string& note : curve.notes) out << "  " << printable_line(note) << "\n";
  out << "  position  conditional  95 %              unconditional  95 %              tokens/step  speedup\n";
  for (std::size_t i = 0; i < curve.unconditional.size(); ++i) {
    const auto k = static_cast<std::int32_t>(i + 1);
    std::array<char, 160> line{};
    std::snprintf(line.data(), line.size(), "  %4d%c%15.3f  %-16s%15.3f  %-16s%13.2f%9.2f %s\n", k,
                  k > curve.positions_known ? '*' : ' ', curve.conditional[i].value,
                  interval(curve.conditional[i]).c_str(), curve.unconditional[i].value,
                  interval(curve.unconditional[i]).c_str(), curve.tokens_per_step[i + 1].value,
                  curve.speedup[i + 1].value, k == curve.best_k ? "<- best" : "");
    out << line.data();
  }
  if (curve.positions_known < static_cast<std::int32_t>(curve.unconditional.size())) out << "  * by extrapolation\n";
  if (curve.best_k == 0) {
    out << "  No draft pays: the first one is accepted with " << number("%.3f", curve.pays_below)
        << ", and costs as much or more.\n\n";
    return;
  }
  out << "  Best at this draft cost: K = " << curve.best_k << (curve.best_k > curve.positions_known ? "*" : "")
      << number(", speedup %.2f", curve.best_speedup);
  if (curve.best_k_low && curve.best_k_high && *curve.best_k_low != *curve.best_k_high)
    out << " (K = " << *curve.best_k_low << " to " << *curve.best_k_high << " within the intervals)";
  out << number("; drafts pay below a cost of %.3f target steps\n", curve.pays_below);
  if (curve.running_k && *curve.running_k < std::ssize(curve.speedup)) {
    const double gain = curve.best_speedup / curve.speedup[static_cast<std::size_t>(*curve.running_k)].value - 1.0;
    out << "  You run K = " << *curve.running_k << (gain < kGainWorthAChange ? ": keep it" : "");
    if (curve.best_k != *curve.running_k)
      out << "; K = " << curve.best_k << number(" brings %.1f %%", 100.0 * gain)
          << (curve.best_k > curve.positions_known ? ", by extrapolation" : "");
    out << ".\n";
  }
  out << "\n";
}

// Error (usage): an option that no source has a use for.
void require_use(const AcceptanceDecaySettings& settings, const AcceptanceDecaySnapshot& snapshot) {
  if (!settings.name.empty() && !snapshot.takes_name)
    throw usage_error("--name",
                      "has no use: no source is Prometheus text or recorded acceptances, which may hold several");
  if (!settings.rates.empty() && !snapshot.takes_rates)
    throw usage_error("--rates", "has no use: no source is a table of rates, which may leave open what they are");
  if (settings.drafts > 0 && !snapshot.holds_file)
    throw usage_error("--num-speculative-tokens", "has no use: no source is a file");
}

// The machine of --cost-of in words, and what a draft token costs there: (T(K) / T(0) - 1) / K of the cost model.
struct CostOfMachine {
  std::string machine;
  double draft_cost = 0.0;
  std::int32_t drafts = 4;  // K
};

CostOfMachine cost_of_machine(const AcceptanceArguments& arguments) {
  if (arguments.cost_of.size() != 3)
    throw usage_error("--cost-of", "has " + std::to_string(arguments.cost_of.size()) +
                                       " names; expected MODEL,GPU,DRAFTER, as predict has them");
  CostOfMachine cost;
  cost.drafts = std::min(cost.drafts, arguments.settings.drafts_max);
  PredictionRequest request;
  request.model = arguments.cost_of[0];
  request.gpu = arguments.cost_of[1];
  request.drafter = arguments.cost_of[2];
  request.batches = {static_cast<int>(arguments.batch)};
  request.context = arguments.settings.context;
  request.drafts_max = cost.drafts;
  request.trees.clear();
  const PredictionReport report = answer(request);
  // The longest chain: a head may draft fewer.
  for (const PredictionRow& row : report.prediction.batches.front().rows)
    if (!row.form.is_tree()) {
      cost.drafts = row.form.depth;
      cost.draft_cost = (row.step_ratio - 1.0) / cost.drafts;
    }
  cost.machine = head_of(report) + ", batch " + std::to_string(arguments.batch);
  return cost;
}

void run_head(const AcceptanceArguments& arguments, const ProgramContext& context) {
  if (arguments.sources.size() > 1)
    throw usage_error("source", arguments.sources.front() + " stands beside " + arguments.sources.back() +
                                    "; expected a head alone, since it is run and the others are read");
  HeadsSettings settings = arguments.heads;
  settings.head = arguments.sources.front();
  settings.num_speculative_tokens = arguments.settings.drafts;
  const auto snapshot = last_snapshot<HeadsSnapshot>(settings);
  write_artefacts(arguments.artefacts, "Acceptance and drift of a draft head, slot by slot", snapshot, context);
  if (!arguments.json) return print_heads(std::cout, snapshot);
  Json document = json_document(context.arguments);
  document.update(to_json(snapshot));
  print_json(document);
}

void run(const AcceptanceArguments& arguments, const ProgramContext& context) {
  require_artefacts(arguments.artefacts);
  if (arguments.of_head()) return run_head(arguments, context);
  AcceptanceDecaySettings settings = arguments.settings;
  if (!arguments.sources.empty()) settings.sources = arguments.sources;
  if (arguments.rates != "as said") settings.rates = arguments.rates;
  std::optional<CostOfMachine> machine;
  if (!arguments.cost_of.empty()) {
    machine = cost_of_machine(arguments);
    settings.draft_cost = machine->draft_cost;
  }
  const auto snapshot = last_snapshot<AcceptanceDecaySnapshot>(settings);
  for (const DecayCurve& curve : snapshot.curves)
    if (curve.error) throw *curve.error;
  require_use(settings, snapshot);
  write_artefacts(arguments.artefacts, "Acceptance along a draft", snapshot, context);
  if (arguments.json) {
    Json document = json_document(context.arguments);
    document.update(to_json(snapshot));
    if (machine) document["draft_cost_of"] = machine->machine;
    return print_json(document);
  }
  for (const DecayCurve& curve : snapshot.curves) print_curve(std::cout, curve);
  std::cout << "A draft token costs " << number(machine ? "%.3f" : "%g", settings.draft_cost) << " target steps"
            << (machine ? " on " + printable_line(machine->machine) +
                              ", by the cost model at K = " + std::to_string(machine->drafts)
                : settings.draft_cost == AcceptanceDecaySettings().draft_cost
                    ? " (assumed; --cost-of MODEL,GPU,DRAFTER says it of a machine)"
                    : "")
            << "; speedup(K) = tokens per step / (1 + K x cost), Leviathan et al. 2211.17192.\n";
}

}  // namespace

void add_acceptance(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<AcceptanceArguments>();
  AcceptanceDecaySettings& s = arguments->settings;
  options.files("source", arguments->sources,
                "Acceptance of a server (log, Prometheus text, CSV, JSON), BEFORE..AFTER of two dumps of its "
                "counters, the folder of a demo, "
                "drafter:NAME for published rates of such a drafter, an acceptance model as constant:0.8 "
                "(docs/predict.md); or a head, head:PATH or head@BITS:PATH, which is run (docs/heads.md)");
  options.number("--draft-cost", s.draft_cost, {0.0, 100.0}, "Cost of a draft token, in target steps");
  options.names("--cost-of", arguments->cost_of,
                "MODEL,GPU,DRAFTER as predict names them: a draft token costs what it does there");
  options.integer("--batch", arguments->batch, {1, 1 << 20}, "Requests there");
  options.integer("--drafts-max", s.drafts_max, {1, kDecayDraftsMax}, "Longest draft");
  options.integer("--context", s.context, {1, 1 << 24}, "Tokens of context, of models whose rates depend on it");
  options.text("--name", s.name, "Which of several in a file: a model_name, or a drafter", "NAME");
  options.choice("--rates", arguments->rates, {"as said", "conditional", "unconditional"},
                 "Whether the table's rates are conditional or unconditional");
  options.integer(
      "-k,--num-speculative-tokens", s.drafts, {0, kDecayDraftsMax},
      "Tokens of a draft: in a file that does not say it (0: it does); of a head (0: as many as it drafts at "
      "once or was trained for, else 4)");
  HeadsSettings& heads = arguments->heads;
  options.text("--model", heads.model, "Target of a head, as --model of generate", "MODEL");
  options.file("--prompts", heads.prompts, "As --prompts of speculate (default: its 40)");
  options.integer("--per-work", heads.per_work, {0, 1'000'000}, "Prompts of each kind of work; 0: all");
  options.integer("--max-tokens", heads.max_tokens, {1, 1'000'000}, "Tokens of an output");
  options.number("--temperature", heads.temperature, kTemperatureRange, "0 is greedy");
  options.seed(heads.seed, "Seed of the draws at temperatures above 0");
  options.threads(heads.threads);
  options.integer("--show-prompt", heads.shown_prompt, {1, 1'000'000}, "The prompt whose drafts are shown, from 1");
  options.integer("--show-step", heads.shown_step, {1, 1'000'000}, "The step of it that is shown, from 1");
  add_no_download(options, arguments->no_download);
  options.used_only({"--model", "--prompts", "--per-work", "--max-tokens", "--temperature", "--seed", "--threads",
                     "--show-prompt", "--show-step", "--no-download"},
                    "without a head as the source", [arguments] { return arguments->of_head(); });
  options.used_only({"--batch"}, "without --cost-of", [arguments] { return !arguments->cost_of.empty(); });
  options.used_only({"--draft-cost"}, "with --cost-of, which says it",
                    [arguments] { return arguments->cost_of.empty(); });
  options.used_only({"--draft-cost", "--cost-of", "--drafts-max", "--context", "--name", "--rates"},
                    "with a head, which is run", [arguments] { return !arguments->of_head(); });
  add_acceptance_terms(options);
  add_artefacts(options, arguments->artefacts);
  options.json(arguments->json);
  options.examples({"", "server.log --draft-cost 0.05 --table decay.tex --figure decay.pdf",
                    "server.log --cost-of Llama-3.1-8B,H100,EAGLE-3 --batch 8", "metrics.csv -k 4 --json",
                    "head:experiments/heads/smollm2-eagle3/eagle3.gguf --per-work 2"});
  options.on_run([arguments, &context] { run(*arguments, context); });
}

}  // namespace draftproof

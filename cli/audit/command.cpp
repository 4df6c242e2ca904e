// draftproof audit: is what somebody else's sampler drew a sample of the distribution it should have drawn from
// (docs/audit.md), and are the drafts that another engine recorded those of its head (docs/heads.md)?
#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/audit/drafts.hpp"
#include "cli/audit/module_audits.hpp"
#include "cli/audit/report.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/shared/test_report.hpp"
#include "exactness/audit/audit_file.hpp"
#include "exactness/audit/fitting.hpp"
#include "studies/figures/figure.hpp"

namespace draftproof {
namespace {

constexpr NumberRange kLevelRange{std::numeric_limits<double>::min(), 1.0 - std::numeric_limits<double>::epsilon(),
                                  false, "a number in (0, 1)"};
constexpr NumberRange kDistanceRange{std::numeric_limits<double>::min(), 1.0, false, "a number in (0, 1]"};
constexpr NumberRange kToleranceRange{0.0, 100.0, true, "a number in [0, 100]"};
constexpr std::int64_t kBatteriesMax = 100'000'000;

struct AuditArguments {
  std::string path;
  std::string probs_path;
  std::string outputs_path;
  Artefacts artefacts;
  std::string verifier;
  std::map<std::string, std::string> settings;  // by name, without those that were not given
  bool no_row_check = false;
  std::optional<std::int64_t> self_test;
  PlantedArguments planted;
  AuditOptions options;
  DraftAuditArguments drafts;
  bool json = false;
};

// The settings of a trace that say something about distributions.
bool is_about_distributions(const std::string& setting) {
  return setting == "filter_order" || setting == "ties" || setting == "penalty_window" || setting == "guidance_form" ||
         setting == "draft_processed" || setting == "nan_policy";
}

std::string flag_of(std::string setting) {
  std::replace(setting.begin(), setting.end(), '_', '-');
  return "--" + setting;
}

AuditRun run_audit(AuditArguments& arguments) {
  AuditFileOptions file_options;
  file_options.probs_path = arguments.probs_path;
  file_options.outputs_path = arguments.outputs_path;
  file_options.trace.check_rows = !arguments.no_row_check;
  file_options.trace.threads = arguments.options.threads;
  for (const auto& [name, value] : arguments.settings)
    file_options.trace.overrides.push_back({name, value, flag_of(name)});

  AuditRun run;
  run.path = arguments.path;
  run.figure = arguments.artefacts.figure;
  const Stopwatch reading;
  const AuditInput input = read_audit_file(arguments.path, file_options);
  if (const auto* steps = std::get_if<StepSample>(&input);
      steps != nullptr && arguments.verifier.empty() && !steps->verifier.empty())
    arguments.options.verifier = parse_assumed_verifier(steps->verifier, arguments.path + ": metadata 'verifier'");
  run.verifier = text_of(arguments.options.verifier);
  run.read_ms = reading.elapsed_ms();
  const Stopwatch auditing;
  try {
    if (const auto* draws = std::get_if<DrawSample>(&input)) {
      run.audit = audit_draws(*draws, arguments.options);
    } else if (const auto* filters = std::get_if<FilterSample>(&input)) {
      if (!arguments.artefacts.figure.empty())
        throw usage_error("--figure", "has no use: there are no cells to show of filters");
      run.filters = check_filter(*filters, arguments.options.threads);
      run.vocab_size = filters->rows.empty() ? 0 : filters->rows.front().target.vocab_size;
    } else {
      run.is_steps = true;
      run.audit = audit_steps(std::get<StepSample>(input), arguments.options);
      note_fitting_verifiers(run.audit, std::get<StepSample>(input), arguments.options);
    }
  } catch (const Error& error) {
    throw Error(error.kind(), arguments.path, error.what());  // such errors name a row, but not its file
  }
  run.audit_ms = auditing.elapsed_ms();
  return run;
}

// Draws the figure; returns what went wrong if there is none.
std::optional<std::string> draw_figure(AuditRun& run, const AuditArguments& arguments, const ProgramContext& context) {
  if (run.figure.empty()) return std::nullopt;
  try {
    write_figure_of(arguments.artefacts, context, [&] { return audit_figure(run); }, {1000, 560});
    return std::nullopt;
  } catch (const Error& error) {
    run.figure.clear();
    return error.what();
  }
}

void answer_filters(const AuditRun& run, const AuditArguments& arguments, ProgramContext& context) {
  const Json document = filter_json(run, context.arguments);
  write_table_of(arguments.artefacts, run.filters->sentence, context, [&] {
    return table_of(document.at("rows"),
                    {"row", "fault", "expected_count", "kept_count", "wrongly_kept_count", "wrongly_kept_mass",
                     "wrongly_dropped_count", "wrongly_dropped_mass", "distance"});
  });
  if (arguments.json) {
    print_json(document);
  } else {
    print_filters(std::cout, run, Palette(wants_colour(1)));
    std::cout << std::flush;
  }
  if (run.filters->holds) return;
  if (arguments.json) print_message("warning", run.filters->sentence);
  context.exit_code = ExitCode::finding;
}

void answer(AuditArguments& arguments, ProgramContext& context) {
  require_artefacts(
      arguments.artefacts,
      {{"file", arguments.path}, {"--probs", arguments.probs_path}, {"--outputs", arguments.outputs_path}});
  AuditRun run = run_audit(arguments);
  if (run.filters) return answer_filters(run, arguments, context);
  const std::optional<std::string> figure_error = draw_figure(run, arguments, context);
  const Json document = audit_json(run, context.arguments);
  write_table_of(arguments.artefacts, run.audit.sentence, context,
                 [&] { return table_of(document.at("tests"), test_keys()); });
  if (arguments.json) {
    print_json(document);
  } else {
    print_audit(std::cout, run, Palette(wants_colour(1)));
    if (!run.figure.empty()) std::cout << "figure: " << printable_line(run.figure) << '\n';
    std::cout << std::flush;
  }
  if (figure_error) print_message("warning", "no figure: " + *figure_error);
  if (run.audit.verdict == AuditVerdict::consistent) return;
  if (arguments.json) print_message("warning", run.audit.sentence);
  context.exit_code = run.audit.verdict == AuditVerdict::biased ? ExitCode::finding : ExitCode::inconclusive;
}

void answer_drafts(const AuditArguments& arguments, ProgramContext& context) {
  require_artefacts(arguments.artefacts, {{"file", arguments.path}});
  const DraftAuditRun run = run_draft_audit(arguments.path, arguments.drafts, arguments.options.threads);
  const Json document = draft_audit_json(run, context.arguments);
  write_table_of(arguments.artefacts, run.audit.sentence, context, [&] {
    return table_of(document.at("faults"), {"number", "name", "different", "explained", "introduced", "distance"});
  });
  if (arguments.json) {
    print_json(document);
  } else {
    print_draft_audit(std::cout, run, Palette(wants_colour(1)));
  }
  const DraftAudit& audit = run.audit;
  if (audit.verdict == DraftVerdict::consistent) return;
  if (arguments.json) print_message("warning", audit.sentence);
  context.exit_code = audit.verdict == DraftVerdict::different ? ExitCode::finding : ExitCode::inconclusive;
}

void answer_self_test(const AuditArguments& arguments, ProgramContext& context) {
  SelfTestOptions options;
  options.batteries = *arguments.self_test;
  options.seed = arguments.options.seed;
  options.threads = arguments.options.threads;
  require_artefacts(arguments.artefacts);
  SelfTest result;
  {
    Progress progress("null batteries", static_cast<std::uint64_t>(options.batteries), "batteries");
    result = test_null_batteries(options, [&](std::int64_t) { progress.advance(); });
  }
  const Json document = self_test_json(result, context.arguments);
  write_table_of(arguments.artefacts, result.sentence(), context, [&] {
    return table_of(document.at("tests"), {"name", "count", "ks_distance", "ks_p_value", "below_alpha"});
  });
  if (arguments.json) {
    print_json(document);
  } else {
    print_self_test(std::cout, result);
    std::cout << std::flush;
  }
  if (!result.is_finding()) return;
  print_message("warning", result.sentence());
  context.exit_code = ExitCode::finding;
}

}  // namespace

void add_audit(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<AuditArguments>();
  AuditOptions& audit = arguments->options;
  options.text(
      "file", arguments->path,
      "Samples: safetensors, or counts as CSV (docs/audit.md); with --drafter a recorded run (docs/heads.md). Or "
      "the address of a server, http://HOST:PORT, or what its audit saved",
      "FILE");
  options.file("--probs", arguments->probs_path, "Probabilities of a CSV of counts: group,token,prob");
  options.file("--outputs", arguments->outputs_path,
               "Another safetensors file with output_tokens [B, K + 1] of a trace, and maybe more of a result");
  options.text("--verifier", arguments->verifier,
               "Verifier that emitted the steps: one of " + verifier_names() +
                   "; or any, a lossless one (fewer tests hold). Default: what the file's metadata say, else chain",
               "NAME");
  options.number("--alpha", audit.alpha, kLevelRange, "Probability of accusing a correct sampler, over all tests");
  options.number("--tv-wanted", audit.tv_wanted, kDistanceRange,
                 "Total variation distance that should be detectable; else the verdict is inconclusive");
  add_artefacts(options, arguments->artefacts);
  std::vector<std::string> about_traces{"--verifier", "--no-row-check"};
  for (const TraceSettingInfo& setting : trace_settings()) {
    if (!is_about_distributions(setting.name)) continue;
    about_traces.push_back(flag_of(setting.name));
    options.option(flag_of(setting.name), "NAME", "", setting.meaning,
                   [arguments, name = setting.name](const std::string& value) { arguments->settings[name] = value; });
  }
  options.flag("--no-row-check", arguments->no_row_check,
               "Do not read every row of probabilities to see whether it sums to 1");
  options.text("--drafter", arguments->drafts.drafter,
               "head:PATH: compare the drafts of a recorded run, a JSON object a line, with what this head proposes",
               "NAME");
  options.text("--model", arguments->drafts.model, "The head's target: a GGUF file, a Hugging Face folder, smollm2",
               "MODEL");
  options.choice("--activations", arguments->drafts.activations, {"f32", "int8"}, "Arithmetic of target and head");
  options.number("--tolerance", arguments->drafts.tolerance, kToleranceRange,
                 "Margin in logits that another engine's rounding may make; twice that in logarithms of probabilities");
  options.seed(audit.seed, "Seed of the numbers that spread discrete draws over an interval, and of the self-test");
  options.threads(audit.threads);
  options.integer_or_flag("--self-test", arguments->self_test, {1, kBatteriesMax}, 10'000,
                          "Audit N batteries of correct samplers instead of a file, and report how many are accused");
  options.choice(
      "--profile", arguments->planted.profile, {"quick", "full", "soak"},
      "With --self-test, whose N has no use then: report what this profile of the Python module's audits finds of "
      "planted faults");
  options.choice("--kind", arguments->planted.kind, {"all", "sample", "filter", "verify", "constrained"},
                 "Kind of callable whose planted faults are audited");
  options.texts("--fault", arguments->planted.faults, "Planted faults with this name alone", "NAME");
  const auto audits_file = [arguments] { return !arguments->self_test; };
  options.used_only({"file", "--probs", "--outputs", "--alpha", "--tv-wanted", "--figure", "--drafter"},
                    "with --self-test", audits_file);
  options.used_only({"--model", "--activations", "--tolerance"}, "without --drafter",
                    [arguments] { return !arguments->drafts.drafter.empty(); });
  const auto audits_samples = [arguments] { return arguments->drafts.drafter.empty(); };
  options.used_only({"--probs", "--outputs", "--alpha", "--tv-wanted", "--figure", "--seed"}, "with --drafter",
                    audits_samples);
  options.used_only(about_traces, "with --drafter", audits_samples);
  options.used_only(about_traces, "with --self-test", audits_file);
  options.used_only(about_traces, "with --probs", [arguments] { return arguments->probs_path.empty(); });
  options.used_only({"--profile"}, "without --self-test", [arguments] { return arguments->self_test.has_value(); });
  const auto audits_planted = [arguments] { return !arguments->planted.profile.empty(); };
  options.used_only({"--kind", "--fault"}, "without --profile", audits_planted);
  options.used_only({"--table", "--seed"}, "with --profile", [=] { return !audits_planted(); });
  options.json(arguments->json);
  options.footer(
      "draftproof audit http://HOST:PORT audits a running server, and draftproof audit RUN.jsonl what --save kept of "
      "that, by the Python module; options of its own: draftproof audit http:// --help.");
  options.footer(
      "Exit code 0: consistent; 1: biased, or drafts that are different; 2: usage or input error; 4: inconclusive, too "
      "few samples.");
  options.examples({"samples.safetensors", "counts.csv --probs probabilities.csv",
                    "run.jsonl --model smollm2 --drafter head:eagle3.gguf", "--self-test=1000",
                    "--self-test --profile quick --kind filter"});
  options.on_other_arguments(audits_server, [&context](const auto& given) { answer_server(given, context); });
  options.on_run([arguments, &context] {
    arguments->options.verifier =
        parse_assumed_verifier(arguments->verifier.empty() ? "chain" : arguments->verifier, "--verifier");
    if (!arguments->planted.profile.empty()) {
      arguments->planted.processes = arguments->options.threads;
      return answer_planted(arguments->planted, arguments->json, context);
    }
    if (arguments->self_test) return answer_self_test(*arguments, context);
    if (arguments->path.empty())
      throw usage_error("file",
                        "is missing; expected a safetensors file, COUNTS.csv with --probs, or a server's http://...");
    if (!arguments->drafts.drafter.empty()) return answer_drafts(*arguments, context);
    if (arguments->path.ends_with(".jsonl"))
      throw usage_error("--drafter", "is not given; expected head:PATH and --model beside a recorded run, " +
                                         printable_line(arguments->path));
    answer(*arguments, context);
  });
}

}  // namespace draftproof

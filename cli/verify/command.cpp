// draftproof verify: replays a trace file (docs/trace.md) through pipeline and verifier.
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <memory>

#include "base/archives/safetensors.hpp"
#include "base/archives/sha256.hpp"
#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/acceptance_terms.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/verify/report.hpp"
#include "reference/row_kernels/row_kernels.hpp"
#include "reference/step/batch.hpp"
#include "reference/step/replayable.hpp"

namespace draftproof {
namespace {

struct VerifyArguments {
  std::string trace_path;
  std::string out_path;
  std::string compared_path;
  std::map<std::string, std::string> settings;  // by name, without those that were not given
  DraftedWith drafted_with;
  bool no_row_check = false;
  bool lossy = false;
  Artefacts artefacts;
  int threads = 1;
  std::string simd;
  bool json = false;
};

std::string flag_of(std::string setting) {
  std::replace(setting.begin(), setting.end(), '_', '-');
  return "--" + setting;
}

std::string help_of(const TraceSettingInfo& setting) {
  std::string choices;
  for (const std::string& value : setting.values) choices.append(choices.empty() ? "" : " | ").append(value);
  return setting.meaning + (choices.empty() ? "" : ": " + choices);
}

// Usage error where an option is given that this trace, or its verifier, has no use for.
void require_used(const VerifyArguments& arguments, const Trace& trace) {
  const auto refuse = [](const std::string& option, const std::string& why) {
    throw usage_error(option, "would have no effect: " + why + "; leave it out");
  };
  const auto given = [&](const char* setting) { return arguments.settings.contains(setting); };
  if (trace.has_seeds() && given("seed")) refuse("--seed", trace.path() + " has a seed for each request");
  if (!trace.recorded().empty() && (given("seed") || given("sampler")))
    refuse(given("seed") ? "--seed" : "--sampler", trace.path() + " holds the engine's own random numbers");
  const VerifierChoice& verifier = trace.settings().verifier;
  if (given("convention") && !follows_convention(verifier))
    refuse("--convention", "verifier " + std::string(verifier.info().name) + " throws no coins on drafts");
  if (given("guidance_form") && !trace.file().contains("uncond_logits"))
    refuse("--guidance-form", trace.path() + " has no uncond_logits");
  if (trace.file().contains("draft_logits")) return;
  const DraftedWith& drafted = arguments.drafted_with;
  for (const auto& [option, is_given] : {std::pair("--draft-processed", given("draft_processed")),
                                         {"--drafted-temperature", drafted.temperature.has_value()},
                                         {"--drafted-top-k", drafted.top_k.has_value()},
                                         {"--drafted-top-p", drafted.top_p.has_value()},
                                         {"--drafted-min-p", drafted.min_p.has_value()}})
    if (is_given) refuse(option, trace.path() + " has no draft_logits");
}

Trace open_trace(const VerifyArguments& arguments) {
  TraceOptions options;
  options.check_rows = !arguments.no_row_check;
  options.threads = arguments.threads;
  for (const auto& [name, value] : arguments.settings) options.overrides.push_back({name, value, flag_of(name)});
  Trace trace = Trace::open(arguments.trace_path, options);
  require_used(arguments, trace);
  return trace;
}

// File to compare with: the one that is named, or the trace itself where it says what the engine emitted with the
// random numbers that it holds.
std::string compared_path(const VerifyArguments& arguments, const Trace& trace) {
  if (!arguments.compared_path.empty()) return arguments.compared_path;
  const bool emitted = trace.file().contains("output_tokens") && trace.file().tensor("output_tokens").shape.size() == 2;
  return emitted ? trace.path() : "";
}

void verify(VerifyRun& run) {
  const std::span<const VerifyRequest> requests = run.trace.requests();
  Progress progress("verifying", requests.size(), "requests");
  try {
    require_result_fits(requests);
    run.result = collect_result(requests, verify_batch(requests, run.trace.verify_options(), run.threads,
                                                       [&](std::int64_t) { progress.advance(); }));
    if (run.trace.settings().verifier.info().proposal != DraftSampling::any)
      run.impossible = find_impossible_drafts(requests, run.threads);
  } catch (const Error& error) {
    throw Error(error.kind(), run.trace.path(), error.what());  // such errors name a row, but not its file
  }
}

VerifyRun run_verify(const VerifyArguments& arguments) {
  require_no_overwriting({{"trace", arguments.trace_path}, {"--compare", arguments.compared_path}},
                         {{"--out", arguments.out_path}});
  require_writable({{"--out", arguments.out_path}});
  require_artefacts(arguments.artefacts, {{"trace", arguments.trace_path}});
  if (!arguments.simd.empty()) select_row_kernels(arguments.simd);
  const Stopwatch opening;
  VerifyRun run(open_trace(arguments));
  run.open_ms = opening.elapsed_ms();
  run.threads = arguments.threads;
  // The bytes are ours and stay, so they are hashed beside the work.
  std::future<std::string> input_sha256 =
      std::async(std::launch::async, [&run] { return sha256_hex(run.trace.bytes()); });
  const Stopwatch verifying;
  verify(run);
  run.verify_ms = verifying.elapsed_ms();
  run.acceptance = measure_acceptance(run.trace.requests(), run.result);
  // Logits that come processed do not say with which parameters.
  if (!run.trace.settings().draft_processed || arguments.drafted_with.any())
    run.consistency = check_consistency(run.trace.requests(), arguments.drafted_with);
  if (run.trace.settings().guidance_form != GuidanceForm::logits)
    run.guidance_distances = guidance_distances(run.trace.requests(), run.threads);
  run.input_sha256 = input_sha256.get();
  if (const std::string path = compared_path(arguments, run.trace); !path.empty())
    run.comparison = compare_result(run.result, path);
  if (arguments.lossy) run.lossy = lossy_rules(run.trace, arguments.threads);
  if (run.comparison && !run.trace.recorded().empty())
    run.departure = departure_of(run.trace.requests(), run.trace.verify_options(), *run.comparison);
  return run;
}

void answer(const VerifyArguments& arguments, ProgramContext& context) {
  const VerifyRun run = run_verify(arguments);
  if (!arguments.out_path.empty()) write_result(arguments.out_path, run.result, result_metadata(run));
  write_table_of(arguments.artefacts, "Lossy rules on the same steps", context, [&] {
    return table_of(json_of(run.lossy), {"verifier", "accepted_per_step", "distance"});
  });
  write_figure_of(arguments.artefacts, context, [&] { return lossy_figure(run.lossy); });
  if (arguments.json) {
    print_json(verify_json(run, context.arguments));
  } else {
    print_verify_summary(std::cout, run);
    if (!arguments.out_path.empty()) std::cout << "written to          " << printable_line(arguments.out_path) << '\n';
    std::cout << std::flush;
  }
  for (const std::string& finding : findings_of(run)) {
    print_message("warning", finding);
    context.exit_code = ExitCode::finding;
  }
}

}  // namespace

void add_verify(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<VerifyArguments>();
  options.required_text("trace", arguments->trace_path, "Trace file, safetensors (docs/trace.md)", "FILE");
  options.file("--out", arguments->out_path, "Result file to write, safetensors");
  options.file("--compare", arguments->compared_path,
               "Result file of another run or engine: exit code 1 where any of its tensors differs");
  for (const TraceSettingInfo& setting : trace_settings()) {
    options.option(flag_of(setting.name), setting.name == "seed" ? "UINT" : "NAME", "", help_of(setting),
                   [arguments, name = setting.name](const std::string& value) { arguments->settings[name] = value; });
  }
  DraftedWith& drafted = arguments->drafted_with;
  options.number(
      "--drafted-temperature", drafted.temperature, kTemperatureRange,
      "Temperature that the drafter used, where the trace's draft logits do not say; 0: argmax drafts. Reports "
      "the cost in acceptance, and whether the output distribution changes");
  options.integer("--drafted-top-k", drafted.top_k, kTopKRange, "The same for top-k");
  options.number("--drafted-top-p", drafted.top_p, kNucleusRange, "The same for top-p");
  options.number("--drafted-min-p", drafted.min_p, kShareRange, "The same for min-p");
  options.flag("--no-row-check", arguments->no_row_check,
               "Do not read every row of probabilities to see whether it sums to 1");
  options.flag("--lossy", arguments->lossy,
               "Besides, lossy rules on the same steps with the same coins: acceptance, and the total variation of a "
               "step's first token from the target");
  add_artefacts(options, arguments->artefacts);
  options.used_only({"--table", "--figure", "--paper-width"}, "without --lossy",
                    [arguments] { return arguments->lossy; });
  options.threads(arguments->threads);
  options.text("--simd", arguments->simd, "Row kernels to use (draftproof machine lists them); same result", "NAME");
  options.json(arguments->json);
  add_acceptance_terms(options);
  options.footer("Settings given here win over those in the trace's metadata.");
  options.examples({"trace.safetensors --out result.safetensors",
                    "trace.safetensors --compare result.safetensors --verifier block",
                    "trace.safetensors --lossy --figure lossy.svg"});
  options.on_run([arguments, &context] { answer(*arguments, context); });
}

}  // namespace draftproof

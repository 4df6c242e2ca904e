// draftproof verify: replays a trace file (docs/trace.md) through pipeline and verifier.
#include <algorithm>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include "cli/shared/command.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "cli/shared/terminal.hpp"
#include "cli/verify/report.hpp"
#include "reference/error.hpp"
#include "reference/files/output_paths.hpp"
#include "reference/io/sha256.hpp"
#include "reference/numerics/row_kernels.hpp"
#include "reference/printable.hpp"
#include "reference/step/batch.hpp"

namespace draftproof {
namespace {

struct VerifyArguments {
  std::string trace_path;
  std::string out_path;
  std::string compared_path;
  std::map<std::string, std::string> settings;  // by name, without those that were not given
  DraftedWith drafted_with;
  bool no_row_check = false;
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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

Trace open_trace(const VerifyArguments& arguments) {
  TraceOptions options;
  options.check_rows = !arguments.no_row_check;
  options.threads = arguments.threads;
  for (const auto& [name, value] : arguments.settings) options.overrides.push_back({name, value, flag_of(name)});
  Trace trace = Trace::open(arguments.trace_path, options);
  if (trace.has_seeds() && arguments.settings.contains("seed"))
    throw usage_error("--seed", "would have no effect: " + trace.path() + " has a seed for each request; leave it out");
  return trace;
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
  run.input_sha256 = input_sha256.get();
  if (!arguments.compared_path.empty()) {
    run.compared_path = arguments.compared_path;
    run.comparison = compare_result(run.result, run.compared_path);
  }
  return run;
}

void answer(const VerifyArguments& arguments, ProgramContext& context) {
  const VerifyRun run = run_verify(arguments);
  if (!arguments.out_path.empty()) write_result(arguments.out_path, run.result, result_metadata(run));
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

void add_command(CLI::App& command, ProgramContext& context) {
  const auto arguments = std::make_shared<VerifyArguments>();
  command.add_option("trace", arguments->trace_path, "Trace file, safetensors (docs/trace.md)")->required();
  command.add_option("--out", arguments->out_path, "Result file to write, safetensors");
  command.add_option(
      "--compare", arguments->compared_path,
      "Result file of another run or engine: exit code 1 where its output_tokens or num_accepted differ");
  for (const TraceSettingInfo& setting : trace_settings()) {
    const auto store = [arguments, name = setting.name](const std::string& value) {
      arguments->settings[name] = value;
    };
    command.add_option_function<std::string>(flag_of(setting.name), store, help_of(setting))
        ->type_name(setting.name == "seed" ? "NUMBER" : "NAME");
  }
  command.add_option(
      "--drafted-temperature", arguments->drafted_with.temperature,
      "What the drafter really used, where the trace's draft logits do not say; 0: argmax drafts. Reports "
      "the cost in acceptance, and whether the output distribution changes");
  command.add_option("--drafted-top-k", arguments->drafted_with.top_k, "The same for top-k");
  command.add_option("--drafted-top-p", arguments->drafted_with.top_p, "The same for top-p");
  command.add_option("--drafted-min-p", arguments->drafted_with.min_p, "The same for min-p");
  command.add_flag("--no-row-check", arguments->no_row_check,
                   "Do not read every row of probabilities to see whether it sums to 1");
  command.add_option("--threads", arguments->threads, "Threads; the result does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--simd", arguments->simd, "Row kernels to use (draftproof machine lists them); same result");
  add_json_flag(command, arguments->json);
  command.footer("Settings given here win over those in the trace's metadata.");
  command.callback([arguments, &context] { answer(*arguments, context); });
}

}  // namespace draftproof

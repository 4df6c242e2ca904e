// draftproof regress: is every kernel the reference, bit for bit? And are kernels of others (library.hpp)?
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/regress/library.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/fault_program.hpp"
#include "gpu/regress/kernel_library.hpp"
#include "gpu/regress/random_calls.hpp"
#include "gpu/regress/regression.hpp"
#include "gpu/regress/regression_json.hpp"

namespace draftproof {
namespace {

using regress::CaseResult;
using regress::RegressCase;
using regress::RegressionReport;
using regress::Verdict;

struct RegressOptions {
  std::string executor = "simt";
  std::string filter;
  std::string golden;
  std::string fault;
  std::uint64_t seed = 1;
  std::int64_t random = 0;
  int threads = 1;
  std::string skeleton;
  std::string folder;
  std::string junit;
  LibraryOptions library;
  bool update = false;
  bool json = false;
};

// Usage error for an empty part, which would be in every name.
std::string checked_parts(const char* option, const std::string& text) {
  if (("," + text + ",").find(",,") != std::string::npos)
    throw usage_error(option, "is '" + text + "'; expected parts of names with a comma between two");
  return text;
}

// Usage error for a parameter that no call has.
std::vector<std::string> checked_parameters(const std::string& text) {
  static const std::vector<std::string> kKnown = {"temperature",    "top_k", "top_p",       "min_p", "draft_probs",
                                                  "no_draft_probs", "rrsw",  "target_only", "scale", "parents"};
  std::vector<std::string> names;
  const std::string parts = checked_parts("--without", text);
  for (const std::string_view name : split(parts, ',')) {
    names.emplace_back(name);
    if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
      throw usage_error("--without", in_quotes(names.back()) + " is no parameter; expected some of " +
                                         joined(kKnown, ", ") + did_you_mean(names.back(), kKnown));
  }
  return names;
}

std::vector<RegressCase> wanted_cases(const RegressOptions& options) {
  if (options.random > 0) return regress::random_calls(options.random, options.seed);
  std::vector<RegressCase> cases = regress::cases_named(options.filter);
  if (cases.empty()) throw usage_error("--filter", "no case has '" + options.filter + "' in its name");
  return cases;
}

void update_golden(const RegressOptions& options, const RegressionReport& report) {
  if (report.count(Verdict::equal) != static_cast<std::int64_t>(report.results.size()))
    throw input_error("--update", "a case differs or was skipped; nothing is written");
  regress::Digests digests;
  for (const CaseResult& result : report.results) digests[result.name] = result.digest;
  regress::write_digests(options.golden, digests);
}

// The regression of a fault's kernels: what it must find, and how that looks.
RegressionReport run_fault(const RegressOptions& options) {
  if (!options.filter.empty() || options.update || options.executor != "simt")
    throw usage_error("--fault",
                      "its program runs its own cases on the CPU executor; leave --filter, --update and "
                      "--executor out");
  RegressionReport report;
  regress::run_fault(regress::faults_folder(), options.fault, options.seed, "--fault", [&](CaseResult result) {
    report.seconds += result.seconds;
    report.results.push_back(std::move(result));
    return true;
  });
  return report;
}

RegressionReport run_regression(const RegressOptions& options) {
  // Checks before the cases make their inputs, which takes seconds.
  if (options.update && !options.filter.empty())
    throw usage_error("--update", "the golden file holds every case; leave --filter out");
  const regress::Digests golden =
      options.update || options.random > 0 ? regress::Digests() : regress::read_digests(options.golden);
  regress::RegressionOptions run_options;
  run_options.executor = options.executor == "cuda" ? DRAFTPROOF_CUDA : DRAFTPROOF_SIMT;
  run_options.seed = options.seed;
  const std::string why = device::why_unavailable(run_options.executor);
  if (!why.empty() && gpu_is_required())
    throw usage_error("--executor " + options.executor, why + ", and DRAFTPROOF_REQUIRE_GPU=1 asks for one");
  const std::vector<RegressCase> cases = wanted_cases(options);
  Progress progress("regress", cases.size(), "cases");
  RegressionReport report = regress::run_cases(cases, run_options, options.threads, [&] { progress.advance(); });
  if (options.update) {
    update_golden(options, report);
  } else if (options.random == 0) {
    regress::check_digests(report, cases, golden, options.filter.empty());
  }
  return report;
}

Json document_of(const RegressionReport& report, const RegressOptions& options, const ProgramContext& context) {
  Json document = json_document(context.arguments);
  document["fault"] = text_or_null(options.fault);
  document.update(regress::to_json(report, options.executor));
  return document;
}

void print_text(const RegressionReport& report, const RegressOptions& options) {
  print_findings(report);
  std::cout << "executor " << options.executor << '\n';
  print_tallies(report);
  if (const std::string why = report.why_skipped(); !why.empty()) std::cout << "skipped: " << why << '\n';
}

void run_regress(const RegressOptions& options, ProgramContext& context) {
  if (!options.skeleton.empty()) {
    if (options.folder.empty())
      throw usage_error("--skeleton", "has no folder; expected --skeleton " + options.skeleton + " DIR");
    return write_skeleton(options.skeleton, options.folder);
  }
  if (has_kernels(options.library)) {
    LibraryOptions library = options.library;
    if (std::filesystem::is_regular_file(library.file)) const InputFile is_read(library.file);  // by the loader
    library.filter = options.filter;
    library.junit = options.junit;
    library.seed = options.seed;
    library.json = options.json;
    return run_library_regression(library, context);
  }
  const RegressionReport report = options.fault.empty() ? run_regression(options) : run_fault(options);
  if (report.is_finding()) {
    context.exit_code = ExitCode::finding;
  } else if (report.count(Verdict::equal) == 0) {
    context.exit_code = ExitCode::inconclusive;  // all were skipped
  }
  if (!options.junit.empty()) write_junit(options.junit, report);
  if (options.json) return print_json(document_of(report, options, context));
  print_text(report, options);
}

}  // namespace

bool gpu_is_required() {
  const char* const value = std::getenv("DRAFTPROOF_REQUIRE_GPU");
  return value != nullptr && std::string(value) == "1";
}

void print_findings(const RegressionReport& report) {
  for (const std::string& finding : report.findings()) std::cout << "different: " << printable_line(finding) << '\n';
}

void print_tallies(const RegressionReport& report) {
  for (const regress::CallTally& tally : report.by_call()) {
    char text[160];
    std::snprintf(text, sizeof(text), "  %-14s %5lld equal %5lld different %5lld skipped %8.1f s\n",
                  printable_line(tally.call).c_str(), static_cast<long long>(tally.equal),
                  static_cast<long long>(tally.different), static_cast<long long>(tally.skipped), tally.seconds);
    std::cout << text;
  }
}

void add_regress(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<RegressOptions>();
  arguments->golden = own_file("golden/digests.txt");
  options.json(arguments->json);
  options.choice("--executor", arguments->executor, {"simt", "cuda"},
                 "Who runs the kernels: simt (the CPU executor) or cuda");
  options.option("--filter", "TEXT", "", "Only the cases that have this in their name, or one of a,b,c",
                 [arguments](const std::string& text) { arguments->filter = checked_parts("--filter", text); });
  options.seed(
      arguments->seed,
      "Order of threads and blocks on the CPU executor; the first call of --random; draws of --library and --python");
  options.threads(arguments->threads, "Cases at once on the CPU executor");
  options.file("--golden", arguments->golden, "The file of digests");
  options.text("--fault", arguments->fault,
               "Run the kernels of this fault (gpu/faults) in the cases that must find it: the failures are meant",
               "ID");
  options.flag("--update", arguments->update, "Write the digests of this run, if every case is equal");
  options.integer("--random", arguments->random, {1, 1000000000},
                  "Run no case, but this many calls with random arguments, from --seed on");
  options.used_only({"--filter", "--golden", "--fault", "--update"}, "with --random, which runs no case",
                    [arguments] { return arguments->random == 0; });
  options.used_only({"--threads"}, "with --executor cuda", [arguments] { return arguments->executor == "simt"; });
  options.used_only({"--seed"}, "with --executor cuda but without --random",
                    [arguments] { return arguments->executor == "simt" || arguments->random > 0; });
  options.used_only({"--golden", "--threads"}, "with --fault", [arguments] { return arguments->fault.empty(); });
  options.file("--library", arguments->library.file,
               "Test the kernels of this shared library, which exports calls of gpu/draftproof_kernels.h");
  options.text("--python", arguments->library.python,
               "Test functions of Python (NumPy, PyTorch, Triton) instead: all of MODULE that have a call's name, or "
               "MODULE:FUNCTION (docs/your_kernel.md)",
               "MODULE");
  options.choice("--call", arguments->library.call,
                 {std::begin(regress::kLibraryCalls), std::end(regress::kLibraryCalls)},
                 "The call that FUNCTION of --python answers, if its name is another");
  options.choice("--within", arguments->library.within, {"bits", "distribution", "replay"},
                 "Comparison with the library; default: what its random numbers allow: bits (draftproof's own), "
                 "distribution (its own), replay (given or recorded)");
  options.integer("--samples", arguments->library.draws, {100, 100'000'000},
                  "Draws of a case at most; large vocabularies have fewer");
  options.number("--case-seconds", arguments->library.case_seconds, {0.1, 86'400.0, false, "a number in [0.1, 86400]"},
                 "A case that takes longer hangs: it is different, and the next one begins");
  options.option("--without", "NAMES", "",
                 "Parameters that the library does not take, as top_k,min_p: no gap in the test",
                 [arguments](const std::string& text) { arguments->library.without = checked_parameters(text); });
  options.file("--junit", arguments->junit, "Write the results as JUnit XML too");
  options.choice("--skeleton", arguments->skeleton, {"cpu", "cuda"},
                 "Write a library to begin with into the folder DIR: header, kernels, CMake and CI file");
  options.text("folder", arguments->folder, "Of --skeleton: a new folder", "DIR");
  const auto with_library = [arguments] { return has_kernels(arguments->library); };
  options.used_only({"--within", "--samples", "--case-seconds", "--without"}, "without --library or --python",
                    with_library);
  options.used_only({"--library"}, "with --python", [arguments] { return arguments->library.python.empty(); });
  options.used_only({"--call"}, "without MODULE:FUNCTION in --python",
                    [arguments] { return arguments->library.python.find(':') != std::string::npos; });
  options.used_only({"--executor", "--golden", "--threads", "--fault", "--update", "--random"},
                    "with --library or --python", [with_library] { return !with_library(); });
  options.used_only({"folder"}, "without --skeleton", [arguments] { return !arguments->skeleton.empty(); });
  options.used_only({"--library", "--python", "--executor", "--filter", "--seed", "--threads", "--golden", "--fault",
                     "--update", "--random", "--junit", "--json"},
                    "with --skeleton", [arguments] { return arguments->skeleton.empty(); });
  options.footer(
      "Exit codes: 0 all that was compared is equal; 1 something differs; 2 wrong options or input; 4 nothing was "
      "compared, as without the GPU that --executor cuda, or a library on device memory, needs "
      "(DRAFTPROOF_REQUIRE_GPU=1 makes that an error), or a parameter of the library's calls was not tested.");
  options.examples({"", "--filter row --threads 1", "--executor cuda", "--skeleton cpu my-kernels",
                    "--library my-kernels/build/libkernels.so", "--python my_kernels:top_p_sample --call sample"});
  options.on_run([arguments, &context] { run_regress(*arguments, context); });
}

}  // namespace draftproof

#include "cli/regress/library.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/files/input_file.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "cli/regress/library_statistics.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/python.hpp"
#include "gpu/regress/library_regression.hpp"
#include "gpu/regress/regression_json.hpp"

namespace draftproof {
namespace {

using regress::LibraryCase;
using regress::LibraryDescription;
using regress::LibraryReport;
using regress::Verdict;

constexpr double kFalseAlarms = 1e-6;  // of a whole run

constexpr std::array kNumbers{"own", "given", "recorded", "addressed"};

const char* numbers_of(const LibraryDescription& library) {
  return kNumbers[static_cast<std::size_t>(library.numbers)];
}

std::string within_of(const LibraryOptions& options, const LibraryDescription& library) {
  const bool replays = library.numbers == DRAFTPROOF_KERNELS_GIVEN || library.numbers == DRAFTPROOF_KERNELS_RECORDED;
  if (options.within == "replay" && !replays)
    throw usage_error("--within", std::string("is 'replay', but the library's random numbers are ") +
                                      numbers_of(library) + ": it is given none and records none; expected " +
                                      (library.numbers == DRAFTPROOF_KERNELS_OWN ? "distribution" : "bits"));
  if (!options.within.empty()) return options.within;
  return replays ? "replay" : library.numbers == DRAFTPROOF_KERNELS_OWN ? "distribution" : "bits";
}

// Each draws, and may be accused: the budget of false alarms is shared.
std::int64_t statistical_cases(const std::vector<LibraryCase>& cases) {
  return std::count_if(cases.begin(), cases.end(),
                       [](const LibraryCase& one) { return one.call == "sample" || one.call.starts_with("verify"); });
}

std::vector<std::string> missing_calls(const LibraryDescription& library) {
  std::vector<std::string> missing;
  for (const char* const call : regress::kLibraryCalls)
    if (std::find(library.calls.begin(), library.calls.end(), call) == library.calls.end()) missing.emplace_back(call);
  return missing;
}

LibraryReport all_skipped(const std::vector<LibraryCase>& cases, const std::string& why) {
  LibraryReport report;
  for (const LibraryCase& one : cases)
    report.regression.results.push_back({one.name, 0, Verdict::skipped, why, {}, 0.0, {}});
  return report;
}

// "tested: temperature (36). NOT tested: top_k, top_p, min_p" of each call.
void print_coverage(const LibraryReport& report, const LibraryOptions& options) {
  for (const regress::CallTally& tally : report.regression.by_call()) {
    std::vector<std::string> tested, untested, without;
    for (const regress::ParameterCoverage& one : report.coverage) {
      if (one.call != tally.call) continue;
      const bool is_left_out =
          std::find(options.without.begin(), options.without.end(), one.parameter) != options.without.end();
      (one.compared > 0 ? tested
       : is_left_out    ? without
                        : untested)
          .push_back(one.compared > 0 ? one.parameter + " (" + std::to_string(one.compared) + ")" : one.parameter);
    }
    if (tested.empty() && untested.empty()) continue;
    std::cout << "  " << tally.call << " tested: " << (tested.empty() ? "nothing" : joined(tested, ", "));
    if (!untested.empty()) std::cout << ". NOT tested: " << joined(untested, ", ");
    if (!without.empty()) std::cout << ". Without, as said: " << joined(without, ", ");
    std::cout << '\n';
  }
  if (!report.untested(options.without).empty())
    std::cout << "The library refused what is NOT tested. If it does not take it, say so: --without top_k,min_p\n";
}

void print_text(const LibraryReport& report, const LibraryDescription& library, const LibraryOptions& options,
                const std::string& within) {
  const regress::RegressionReport& regression = report.regression;
  print_findings(regression);
  if (options.python.empty())
    std::cout << "library " << printable_line(options.file) << " (" << printable_line(library.name) << "), "
              << (library.on_device ? "device" : "host") << " memory";
  else
    std::cout << "Python " << printable_line(options.python);
  std::cout << ", random numbers " << numbers_of(library) << ", within " << within << '\n';
  print_tallies(regression);
  print_coverage(report, options);
  if (const auto missing = missing_calls(library); !missing.empty() && options.python.find(':') == std::string::npos)
    std::cout << "not exported, not tested: " << joined(missing, ", ") << '\n';
  if (report.left_out > 0)
    std::cout << "left out: " << report.left_out
              << " cases that these calls cannot express (docs/your_kernel.md says which)\n";
  if (const std::string why = regression.why_skipped(); !why.empty())
    std::cout << "skipped: " << printable_line(why) << '\n';
}

const std::string& source_of(const LibraryOptions& options) {
  return options.python.empty() ? options.file : options.python;
}

Json document_of(const LibraryReport& report, const LibraryDescription& library, const LibraryOptions& options,
                 const std::string& within, const ProgramContext& context) {
  Json document = json_document(context.arguments);
  document["library"] = {
      {"file", source_of(options)},     {"name", library.name},   {"memory", library.on_device ? "device" : "host"},
      {"numbers", numbers_of(library)}, {"calls", library.calls}, {"not_exported", missing_calls(library)}};
  document["within"] = within;
  document["alpha"] = within == "bits" ? Json(nullptr) : Json(kFalseAlarms);
  document["left_out"] = report.left_out;
  document["parameters"] = Json::object();
  for (const regress::ParameterCoverage& one : report.coverage)
    document["parameters"][one.call][one.parameter] = one.compared;
  document["untested"] = report.untested(options.without);
  document.update(regress::to_json(report.regression, "library"));
  return document;
}

regress::KernelSource kernels_of(const LibraryOptions& options) {
  if (options.python.empty()) {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(options.file, unknown))
      throw input_error(options.file, "is no file; expected a shared library (gpu/draftproof_kernels.h)");
    return {options.file};
  }
  const std::optional<std::string> python = find_python_with({"numpy"});
  if (!python)
    throw usage_error("--python", "needs NumPy, which neither $DRAFTPROOF_PYTHON nor python3 imports; install numpy");
  return {options.python, script_command(*python, own_file("python_kernels.py"), {options.python, options.call})};
}

std::string text_of(const std::filesystem::path& file) {
  constexpr std::uint64_t kSourceBytesMax = std::uint64_t{1} << 20;
  return std::string(InputFile(file.string(), kSourceBytesMax).text());
}

}  // namespace

void run_library_regression(const LibraryOptions& given, ProgramContext& context) {
  LibraryOptions options = given;
  const regress::KernelSource source = kernels_of(options);
  // Loading takes its own time, however short a case may be.
  const regress::LibraryProbe probe =
      regress::probe_library(source, std::max(options.case_seconds, LibraryOptions().case_seconds));
  const LibraryDescription& library = probe.description;
  options.without.insert(options.without.end(), library.without.begin(), library.without.end());
  const std::string within = within_of(options, library);
  const std::vector<LibraryCase> cases = regress::library_cases(library.calls, options.filter);
  if (cases.empty()) throw usage_error("--filter", "no case of the library has '" + options.filter + "' in its name");
  if (!probe.why_unavailable.empty() && gpu_is_required())
    throw usage_error("--library " + options.file,
                      "takes device memory; " + probe.why_unavailable + ", and DRAFTPROOF_REQUIRE_GPU=1 asks for one");
  LibraryReport report;
  if (!probe.why_unavailable.empty()) {
    report = all_skipped(cases, probe.why_unavailable);
  } else {
    const auto of_a_case = static_cast<double>(std::max<std::int64_t>(1, statistical_cases(cases)));
    const regress::LibraryJudge judge =
        within == "bits"
            ? regress::LibraryJudge(regress::judge_bits)
            : statistical_judge({within == "replay", kFalseAlarms / of_a_case, options.draws, options.seed});
    const std::string again = "; run it again: draftproof regress " +
                              (options.python.empty() ? "--library " + options.file : "--python " + options.python) +
                              (options.call.empty() ? "" : " --call " + options.call) + " --within " + within +
                              " --seed " + std::to_string(options.seed) + " --samples " +
                              std::to_string(options.draws) + " --filter ";
    Progress progress("regress", cases.size(), "cases",
                      "nothing of it is kept; --filter PART runs the cases with PART in their names");
    report = regress::run_library(source, cases, judge, options.case_seconds, again, [&] { progress.advance(); });
  }
  const regress::RegressionReport& regression = report.regression;
  if (regression.is_finding()) {
    context.exit_code = ExitCode::finding;
  } else if (regression.count(Verdict::equal) == 0 || !report.untested(options.without).empty()) {
    context.exit_code = ExitCode::inconclusive;
  }
  if (!options.junit.empty()) write_junit(options.junit, regression);
  if (options.json) return print_json(document_of(report, library, options, within, context));
  print_text(report, library, options, within);
}

namespace {

std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : printable_line(text))
    xml += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return xml;
}

}  // namespace

void write_junit(const std::string& path, const regress::RegressionReport& report) {
  AtomicFile file(path);
  std::ostream& out = file.stream();
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"draftproof regress\" tests=\""
      << report.results.size() << "\" failures=\"" << report.count(Verdict::different) << "\" errors=\"0\" skipped=\""
      << report.count(Verdict::skipped) << "\" time=\"" << report.seconds << "\">\n";
  for (const regress::CaseResult& result : report.results) {
    const std::string name =
        result.name + (result.block_threads > 0 ? ", " + std::to_string(result.block_threads) + " threads" : "");
    out << "<testcase classname=\"" << escaped(result.name.substr(0, result.name.find('/'))) << "\" name=\""
        << escaped(name) << "\" time=\"" << result.seconds << "\"";
    if (result.verdict == Verdict::equal) {
      out << "/>\n";
      continue;
    }
    const char* const element = result.verdict == Verdict::different ? "failure" : "skipped";
    out << "><" << element << " message=\"" << escaped(result.finding) << "\"/></testcase>\n";
  }
  out << "</testsuite>\n</testsuites>\n";
  file.commit();
}

void write_skeleton(const std::string& kind, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (fs::exists(folder, unknown) && (!fs::is_directory(folder, unknown) || !fs::is_empty(folder, unknown)))
    throw input_error(folder, "is not empty; expected a new folder");
  const fs::path skeletons = own_file("skeleton");
  std::vector<fs::path> files = {own_file("draftproof_kernels.h")};
  for (const auto& entry : fs::directory_iterator(skeletons / kind)) files.push_back(entry.path());
  files.push_back(skeletons / "ci.sh");
  fs::create_directories(folder);
  for (const fs::path& file : files) {
    const fs::path to = fs::path(folder) / file.filename();
    AtomicFile out(to.string());
    out.stream() << text_of(file);
    out.commit();
    fs::permissions(to, fs::status(file).permissions());
    std::cout << to.string() << '\n';
  }
}

}  // namespace draftproof

// draftproof regress: is every kernel the reference, bit for bit?
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/stopwatch.hpp"
#include "gpu/api.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/coverage.hpp"
#include "gpu/regress/regression.hpp"
#include "reference/error.hpp"
#include "reference/parallel.hpp"
#include "reference/printable.hpp"

namespace draftproof {
namespace {

using regress::CaseResult;
using regress::RegressCase;
using regress::Verdict;

struct RegressOptions {
  std::string executor = "simt";
  std::string filter;
  std::string golden;
  std::uint64_t seed = 1;
  int threads = 1;
  bool update = false;
  bool coverage = false;
  bool json = false;
};

bool gpu_is_required() {
  const char* const value = std::getenv("DRAFTPROOF_REQUIRE_GPU");
  return value != nullptr && std::string(value) == "1";
}

const char* verdict_name(Verdict verdict) {
  return verdict == Verdict::equal ? "equal" : verdict == Verdict::different ? "different" : "skipped";
}

class Regression {
 public:
  explicit Regression(const RegressOptions& options) : options_(options) {
    run_options_.executor = options.executor == "cuda" ? DRAFTPROOF_CUDA : DRAFTPROOF_SIMT;
    run_options_.seed = options.seed;
    cases_ = regress::cases_named(options.filter);
    if (cases_.empty()) throw usage_error("--filter", "no case has '" + options.filter + "' in its name");
    if (options.update && !options.filter.empty())
      throw usage_error("--update", "the golden file holds every case; leave --filter out");
    if (!options.update) golden_ = regress::read_digests(options.golden);
  }

  void run() {
    const Stopwatch watch;
    const std::string why = device::why_unavailable(run_options_.executor);
    if (!why.empty() && gpu_is_required())
      throw usage_error("--executor " + options_.executor, why + ", and DRAFTPROOF_REQUIRE_GPU=1 asks for one");
    if (!why.empty()) {
      skip_all(why);
    } else {
      run_all();
    }
    if (options_.update) {
      update();
    } else {
      compare_digests();
    }
    seconds_ = watch.elapsed_ms() * 1e-3;
  }

  const std::vector<CaseResult>& results() const { return results_; }
  std::int64_t count(Verdict verdict) const {
    return std::count_if(results_.begin(), results_.end(), [&](const CaseResult& r) { return r.verdict == verdict; });
  }
  double seconds() const { return seconds_; }

 private:
  void skip_all(const std::string& why) {
    for (const RegressCase& one : cases_) {
      for (const int block_threads : one.block_threads)
        results_.push_back({one.name, block_threads, Verdict::skipped, why, {}, 0.0});
    }
  }

  // Cases are independent: on the CPU executor they are spread over the threads, each with one OS thread of its own, so
  // that a fault shows again in the same words. A GPU takes one after the other.
  void run_all() {
    Progress progress("regress", cases_.size(), "cases");
    std::vector<std::vector<CaseResult>> of_case(cases_.size());
    const int threads = run_options_.executor == DRAFTPROOF_CUDA ? 1 : options_.threads;
    parallel_for(static_cast<std::int64_t>(cases_.size()), threads, [&](std::int64_t i, int) {
      const auto index = static_cast<std::size_t>(i);
      of_case[index] = regress::run_case(cases_[index], run_options_);
      progress.advance();
    });
    for (std::vector<CaseResult>& more : of_case) std::move(more.begin(), more.end(), std::back_inserter(results_));
  }

  void compare_digests() {
    for (CaseResult& result : results_) regress::check_digest(result, golden_);
    if (!options_.filter.empty()) return;
    for (const auto& [name, digest] : golden_) {
      if (std::none_of(cases_.begin(), cases_.end(), [&](const RegressCase& c) { return c.name == name; }))
        results_.push_back(
            {name, 0, Verdict::different, "the golden file names a case that is not there", digest, 0.0});
    }
  }

  void update() {
    if (count(Verdict::equal) != static_cast<std::int64_t>(results_.size()))
      throw input_error("--update", "a case differs or was skipped; nothing is written");
    regress::Digests digests;
    for (const CaseResult& result : results_) digests[result.name] = result.digest;
    regress::write_digests(options_.golden, digests);
  }

  RegressOptions options_;
  regress::RegressionOptions run_options_;
  std::vector<RegressCase> cases_;
  regress::Digests golden_;
  std::vector<CaseResult> results_;
  double seconds_ = 0.0;
};

Json document_of(const Regression& regression, const RegressOptions& options, const ProgramContext& context) {
  Json document = json_document(context.arguments);
  document["executor"] = options.executor;
  document["equal"] = regression.count(Verdict::equal);
  document["different"] = regression.count(Verdict::different);
  document["skipped"] = regression.count(Verdict::skipped);
  document["seconds"] = regression.seconds();
  document["rows"] = Json::array();
  for (const CaseResult& result : regression.results()) {
    Json row;
    row["case"] = result.name;
    row["block_threads"] = result.block_threads;
    row["verdict"] = verdict_name(result.verdict);
    row["digest"] = result.digest.empty() ? Json(nullptr) : Json(result.digest);
    row["seconds"] = result.seconds;
    row["finding"] = result.finding.empty() ? Json(nullptr) : Json(result.finding);
    document["rows"].push_back(row);
  }
  return document;
}

void print_text(const Regression& regression, const RegressOptions& options) {
  struct Line {
    std::int64_t equal = 0, different = 0, skipped = 0;
    double seconds = 0.0;
  };
  std::vector<std::pair<std::string, Line>> lines;
  for (const CaseResult& result : regression.results()) {
    const std::string operation = printable_line(result.name.substr(0, result.name.find('/')));
    if (lines.empty() || lines.back().first != operation) lines.push_back({operation, {}});
    Line& line = lines.back().second;
    ++(result.verdict == Verdict::equal       ? line.equal
       : result.verdict == Verdict::different ? line.different
                                              : line.skipped);
    line.seconds += result.seconds;
    if (result.verdict == Verdict::different)
      std::cout << "different: " << printable_line(result.name + ": " + result.finding) << '\n';
  }
  std::cout << "executor " << options.executor << '\n';
  for (const auto& [operation, line] : lines) {
    char text[160];
    std::snprintf(text, sizeof(text), "  %-14s %5lld equal %5lld different %5lld skipped %8.1f s\n", operation.c_str(),
                  static_cast<long long>(line.equal), static_cast<long long>(line.different),
                  static_cast<long long>(line.skipped), line.seconds);
    std::cout << text;
  }
  const auto skipped = std::find_if(regression.results().begin(), regression.results().end(),
                                    [](const CaseResult& r) { return r.verdict == Verdict::skipped; });
  if (skipped != regression.results().end()) std::cout << "skipped: " << skipped->finding << '\n';
}

// What the cases are, not how they end.
void run_coverage(const RegressOptions& options, ProgramContext& context) {
  const std::vector<RegressCase> cases = regress::cases_named(options.filter);
  if (cases.empty()) throw usage_error("--filter", "no case has '" + options.filter + "' in its name");
  const std::vector<regress::CallCoverage> coverage = regress::coverage_of(cases);
  Json document = json_document(context.arguments);
  document["coverage"] = Json::array();
  if (!options.json) std::cout << "call              runs   arguments beyond their default   pairs of values met\n";
  for (const regress::CallCoverage& call : coverage) {
    if (!call.missing.empty()) context.exit_code = ExitCode::finding;
    document["coverage"].push_back({{"call", call.call},
                                    {"runs", call.cases},
                                    {"arguments", call.arguments},
                                    {"beyond_default", call.beyond_default},
                                    {"pairs", call.pairs},
                                    {"pairs_met", call.pairs_met},
                                    {"missing", call.missing}});
    if (options.json) continue;
    char text[160];
    std::snprintf(text, sizeof(text), "  %-14s %5lld   %12lld of %-15lld %8lld of %lld\n", call.call.c_str(),
                  static_cast<long long>(call.cases), static_cast<long long>(call.beyond_default),
                  static_cast<long long>(call.arguments), static_cast<long long>(call.pairs_met),
                  static_cast<long long>(call.pairs));
    std::cout << text;
    for (const std::string& missing : call.missing) std::cout << "    missing: " << missing << '\n';
  }
  if (options.json) print_json(document);
}

void run_regress(const RegressOptions& options, ProgramContext& context) {
  if (options.coverage) return run_coverage(options, context);
  Regression regression(options);
  regression.run();
  if (regression.count(Verdict::different) > 0) context.exit_code = ExitCode::finding;
  if (options.json) return print_json(document_of(regression, options, context));
  print_text(regression, options);
}

}  // namespace

void add_command(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<RegressOptions>();
  arguments->golden = DRAFTPROOF_GOLDEN_DIGESTS;
  options.json(arguments->json);
  options.choice("--executor", arguments->executor, {"simt", "cuda"},
                 "Who runs the kernels: simt (the CPU executor) or cuda");
  options.text("--filter", arguments->filter, "Only the cases that have this in their name");
  options.seed(arguments->seed, "Order of threads and blocks on the CPU executor");
  options.threads(arguments->threads, "Cases at once on the CPU executor");
  options.file("--golden", arguments->golden, "The file of digests");
  options.flag("--update", arguments->update, "Write the digests of this run, if every case is equal");
  options.flag(
      "--coverage", arguments->coverage,
      "Run nothing: which arguments, and which pairs of them, do the cases give other values than their defaults?");
  options.on_run([arguments, &context] { run_regress(*arguments, context); });
}

}  // namespace draftproof

#include "studies/kernels/kernels.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/parallel.hpp"
#include "base/printable.hpp"
#include "gpu/regress/cases.hpp"
#include "gpu/regress/fault_program.hpp"
#include "gpu/regress/regression_json.hpp"
#include "studies/figures/figure.hpp"
#include "studies/lessons.hpp"
#include "studies/opened_result.hpp"
#include "studies/palette.hpp"

namespace draftproof {
namespace {

using nlohmann::ordered_json;
using regress::CaseResult;
using regress::RegressCase;
using regress::Verdict;

int badness(Verdict verdict) {
  return verdict == Verdict::different ? 2 : verdict == Verdict::skipped ? 1 : 0;
}

// The matrix of the results so far.
std::vector<KernelRow> matrix_of(const std::vector<CaseResult>& results) {
  std::vector<KernelRow> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const CaseResult& result = results[i];
    const std::size_t slash = std::min(result.name.find('/'), result.name.size());
    const std::string kernel = result.name.substr(0, slash);
    const std::string name = result.name.substr(std::min(slash + 1, result.name.size()));
    if (rows.empty() || rows.back().kernel != kernel) rows.emplace_back().kernel = kernel;
    KernelRow& row = rows.back();
    if (row.cells.empty() || row.cells.back().name != name) row.cells.emplace_back().name = name;
    KernelCell& cell = row.cells.back();
    cell.results.push_back(i);
    if (badness(result.verdict) > badness(cell.verdict)) cell.verdict = result.verdict;
    ++(result.verdict == Verdict::equal       ? row.equal
       : result.verdict == Verdict::different ? row.different
                                              : row.skipped);
    row.seconds += result.seconds;
  }
  return rows;
}

class Publisher {
 public:
  Publisher(const KernelsSettings& settings, const PublishKernels& publish, const std::optional<KernelTimes>& times)
      : publish_(publish), begin_(Clock::now()) {
    snapshot_.settings = settings;
    snapshot_.times = times;
  }

  void add_cases(std::size_t cases) { snapshot_.cases += cases; }
  // Not more often than a person sees.
  bool is_due() const { return Clock::now() - shown_ >= std::chrono::milliseconds(150); }
  void show(std::vector<CaseResult> results) {
    shown_ = Clock::now();
    snapshot_.report.results = std::move(results);
    snapshot_.report.seconds = std::chrono::duration<double>(shown_ - begin_).count();
    snapshot_.kernels = matrix_of(snapshot_.report.results);
    publish_(snapshot_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  const PublishKernels& publish_;
  KernelsSnapshot snapshot_;
  Clock::time_point begin_;
  Clock::time_point shown_{};
};

// The cases of one operation. Results are shown in the order of the cases, as far as they are there.
void run_operation(const std::vector<RegressCase>& cases, const KernelsSettings& settings,
                   const regress::Digests& golden, Job& job, Publisher& publisher, std::vector<CaseResult>& results,
                   double done, double share) {
  regress::RegressionOptions options;
  options.seed = settings.seed;
  std::vector<std::vector<CaseResult>> of_case(cases.size());
  std::mutex mutex;
  std::size_t finished = 0;
  const auto so_far = [&] {
    std::vector<CaseResult> all = results;
    for (const std::vector<CaseResult>& more : of_case) all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  parallel_for(static_cast<std::int64_t>(cases.size()), static_cast<int>(settings.threads), [&](std::int64_t i, int) {
    job.check();
    const auto index = static_cast<std::size_t>(i);
    std::vector<CaseResult> found = regress::run_case(cases[index], options);
    for (CaseResult& result : found) regress::check_digest(result, golden);
    const std::lock_guard lock(mutex);
    of_case[index] = std::move(found);
    ++finished;
    job.report(done + share * static_cast<double>(finished) / static_cast<double>(cases.size()), cases[index].name);
    if (publisher.is_due()) publisher.show(so_far());
  });
  results = so_far();
}

// One operation after the other: the inputs of all take seconds to make.
void run_sound(const KernelsSettings& settings, Job& job, Publisher& publisher) {
  const regress::Digests golden = regress::read_digests(own_file("golden/digests.txt"));
  const std::vector<std::string> operations = regress::operations_named(settings.filter);
  regress::RegressionReport report;
  std::vector<RegressCase> all;
  const double share = 1.0 / static_cast<double>(std::max<std::size_t>(operations.size(), 1));
  double done = 0.0;
  for (const std::string& operation : operations) {
    job.report(done, "making inputs of " + operation);
    job.check();
    std::vector<RegressCase> cases = regress::cases_of(operation, settings.filter);
    publisher.add_cases(cases.size());
    run_operation(cases, settings, golden, job, publisher, report.results, done, share);
    done += share;
    for (RegressCase& one : cases) all.push_back({std::move(one.name), {}, {}, false});
  }
  if (all.empty()) throw usage_error("--filter", "no case has '" + settings.filter + "' in its name");
  regress::check_digests(report, all, golden, settings.filter.empty());
  publisher.show(std::move(report.results));
}

void run_fault(const KernelsSettings& settings, Job& job, Publisher& publisher) {
  std::vector<CaseResult> results;
  job.report(0.0, "running fault " + settings.fault);
  regress::run_fault(regress::faults_folder(), settings.fault, settings.seed, "--fault", [&](CaseResult result) {
    results.push_back(std::move(result));
    if (publisher.is_due()) publisher.show(results);
    return !job.cancelled();
  });
  job.check();
  publisher.show(std::move(results));
}

ordered_json document_at(const std::string& path) {
  return open_result(path).document;
}

std::optional<double> number_or_none(const ordered_json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

}  // namespace

std::vector<std::string> kernel_faults() {
  return regress::built_faults(regress::faults_folder());
}

KernelTimes kernel_times_of(const ordered_json& document, const std::string& path) {
  if (document.is_object() && document.contains("bench")) return kernel_times_of(document.at("bench"), path);
  if (!document.is_object() || !document.contains("copy_bandwidth_bytes_per_s"))
    throw input_error(path,
                      "is no document of `draftproof bench --device cuda --json`; expected "
                      "copy_bandwidth_bytes_per_s and results");
  KernelTimes times;
  times.path = path;
  std::string where = path;
  try {
    times.gpu = document.at("gpu").at("name").get<std::string>();
    times.copy_bandwidth = document.at("copy_bandwidth_bytes_per_s").get<double>();
    for (const ordered_json& row : document.at("results")) {
      where = path + ", result " + std::to_string(times.rows.size());
      KernelTime& time = times.rows.emplace_back();
      time.name = row.at("name").get<std::string>();
      time.what = row.at("what").get<std::string>();
      time.floor_ms = row.at("floor_ms").get<double>();
      time.median_ms = row.at("ms_median").get<double>();
      time.best_ms = row.at("ms_best").get<double>();
      time.goal_ms = number_or_none(row.at("goal_ms"));
      if (!row.at("met").is_null()) time.met = row.at("met").get<bool>();
      if (!(time.floor_ms > 0.0 && time.median_ms > 0.0))
        throw input_error(where, "a time is not above 0; expected milliseconds");
    }
  } catch (const ordered_json::exception&) {
    throw input_error(where,
                      "it has no gpu, name, what, floor_ms, ms_median, ms_best, goal_ms or met; "
                      "expected what `draftproof bench --device cuda --json` writes");
  }
  return times;
}

std::string latest_gpu_result() {
  std::string latest;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(own_file("gpu_results"), absent))
    if (entry.path().extension() == ".json") latest = std::max(latest, entry.path().string());
  return latest;
}

void compute(const KernelsSettings& settings, Job& job, const PublishKernels& publish) {
  std::optional<KernelTimes> times;
  if (!settings.bench.empty()) times = kernel_times_of(document_at(settings.bench), settings.bench);
  Publisher publisher(settings, publish, times);
  if (!settings.opened.empty()) {
    publisher.show(regress::regression_of(document_at(settings.opened), settings.opened).results);
  } else if (!settings.fault.empty()) {
    run_fault(settings, job, publisher);
  } else {
    run_sound(settings, job, publisher);
  }
}

ordered_json to_json(const KernelsSnapshot& snapshot) {
  ordered_json document;
  document["fault"] = snapshot.settings.fault.empty() ? ordered_json(nullptr) : ordered_json(snapshot.settings.fault);
  document.update(regress::to_json(snapshot.report, "simt"));
  return document;
}

Table to_table(const KernelsSnapshot& snapshot) {
  Table table;
  table.columns = {"case",  "block_threads", "verdict",      "seconds", "digest",  "output",
                   "index", "found_hex",     "expected_hex", "found",   "expected"};
  for (const CaseResult& result : snapshot.report.results) {
    const regress::Difference difference = result.difference.value_or(regress::Difference{});
    table.rows.push_back(
        {result.name, std::int64_t{result.block_threads}, name_of(result.verdict), result.seconds, result.digest,
         difference.output, result.difference ? TableCell(difference.index) : TableCell(std::string()),
         difference.found.hex, difference.expected.hex, difference.found.decimal, difference.expected.decimal});
  }
  return table;
}

std::string to_figure(const KernelsSnapshot& snapshot) {
  std::ostringstream script;
  if (snapshot.times && !snapshot.times->rows.empty()) {
    script << "$times << EOD\n";
    for (const KernelTime& time : snapshot.times->rows)
      script << '"' << time.name << "\" " << time.floor_ms << ' ' << time.median_ms << '\n';
    script << "EOD\nset title " << gnuplot_quoted(printable_line(snapshot.times->gpu)) << "\n"
           << "set style data histogram\nset style fill solid\nset logscale y\nset ylabel 'ms'\n"
           << "set xtics rotate by -35\nset grid ytics lc rgb '#dddddd'\nset key top left\n"
           << "plot $times using 2:xtic(1) lc rgb '" << palette::kSkyBlue.hex
           << "' title 'floor', $times using 3 lc rgb '" << palette::kBlue.hex << "' title 'median'\n";
    return script.str();
  }
  script << "$kernels << EOD\n";
  for (const KernelRow& row : snapshot.kernels)
    script << '"' << row.kernel << "\" " << row.equal << ' ' << row.different << ' ' << row.skipped << '\n';
  script << "EOD\nset style data histogram\nset style histogram rowstacked\nset style fill solid\nset boxwidth 0.7\n"
         << "set ylabel 'results'\nset xtics rotate by -35\nset grid ytics lc rgb '#dddddd'\nset key below\n"
         << "plot $kernels using 2:xtic(1) lc rgb '" << palette::kAccepted.hex
         << "' title 'equal', $kernels using 3 lc rgb '" << palette::kRecovered.hex
         << "' title 'different', $kernels using 4 lc rgb '" << palette::kGrey.hex << "' title 'skipped'\n";
  return script.str();
}

std::vector<std::string> command_arguments(const KernelsSettings& settings) {
  if (!settings.opened.empty()) {
    const ordered_json document = document_at(settings.opened);
    if (document.contains("command") && document.at("command").is_string())
      return shell_arguments(document.at("command").get<std::string>());
  }
  std::vector<std::string> arguments{"draftproof", "regress"};
  if (!settings.fault.empty()) {
    arguments.insert(arguments.end(), {"--fault", settings.fault});
  } else {
    if (!settings.filter.empty()) arguments.insert(arguments.end(), {"--filter", settings.filter});
    arguments.insert(arguments.end(), {"--threads", std::to_string(settings.threads)});
  }
  arguments.insert(arguments.end(), {"--seed", std::to_string(settings.seed)});
  return arguments;
}

std::vector<Lesson<KernelsSettings>> lessons(const KernelsSettings& current) {
  KernelsSettings sound;
  sound.bench = current.bench;
  KernelsSettings fault = sound;
  if (const auto faults = kernel_faults(); !faults.empty()) fault.fault = faults.front();
  std::vector<Lesson<KernelsSettings>> all{
      {"bit for bit", "Every field is a case; all bits of its outputs are those of the reference.", sound}};
  if (!fault.fault.empty())
    all.push_back({"a planted fault", "A kernel with one fault in it: red fields are the cases that show it.", fault});
  return all;
}

}  // namespace draftproof

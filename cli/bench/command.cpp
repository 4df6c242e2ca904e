// draftproof bench: how fast this machine runs the reference, in ratios to what it could do at best.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "cli/bench/cases.hpp"
#include "cli/bench/device.hpp"
#include "cli/bench/peer.hpp"
#include "cli/bench/result.hpp"
#include "cli/shared/artefacts.hpp"
#include "cli/shared/command.hpp"
#include "cli/shared/json_document.hpp"
#include "cli/shared/progress.hpp"
#include "cli/shared/python.hpp"
#include "sim/machine/bandwidth.hpp"

namespace draftproof {
namespace {

struct BenchOptions {
  std::vector<int> threads;
  int repeat = 15;
  std::string filter;
  bool quick = false;
  std::string pytorch = "auto";
  std::string llama_cpp = "auto";
  std::string out;
  Artefacts artefacts;
  bool json = false;
  std::string device = "cpu";
  std::string write_inputs;
};

constexpr int kPeerRepeat = 3;  // a peer's runs are long, and their fastest settles at once

using Clock = std::chrono::steady_clock;

double milliseconds_of(const std::function<void()>& body) {
  const auto begin = Clock::now();
  body();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options)
      : options_(options), sizes_(options.quick ? kQuickSizes : BenchSizes{}), probe_(sizes_.probe_bytes) {}

  void run() {
    std::vector<BenchCase> cases = bandwidth_cases();
    const auto add = [&](std::vector<BenchCase> more) {
      std::erase_if(more, [&](const BenchCase& c) { return c.name.find(options_.filter) == std::string::npos; });
      std::move(more.begin(), more.end(), std::back_inserter(cases));
    };
    const std::size_t bandwidth_count = cases.size();
    add(row_cases(sizes_));
    add(verify_cases(options_.threads, [this]() -> const BenchVerifyInputs& { return inputs(); }));
    add(soak_cases(options_.threads, sizes_));
    add(forward_cases(options_.threads, options_.quick));
    if (!options_.quick) add(shipped_model_cases(options_.threads));
    add(scheduler_cases(sizes_));
    add(simulator_cases(sizes_));
    if (options_.filter.starts_with("policy")) add(policy_cases(options_.threads, options_.quick));
    if (cases.size() == bandwidth_count)
      throw usage_error("--filter", "no measurement has '" + options_.filter + "' in its name");
    const std::optional<std::string> pytorch = choose_pytorch();
    const std::optional<std::string> llama_cpp = choose_llama_cpp(cases);
    Progress progress("bench", cases.size() + (pytorch ? 1 : 0) + (llama_cpp ? 1 : 0), "measurements");
    for (const BenchCase& one : cases) {
      measure(one);
      progress.advance();
    }
    if (pytorch) {
      compare_with_pytorch(*pytorch);
      progress.advance();
    }
    if (llama_cpp) compare_with_llama_cpp(*llama_cpp);
  }

  const std::vector<BenchResult>& results() const { return results_; }
  const std::string& pytorch_version() const { return pytorch_version_; }
  const std::string& llama_cpp_version() const { return llama_cpp_version_; }

 private:
  const BenchVerifyInputs& inputs() {
    if (!inputs_)
      inputs_ = make_verify_inputs(sizes_.batch, sizes_.draft_len, sizes_.verify_vocab_size,
                                   *std::max_element(options_.threads.begin(), options_.threads.end()));
    return *inputs_;
  }

  std::vector<BenchCase> bandwidth_cases() {
    std::vector<int> counts = options_.threads;
    if (std::find(counts.begin(), counts.end(), 1) == counts.end()) counts.insert(counts.begin(), 1);
    std::vector<BenchCase> cases;
    for (const int threads : counts) {
      const auto prepare = [this, threads] {
        BenchWork work;
        work.bytes = probe_.bytes();
        work.body = [this, threads] { probe_.read(threads); };
        return work;
      };
      cases.push_back({"read_bandwidth", threads, std::nullopt, false, prepare});
    }
    return cases;
  }

  void measure(const BenchCase& one) {
    const BenchWork work = one.prepare();
    std::vector<double> body_ms;
    std::vector<double> mass_ms;
    std::vector<double> one_row_ms;
    work.body();  // pages are touched and buffers allocated before the clock runs
    // Short bodies are repeated more often: their fastest run then falls between two interruptions.
    constexpr double kEnoughMs = 100.0;
    constexpr std::size_t kManyRepeats = 1000;
    double spent_ms = 0.0;
    const auto wanted = static_cast<std::size_t>(options_.repeat);
    while (body_ms.size() < wanted ||
           (!options_.quick && !one.cold && !work.compare && spent_ms < kEnoughMs && body_ms.size() < kManyRepeats)) {
      if (one.cold) probe_.read(1);
      body_ms.push_back(milliseconds_of(work.body));
      spent_ms += body_ms.back();
      if (work.one_row) one_row_ms.push_back(milliseconds_of(work.one_row));
      if (!work.mass_pass) continue;
      if (one.cold) probe_.read(1);
      mass_ms.push_back(milliseconds_of(work.mass_pass));
    }
    std::sort(body_ms.begin(), body_ms.end());
    BenchResult result;
    result.name = one.name;
    result.threads = one.threads;
    result.ms = body_ms.front();
    result.ms_median = body_ms[body_ms.size() / 2];
    result.elements = work.elements;
    result.bytes = work.bytes;
    result.message_bytes = work.message_bytes;
    result.acceptance_length = work.acceptance_length;
    result.goal = one.goal;
    if (work.compare) result.policy = work.compare();
    if (!mass_ms.empty()) result.mass_pass_ms = *std::min_element(mass_ms.begin(), mass_ms.end());
    if (!one_row_ms.empty()) result.one_row_ms = *std::min_element(one_row_ms.begin(), one_row_ms.end());
    if (one.name == "read_bandwidth") bytes_per_s_[one.threads] = static_cast<double>(*work.bytes) / (result.ms * 1e-3);
    result.bandwidth_bytes_per_s = bytes_per_s_.at(one.threads);
    results_.push_back(std::move(result));
  }

  // The interpreter for a peer, where it is wanted and there.
  static std::optional<std::string> choose(const std::string& option, const std::string& wanted, bool by_itself,
                                           const std::vector<std::string>& modules, const std::string& package) {
    if (wanted == "off" || (wanted == "auto" && !by_itself)) return std::nullopt;
    const std::optional<std::string> python = find_python_with(modules);
    if (!python && wanted == "on")
      throw usage_error(option,
                        "neither $DRAFTPROOF_PYTHON nor python3 imports " + modules.front() + "; install " + package);
    return python;
  }

  std::optional<std::string> choose_pytorch() const {
    return choose("--pytorch", options_.pytorch, !options_.quick, {"torch"}, "python3-torch");
  }

  std::optional<std::string> choose_llama_cpp(const std::vector<BenchCase>& cases) const {
    const bool compared = std::ranges::any_of(cases, [](const BenchCase& c) { return c.name.starts_with("shipped_"); });
    if (!compared && options_.llama_cpp == "on")
      throw usage_error("--llama-cpp",
                        "the shipped model is not measured; expected it to be there (./draftproof fetch smollm2 "
                        "downloads it), and neither --quick nor a --filter that leaves out its cases, shipped_...");
    return choose("--llama-cpp", options_.llama_cpp, compared, llama_cpp_modules(), "the Python package xllamacpp");
  }

  void compare_with_pytorch(const std::string& python) {
    const PeerTimings timings =
        time_pytorch(python, inputs(), bench_row(sizes_.row_vocab_size), options_.threads, kPeerRepeat);
    pytorch_version_ = timings.version;
    for (BenchResult& result : results_) {
      // Softmax is one thing to PyTorch, whichever kernel set it is compared with.
      const bool is_mass = result.name.rfind("row_mass_", 0) == 0;
      const auto found = timings.ms.find({is_mass ? "row_mass" : result.name, result.threads});
      if (found != timings.ms.end()) result.pytorch_ms = found->second;
    }
  }

  void compare_with_llama_cpp(const std::string& python) {
    const PeerTimings timings = time_llama_cpp(python, options_.threads, kPeerRepeat);
    llama_cpp_version_ = timings.version;
    for (BenchResult& result : results_) {
      const auto found = timings.ms.find({result.name, result.threads});
      if (found != timings.ms.end()) result.llama_cpp_ms = found->second;
    }
  }

  BenchOptions options_;
  BenchSizes sizes_;
  BandwidthProbe probe_;
  std::optional<BenchVerifyInputs> inputs_;
  std::map<int, double> bytes_per_s_;
  std::vector<BenchResult> results_;
  std::string pytorch_version_;
  std::string llama_cpp_version_;
};

Json document_of(const Bench& bench, const ProgramContext& context) {
  Json document = json_document(context.arguments);
  document["pytorch"] = text_or_null(bench.pytorch_version());
  document["llama_cpp"] = text_or_null(bench.llama_cpp_version());
  document["results"] = json_list(bench.results(), [](const BenchResult& result) { return to_json(result); });
  return document;
}

void run_bench(BenchOptions options, const ProgramContext& context) {
  require_writable({{"--out", options.out}});
  require_artefacts(options.artefacts);
  if (options.device == "cuda") {
    return run_device_bench(
        {options.filter, options.repeat, options.quick, options.write_inputs, options.out, options.json},
        context.arguments);
  }
  if (options.threads.empty()) {
    const int all = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.threads = all == 1 ? std::vector<int>{1} : std::vector<int>{1, all};
  }
  std::sort(options.threads.begin(), options.threads.end());
  options.threads.erase(std::unique(options.threads.begin(), options.threads.end()), options.threads.end());
  Bench bench(options);
  bench.run();
  const Json document = document_of(bench, context);
  if (!options.out.empty()) write_json_file(options.out, document);
  write_table_of(options.artefacts, "Time of the reference", context, [&] {
    return table_of(document.at("results"), {"name", "threads", "ms", "ns_per_element", "gb_per_s",
                                             "ratio_to_bandwidth", "ratio_to_pytorch", "ratio_to_llama_cpp"});
  });
  if (options.json) return print_json(document);
  print_bench_table(std::cout, bench.results());
  const auto measured_with = [](const std::string& name, const std::string& version) {
    return version.empty() ? " (" + name + " was not timed)" : " (" + name + " " + version + ")";
  };
  std::cout << "\nms: the fastest repeat; ratios are of fastest to fastest. x: a peer's time over ours"
            << measured_with("PyTorch", bench.pytorch_version())
            << measured_with("llama.cpp", bench.llama_cpp_version()) << ".\n";
}

}  // namespace

void add_bench(Options& options, ProgramContext& context) {
  const auto arguments = std::make_shared<BenchOptions>();
  options.json(arguments->json);
  options.integers("--threads", arguments->threads, kThreadRange, "Numbers of threads, as 1,2 (default: 1 and all)");
  options.integer("--repeat", arguments->repeat, {1, 100'000}, "Repeats of every measurement, at least");
  options.text("--filter", arguments->filter, "Only the measurements that have this in their name");
  options.choice("--device", arguments->device, {"cpu", "cuda"},
                 "Device: the reference on the cpu, or the kernels on cuda");
  options.text("--write-inputs", arguments->write_inputs,
               "With --device cuda: also write the tensors of the peer's case here", "FOLDER");
  options.flag("--quick", arguments->quick, "Tiny sizes: shows that it runs, measures nothing of meaning");
  options.choice("--pytorch", arguments->pytorch, {"auto", "off", "on"},
                 "Time PyTorch too: auto (when installed), off, on");
  options.choice("--llama-cpp", arguments->llama_cpp, {"auto", "off", "on"},
                 "Time llama.cpp on the shipped model too: auto (when installed), off, on");
  options.file("--out", arguments->out, "Also write the JSON document to this file");
  options.used_only({"--write-inputs"}, "without --device cuda", [arguments] { return arguments->device == "cuda"; });
  add_table(options, arguments->artefacts);
  options.used_only({"--threads", "--pytorch", "--llama-cpp", "--table"}, "with --device cuda",
                    [arguments] { return arguments->device != "cuda"; });
  options.examples({"--quick", "--filter rows --threads 1,2", "--device cuda --out bench.json"});
  options.on_run([arguments, &context] { run_bench(*arguments, context); });
}

}  // namespace draftproof

#include "cli/bench/device.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/error.hpp"
#include "cli/shared/json_document.hpp"
#include "gpu/api.hpp"
#include "gpu/bench/kernel_cases.hpp"
#include "gpu/gpu_clock.hpp"

namespace draftproof {
namespace {

#if defined(DRAFTPROOF_HAS_CUDA)

// For tests of the program: every measurement is taken, none means anything.
constexpr bench::KernelSizes kQuickKernelSizes{4, 3, 8192, 16, 8192};

Json gpu_json() {
  const cuda_executor::GpuDescription gpu = cuda_executor::describe_gpu();
  return {{"name", gpu.name},
          {"driver", gpu.driver},
          {"runtime", gpu.runtime},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"l2_bytes", gpu.l2_bytes}};
}

// Goals hold for the default sizes on an H200; elsewhere the numbers stand without a judgement.
Json measure(const bench::KernelCase& one, int repeat, double bandwidth, bool judged) {
  const bench::KernelWork work = one.prepare();
  cuda_executor::KernelTimes times = cuda_executor::milliseconds(repeat, work.start);
  for (std::vector<double>* const of : {&times.launched, &times.of_graph}) std::sort(of->begin(), of->end());
  const double median_ms = times.launched[times.launched.size() / 2];
  const double floor_ms = static_cast<double>(work.bytes) / bandwidth * 1e3;
  Json row;
  row["name"] = one.name;
  row["what"] = one.what;
  row["bytes"] = work.bytes;
  row["floor_ms"] = finite("floor_ms", floor_ms);
  row["ms_median"] = finite("ms_median", median_ms);
  row["ms_best"] = finite("ms_best", times.launched.front());
  row["ms_median_graph"] = finite("ms_median_graph", times.of_graph[times.of_graph.size() / 2]);
  row["share_of_bandwidth"] = finite("share_of_bandwidth", floor_ms / median_ms);
  row["goal_ms"] = or_null(one.goal_ms);
  row["met"] = nullptr;
  if (judged && one.goal_ms) row["met"] = median_ms <= *one.goal_ms;
  return row;
}

void print_table(const Json& document) {
  std::printf("%s, copy bandwidth %.2f TB/s\n", document["gpu"]["name"].get<std::string>().c_str(),
              document["copy_bandwidth_bytes_per_s"].get<double>() * 1e-12);
  std::printf("%-28s %-44s %9s %9s %9s %6s  %s\n", "kernel", "", "floor us", "median us", "in graph", "share", "goal");
  for (const Json& row : document["results"]) {
    std::string goal;
    if (!row["goal_ms"].is_null()) goal = std::to_string(static_cast<int>(row["goal_ms"].get<double>() * 1e3)) + " us";
    if (!row["met"].is_null()) goal += row["met"].get<bool>() ? "  met" : "  MISSED";
    std::printf("%-28s %-44s %9.1f %9.1f %9.1f %6.2f  %s\n", row["name"].get<std::string>().c_str(),
                row["what"].get<std::string>().c_str(), row["floor_ms"].get<double>() * 1e3,
                row["ms_median"].get<double>() * 1e3, row["ms_median_graph"].get<double>() * 1e3,
                row["share_of_bandwidth"].get<double>(), goal.c_str());
  }
}

#endif

}  // namespace

void run_device_bench(const DeviceBenchOptions& options, const std::vector<std::string>& arguments) {
  const std::string why = device::why_unavailable(DRAFTPROOF_CUDA);
  if (!why.empty()) throw usage_error("--device cuda", why);
#if defined(DRAFTPROOF_HAS_CUDA)
  const bench::KernelSizes sizes = options.quick ? kQuickKernelSizes : bench::KernelSizes{};
  std::vector<bench::KernelCase> cases = bench::kernel_cases(sizes, options.write_inputs);
  std::erase_if(cases, [&](const bench::KernelCase& c) {
    return (c.name + " " + c.what).find(options.filter) == std::string::npos;
  });
  if (cases.empty()) throw usage_error("--filter", "no measurement has '" + options.filter + "' in its name");
  Json document = json_document(arguments);
  document["gpu"] = gpu_json();
  const double bandwidth = cuda_executor::copy_bandwidth_bytes_per_s();
  document["copy_bandwidth_bytes_per_s"] = finite("copy_bandwidth_bytes_per_s", bandwidth);
  document["results"] = Json::array();
  for (const bench::KernelCase& one : cases)
    document["results"].push_back(measure(one, options.repeat, bandwidth, !options.quick));
  if (!options.out.empty()) write_json_file(options.out, document);
  if (options.json) return print_json(document);
  print_table(document);
#else
  static_cast<void>(options);
  static_cast<void>(arguments);
#endif
}

}  // namespace draftproof

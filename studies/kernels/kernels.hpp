// The panel "Kernels": the regression by kernel and case as `draftproof regress` runs it on the CPU executor, a
// fault's as it fails, and the times of `draftproof bench --device cuda` against their floors.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "gpu/regress/regression.hpp"
#include "studies/figures/table.hpp"
#include "studies/job.hpp"

namespace draftproof {

// Cases of every kernel that take a few seconds together.
inline constexpr const char* kQuickKernelCases =
    "mass_pass/padded/f32,guidance/padded/f32,sample/plain/f32,logprobs/plain/n20/bf16,verify_chain/seeds,verify_block/"
    "seeds,"
    "verify_tree/no_nodes,tree_mask/,kv_commit/";

struct KernelsSettings {
  std::string filter = kQuickKernelCases;  // parts of names of cases, as a,b,c; empty: all cases
  std::string fault;                       // id, or empty: the sound kernels
  std::uint64_t seed = 1;                  // order of threads and blocks on the CPU executor
  std::int64_t threads = 2;                // cases at once
  std::string opened;                      // a document of `regress --json` shown instead of a run, or empty
  std::string bench;                       // a document of `bench --device cuda --json`, or empty: none

  bool operator==(const KernelsSettings&) const = default;
};

// A case in all its launch configurations.
struct KernelCell {
  std::string name;                                    // of the case, without its kernel's
  regress::Verdict verdict = regress::Verdict::equal;  // the worst of them
  std::vector<std::size_t> results;                    // of the report
};

struct KernelRow {
  std::string kernel;  // call of draftproof.h
  std::vector<KernelCell> cells;
  std::int64_t equal = 0, different = 0, skipped = 0;  // results
  double seconds = 0.0;
};

// A measurement on a GPU.
struct KernelTime {
  std::string name, what;
  double floor_ms = 0.0, median_ms = 0.0, best_ms = 0.0;
  std::optional<double> goal_ms;
  std::optional<bool> met;

  double over_floor() const { return median_ms / floor_ms; }
};

struct KernelTimes {
  std::string path, gpu;
  double copy_bandwidth = 0.0;  // bytes a second
  std::vector<KernelTime> rows;
};

struct KernelsSnapshot {
  KernelsSettings settings;
  regress::RegressionReport report;  // so far
  std::vector<KernelRow> kernels;    // of the report, in its order
  std::size_t cases = 0;             // whose inputs are made; of a run that is not opened or a fault's
  std::optional<KernelTimes> times;
};

// Ids of the faults whose programs are built.
std::vector<std::string> kernel_faults();
// The document of bench, alone or as gpu/run_on_gpu.sh keeps it; or an error (input) naming the path or the row.
KernelTimes kernel_times_of(const nlohmann::ordered_json& document, const std::string& path);
// The newest document that gpu/run_on_gpu.sh left in gpu/results; empty where there is none.
std::string latest_gpu_result();

using PublishKernels = std::function<void(KernelsSnapshot)>;
void compute(const KernelsSettings& settings, Job& job, const PublishKernels& publish);
nlohmann::ordered_json to_json(const KernelsSnapshot& snapshot);
Table to_table(const KernelsSnapshot& snapshot);
// Times against their floors; without them the results by kernel.
std::string to_figure(const KernelsSnapshot& snapshot);
std::vector<std::string> command_arguments(const KernelsSettings& settings);

}  // namespace draftproof

// draftproof regress --library and --python: somebody else's kernels (gpu/draftproof_kernels.h, or Python) on the
// regression's cases.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/shared/command.hpp"
#include "gpu/regress/regression.hpp"

namespace draftproof {

struct LibraryOptions {
  std::string file;    // of a library; else
  std::string python;  // MODULE:FUNCTION
  std::string call;    // of that function, where its name does not say it
  std::string within;  // bits, distribution, replay; empty: as the library's random numbers ask for
  std::string filter;
  std::vector<std::string> without;  // parameters that the library does not take
  std::string junit;                 // where a JUnit file is written; empty: nowhere
  std::int64_t draws = 20'000;
  double case_seconds = 60.0;
  std::uint64_t seed = 1;
  bool json = false;
};

inline bool has_kernels(const LibraryOptions& options) {
  return !options.file.empty() || !options.python.empty();
}
void run_library_regression(const LibraryOptions& options, ProgramContext& context);

// Writes a library to begin with into `folder`, which must be empty or not there: `kind` is cpu or cuda. Errors
// (input) naming the folder or the file.
void write_skeleton(const std::string& kind, const std::string& folder);

// Print the mismatches of a regression, and a line for each call.
void print_findings(const regress::RegressionReport& report);
void print_tallies(const regress::RegressionReport& report);

// The results as JUnit's XML, a test case a row; complete or not at all. Error (input) naming the path.
void write_junit(const std::string& path, const regress::RegressionReport& report);

// DRAFTPROOF_REQUIRE_GPU=1: a skip for want of a GPU is an error.
bool gpu_is_required();

}  // namespace draftproof

// Runs cases on an executor, compares every bit with the reference, and every digest with the golden file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

enum class Verdict : std::uint8_t { equal, different, skipped };
std::string name_of(Verdict verdict);

// The first element that differs.
struct Difference {
  std::string output;
  std::int64_t index = 0;
  struct Value {
    std::string hex;      // of the element's bits, the most significant first: "0xbf800000"
    std::string decimal;  // as the array's type reads them: "-1"; empty of an array of bits
  };
  Value found, expected;
};

struct CaseResult {
  std::string name;
  int block_threads = 0;  // 0: the kernels' own choice
  Verdict verdict = Verdict::equal;
  std::string finding;  // of `different`: what differs, and the line that runs it again; of `skipped`: why
  std::string digest;   // of the reference's outputs, 16 hexadecimal digits
  double seconds = 0.0;
  std::optional<Difference> difference;  // of `different`, where two elements differ
};

struct RegressionOptions {
  draftproof_executor executor = DRAFTPROOF_SIMT;
  std::uint64_t seed = 1;  // of the CPU executor's order
  int os_threads = 1;
};

// FNV-1a of names, element sizes and bytes.
std::string digest_of(const std::vector<Output>& outputs);

// The first element whose bits differ; nothing where none does, or where outputs have other names or sizes.
std::optional<Difference> difference_of(const std::vector<Output>& expected, const std::vector<Output>& found);
// Empty where both are the same bits; else the output, the first index that differs and both values, in hexadecimal and
// decimal.
std::string first_difference(const std::vector<Output>& expected, const std::vector<Output>& found);

// One result for each launch configuration of the case. Nothing is thrown for a fault of a kernel: it is a finding.
std::vector<CaseResult> run_case(const RegressCase& one, const RegressionOptions& options);

// The golden file: a line `digest name` for each case, sorted by name. Errors (input) naming file and line.
using Digests = std::map<std::string, std::string>;
Digests read_digests(const std::filesystem::path& file);
void write_digests(const std::filesystem::path& file, const Digests& digests);

// The results of one call's cases.
struct CallTally {
  std::string call;
  std::int64_t equal = 0, different = 0, skipped = 0;
  double seconds = 0.0;
};

struct RegressionReport {
  std::vector<CaseResult> results;
  double seconds = 0.0;

  std::int64_t count(Verdict verdict) const;
  bool is_finding() const { return count(Verdict::different) > 0; }
  std::vector<std::string> findings() const;  // "case: what differs", of what is different
  std::vector<CallTally> by_call() const;
  std::string why_skipped() const;  // of the first case that was; empty where none was
};

// All launch configurations of the cases, `threads` cases at once on the CPU executor; a GPU takes one after the other.
// Skipped where the executor cannot run here. `done` is called after each case, from any thread.
RegressionReport run_cases(const std::vector<RegressCase>& cases, const RegressionOptions& options, int threads,
                           const std::function<void()>& done = {});

// Compares with the golden file. every_case: `cases` are all there are, so that a name that only the golden file has is
// a finding.
void check_digests(RegressionReport& report, const std::vector<RegressCase>& cases, const Digests& golden,
                   bool every_case);

// Turns a result that contradicts the golden file, or is missing there, into a finding.
void check_digest(CaseResult& result, const Digests& golden);

}  // namespace draftproof::regress

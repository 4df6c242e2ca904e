// Runs cases on an executor, compares every bit with the reference, and every digest with the golden file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gpu/regress/case.hpp"

namespace draftproof::regress {

enum class Verdict : std::uint8_t { equal, different, skipped };

struct CaseResult {
  std::string name;
  int block_threads = 0;  // 0: the kernels' own choice
  Verdict verdict = Verdict::equal;
  std::string finding;  // of `different`: what differs, and the line that runs it again; of `skipped`: why
  std::string digest;   // of the reference's outputs, 16 hexadecimal digits
  double seconds = 0.0;
};

struct RegressionOptions {
  draftproof_executor executor = DRAFTPROOF_SIMT;
  std::uint64_t seed = 1;  // of the CPU executor's order
  int os_threads = 1;
};

// FNV-1a of names, element sizes and bytes.
std::string digest_of(const std::vector<Output>& outputs);

// Empty where both are the same bits; else the output, the first index that differs and both values in hexadecimal.
std::string first_difference(const std::vector<Output>& expected, const std::vector<Output>& found);

// One result for each launch configuration of the case. Nothing is thrown for a fault of a kernel: it is a finding.
std::vector<CaseResult> run_case(const RegressCase& one, const RegressionOptions& options);

// The golden file: a line `digest name` for each case, sorted by name. Errors (input) naming file and line.
using Digests = std::map<std::string, std::string>;
Digests read_digests(const std::filesystem::path& file);
void write_digests(const std::filesystem::path& file, const Digests& digests);

// Turns a result that contradicts the golden file, or is missing there, into a finding.
void check_digest(CaseResult& result, const Digests& golden);

}  // namespace draftproof::regress

// The regression of somebody else's kernels (draftproof_kernels.h): every case that their calls can express, each in a
// child process, judged by a function of the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/regress/kernel_library.hpp"
#include "gpu/regress/library_inputs.hpp"
#include "gpu/regress/regression.hpp"

namespace draftproof::regress {

struct LibraryCase {
  std::string name;  // call/what is special/sizes
  std::string call;  // of kLibraryCalls
  std::shared_ptr<const RegressCase> inputs;
};
// The cases of these calls that have `part` in their name, or one of several parts "a,b,c". Filters are tried on the
// rows of `sample`.
std::vector<LibraryCase> library_cases(const std::vector<std::string>& calls, const std::string& parts);

// The library's own description, found out in a child process. Errors as of KernelLibrary; (input): loading it, or
// describe(), crashes or does not end within `seconds_max`.
struct LibraryProbe {
  LibraryDescription description;
  std::string why_unavailable;  // it takes device memory, and there is no GPU; else empty
};
LibraryProbe probe_library(const KernelSource& source, double seconds_max);

// The fault in the outputs of one case; `finding` is empty where there is none.
struct LibraryJudgement {
  std::string finding = {};
  std::optional<Difference> difference = {};
  bool judged = true;  // false: there is nothing in the case that this judge could look at
  std::optional<std::vector<std::string>> parameters = {};  // of what it looked at, where that is not the whole case
};
using LibraryJudge = std::function<LibraryJudgement(const KernelLibrary&, const LibraryCase&, const LibraryInputs&)>;

// A parameter of a call, and how many of the cases that set it were compared: the others the library refused.
struct ParameterCoverage {
  std::string call, parameter;
  std::int64_t compared = 0;
};

struct LibraryReport {
  RegressionReport regression;
  std::int64_t left_out = 0;                // cases that the calls cannot express, or of which nothing can be judged
  std::vector<ParameterCoverage> coverage;  // of the parameters that any case set

  // "filter top_p", of parameters of `coverage` that nothing tested, but for those named in `without`.
  std::vector<std::string> untested(const std::vector<std::string>& without) const;
};
// `seconds_max`: for each case, its inputs and its judgement included. `again`: the command that runs a case again, to
// which its name is added. `done` is called after each case.
LibraryReport run_library(const KernelSource& source, const std::vector<LibraryCase>& cases, const LibraryJudge& judge,
                          double seconds_max, const std::string& again, const std::function<void()>& done = {});

// The judge of a library that draws by draftproof's addresses: every output is the reference's, bit for bit. Of a
// filter, tokens more than 31 nats below the largest (whose mass is 0) may be kept or dropped.
LibraryJudgement judge_bits(const KernelLibrary& library, const LibraryCase& one, const LibraryInputs& inputs);

// Guidance computed otherwise: each element within 2^-21 (|u| + |s| (|c| + |u|)) of u + s (c - u), which four roundings
// of f32 in any order of evaluation stay within; -infinity where it is. Nothing but NaN is a NaN.
LibraryJudgement judge_guidance(const KernelLibrary& library, const GuidanceInputs& in);

}  // namespace draftproof::regress

// Files with what somebody else's sampler drew (docs/audit.md): single draws or verification steps in safetensors,
// single draws as CSV, what filters left of logits.
#pragma once

#include <string>
#include <variant>

#include "exactness/audit/audit_sample.hpp"
#include "reference/trace/trace.hpp"

namespace draftproof {

struct AuditFileOptions {
  std::string probs_path;    // PROBS.csv beside COUNTS.csv
  std::string outputs_path;  // output_tokens and num_accepted of the steps in another file
  TraceOptions trace;        // settings, row check, threads; its kind is found out here
};

using AuditInput = std::variant<DrawSample, StepSample, FilterSample>;

// CSV when the name ends so; else safetensors, single draws when there is a tensor `samples`, filters where there is
// `filtered_logits` or `kept`. Errors (input; usage for
// an option that the file has no use for) naming the file, the tensor and the entry, or the line.
AuditInput read_audit_file(const std::string& path, const AuditFileOptions& options);

}  // namespace draftproof

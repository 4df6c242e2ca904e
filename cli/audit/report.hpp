// Results of `draftproof audit`, as text, as JSON (docs/json.md) and as a figure.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "exactness/audit/audit.hpp"
#include "exactness/audit/filter_check.hpp"
#include "exactness/audit/self_test.hpp"

namespace draftproof {

struct AuditRun {
  std::string path;
  bool is_steps = false;               // else single draws, or
  std::optional<FilterCheck> filters;  // filters without sampling
  std::string verifier;                // what was assumed: a verifier of the registry, or "any"
  Audit audit;
  std::int64_t vocab_size = 0;  // of filters
  std::string figure;           // path, or empty
  double read_ms = 0.0;
  double audit_ms = 0.0;
};

Json audit_json(const AuditRun& run, const std::vector<std::string>& command_line);
void print_audit(std::ostream& out, const AuditRun& run, const Palette& palette);

// JSON of filters.
Json filter_json(const AuditRun& run, const std::vector<std::string>& command_line);
void print_filters(std::ostream& out, const AuditRun& run, const Palette& palette);

// A gnuplot script: observed and expected counts in the worst cells of the test with the smallest p value.
std::string audit_figure(const AuditRun& run);

Json self_test_json(const SelfTest& result, const std::vector<std::string>& command_line);
void print_self_test(std::ostream& out, const SelfTest& result);

}  // namespace draftproof

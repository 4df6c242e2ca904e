// `draftproof audit RUN.jsonl --drafter head:PATH`: are the drafts that another engine recorded those of the head?
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "cli/shared/json_document.hpp"
#include "cli/shared/terminal.hpp"
#include "engine/heads/lab/draft_audit.hpp"

namespace draftproof {

struct DraftAuditArguments {
  std::string model;
  std::string drafter;
  std::string activations = "f32";
  double tolerance = DraftAuditOptions().tolerance;
};

struct DraftAuditRun {
  std::string path, model, arithmetic, drafter, family;
  DraftAudit audit;
  double audit_ms = 0.0;
};

// Errors (usage, input) name the option or the file.
DraftAuditRun run_draft_audit(const std::string& path, const DraftAuditArguments& arguments, int threads);

void print_draft_audit(std::ostream& out, const DraftAuditRun& run, const Palette& palette);
Json draft_audit_json(const DraftAuditRun& run, const std::vector<std::string>& command_line);

}  // namespace draftproof

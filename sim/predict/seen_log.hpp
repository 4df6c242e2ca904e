// A file that a server or a benchmark wrote, read once: what it is, what it says of the server, of acceptance and of
// load, and what of it is not used.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/import/log_text.hpp"
#include "sim/import/read_acceptance.hpp"
#include "sim/import/server_setup.hpp"
#include "sim/predict/machine_calibration.hpp"

namespace draftproof {

struct SeenFile {
  std::string name;    // of the file, for people
  std::string format;  // "vLLM log", with its version
  std::vector<std::string> is, used, not_used;

  // "server.log is an SGLang log (0.5.6): EAGLE-3, K = 3, TP 2, 214 windows of throughput; used: acceptance 2.41 over
  // 214 windows, load 8, step 14.2 ms; not used: 12 windows with prefills".
  std::string text() const;
};
nlohmann::ordered_json seen_json(const SeenFile& seen);

struct SeenLog : SeenFile {
  ServerSetup server;
  std::optional<AcceptanceData> acceptance;  // nothing: its server does not speculate, or does not say how
  std::optional<MeasuredStep> step;          // nothing: no window of throughput under load
  double prompt_per_output = 0.0;            // prompt tokens computed for one generated, over all windows

  std::string model() const;  // that the server, its metrics or a benchmark names; empty: none does
  // K of a server that drafts chains of one length.
  std::optional<std::int32_t> running_drafts() const;
  bool knows_least_drafts() const;  // "K of at least 2"
};

// Errors (input) naming the file: those of its format, and a file of none.
SeenLog see_log(const std::string& path, const ImportOptions& options = {});
// The same of a text that is read.
SeenLog see_log(const LogText& log, const std::string& path, const ImportOptions& options = {});

}  // namespace draftproof

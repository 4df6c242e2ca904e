// Reads what an operator has of acceptance; the format is found out from the content. Files may be gzip, in any
// encoding (base/text_encoding.hpp), and "-" is standard input. BEFORE..AFTER are two dumps of metrics, of which the
// difference is read; of a folder, such as that of a sweep of vLLM's, the JSON files below it.
//
//   vLLM log               vllm_log.hpp
//   SGLang log             sglang_log.hpp
//   llama.cpp log          llama_cpp_log.hpp
//   reports of benchmarks  report_lines.hpp, and oMLX's log
//   metrics                prometheus_text.hpp
//   CSV of rates           rates_csv.hpp
//   JSON documents         result_json.hpp
//   lengths by K (YAML)    length_curves.hpp
//   recorded acceptances   sim/acceptance/replay.hpp
#pragma once

#include <string>
#include <string_view>

#include "sim/import/acceptance_data.hpp"

namespace draftproof {

struct ImportOptions {
  // Where the file has several: a model_name of metrics, a drafter of a recording, a curve, a configuration of a
  // benchmark, a server of a router's log.
  std::string choice;
  std::string rates;        // "conditional" or "unconditional", of tables that do not say it; empty: not known
  bool plain = false;       // a log without speculation is read too, for its throughput: its data has no window
  std::int32_t drafts = 0;  // K, where the file does not say it
};

// Errors (input) naming the file: those of the formats; of a file that is none of them the three likeliest formats, and
// what each would have needed.
AcceptanceData read_acceptance(const std::string& path, const ImportOptions& options = {});
// Is it BEFORE..AFTER, and no file of that name?
bool names_two_dumps(const std::string& path);
// Whether the file is of a known format, or says that it is; what is broken in it may still be refused. Error (input):
// it cannot be read.
bool holds_acceptance(const std::string& path);
AcceptanceData parse_acceptance(std::string_view text, const std::string& name, const ImportOptions& options = {});

}  // namespace draftproof

#include "sim/import/read_acceptance.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/archives/text_file.hpp"
#include "base/error.hpp"
#include "base/text_encoding.hpp"
#include "base/words.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/import/acceptance_data.hpp"
#include "sim/import/json_documents.hpp"
#include "sim/import/length_curves.hpp"
#include "sim/import/likely_formats.hpp"
#include "sim/import/llama_cpp_log.hpp"
#include "sim/import/log_text.hpp"
#include "sim/import/prometheus_text.hpp"
#include "sim/import/rates_csv.hpp"
#include "sim/import/report_lines.hpp"
#include "sim/import/result_json.hpp"
#include "sim/import/sglang_log.hpp"
#include "sim/import/text_lines.hpp"
#include "sim/import/vllm_log.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kFileBytesMax = std::uint64_t{1} << 30;

AcceptanceData of_recording(std::string_view text, const std::string& name, const std::string& drafter) {
  const AcceptanceRecording recording = parse_recording(text, name, drafter);
  const auto replay = std::make_shared<Replay>(recording);
  AcceptanceData data;
  data.format = "recorded acceptances";
  data.windows = std::ssize(recording.requests);
  std::int32_t longest = 0;
  for (const RecordedRequest& request : recording.requests)
    for (const std::uint8_t accepted : request.accepted) longest = std::max<std::int32_t>(longest, accepted);
  data.draft_len = std::min(longest, kAcceptanceDepthMax);
  data.survival = replay->survival_in_run(data.draft_len, data.draft_len);
  data.acceptance_length = acceptance_length_of(data.survival);
  data.replay = replay;
  data.notes.push_back("Recorded acceptances of drafter " + recording.drafter +
                       ": every number of drafts is replayed on its own.");
  return data;
}

bool is_json(std::string_view text) {
  if (!begins_as_json(text)) return false;
  try {
    return JsonDocuments(text, "").next();
  } catch (const Error& error) {  // a log whose lines begin with a bracket, which do not nest
    return std::string_view(error.what()).find("nests deeper") != std::string_view::npos;
  }
}

struct Format {
  AcceptanceData (*read)(std::string_view text, const std::string& name, const ImportOptions& options);
  bool takes_choice = false;
  bool takes_rates = false;
};

// Nothing where the format is not known.
std::optional<Format> format_of(std::string_view text) {
  const std::string_view body = without_leading_blanks(text);
  if (body.empty()) return std::nullopt;
  constexpr Format kVllm{[](std::string_view t, const std::string& name, const ImportOptions& options) {
    return read_vllm_log(t, name, options.plain, options.drafts);
  }};
  constexpr Format kSglang{[](std::string_view t, const std::string& name, const ImportOptions& options) {
    return read_sglang_log(t, name, options.plain);
  }};
  constexpr Format kJson{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                           return read_result_json(t, name, options.choice);
                         },
                         true};
  constexpr Format kLlamaCpp{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                               return read_llama_cpp_log(t, name, options.choice);
                             },
                             true};
  constexpr Format kReport{
      [](std::string_view t, const std::string& name, const ImportOptions&) { return read_report(t, name); }};
  constexpr Format kRecording{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                                return of_recording(without_leading_blanks(t), name, options.choice);
                              },
                              true};
  constexpr Format kPrometheus{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                                 return read_prometheus_text(t, name, options.choice);
                               },
                               true};
  constexpr Format kCurves{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                             return read_length_curves(t, name, options.choice);
                           },
                           true};
  constexpr Format kRates{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                            return read_rates_csv(t, name, options.rates, options.choice);
                          },
                          false, true};
  constexpr Format kTable{[](std::string_view t, const std::string& name, const ImportOptions& options) {
                            return read_rates_table(t, name, options.rates, options.choice, options.drafts);
                          },
                          false, true};
  // Logs may begin with a bracket or be JSON lines too.
  const bool braced = body.front() == '{' || body.front() == '[';
  if (braced && body.find("\"acc_len\"") != std::string_view::npos) return kRecording;
  if (is_prometheus_text(text)) return kPrometheus;
  if (has_words(text, "SpecDecoding metrics") || has_words(text, "Speculative metrics")) return kVllm;
  if (is_llama_cpp_log(text)) return kLlamaCpp;
  if (is_report(text)) return kReport;
  if (is_json(body)) return kJson;
  if (is_rates_csv(text)) return kRates;
  if (is_length_curves(text)) return kCurves;
  if (is_rates_table(text)) return kTable;
  if (is_sglang_log(text)) return kSglang;
  if (is_vllm_log(text)) return kVllm;
  return body.front() == '{' ? std::optional(kJson) : std::nullopt;  // which says what is wrong with it
}

AcceptanceData of_any(std::string_view text, const std::string& name, const ImportOptions& options) {
  if (without_leading_blanks(text).empty())
    throw input_error(name, "is empty; expected what a server says of acceptance");
  if (const std::optional<Format> format = format_of(text)) {
    AcceptanceData data = format->read(text, name, options);
    data.takes_choice |= format->takes_choice;
    data.takes_rates = format->takes_rates;
    if (data.draft_len == 0 || (data.draft_len_is_least && options.drafts > 0)) {
      if (data.windows > 0) data.draft_len = options.drafts;
      data.draft_len_is_least = false;
    }
    return data;
  }
  throw input_error(name, "says nothing of speculation in a form that is known. " + likely_formats(text));
}

}  // namespace

AcceptanceData parse_acceptance(std::string_view text, const std::string& name, const ImportOptions& options) {
  const std::optional<std::string> decoded = as_utf8(text);
  if (decoded) text = *decoded;
  AcceptanceData data = of_any(text, name, options);
  data.path = name;
  return data;
}

namespace {

// The two files of BEFORE..AFTER, unless a file has that name itself.
std::optional<std::pair<std::string, std::string>> snapshots_of(const std::string& path) {
  std::size_t dots = path.find("..", 1);
  while (dots != std::string::npos && path[dots - 1] == '/') dots = path.find("..", dots + 2);  // the folder above
  if (dots == std::string::npos || dots + 2 >= path.size() || std::filesystem::exists(path)) return std::nullopt;
  return std::pair(path.substr(0, dots), path.substr(dots + 2));
}

// A sweep's folder: the JSON files below it, without the summaries of runs that lie beside them (vLLM's run=N.json).
AcceptanceData of_folder(const std::string& path, const ImportOptions& options) {
  namespace fs = std::filesystem;
  constexpr std::size_t kFilesMax = 10'000;
  constexpr std::uint64_t kFolderBytesMax = std::uint64_t{1} << 30;
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, error), end;
       !error && entry != end; entry.increment(error))
    if (const std::string extension = entry->path().extension().string();
        (extension == ".json" || extension == ".jsonl") && entry->is_regular_file(error))
      files.push_back(entry->path());
  if (error) throw input_error(path, "cannot be read: " + error.message());
  std::erase_if(files, [](const fs::path& file) {
    return file.filename() == "summary.json" && fs::exists(file.parent_path() / "run=0.json");
  });
  std::ranges::sort(files);
  if (files.empty() || files.size() > kFilesMax)
    throw input_error(path, "is a folder with " + std::to_string(files.size()) +
                                " JSON files; expected result.json of a run, or 1 to " + std::to_string(kFilesMax) +
                                " results of a sweep");
  std::vector<NamedText> texts;
  std::uint64_t bytes = 0;
  for (const fs::path& file : files) {
    texts.push_back({read_text(file.string(), kFolderBytesMax - bytes), file.string()});
    bytes += texts.back().text.size();
  }
  AcceptanceData data = read_result_jsons(texts, path, options.choice);
  data.path = path;
  data.takes_choice = true;
  return data;
}

}  // namespace

bool names_two_dumps(const std::string& path) {
  return snapshots_of(path).has_value();
}

bool holds_acceptance(const std::string& path) {
  if (const auto both = snapshots_of(path)) return is_prometheus_text(read_text(both->second, kFileBytesMax));
  return std::filesystem::is_directory(path) || format_of(read_text(path, kFileBytesMax)).has_value();
}

AcceptanceData read_acceptance(const std::string& path, const ImportOptions& options) {
  if (const auto both = snapshots_of(path)) {
    AcceptanceData data =
        read_prometheus_difference(read_text(both->first, kFileBytesMax), both->first,
                                   read_text(both->second, kFileBytesMax), both->second, options.choice);
    data.path = path;
    data.takes_choice = true;
    return data;
  }
  if (std::filesystem::is_directory(path)) return of_folder(path, options);
  const LogText log = read_log_text(path);
  AcceptanceData data = parse_acceptance(log.text, path, options);
  if (log.lines_left_out > 0)
    data.notes.push_back(counted_noun(log.lines_left_out, "line") + " in its middle left out.");
  return data;
}

}  // namespace draftproof

#include "sim/import/read_acceptance.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reference/error.hpp"
#include "reference/files/input_file.hpp"
#include "sim/acceptance/rates.hpp"
#include "sim/acceptance/replay.hpp"
#include "sim/import/prometheus_text.hpp"
#include "sim/import/rates_csv.hpp"
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

bool is_json(std::string_view body) {
  const std::string_view first = body.substr(0, body.find('\n'));
  return nlohmann::json::accept(first) || nlohmann::json::accept(body);
}

using Reader = AcceptanceData (*)(std::string_view text, const std::string& name, const ImportOptions& options);

std::string_view body_of(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// Null where the format is not known.
Reader reader_of(std::string_view text) {
  const std::string_view body = body_of(text);
  if (body.empty()) return nullptr;
  constexpr Reader kVllm = [](std::string_view t, const std::string& name, const ImportOptions&) {
    return read_vllm_log(t, name);
  };
  constexpr Reader kJson = [](std::string_view t, const std::string& name, const ImportOptions&) {
    return read_result_json(body_of(t), name);
  };
  // Logs may begin with a bracket or be JSON lines too.
  const bool braced = body.front() == '{' || body.front() == '[';
  if (braced && body.find("\"acc_len\"") != std::string_view::npos)
    return [](std::string_view t, const std::string& name, const ImportOptions& options) {
      return of_recording(body_of(t), name, options.choice);
    };
  if (is_prometheus_text(text))
    return [](std::string_view t, const std::string& name, const ImportOptions& options) {
      return read_prometheus_text(t, name, options.choice);
    };
  if (has_words(text, "SpecDecoding metrics") || has_words(text, "Speculative metrics")) return kVllm;
  if (braced && is_json(body)) return kJson;
  if (is_rates_csv(text))
    return [](std::string_view t, const std::string& name, const ImportOptions& options) {
      return read_rates_csv(t, name, options.rates);
    };
  if (is_sglang_log(text))
    return [](std::string_view t, const std::string& name, const ImportOptions&) { return read_sglang_log(t, name); };
  if (is_vllm_log(text)) return kVllm;
  return body.front() == '{' ? kJson : nullptr;  // which says what is wrong with it
}

AcceptanceData of_any(std::string_view text, const std::string& name, const ImportOptions& options) {
  if (body_of(text).empty()) throw input_error(name, "is empty; expected what a server says of acceptance");
  if (const Reader read = reader_of(text)) return read(text, name, options);
  throw input_error(name,
                    "is of no known format; expected vLLM's log or Prometheus text, SGLang's log, a CSV of rates "
                    "(with a header), recorded acceptances (JSON lines with acc_len), or the JSON of demo or "
                    "generate");
}

}  // namespace

AcceptanceData parse_acceptance(std::string_view text, const std::string& name, const ImportOptions& options) {
  AcceptanceData data = of_any(text, name, options);
  data.path = name;
  return data;
}

bool holds_acceptance(const std::string& path) {
  return reader_of(InputFile(path, kFileBytesMax).text()) != nullptr;
}

AcceptanceData read_acceptance(const std::string& path, const ImportOptions& options) {
  const InputFile file(path, kFileBytesMax);
  return parse_acceptance(file.text(), path, options);
}

}  // namespace draftproof

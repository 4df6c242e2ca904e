#include "sim/predict/seen_log.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/words.hpp"

namespace draftproof {
namespace {

void say_server(const ServerSetup& server, SeenLog& seen) {
  if (const std::string model = seen.model(); !model.empty()) seen.is.push_back(model);
  if (!server.precision.empty()) seen.is.push_back(server.precision);
  if (!server.drafter.empty()) seen.is.push_back(server.drafter);
  if (const auto drafts = seen.running_drafts())
    seen.is.push_back("K = " + std::to_string(*drafts));
  else if (seen.knows_least_drafts())
    seen.is.push_back("K of at least " + std::to_string(seen.acceptance->draft_len));
  if (server.tree_nodes > 0) seen.is.push_back("trees of " + counted_noun(server.tree_nodes, "node"));
  if (server.adaptive) seen.is.emplace_back("drafts of several lengths");
  if (server.found() && server.drafter.empty() && !seen.acceptance) seen.is.emplace_back("no speculation");
  if (server.tp) seen.is.push_back("TP " + std::to_string(*server.tp));
  if (server.dp > 1) seen.is.push_back("DP " + std::to_string(server.dp));
  if (server.pp > 1) seen.is.push_back("PP " + std::to_string(server.pp));
  if (server.expert_parallel) seen.is.emplace_back("experts over all GPUs");
}

void say_acceptance(const AcceptanceData& data, SeenLog& seen) {
  std::string words =
      "acceptance " + std::string(data.length_is_least ? "of at least " : "") + number("%.2f", data.acceptance_length);
  if (data.drafts)
    words += " over " + counted_noun(*data.drafts, "step");
  else if (data.windows > 1)
    words += " over " + counted_noun(data.windows, "window");
  if (!data.survival.empty()) words += ", rates of " + counted_noun(std::ssize(data.survival), "position");
  seen.used.push_back(words);
}

void say_load(const AcceptanceData& data, SeenLog& seen) {
  double prompts = 0.0, outputs = 0.0;
  std::int64_t with_prefills = 0, idle = 0;
  for (const ThroughputWindow& window : data.throughput) {
    prompts += window.prompt_tokens_per_second;
    outputs += window.tokens_per_second;
    if (window.running < 1.0 || !(window.tokens_per_second > 0.0))
      ++idle;
    else if (!decodes_alone(window))
      ++with_prefills;
  }
  if (!decodes_alone({0.0, outputs, prompts})) seen.prompt_per_output = prompts / outputs;
  seen.is.push_back(counted_noun(std::ssize(data.throughput), "window") + " of throughput");
  if (idle > 0) seen.not_used.push_back(counted_noun(idle, "window") + " without a load");
  if (idle == std::ssize(data.throughput)) return;
  std::set<int> groups;
  for (const ThroughputWindow& window : data.throughput) groups.insert(window.engine);
  if (const auto all = static_cast<std::size_t>(seen.server.dp); all > 1 && groups.size() != all) {
    seen.not_used.push_back("the windows of throughput, which are of " + counted_noun(std::ssize(groups), "group") +
                            " of " + std::to_string(all));
    return;
  }
  if (groups.size() > 1 && !seen.server.found()) {
    seen.not_used.push_back("the windows of throughput, which are of " + counted_noun(std::ssize(groups), "group") +
                            ", and no line says of how many");
    return;
  }
  const auto says_drafts = [](const ThroughputWindow& window) { return window.draft_tokens.has_value(); };
  if (data.draft_len < 1 && data.acceptance_length > 1.0 && !std::ranges::any_of(data.throughput, says_drafts)) {
    seen.not_used.emplace_back("the time of a step, since nothing says how many tokens a draft has");
    return;
  }
  seen.step = step_of_windows(data, seen.name, {});
  seen.used.push_back("load " + std::to_string(seen.step->batch.batch));
  const bool decoding = seen.step->prompt_tokens_per_second == 0.0;
  seen.used.push_back(
      "step " + milliseconds(seen.step->ms) +
      (decoding ? "" : ", " + number("%.0f", seen.step->prompt_tokens_per_second) + " prompt tokens a second in it"));
  if (decoding && with_prefills > 0) seen.not_used.push_back(counted_noun(with_prefills, "window") + " with prefills");
  if (seen.prompt_per_output > 0.0)
    seen.used.push_back(number("%.2g", seen.prompt_per_output) + " prompt tokens for one generated");
}

}  // namespace

std::optional<std::int32_t> SeenLog::running_drafts() const {
  if (server.adaptive || server.tree_nodes > 0) return std::nullopt;
  if (acceptance && (acceptance->tree_nodes > 0 || !acceptance->reach.empty())) return std::nullopt;
  if (server.drafts) return server.drafts;
  if (knows_least_drafts()) return std::nullopt;
  return acceptance && acceptance->draft_len > 0 ? std::optional(acceptance->draft_len) : std::nullopt;
}

bool SeenLog::knows_least_drafts() const {
  return !server.drafts && acceptance && acceptance->draft_len_is_least;
}

std::string SeenLog::model() const {
  return !server.model.empty() ? server.model : acceptance ? acceptance->model : std::string();
}

std::string SeenFile::text() const {
  const bool vowel = std::string_view("AEIOUSo").find(format.front()) != std::string_view::npos;  // "an SGLang log"
  std::string text = name + " is " + (vowel ? "an " : "a ") + format;
  const auto add = [&](const char* before, const std::vector<std::string>& words) {
    if (!words.empty()) text += before + joined(words, ", ");
  };
  add(": ", is);
  add("; used: ", used);
  add("; not used: ", not_used);
  return text;
}

nlohmann::ordered_json seen_json(const SeenFile& seen) {
  return {{"file", seen.name}, {"format", seen.format},     {"is", seen.is},
          {"used", seen.used}, {"not_used", seen.not_used}, {"text", seen.text()}};
}

namespace {

SeenLog seen_of(const AcceptanceData& data, const ServerSetup& server, const std::string& path) {
  SeenLog seen;
  seen.name = path == "-" ? "standard input" : printable_line(path);
  seen.server = server;
  const std::size_t blank = server.engine.find(' ');
  seen.format = data.format + (blank == std::string::npos ? "" : " (" + server.engine.substr(blank + 1) + ")");
  if (data.windows > 0) seen.acceptance = data;
  say_server(server, seen);
  if (seen.acceptance) say_acceptance(data, seen);
  if (!data.throughput.empty()) say_load(data, seen);
  seen.not_used.insert(seen.not_used.end(), data.not_used.begin(), data.not_used.end());
  if (data.load && !seen.step) seen.used.push_back("load " + std::to_string(*data.load));
  return seen;
}

ImportOptions with_plain(ImportOptions options) {
  options.plain = true;
  return options;
}

}  // namespace

SeenLog see_log(const LogText& log, const std::string& path, const ImportOptions& options) {
  SeenLog seen =
      seen_of(parse_acceptance(log.text, path, with_plain(options)), read_server_setup(log.text, path), path);
  if (log.lines_left_out > 0)
    seen.not_used.push_back(counted_noun(log.lines_left_out, "line") + " in the middle, which are too many");
  return seen;
}

SeenLog see_log(const std::string& path, const ImportOptions& options) {
  if (names_two_dumps(path) || std::filesystem::is_directory(path))  // which say nothing of a server
    return seen_of(read_acceptance(path, with_plain(options)), {}, path);
  return see_log(read_log_text(path), path, options);
}

}  // namespace draftproof

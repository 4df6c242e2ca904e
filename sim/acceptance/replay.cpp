#include "sim/acceptance/replay.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kPrefix = "acc_";
constexpr std::int64_t kLengthMax = 256;

// The names behind "acc_".
std::string drafter_of(const Json& request, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& [key, value] : request.items())
    if (key.starts_with(kPrefix)) names.push_back(key.substr(kPrefix.size()));
  if (names.empty())
    throw input_error(where, "has no key acc_...; expected the acceptances of a drafter, as acc_eagle");
  return std::ranges::count(names, "eagle") > 0 ? "eagle" : names.front();
}

std::vector<Token> tokens_of(const Json& request, const char* key, const std::string& where) {
  std::vector<Token> tokens;
  const auto found = request.find(key);
  if (found == request.end()) return tokens;
  if (!found->is_array()) throw input_error(where, std::string(key) + " is not a list; expected token ids");
  for (const Json& token : *found) {
    if (!token.is_number_integer())
      throw input_error(where, std::string(key) + " has " + token.dump() + "; expected token ids");
    tokens.push_back(token.get<Token>());
  }
  return tokens;
}

RecordedRequest request_of(const Json& json, const std::string& drafter, const std::string& where) {
  RecordedRequest request;
  if (const auto id = json.find("id"); id != json.end())
    request.id = id->is_string() ? id->get<std::string>() : id->dump();
  request.prompt = tokens_of(json, "prompt_token_ids", where);
  request.output = tokens_of(json, "generated_token_ids", where);
  const std::string key = std::string(kPrefix) + drafter;
  const auto found = json.find(key);
  if (found == json.end()) throw input_error(where, "has no key " + key + "; expected the acceptances of that drafter");
  const Json* lengths = &*found;
  if (found->is_object() && found->contains("acc_len")) lengths = &(*found)["acc_len"];
  if (!lengths->is_array()) throw input_error(where, key + " has no list acc_len; expected one");
  for (const Json& length : *lengths) {
    if (!length.is_number_integer() || length.get<std::int64_t>() < 1 || length.get<std::int64_t>() > kLengthMax)
      throw input_error(where, "acc_len has " + length.dump() +
                                   "; expected whole numbers from 1 (nothing accepted) to " +
                                   std::to_string(kLengthMax));
    request.accepted.push_back(static_cast<std::uint8_t>(length.get<std::int64_t>() - 1));
  }
  return request;
}

// How many steps accepted i drafts or more -> shares of the steps.
std::vector<double> shares(const std::vector<std::int64_t>& counts, std::int64_t steps) {
  std::vector<double> survival;
  for (const std::int64_t count : counts)
    survival.push_back(steps > 0 ? static_cast<double>(count) / static_cast<double>(steps) : 0.0);
  return survival;
}

}  // namespace

AcceptanceRecording parse_recording(std::string_view text, const std::string& where, const std::string& drafter) {
  AcceptanceRecording recording{drafter, {}};
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string at = where + ", line " + std::to_string(number);
    const Json json = parse_json<Json>(line, at);
    if (!json.is_object()) throw input_error(at, "is not a JSON object; expected one request");
    if (recording.drafter.empty()) recording.drafter = drafter_of(json, at);
    recording.requests.push_back(request_of(json, recording.drafter, at));
  }
  if (recording.requests.empty()) throw input_error(where, "has no request; expected one JSON object a line");
  return recording;
}

AcceptanceRecording read_recording(const std::string& path, const std::string& drafter) {
  const InputFile file(path);
  return parse_recording(file.text(), path, drafter);
}

Replay::Replay(const AcceptanceRecording& recording, std::int32_t delay) : delay_(delay), begins_{0} {
  if (recording.requests.empty()) throw usage_error("replay", "the recording has no request; expected one or more");
  for (const RecordedRequest& request : recording.requests) {
    accepted_.insert(accepted_.end(), request.accepted.begin(), request.accepted.end());
    begins_.push_back(accepted_.size());
  }
}

std::int32_t Replay::accepted(AcceptanceState& state, AcceptancePlace place, std::int32_t nodes,
                              std::int32_t depth) const {
  require_draft_shape(nodes, depth);
  const auto row = static_cast<std::size_t>(state.choice);
  const std::int32_t at = place.output_len - delay_;
  if (at < 0 || static_cast<std::size_t>(at) >= begins_[row + 1] - begins_[row]) return 0;
  return std::min<std::int32_t>(accepted_[begins_[row] + static_cast<std::size_t>(at)], depth);
}

std::vector<double> Replay::survival(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(depth));
  for (const std::uint8_t accepted : accepted_)
    for (std::size_t i = 0; i < std::min<std::size_t>(accepted, counts.size()); ++i) ++counts[i];
  return shares(counts, std::ssize(accepted_));
}

std::vector<double> Replay::survival_in_run(std::int32_t nodes, std::int32_t depth, std::int32_t) const {
  require_draft_shape(nodes, depth);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(depth));
  std::int64_t steps = 0;
  for (std::size_t row = 0; row + 1 < begins_.size(); ++row) {
    // The first token is the prefill's.
    for (std::size_t at = begins_[row] + static_cast<std::size_t>(1 - delay_); at < begins_[row + 1]; ++steps) {
      const std::size_t n = std::min<std::size_t>(accepted_[at], counts.size());
      for (std::size_t i = 0; i < n; ++i) ++counts[i];
      at += n + 1;
    }
  }
  return shares(counts, steps);
}

}  // namespace draftproof

#include "sim/import/json_documents.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/json_text.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kData = "data:";

// Server-sent events, as they are or behind what a client printed before them. Fields other than data say nothing.
bool is_stream(std::string_view text) {
  const std::string_view body = without_leading_blanks(text);
  return body.starts_with(kData) || text.find("\ndata: {") != std::string_view::npos;
}

}  // namespace

const Json* json_field(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool begins_as_json(std::string_view text) {
  text = without_leading_blanks(text);
  return text.starts_with('{') || text.starts_with('[') || is_stream(text);
}

JsonDocuments::JsonDocuments(std::string_view text, std::string name)
    : name_(std::move(name)), lines_(text, name_), stream_(is_stream(text)) {
  if (stream_) return;
  document_ = parse_json<Json>(text, name_);
  whole_ = !document_.is_discarded();
  where_ = name_;
}

bool JsonDocuments::next() {
  ended_before_ = false;
  if (whole_) return !std::exchange(any_, true);
  while (lines_.next()) {
    std::string_view line = without_leading_blanks(lines_.line());
    if (stream_ && !line.starts_with(kData)) continue;
    if (stream_) line = without_leading_blanks(line.substr(kData.size()));
    if (line.empty()) continue;
    if (stream_ && line.starts_with("[DONE]")) {
      ended_before_ = true;
      continue;
    }
    document_ = parse_json<Json>(line, lines_.where());
    if (document_.is_discarded()) {
      if (lines_.is_cut() && any_) return false;
      throw input_error(lines_.where(), "is no JSON document; expected one a line, or one in all");
    }
    where_ = lines_.where();
    any_ = true;
    return true;
  }
  return false;
}

bool JsonDocuments::is_chunk() const {
  if (stream_) return true;
  const Json* const object = json_field(document_, "object");
  return object != nullptr && object->is_string() && object->get_ref<const std::string&>().ends_with(".chunk");
}

}  // namespace draftproof

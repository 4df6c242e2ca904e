#include "cli/shared/counted_request_json.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace draftproof {
namespace {

constexpr std::array<std::pair<const char*, std::int64_t CountedRequest::*>, 6> kCounts{
    {{"prompt_tokens", &CountedRequest::prompt_tokens},
     {"plain_tokens", &CountedRequest::plain_tokens},
     {"tokens", &CountedRequest::tokens},
     {"steps", &CountedRequest::steps},
     {"drafts", &CountedRequest::drafts},
     {"draft_tokens", &CountedRequest::draft_tokens}}};

}  // namespace

Json counted_requests_json(std::span<const CountedRequest> requests) {
  Json list = Json::array();
  for (const CountedRequest& request : requests) {
    Json& entry = list.emplace_back(Json::object());
    for (const auto& [name, count] : kCounts) entry[name] = request.*count;
  }
  return list;
}

std::vector<CountedRequest> read_counted_requests(const Json& requests, const std::string& where) {
  if (!requests.is_array()) throw input_error(where, "requests is no list; expected what speculate writes");
  std::vector<CountedRequest> read;
  for (const Json& entry : requests) {
    CountedRequest& request = read.emplace_back();
    for (const auto& [name, count] : kCounts) {
      const auto found = entry.is_object() ? entry.find(name) : entry.end();
      if (!entry.is_object() || found == entry.end() || !found->is_number_integer())
        throw input_error(where, "request " + std::to_string(read.size() - 1) + " has no count '" + name + "'");
      request.*count = found->get<std::int64_t>();
    }
  }
  return read;
}

}  // namespace draftproof

// Files with a JSON object a line.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/json_text.hpp"

namespace draftproof {

// Calls read(object, where) for each line of `text` that is not blank, `where` being "PATH, line N". Errors (input): a
// line that is no JSON object, for which `example` stands.
template <class Read>
void for_each_json_line(const std::string& path, std::string_view text, const std::string& example, Read read) {
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = path + ", line " + std::to_string(line_number);
    const auto object = parse_json<nlohmann::json>(line, where);
    if (!object.is_object()) throw input_error(where, "is no JSON object; expected one like " + example);
    read(object, where);
  }
}

}  // namespace draftproof

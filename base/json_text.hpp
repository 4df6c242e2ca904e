// JSON that a user gave.
#pragma once

#include <string>
#include <string_view>

namespace draftproof {

// Input error naming `where`: the text nests deeper than 64 levels. What copies, walks or prints a document goes down a
// level at a time and would run out of stack; each level takes memory out of proportion to its one byte of text, too.
void require_json_depth(std::string_view text, const std::string& where);

// The document, Json being nlohmann::json or nlohmann::ordered_json; discarded where the text is no JSON. Input error:
// as above.
template <class Json>
Json parse_json(std::string_view text, const std::string& where) {
  require_json_depth(text, where);
  return Json::parse(text, nullptr, false);
}

}  // namespace draftproof

// JSON that a user gave, in any encoding that programs write (text_encoding.hpp), and as Python's json module writes
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text_encoding.hpp"

namespace draftproof {

// Input error naming `where`: the text nests deeper than 64 levels. What copies, walks or prints a document goes down a
// level at a time and would run out of stack; each level takes memory out of proportion to its one byte of text, too.
// Returns the text with NaN, Infinity and -Infinity in quotes, nothing where it has none of them: they are no numbers
// of JSON's, and whoever needs a number there finds a string, and names the field.
std::optional<std::string> checked_json(std::string_view text, const std::string& where);

// The document, Json being nlohmann::json or nlohmann::ordered_json; discarded where the text is no JSON, for which
// `reason`, if it is given, receives why. Input error: as above.
template <class Json>
Json parse_json(std::string_view text, const std::string& where, std::string* reason = nullptr) {
  const std::optional<std::string> decoded = as_utf8(text);
  if (decoded) text = *decoded;
  const std::optional<std::string> quoted = checked_json(text, where);
  if (quoted) text = *quoted;
  if (reason == nullptr) return Json::parse(text, nullptr, false);
  try {
    return Json::parse(text);
  } catch (const typename Json::exception& exception) {
    *reason = exception.what();
    return Json(Json::value_t::discarded);
  }
}

}  // namespace draftproof

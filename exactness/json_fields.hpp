// Fields of a result that the program wrote, read back.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace draftproof {

// Input error naming `where` and the key: a key that there is not, a value of another type.
template <class Value>
Value json_field(const nlohmann::ordered_json& object, const char* key, const std::string& where) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end())
    throw input_error(where, "has no key \"" + std::string(key) + "\"; expected a result of this version");
  try {
    return found->template get<Value>();
  } catch (const nlohmann::json::exception&) {
    throw input_error(where, "\"" + std::string(key) + "\" is " + found->dump() + "; expected another type");
  }
}

// Nothing for null.
template <class Value>
std::optional<Value> json_field_or_null(const nlohmann::ordered_json& object, const char* key,
                                        const std::string& where) {
  if (object.is_object() && object.contains(key) && object.at(key).is_null()) return std::nullopt;
  return json_field<Value>(object, key, where);
}

}  // namespace draftproof

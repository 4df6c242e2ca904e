// JSON that we write: values that may be absent, and lists.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace draftproof {

// null where there is none, and where a text is empty.
template <class Value>
nlohmann::ordered_json or_null(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}
inline nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

// json_of(value), or the member json_of, of each of `values` in their order.
template <class Values, class JsonOf>
nlohmann::ordered_json json_list(const Values& values, JsonOf json_of) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& value : values) list.push_back(std::invoke(json_of, value));
  return list;
}

}  // namespace draftproof

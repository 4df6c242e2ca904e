#include "engine/weights/json_fields.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/json_text.hpp"
#include "base/printable.hpp"

namespace draftproof {
JsonFields JsonFields::read(const std::string& path) {
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 28;
  const InputFile file(path, kBytesMax);
  return parse(path, file.text());
}

JsonFields JsonFields::parse(const std::string& path, std::string_view text) {
  std::string reason;
  auto document = std::make_shared<nlohmann::json>(parse_json<nlohmann::json>(text, path, &reason));
  if (document->is_discarded())
    throw input_error(path, "is not JSON in UTF-8: " + printable_line(reason).substr(0, 200));
  if (!document->is_object()) throw input_error(path, "is not a JSON object");
  const nlohmann::json* const root = document.get();
  return {path, std::move(document), root};
}

const nlohmann::json* JsonFields::find(const char* key) const {
  const auto found = json_->find(key);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::fail(const char* key, const std::string& expected) const {
  const nlohmann::json* const value = find(key);
  constexpr std::size_t kShown = 40;
  const std::string found = value == nullptr     ? "missing"
                            : value->is_string() ? in_quotes(value->get<std::string>().substr(0, kShown))
                                                 : std::string("of type ") + value->type_name();
  throw input_error(where_, in_quotes(key) + " is " + found + "; expected " + expected);
}

std::optional<std::int64_t> JsonFields::integer(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || (value->is_number_unsigned() && value->get<std::uint64_t>() >> 63 != 0))
    fail(key, "an integer below 2^63");
  return value->get<std::int64_t>();
}

std::optional<double> JsonFields::number(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) fail(key, "a number");
  return value->get<double>();
}

std::optional<bool> JsonFields::boolean(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) fail(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> JsonFields::string(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(key, "a string");
  return value->get<std::string>();
}

std::optional<JsonFields> JsonFields::object(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) fail(key, "an object");
  return JsonFields(where_ + ": " + in_quotes(key), document_, value);
}

std::vector<JsonFields> JsonFields::objects(const char* key) const {
  std::vector<JsonFields> elements;
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return elements;
  if (!value->is_array()) fail(key, "an array of objects");
  for (const nlohmann::json& element : *value) {
    const std::string place = in_quotes(key) + " " + std::to_string(elements.size());
    if (!element.is_object()) throw input_error(where_, place + " is no object");
    elements.push_back(JsonFields(where_ + ": " + place, document_, &element));
  }
  return elements;
}

std::optional<std::vector<std::int64_t>> JsonFields::integers(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail(key, "an array of integers");
  std::vector<std::int64_t> elements;
  for (const nlohmann::json& element : *value) {
    if (!element.is_number_integer() || (element.is_number_unsigned() && element.get<std::uint64_t>() >> 63 != 0))
      throw input_error(
          where_, in_quotes(key) + " has an element of type " + element.type_name() + "; expected integers below 2^63");
    elements.push_back(element.get<std::int64_t>());
  }
  return elements;
}

std::optional<std::vector<std::string>> JsonFields::strings(const char* key) const {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) fail(key, "an array of strings");
  std::vector<std::string> elements;
  for (const nlohmann::json& element : *value) {
    if (!element.is_string())
      throw input_error(where_,
                        in_quotes(key) + " has an element of type " + element.type_name() + "; expected strings");
    elements.push_back(element.get<std::string>());
  }
  return elements;
}

std::int64_t JsonFields::required_integer(const char* key) const {
  const auto value = integer(key);
  if (!value) fail(key, "an integer");
  return *value;
}

std::string JsonFields::required_string(const char* key) const {
  auto value = string(key);
  if (!value) fail(key, "a string");
  return *std::move(value);
}

}  // namespace draftproof

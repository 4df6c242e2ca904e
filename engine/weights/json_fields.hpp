// A JSON file that another program wrote, read field by field: what is missing or of another type than it must be is an
// input error that names the file and the field.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

class JsonFields {
 public:
  // The object in a file of at most 256 MiB. Input error: no file, no JSON, no object.
  static JsonFields read(const std::string& path);
  // The same from text.
  static JsonFields parse(const std::string& path, std::string_view text);

  const std::string& where() const { return where_; }
  const nlohmann::json& json() const { return *json_; }

  // Nothing where the field is missing or null.
  std::optional<std::int64_t> integer(const char* key) const;
  std::optional<double> number(const char* key) const;
  std::optional<bool> boolean(const char* key) const;
  std::optional<std::string> string(const char* key) const;
  std::optional<JsonFields> object(const char* key) const;
  // The elements of an array of objects; none where it is missing or null.
  std::vector<JsonFields> objects(const char* key) const;
  // Nothing where it is missing or null.
  std::optional<std::vector<std::int64_t>> integers(const char* key) const;
  std::optional<std::vector<std::string>> strings(const char* key) const;
  // The element or field itself; null where it is missing or null.
  const nlohmann::json* find(const char* key) const;

  std::int64_t required_integer(const char* key) const;
  std::string required_string(const char* key) const;

  [[noreturn]] void fail(const char* key, const std::string& expected) const;

 private:
  JsonFields(std::string where, std::shared_ptr<const nlohmann::json> document, const nlohmann::json* json)
      : where_(std::move(where)), document_(std::move(document)), json_(json) {}

  std::string where_;
  std::shared_ptr<const nlohmann::json> document_;
  const nlohmann::json* json_;  // an object, somewhere in the document
};

}  // namespace draftproof

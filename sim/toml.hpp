// A TOML file as a small value: what presets, scenarios and grids are read through. Behind it stands toml++, which
// toml.cpp alone includes.
//
//   const TomlValue file = read_toml(path);
//   file.allow_only({"model", "gpu"});               // any other key is an error that names it
//   const double gb = file.at("gpu").at("memory_gb").number(0.1, 10'000.0);
//
// Every error (input) begins with FILE:LINE and the dotted name of the value.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace draftproof {

class TomlValue {
 public:
  enum class Kind { table, array, text, integer, number, flag };

  Kind kind() const { return kind_; }
  std::string where() const;  // "FILE:LINE: gpu.memory_gb", without the name at the top of a file
  int line() const { return line_; }
  const std::string& file() const { return *file_; }

  // Keys of a table in the file's order.
  std::vector<std::string> keys() const;
  const TomlValue* find(std::string_view key) const;  // nullptr: absent
  const TomlValue& at(std::string_view key) const;    // error: absent
  void allow_only(std::initializer_list<std::string_view> keys) const;
  // Items of an array.
  const std::vector<TomlValue>& items() const;

  const std::string& text() const;
  bool flag() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  // A whole number counts as a number; nan and infinities are errors.
  double number(double least = -std::numeric_limits<double>::max(),
                double most = std::numeric_limits<double>::max()) const;

  // Value of a table under `key`, or `otherwise` where it is absent.
  std::string text_or(std::string_view key, const std::string& otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) const;
  double number_or(std::string_view key, double otherwise, double least, double most) const;
  // A copy of a table with another value under a dotted name ("workload.arrivals.rate"; of items of an array by their
  // number, "policy.0.speculation"). The value keeps its own place for messages. Error (input) at the value: a table on
  // the way is absent.
  TomlValue with(std::string_view dotted, const TomlValue& value) const;
  // One text or an array of texts; empty where absent.
  std::vector<std::string> texts_or_none(std::string_view key) const;

 private:
  friend class TomlBuilder;
  friend TomlValue parse_toml_value(std::string_view text, const std::string& where);

  static constexpr int kNoLine = -1;  // of a value that stands in no file

  void require(Kind kind, const char* expected) const;

  Kind kind_ = Kind::table;
  std::string text_;
  std::int64_t integer_ = 0;
  double number_ = 0.0;
  std::vector<std::string> keys_;  // of a table, beside values_
  std::vector<TomlValue> values_;  // of a table or an array
  std::shared_ptr<const std::string> file_;
  std::string name_;  // dotted
  int line_ = 0;
};

// The table at the top of a file of at most 16 MiB. Input error with FILE:LINE where it is not TOML, and for dates.
TomlValue read_toml(const std::string& path);
// The same of a text that messages call `file`.
TomlValue parse_toml(std::string_view text, const std::string& file);

// Parses what may stand behind "key =", on its own. Errors about it begin with `where` alone.
TomlValue parse_toml_value(std::string_view text, const std::string& where);

// A text as a TOML string, in quotes.
std::string toml_quoted(std::string_view text);

}  // namespace draftproof

#include "sim/toml.hpp"

// toml++ asserts of a text what it checks a line later ("[(]"), and where there are no assertions it has some compilers
// assume that.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.hpp"
#include "base/files/input_file.hpp"
#include "base/printable.hpp"
#include "base/split.hpp"
#include "base/strict_number.hpp"

namespace draftproof {
namespace {

constexpr std::uint64_t kFileBytesMax = 16u << 20;

const char* name_of(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::table:
      return "a table";
    case TomlValue::Kind::array:
      return "an array";
    case TomlValue::Kind::text:
      return "a text";
    case TomlValue::Kind::integer:
      return "a whole number";
    case TomlValue::Kind::number:
      return "a number";
    case TomlValue::Kind::flag:
      return "true or false";
  }
  return "";
}

// Where TOML text stands: its strings and comments are passed over, lines counted.
class TomlText {
 public:
  explicit TomlText(std::string_view text) : text_(text) {}

  int line() const { return line_; }

  // The next character outside strings and comments; a string is one quote. 0 at the end.
  char next() {
    if (at_ == text_.size()) return '\0';
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
      return next();
    }
    if (c == '"' || c == '\'') {
      skip_string(c);
    } else {
      step();
    }
    return c;
  }

 private:
  void step() {
    line_ += text_[at_] == '\n' ? 1 : 0;
    ++at_;
  }
  void skip_string(char quote) {
    const std::string long_quote(3, quote);
    const bool is_long = text_.substr(at_).starts_with(long_quote);
    const std::string_view end = is_long ? std::string_view(long_quote) : text_.substr(at_, 1);
    at_ += end.size();
    while (at_ < text_.size() && !text_.substr(at_).starts_with(end) && (is_long || text_[at_] != '\n')) {
      if (text_[at_] == '\\' && quote == '"') step();
      if (at_ < text_.size()) step();
    }
    at_ = std::min(at_ + end.size(), text_.size());
    for (int i = 0; is_long && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) ++at_;  // part of the text
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
};

// Building, copying or freeing values goes down a level at a time and would run out of stack.
void require_depth(std::string_view text, const std::string& file) {
  constexpr int kPartsMax = 16;
  constexpr int kDepthMax = 32;
  int parts = 1;
  int depth = 0;
  TomlText chars(text);
  const auto fail = [&](const std::string& what) {
    throw input_error(printable_line(file) + ":" + std::to_string(chars.line()), what);
  };
  for (char c = chars.next(); c != '\0'; c = chars.next()) {
    if (c == '.') {
      if (++parts > kPartsMax) fail("a key has more than " + std::to_string(kPartsMax) + " parts");
    } else if (std::string_view(",=[]{}\n").find(c) != std::string_view::npos) {
      parts = 1;
    }
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth > kDepthMax) fail("it nests deeper than " + std::to_string(kDepthMax) + " levels");
  }
}

std::string shortest(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

// Turns a tree of toml++ into ours.
class TomlBuilder {
 public:
  explicit TomlBuilder(const std::string& file) : file_(std::make_shared<const std::string>(file)) {}

  TomlValue build(const toml::node& node, const std::string& name) const {
    TomlValue value;
    value.file_ = file_;
    value.name_ = name;
    value.line_ = static_cast<int>(node.source().begin.line);
    if (const toml::table* table = node.as_table()) {
      build_table(*table, value);
    } else if (const toml::array* array = node.as_array()) {
      value.kind_ = TomlValue::Kind::array;
      for (const toml::node& item : *array)
        value.values_.push_back(build(item, name + "[" + std::to_string(value.values_.size()) + "]"));
    } else if (const auto* text = node.as_string()) {
      value.kind_ = TomlValue::Kind::text;
      value.text_ = text->get();
    } else if (const auto* integer = node.as_integer()) {
      value.kind_ = TomlValue::Kind::integer;
      value.integer_ = integer->get();
      value.number_ = static_cast<double>(integer->get());
    } else if (const auto* number = node.as_floating_point()) {
      value.kind_ = TomlValue::Kind::number;
      value.number_ = number->get();
    } else if (const auto* flag = node.as_boolean()) {
      value.kind_ = TomlValue::Kind::flag;
      value.integer_ = flag->get() ? 1 : 0;
    } else {
      throw input_error(value.where(), "it is a date or a time; expected a text, a number, true or false");
    }
    return value;
  }

 private:
  void build_table(const toml::table& table, TomlValue& value) const {
    struct Entry {
      toml::source_position begin;
      std::string key;
      const toml::node* node;
    };
    std::vector<Entry> entries;  // in the file's order, where toml++ sorts by name
    for (const auto& [key, node] : table) entries.push_back({key.source().begin, std::string(key.str()), &node});
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
    for (const Entry& entry : entries) {
      value.keys_.push_back(entry.key);
      value.values_.push_back(build(*entry.node, value.name_.empty() ? entry.key : value.name_ + "." + entry.key));
      if (value.values_.back().line_ == 0) value.values_.back().line_ = static_cast<int>(entry.begin.line);
    }
  }

  std::shared_ptr<const std::string> file_;
};

std::string TomlValue::where() const {
  std::string where = printable_line(*file_);
  if (line_ == kNoLine) return where;
  where.append(":").append(std::to_string(std::max(line_, 1)));
  if (!name_.empty()) where += ": " + printable_line(name_);
  return where;
}

void TomlValue::require(Kind kind, const char* expected) const {
  if (kind_ != kind) throw input_error(where(), "it is " + std::string(name_of(kind_)) + "; expected " + expected);
}

std::vector<std::string> TomlValue::keys() const {
  require(Kind::table, "a table");
  return keys_;
}

const TomlValue* TomlValue::find(std::string_view key) const {
  require(Kind::table, "a table");
  const auto found = std::find(keys_.begin(), keys_.end(), key);
  return found == keys_.end() ? nullptr : &values_[static_cast<std::size_t>(found - keys_.begin())];
}

const TomlValue& TomlValue::at(std::string_view key) const {
  if (const TomlValue* value = find(key)) return *value;
  throw input_error(where(), "it has no " + in_quotes(key));
}

void TomlValue::allow_only(std::initializer_list<std::string_view> keys) const {
  require(Kind::table, "a table");
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (std::find(keys.begin(), keys.end(), keys_[i]) != keys.end()) continue;
    throw input_error(values_[i].where(),
                      "unknown key " + in_quotes(keys_[i]) + "; expected one of " + joined(keys, ", "));
  }
}

const std::vector<TomlValue>& TomlValue::items() const {
  require(Kind::array, "an array");
  return values_;
}

const std::string& TomlValue::text() const {
  require(Kind::text, "a text");
  return text_;
}

bool TomlValue::flag() const {
  require(Kind::flag, "true or false");
  return integer_ != 0;
}

std::int64_t TomlValue::integer(std::int64_t least, std::int64_t most) const {
  require(Kind::integer, "a whole number");
  if (integer_ < least || integer_ > most)
    throw input_error(where(), "it is " + std::to_string(integer_) + "; expected a whole number in [" +
                                   std::to_string(least) + ", " + std::to_string(most) + "]");
  return integer_;
}

double TomlValue::number(double least, double most) const {
  if (kind_ != Kind::integer) require(Kind::number, "a number");
  if (!(number_ >= least && number_ <= most))
    throw input_error(where(), "it is " + shortest(number_) + "; expected a number in [" + shortest(least) + ", " +
                                   shortest(most) + "]");
  return number_;
}

std::string TomlValue::text_or(std::string_view key, const std::string& otherwise) const {
  const TomlValue* value = find(key);
  return value ? value->text() : otherwise;
}

bool TomlValue::flag_or(std::string_view key, bool otherwise) const {
  const TomlValue* value = find(key);
  return value ? value->flag() : otherwise;
}

std::int64_t TomlValue::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least,
                                   std::int64_t most) const {
  const TomlValue* value = find(key);
  return value ? value->integer(least, most) : otherwise;
}

double TomlValue::number_or(std::string_view key, double otherwise, double least, double most) const {
  const TomlValue* value = find(key);
  return value ? value->number(least, most) : otherwise;
}

TomlValue TomlValue::with(std::string_view dotted, const TomlValue& value) const {
  const std::size_t point = dotted.find('.');
  const std::string_view key = dotted.substr(0, point);
  TomlValue copy = *this;
  const std::size_t at =
      kind_ == Kind::array
          ? static_cast<std::size_t>(read_integer(key, 0, static_cast<std::int64_t>(values_.size()) - 1).value_or(-1))
          : static_cast<std::size_t>(std::find(keys_.begin(), keys_.end(), key) - keys_.begin());
  const bool last = point == std::string_view::npos;
  if (at < values_.size()) {
    copy.values_[at] = last ? value : values_[at].with(dotted.substr(point + 1), value);
  } else if (last && kind_ == Kind::table) {
    copy.keys_.emplace_back(key);
    copy.values_.push_back(value);
  } else {
    throw input_error(value.where(), "there is no " + in_quotes(key) + " in " + where());
  }
  return copy;
}

std::vector<std::string> TomlValue::texts_or_none(std::string_view key) const {
  const TomlValue* value = find(key);
  if (!value) return {};
  if (value->kind() == Kind::text) return {value->text()};
  std::vector<std::string> texts;
  for (const TomlValue& item : value->items()) texts.push_back(item.text());
  return texts;
}

TomlValue read_toml(const std::string& path) {
  return parse_toml(InputFile(path, kFileBytesMax).text(), path);
}

TomlValue parse_toml(std::string_view text, const std::string& file) {
  require_depth(text, file);
  try {
    return TomlBuilder(file).build(toml::parse(text, std::string_view(file)), "");
  } catch (const toml::parse_error& error) {
    throw input_error(printable_line(file) + ":" + std::to_string(error.source().begin.line),
                      "it is not TOML: " + printable_line(error.description()));
  }
}

TomlValue parse_toml_value(std::string_view text, const std::string& where) {
  const TomlValue table = parse_toml("value = " + std::string(text), where);
  if (table.keys().size() != 1) throw input_error(where, "it is more than one value");
  TomlValue value = table.at("value");
  value.line_ = TomlValue::kNoLine;
  return value;
}

std::string toml_quoted(std::string_view text) {
  std::ostringstream out;
  out << toml::value<std::string>(std::string(text));
  return out.str();
}

}  // namespace draftproof

// Values against schemas: which of an enum's are left.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/utf8.hpp"
#include "engine/grammar/schema_conjunction.hpp"

namespace draftproof {
namespace {

constexpr int kValueDepthMax = 60;
constexpr int kComparisonsMax = 100'000;   // of a value with schemas, which may refer to one another
constexpr std::size_t kPatternMax = 1000;  // std::regex calls itself for each character

using Truth = std::optional<bool>;

Truth both(Truth a, Truth b) {
  if (a == false || b == false) return false;
  return a && b ? Truth(true) : std::nullopt;
}
Truth negated(Truth a) {
  return a ? Truth(!*a) : a;
}

bool is_of_type(const SchemaJson& value, const std::string& type) {
  if (type == "number") return value.is_number();
  if (type == "integer")
    return value.is_number_integer() || (value.is_number() && std::floor(value.get<double>()) == value.get<double>());
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

bool are_unique(const SchemaJson& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (is_equal(values[i], values[j])) return false;
  return true;
}

std::int64_t characters_of(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; });
}

class ValueCheck {
 public:
  explicit ValueCheck(const SchemaJson& root) : root_(root) {}

  Truth check(const SchemaJson& value, const SchemaJson& schema) {
    if (schema.is_boolean()) return schema.get<bool>();
    if (!schema.is_object() || depth_ > kValueDepthMax || ++comparisons_ > kComparisonsMax) return std::nullopt;
    Truth result = true;
    ++depth_;
    for (const auto& [keyword, argument] : schema.items()) {
      result = both(result, keyword_of(keyword, argument, value, schema));
      if (result == false) break;
    }
    --depth_;
    return result;
  }

 private:
  template <class Items, class Test>
  static Truth all(const Items& items, const Test& test) {
    Truth result = true;
    for (const auto& item : items) result = both(result, test(item));
    return result;
  }

  Truth keyword_of(const std::string& keyword, const SchemaJson& argument, const SchemaJson& value,
                   const SchemaJson& schema) {
    if (keyword == "type") {
      if (argument.is_string()) return is_of_type(value, argument.get<std::string>());
      return std::ranges::any_of(argument, [&](const SchemaJson& type) {
        return type.is_string() && is_of_type(value, type.get<std::string>());
      });
    }
    const auto is_value = [&](const SchemaJson& one) { return is_equal(value, one); };
    if (keyword == "const") return is_value(argument);
    if (keyword == "enum") return std::ranges::any_of(argument, is_value);
    if (keyword == "$ref") {
      const SchemaJson* target = argument.is_string() ? referenced_schema(root_, argument.get<std::string>()) : nullptr;
      return target == nullptr ? std::nullopt : check(value, *target);
    }
    if (keyword == "not") return negated(check(value, argument));
    if (keyword == "allOf") return all(argument, [&](const SchemaJson& one) { return check(value, one); });
    if (keyword == "anyOf")
      return negated(all(argument, [&](const SchemaJson& one) { return negated(check(value, one)); }));
    if (keyword == "oneOf") {
      int holds = 0;
      for (const SchemaJson& one : argument) {
        const Truth truth = check(value, one);
        if (!truth) return std::nullopt;
        holds += *truth ? 1 : 0;
      }
      return holds == 1;
    }
    if (keyword == "if") {
      const Truth truth = check(value, argument);
      if (!truth) return std::nullopt;
      const char* const branch = *truth ? "then" : "else";
      return schema.contains(branch) ? check(value, schema.at(branch)) : Truth(true);
    }
    if (value.is_number()) return of_number(keyword, argument, value);
    if (value.is_string()) return of_string(keyword, argument, value.get_ref<const std::string&>());
    if (value.is_array()) return of_array(keyword, argument, value, schema);
    if (value.is_object()) return of_object(keyword, argument, value, schema);
    return true;
  }

  static Truth of_number(const std::string& keyword, const SchemaJson& argument, const SchemaJson& value) {
    if (keyword == kNotWhole) return !is_of_type(value, "integer");
    if (keyword == "minimum") return value >= argument;
    if (keyword == "maximum") return value <= argument;
    // A truth value is draft 4's, and makes the limit beside it exclusive.
    if (keyword == "exclusiveMinimum") return argument.is_number() ? Truth(value > argument) : std::nullopt;
    if (keyword == "exclusiveMaximum") return argument.is_number() ? Truth(value < argument) : std::nullopt;
    if (keyword != "multipleOf") return true;
    if (!value.is_number_integer() || !argument.is_number_integer() || argument == 0) return std::nullopt;
    return value.get<std::int64_t>() % argument.get<std::int64_t>() == 0;
  }

  static Truth of_string(const std::string& keyword, const SchemaJson& argument, const std::string& text) {
    if (keyword == "minLength") return characters_of(text) >= argument;
    if (keyword == "maxLength") return characters_of(text) <= argument;
    if (keyword == "pattern")
      return argument.is_string() ? has_pattern(text, argument.get<std::string>()) : std::nullopt;
    return true;
  }

  Truth of_array(const std::string& keyword, const SchemaJson& argument, const SchemaJson& value,
                 const SchemaJson& schema) {
    if (keyword == "minItems") return value.size() >= argument;
    if (keyword == "maxItems") return value.size() <= argument;
    if (keyword == "items" && argument.is_object() && !schema.contains("prefixItems"))
      return all(value, [&](const SchemaJson& item) { return check(item, argument); });
    if (keyword == "uniqueItems") return argument != true || are_unique(value);
    const bool constrains = keyword == "items" || keyword == "prefixItems" || keyword == "contains" ||
                            keyword == "additionalItems" || keyword == "unevaluatedItems";
    return constrains ? std::nullopt : Truth(true);
  }

  Truth of_object(const std::string& keyword, const SchemaJson& argument, const SchemaJson& value,
                  const SchemaJson& schema) {
    if (keyword == "minProperties") return value.size() >= argument;
    if (keyword == "maxProperties") return value.size() <= argument;
    if (keyword == "required")
      return all(argument, [&](const SchemaJson& name) { return value.contains(name.get<std::string>()); });
    if (keyword == "properties") {
      Truth result = true;
      for (const auto& [name, one] : argument.items())
        if (value.contains(name)) result = both(result, check(value.at(name), one));
      return result;
    }
    if (keyword == "additionalProperties" && !schema.contains("patternProperties")) {
      Truth result = true;
      for (const auto& [name, one] : value.items())
        if (!schema.contains("properties") || !schema.at("properties").contains(name))
          result = both(result, check(one, argument));
      return result;
    }
    const bool constrains = keyword == "additionalProperties" || keyword == "patternProperties" ||
                            keyword == "propertyNames" || keyword == "unevaluatedProperties" ||
                            keyword.starts_with("depend");
    return constrains ? std::nullopt : Truth(true);
  }

  const SchemaJson& root_;
  int depth_ = 0;
  int comparisons_ = 0;
};

std::string unescaped(std::string part) {
  for (const auto& [from, to] : {std::pair("%25", "%"), {"%20", " "}, {"~1", "/"}, {"~0", "~"}})
    for (std::size_t at = 0; (at = part.find(from, at)) != part.npos; ++at)
      part.replace(at, std::char_traits<char>::length(from), to);
  return part;
}

}  // namespace

const SchemaJson* referenced_schema(const SchemaJson& root, const std::string& reference) {
  if (reference == "#" || reference == "#/") return &root;
  if (!reference.starts_with("#/")) return nullptr;
  const SchemaJson* at = &root;
  for (std::size_t begin = 2; begin <= reference.size();) {
    const std::size_t end = std::min(reference.find('/', begin), reference.size());
    const std::string part = unescaped(reference.substr(begin, end - begin));
    if (at->is_object()) {
      if (!at->contains(part)) return nullptr;
      at = &at->at(part);
    } else {
      std::size_t index = 0;
      for (const char c : part)
        index =
            c >= '0' && c <= '9' && part.size() < 9 ? 10 * index + static_cast<std::size_t>(c - '0') : SIZE_MAX / 16;
      if (!at->is_array() || part.empty() || index >= at->size()) return nullptr;
      at = &at->at(index);
    }
    begin = end + 1;
  }
  return at;
}

bool is_equal(const SchemaJson& a, const SchemaJson& b) {
  if (!a.is_structured() || !b.is_structured()) return a == b;
  return nlohmann::json(a) == nlohmann::json(b);  // which sorts names
}

std::optional<bool> is_of_schema(const SchemaJson& value, const SchemaJson& schema, const SchemaJson& root) {
  return ValueCheck(root).check(value, schema);
}

std::optional<bool> has_pattern(const std::string& text, const std::string& pattern) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::max(text.size(), pattern.size()) > kPatternMax || !std::ranges::all_of(text, is_ascii) ||
      !std::ranges::all_of(pattern, is_ascii))
    return std::nullopt;
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;  // no pattern takes exponential time
#endif
  try {
    return std::regex_search(text, std::regex(pattern, flags));
  } catch (const std::regex_error&) {
    return std::nullopt;
  }
}

}  // namespace draftproof

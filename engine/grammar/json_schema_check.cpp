#include "engine/grammar/json_schema_check.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"

namespace draftproof {
namespace {

using Json = nlohmann::json;

// Keywords of drafts 6 to 2020-12 that XGrammar 0.2.8 reads and does not apply.
constexpr std::array<std::string_view, 15> kNotApplied{
    "not",      "if",          "then",        "else",        "dependentRequired", "dependentSchemas", "dependencies",
    "contains", "minContains", "maxContains", "uniqueItems", "$dynamicRef",       "$recursiveRef",    "contentSchema",
    "extends"};
// Keywords that say something about the value; all else is a note, or says where schemas are.
constexpr std::array<std::string_view, 28> kAssertions{"$ref",
                                                       "const",
                                                       "enum",
                                                       "anyOf",
                                                       "oneOf",
                                                       "allOf",
                                                       "type",
                                                       "properties",
                                                       "required",
                                                       "additionalProperties",
                                                       "propertyNames",
                                                       "minProperties",
                                                       "maxProperties",
                                                       "patternProperties",
                                                       "unevaluatedProperties",
                                                       "items",
                                                       "prefixItems",
                                                       "minItems",
                                                       "maxItems",
                                                       "unevaluatedItems",
                                                       "minimum",
                                                       "maximum",
                                                       "exclusiveMinimum",
                                                       "exclusiveMaximum",
                                                       "multipleOf",
                                                       "minLength",
                                                       "maxLength",
                                                       "pattern"};
// Of these, in this order, XGrammar applies the first that is there and no other keyword.
constexpr std::array<std::string_view, 6> kAlone{"$ref", "const", "enum", "anyOf", "oneOf", "allOf"};

bool is_of_type(const Json& value, const std::string& type) {
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

constexpr int kDepthMax = 200;

class SchemaCheck {
 public:
  explicit SchemaCheck(const std::string& where) : where_(where) {}

  void check(const Json& schema, const std::string& at, int depth = 0) const {
    if (schema.is_boolean()) return;
    if (depth > kDepthMax)
      throw input_error(where_, "is nested deeper than " + std::to_string(kDepthMax) +
                                    " schemas; expected a flatter one, "
                                    "which names its parts in \"$defs\"");
    if (!schema.is_object()) throw fail(at, "is no schema; expected an object, true or false");
    for (const std::string_view keyword : kNotApplied)
      if (schema.contains(keyword) && !(keyword == "uniqueItems" && schema.at(keyword) == false))
        throw fail(at, "has \"" + std::string(keyword) + "\", which is not supported");
    for (const std::string_view alone : kAlone) {
      if (!schema.contains(alone)) continue;
      check_alone(schema, std::string(alone), at);
      break;
    }
    if (schema.contains("$ref") && (!schema.at("$ref").is_string() || !is_local(schema.at("$ref"))))
      throw fail(at, "has the \"$ref\" " + schema.at("$ref").dump() + "; expected \"#\" or \"#/...\" of this document");
    if (schema.contains("pattern") &&
        (schema.contains("minLength") || schema.contains("maxLength") || schema.contains("format")))
      throw fail(at, "has \"pattern\" beside a length or \"format\", which is not supported; expected one of them");
    if (schema.contains("format") && (schema.contains("minLength") || schema.contains("maxLength")))
      throw fail(at, "has \"format\" beside a length, which is not supported; expected one of them");
    if (const Json least = schema.value("minProperties", Json(0));
        names_are_free(schema) && least.is_number() && least >= 2)
      throw fail(at,
                 "has \"minProperties\" above 1 beside names that it does not list, which may then stand twice; "
                 "expected \"required\" names");
    check_below(schema, at, depth + 1);
  }

 private:
  static bool is_local(const Json& ref) {
    const auto text = ref.get<std::string>();
    return text == "#" || text.starts_with("#/");
  }
  static bool names_are_free(const Json& schema) {
    for (const char* keyword : {"additionalProperties", "unevaluatedProperties"})
      if (schema.contains(keyword) && schema.at(keyword) != false) return true;
    return schema.contains("patternProperties") || schema.contains("propertyNames") || !schema.contains("properties");
  }
  Error fail(const std::string& at, const std::string& what) const {
    return input_error(where_, "the schema at " + (at.empty() ? "its root" : at) + " " + what);
  }

  void check_alone(const Json& schema, const std::string& alone, const std::string& at) const {
    for (const std::string_view keyword : kAssertions) {
      if (keyword == alone || !schema.contains(keyword)) continue;
      if (keyword == "type" && goes_with_type(schema, alone)) continue;
      throw fail(at, "has \"" + std::string(keyword) + "\" beside \"" + alone +
                         "\", which is not supported; expected one of them");
    }
    if (alone == "allOf" && schema.at(alone).is_array() && schema.at(alone).size() > 1)
      throw fail(at,
                 "has \"allOf\" of several schemas, which is not supported; expected one schema that says the same");
  }
  // A type beside them adds nothing: each value, or each alternative, is of it.
  static bool goes_with_type(const Json& schema, const std::string& alone) {
    if (!schema.at("type").is_string()) return false;
    const auto type = schema.at("type").get<std::string>();
    if (alone == "const") return is_of_type(schema.at(alone), type);
    if (!schema.at(alone).is_array()) return false;
    return std::ranges::all_of(schema.at(alone), [&](const Json& entry) {
      return alone == "enum" ? is_of_type(entry, type) : entry.is_object() && entry.value("type", Json()) == type;
    });
  }

  void check_below(const Json& schema, const std::string& at, int depth) const {
    for (const char* of_one : {"additionalProperties", "propertyNames", "unevaluatedProperties", "unevaluatedItems"})
      if (schema.contains(of_one)) check(schema.at(of_one), at + "/" + of_one, depth);
    if (schema.contains("items") && schema.at("items").is_array())
      throw fail(at, "has \"items\" that is a list; expected \"prefixItems\"");
    if (schema.contains("items")) check(schema.at("items"), at + "/items", depth);
    for (const char* of_named : {"properties", "patternProperties", "$defs", "definitions"})
      if (schema.contains(of_named) && schema.at(of_named).is_object())
        for (const auto& [name, below] : schema.at(of_named).items())
          check(below, at + "/" + of_named + "/" + name, depth);
    for (const char* of_many : {"anyOf", "oneOf", "allOf", "prefixItems"})
      if (schema.contains(of_many) && schema.at(of_many).is_array())
        for (std::size_t i = 0; i < schema.at(of_many).size(); ++i)
          check(schema.at(of_many).at(i), at + "/" + of_many + "/" + std::to_string(i), depth);
  }

  const std::string& where_;
};

}  // namespace

void require_supported_schema(const std::string& text, const std::string& where) {
  Json schema;
  try {
    schema = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw input_error(where, "is no JSON: byte " + std::to_string(error.byte) + "; expected a JSON Schema");
  }
  SchemaCheck(where).check(schema, "");
}

}  // namespace draftproof

#include "engine/grammar/json_schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/near_names.hpp"
#include "base/printable.hpp"
#include "engine/grammar/schema_conjunction.hpp"

namespace draftproof {
namespace {

constexpr int kTextDepthMax = 600;

int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_text = !in_text;
    if (in_text && text[i] == '\\') ++i;
    if (in_text) continue;
    if (text[i] == '{' || text[i] == '[') deepest = std::max(deepest, ++depth);
    if (text[i] == '}' || text[i] == ']') --depth;
  }
  return deepest;
}

// Keywords that schemas may hold beside those of is_note(), and where further schemas are.
class KeywordCheck {
 public:
  KeywordCheck(const SchemaConjunctions& conjunctions) : conjunctions_(conjunctions) {}

  void check(const SchemaJson& schema, const std::string& at) const {
    if (!schema.is_object()) return;  // said where it is used
    for (const auto& [keyword, argument] : schema.items()) {
      const auto is = [&](std::initializer_list<const char*> names) {
        return std::ranges::find(names, std::string_view(keyword)) != names.end();
      };
      const std::string place = at + "/" + keyword;
      if (is({"$dynamicRef", "$recursiveRef", "contentSchema", "extends", "disallow", "divisibleBy"}))
        throw conjunctions_.fail(at, "has \"" + keyword + "\", which is not supported");
      if (is({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})) {
        if (!argument.is_object()) throw conjunctions_.fail(at, "has \"" + keyword + "\" that is no object");
        for (const auto& [name, below] : argument.items()) check(below, place + "/" + name);
      } else if (is({"anyOf", "oneOf", "allOf", "prefixItems"}) || (keyword == "items" && argument.is_array())) {
        if (!argument.is_array()) throw conjunctions_.fail(at, "has \"" + keyword + "\" that is no list");
        for (std::size_t i = 0; i < argument.size(); ++i) check(argument[i], place + "/" + std::to_string(i));
      } else if (is({"not", "if", "then", "else", "items", "additionalItems", "additionalProperties", "propertyNames",
                     "unevaluatedProperties", "unevaluatedItems", "contains"})) {
        check(argument, place);
      } else if (is({"enum", "required"})) {
        if (!argument.is_array()) throw conjunctions_.fail(at, "has \"" + keyword + "\" that is no list");
      } else if (is({"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minimum",
                     "maximum", "multipleOf"})) {
        if (!argument.is_number()) throw conjunctions_.fail(at, "has \"" + keyword + "\" that is no number");
      } else if (is_note(keyword)) {
        require_note(keyword, at);
      }
    }
  }

 private:
  // A name that is not a keyword says nothing, by the standard; one that nearly is was meant to.
  void require_note(const std::string& keyword, const std::string& at) const {
    static const std::vector<std::string> kNotes{"title",
                                                 "description",
                                                 "default",
                                                 "examples",
                                                 "example",
                                                 "deprecated",
                                                 "readOnly",
                                                 "writeOnly",
                                                 "$schema",
                                                 "$id",
                                                 "id",
                                                 "$comment",
                                                 "$anchor",
                                                 "$vocabulary",
                                                 "$defs",
                                                 "definitions",
                                                 "format",
                                                 "name",
                                                 "strict",
                                                 "nullable",
                                                 "contentEncoding",
                                                 "contentMediaType",
                                                 "version"};
    static const std::vector<std::string> kKeywords{"$ref",
                                                    "allOf",
                                                    "anyOf",
                                                    "oneOf",
                                                    "not",
                                                    "const",
                                                    "enum",
                                                    "type",
                                                    "properties",
                                                    "required",
                                                    "additionalProperties",
                                                    "patternProperties",
                                                    "propertyNames",
                                                    "minProperties",
                                                    "maxProperties",
                                                    "items",
                                                    "prefixItems",
                                                    "minItems",
                                                    "maxItems",
                                                    "uniqueItems",
                                                    "contains",
                                                    "minLength",
                                                    "maxLength",
                                                    "pattern",
                                                    "minimum",
                                                    "maximum",
                                                    "exclusiveMinimum",
                                                    "exclusiveMaximum",
                                                    "multipleOf",
                                                    "dependentRequired"};
    if (keyword.starts_with("x-") || keyword.starts_with("_") || std::ranges::find(kNotes, keyword) != kNotes.end())
      return;
    std::string plain = keyword;
    std::erase(plain, '_');
    std::erase(plain, '-');
    const std::string near = nearest_name(plain, kKeywords);
    if (!near.empty() && plain.size() > 2)
      throw conjunctions_.fail(at, "has " + in_quotes(keyword) + ", which is no keyword; did you mean '" + near + "'?");
  }

  const SchemaConjunctions& conjunctions_;
};

// The schema inside of OpenAI's "response_format" or of its "json_schema".
SchemaJson unwrapped(SchemaJson schema, const std::string& where) {
  if (!schema.is_object()) return schema;
  const auto holds = [&](const char* name) { return schema.contains(name); };
  if (holds("json_schema") && schema["json_schema"].is_object() && holds("type") && schema["type"] == "json_schema")
    schema = SchemaJson(schema["json_schema"]);
  const bool is_wrapper =
      holds("schema") && holds("name") && schema["name"].is_string() && !holds("type") && !holds("properties");
  if (!is_wrapper) return schema;
  for (const auto& [key, value] : schema.items())
    if (key != "name" && key != "strict" && key != "schema" && key != "description")
      throw input_error(where, "is a schema in a wrapper with the field " + in_quotes(key) +
                                   "; expected name, description, strict and schema");
  return SchemaJson(schema["schema"]);
}

std::string rewritten(const SchemaJson& schema, const std::string& where) {
  SchemaConjunctions conjunctions(schema, where);
  if (!schema.is_object() && !schema.is_boolean())
    throw conjunctions.fail("", "is no schema; expected an object, true or false");
  if (schema.is_object() && std::ranges::all_of(schema.items(), [](const auto& item) { return is_note(item.key()); }))
    throw input_error(where,
                      "says nothing about the document: the schema has no keyword like \"type\" or \"properties\"; "
                      "expected one, or `true` for any JSON document");
  KeywordCheck(conjunctions).check(schema, "");
  SchemaJson result = conjunctions.of({{schema, ""}});
  if (result == false)
    throw input_error(where, "is a schema that nothing satisfies; expected a JSON Schema that can be satisfied");
  if (!conjunctions.definitions().empty()) result["$defs"] = conjunctions.definitions();
  return result.dump();
}

}  // namespace

std::string supported_schema(const std::string& text, const std::string& where) {
  if (depth_of(text) > kTextDepthMax)
    throw input_error(where,
                      "is nested deeper than 200 schemas; expected a flatter one, which names its parts in \"$defs\"");
  SchemaJson schema;
  try {
    schema = unwrapped(SchemaJson::parse(text), where);
  } catch (const SchemaJson::parse_error& error) {
    throw input_error(where, "is no JSON: byte " + std::to_string(error.byte) + "; expected a JSON Schema");
  } catch (const SchemaJson::out_of_range&) {
    throw input_error(where, "has a number beyond 1.8e308; expected a JSON Schema");
  }
  try {
    return rewritten(schema, where);
  } catch (const SchemaJson::exception&) {
    throw input_error(where, "is no JSON Schema: a keyword has a value of another type than the standard's");
  }
}

}  // namespace draftproof

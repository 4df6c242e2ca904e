// Objects of several schemas merged into one: each name with all that is said of it.
#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "engine/grammar/schema_conjunction.hpp"

namespace draftproof {
namespace {

using Parts = std::vector<PlacedSchema>;

const SchemaJson& entry_or_none(const SchemaJson& schema, const char* keyword) {
  static const SchemaJson kNone = SchemaJson::object();
  const auto found = schema.find(keyword);
  return found == schema.end() || !found->is_object() ? kNone : *found;
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

std::string place(const PlacedSchema& part, const std::string& keyword) {
  return part.at + "/" + keyword;
}

// The keyword that says what unnamed properties are.
const char* of_others(const SchemaJson& schema) {
  return schema.contains("additionalProperties") || !schema.contains("unevaluatedProperties") ? "additionalProperties"
                                                                                              : "unevaluatedProperties";
}

}  // namespace

// All schemas of a property: its own, those of patterns that its name has, and where it has neither, that of others.
std::vector<PlacedSchema> SchemaConjunctions::of_property(const std::string& name, const Parts& flat) const {
  Parts all;
  for (const PlacedSchema& part : flat) {
    bool is_named = false;
    const auto add = [&](const SchemaJson& schema, const std::string& at) {
      all.push_back({schema, at});
      is_named = true;
    };
    const SchemaJson& properties = entry_or_none(part.schema, "properties");
    if (properties.contains(name)) add(properties.at(name), place(part, "properties/" + name));
    for (const auto& [pattern, schema] : entry_or_none(part.schema, "patternProperties").items()) {
      const std::optional<bool> matches = has_pattern(name, pattern);
      if (!matches) throw fail(part.at, "has a pattern of names that cannot be compared with \"" + name + "\"");
      if (*matches) add(schema, place(part, "patternProperties/" + pattern));
    }
    if (!is_named && part.schema.contains("additionalProperties"))
      all.push_back({part.schema.at("additionalProperties"), place(part, "additionalProperties")});
    if (part.schema.contains("propertyNames")) {
      const std::optional<bool> is_name = is_of_schema(name, part.schema.at("propertyNames"), root_);
      if (!is_name) throw fail(part.at, "has \"propertyNames\" that cannot be compared with \"" + name + "\"");
      if (!*is_name) all.push_back({false, place(part, "propertyNames")});
    }
  }
  return all;
}

SchemaJson SchemaConjunctions::objects(const Parts& flat) {
  std::vector<std::string> names;
  std::vector<std::string> required;
  std::vector<std::string> patterns;
  Parts others;
  Parts of_names;
  SchemaJson least = 0;
  SchemaJson most;
  bool says_names = false;
  for (const PlacedSchema& part : flat) {
    const SchemaJson& schema = part.schema;
    for (const auto& [name, one] : entry_or_none(schema, "properties").items()) add_once(names, name);
    for (const auto& [pattern, one] : entry_or_none(schema, "patternProperties").items()) add_once(patterns, pattern);
    if (schema.contains("required")) {
      if (!schema.at("required").is_array()) throw fail(part.at, "has \"required\" that is no list of names");
      for (const SchemaJson& name : schema.at("required")) {
        if (!name.is_string()) throw fail(part.at, "has \"required\" that is no list of names");
        add_once(required, name.get<std::string>());
      }
    }
    if (schema.contains(of_others(schema)))
      others.push_back({schema.at(of_others(schema)), place(part, of_others(schema))});
    if (schema.contains("propertyNames"))
      of_names.push_back({schema.at("propertyNames"), place(part, "propertyNames")});
    if (const auto found = schema.find("minProperties"); found != schema.end() && *found > least) least = *found;
    if (const auto found = schema.find("maxProperties"); found != schema.end() && (most.is_null() || *found < most))
      most = *found;
    says_names = says_names || schema.contains("properties") || schema.contains("patternProperties") ||
                 schema.contains("propertyNames") || schema.contains("required");
  }
  for (const std::string& name : required) add_once(names, name);

  SchemaJson result = {{"type", "object"}};
  bool leaves_out = false;  // a name that no property may have
  for (const std::string& name : names) {
    SchemaJson one = of(of_property(name, flat));
    if (one == false) {
      if (std::ranges::find(required, name) != required.end()) return false;
      leaves_out = true;
      continue;
    }
    result["properties"][name] = std::move(one);
  }
  if (!required.empty()) result["required"] = required;

  // Other names are allowed where a schema describes them, or describes no names at all. The library
  // would take them for names that are left out, and for those of patterns: then there are none.
  const bool has_names = result.contains("properties");
  SchemaJson of_rest = others.empty() ? SchemaJson(!says_names) : of(others);
  if (leaves_out || !patterns.empty() || (has_names && !of_names.empty())) of_rest = false;
  if (!patterns.empty()) {
    if (!of_names.empty()) throw fail(of_names.front().at, "stands beside patterns of names, which is not supported");
    // A name may have several patterns, and that of a property: each must then be of all.
    Parts all;
    for (const PlacedSchema& part : flat)
      for (const auto& [pattern, schema] : entry_or_none(part.schema, "patternProperties").items())
        all.push_back({schema, place(part, "patternProperties/" + pattern)});
    for (const std::string& pattern : patterns) {
      Parts here = all;
      bool is_possible = true;
      for (const std::string& name : names) {
        if (has_pattern(name, pattern) == false) continue;
        is_possible = is_possible && has_names && result.at("properties").contains(name);
        for (PlacedSchema& one : of_property(name, flat)) here.push_back(std::move(one));
      }
      for (const PlacedSchema& part : flat)
        if (!entry_or_none(part.schema, "patternProperties").contains(pattern) &&
            part.schema.contains("additionalProperties"))
          here.push_back({part.schema.at("additionalProperties"), place(part, "additionalProperties")});
      const SchemaJson one = is_possible ? of(std::move(here)) : SchemaJson(false);
      const auto as_library = pattern_of_length(pattern, 0, std::nullopt);
      if (!as_library || !as_library->pattern)
        throw fail(flat.front().at, "has the pattern of names " + in_quotes(pattern) + ", which is not supported");
      if (one != false) result["patternProperties"][*as_library->pattern] = one;
    }
  } else if (!of_names.empty() && !has_names && (others.empty() || of_rest != false)) {
    const SchemaJson name = of([&] {
      Parts all = of_names;
      all.push_back({{{"type", "string"}}, of_names.front().at});
      return all;
    }());
    if (name == false)
      of_rest = false;
    else
      result["propertyNames"] = name;
    if (others.empty() && name != false) of_rest = true;
  }
  if (of_rest != false) {
    if (least >= 2 && least > static_cast<std::int64_t>(required.size()))
      throw fail(flat.empty() ? "" : flat.front().at,
                 "has \"minProperties\" above 1 beside names that it does not list, which may then stand twice; "
                 "expected \"required\" names");
    result["additionalProperties"] = of_rest;
  } else if (!result.contains("properties") && !result.contains("patternProperties")) {
    result["additionalProperties"] = false;  // the library takes {"type": "object"} alone for any object
  }
  if (least > 0) result["minProperties"] = least;
  if (!most.is_null()) result["maxProperties"] = most;
  return result;
}

}  // namespace draftproof

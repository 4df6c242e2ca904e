#include "engine/grammar/schema_conjunction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace draftproof {
namespace {

constexpr int kConjunctionsMax = 20'000;
constexpr int kSchemaDepthMax = 200;
constexpr std::size_t kWaysMax = 1'000;  // of one member of a oneOf to be without the others
constexpr const char* kTooMany = "has too many combinations of alternatives; expected a simpler one";

constexpr std::array<const char*, 6> kTypes{"object", "string", "number", "array", "boolean", "null"};

const SchemaJson* find(const SchemaJson& schema, const char* keyword) {
  const auto found = schema.find(keyword);
  return found == schema.end() ? nullptr : &*found;
}

PlacedSchema below(const PlacedSchema& part, const std::string& keyword) {
  return {part.schema.at(keyword), part.at + "/" + keyword};
}
std::vector<PlacedSchema> each_below(const PlacedSchema& part, const std::string& keyword) {
  std::vector<PlacedSchema> parts;
  for (const SchemaJson& schema : part.schema.at(keyword))
    parts.push_back({schema, part.at + "/" + keyword + "/" + std::to_string(parts.size())});
  return parts;
}

SchemaJson with_type(const char* type) {
  return {{"type", type}};
}
SchemaJson without(const std::string& property) {
  return {{"properties", {{property, false}}}};
}

// A keyword that limits a number or a length from one side, and the one that allows what it denies.
struct Limit {
  const char *keyword, *type, *opposite;
  int step;  // from the limit to what it denies; of numbers the other keyword leaves out the limit itself

  // Null: it denies nothing.
  SchemaJson denied(const SchemaJson& limit) const {
    if (step == 0) return limit;
    const double next = (step > 0 ? std::floor(limit.get<double>()) : std::ceil(limit.get<double>())) + step;
    return next < 0.0 || next > 1e15 ? SchemaJson() : SchemaJson(static_cast<std::int64_t>(next));
  }
};
constexpr std::array<Limit, 10> kLimits{{{"minimum", "number", "exclusiveMaximum", 0},
                                         {"maximum", "number", "exclusiveMinimum", 0},
                                         {"exclusiveMinimum", "number", "maximum", 0},
                                         {"exclusiveMaximum", "number", "minimum", 0},
                                         {"minLength", "string", "maxLength", -1},
                                         {"maxLength", "string", "minLength", 1},
                                         {"minItems", "array", "maxItems", -1},
                                         {"maxItems", "array", "minItems", 1},
                                         {"minProperties", "object", "maxProperties", -1},
                                         {"maxProperties", "object", "minProperties", 1}}};

const Limit* limit_of(std::string_view keyword) {
  const auto found = std::ranges::find_if(kLimits, [&](const Limit& limit) { return limit.keyword == keyword; });
  return found == kLimits.end() ? nullptr : &*found;
}

// Does every document of `emitted` lie beyond a limit of the schema's? By numbers and lengths alone.
bool lies_beyond(const SchemaJson& emitted, const SchemaJson& schema) {
  const auto at = [](const SchemaJson& of, const char* keyword) -> const SchemaJson* {
    const auto found = *keyword == '\0' ? of.end() : of.find(keyword);
    return found == of.end() || !found->is_number() ? nullptr : &*found;
  };
  constexpr std::array<std::array<const char*, 4>, 4> kSides{
      {{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
       {"minLength", "maxLength", "", ""},
       {"minItems", "maxItems", "", ""},
       {"minProperties", "maxProperties", "", ""}}};
  for (const auto& [least, most, above, under] : kSides)
    for (const auto& [low, high] : {std::pair(&emitted, &schema), {&schema, &emitted}})
      for (const char* const from : {least, above})
        for (const char* const to : {most, under}) {
          const SchemaJson *const a = at(*low, from), *const b = at(*high, to);
          if (a == nullptr || b == nullptr) continue;
          if (*a > *b || (*a == *b && (from == above || to == under))) return true;
        }
  return false;
}

bool is_of_values(const SchemaJson& schema) {
  return schema.is_object() && schema.size() == 1 && (schema.contains("enum") || schema.contains("const"));
}

}  // namespace

Error SchemaConjunctions::fail(const std::string& at, const std::string& what) const {
  return input_error(where_, "the schema at " + (at.empty() ? "its root" : at) + " " + what);
}

SchemaJson SchemaConjunctions::of(Parts parts) {
  if (++work_ > kConjunctionsMax) throw fail(parts.empty() ? "" : parts.front().at, kTooMany);
  struct Deeper {
    int& depth;
    ~Deeper() { --depth; }
  } deeper{++depth_};
  if (depth_ > kSchemaDepthMax)
    throw input_error(where_, "is nested deeper than " + std::to_string(kSchemaDepthMax) +
                                  " schemas; expected a flatter one, which names its parts in \"$defs\"");
  const auto refers = [](const PlacedSchema& part) { return part.schema.is_object() && part.schema.contains("$ref"); };
  if (std::ranges::none_of(parts, refers)) return of_flat(parts);
  // Schemas that refer to others may come back to themselves: each conjunction of them is said once, by name.
  std::set<std::string> keys;
  for (const PlacedSchema& part : parts)
    if (part.schema != true && part.schema != SchemaJson::object()) keys.insert(part.schema.dump());
  std::string key;
  for (const std::string& one : keys) key += one + "\n";
  const auto [entry, is_new] = names_.emplace(key, "d" + std::to_string(names_.size()));
  const std::string name = entry->second;
  if (is_new) {
    definitions_[name] = nullptr;
    definitions_[name] = of_flat(parts);
  }
  const SchemaJson& definition = definitions_[name];
  if (definition == false) return false;
  return {{"$ref", "#/$defs/" + name}};
}

SchemaJson SchemaConjunctions::of_flat(const Parts& parts) {
  Parts flat;
  if (!flatten(parts, flat)) return false;
  for (const PlacedSchema& part : flat)
    if (part.schema.contains("enum") || part.schema.contains("const")) return of_values(flat);
  SchemaJson result;
  return split_first(flat, result) ? result : of_plain(flat);
}

// References are followed, members of allOf and what stands beside both become parts of their own. False: one of them
// allows nothing.
bool SchemaConjunctions::flatten(const Parts& parts, Parts& flat) const {
  std::set<std::string> followed;
  Parts left(parts.rbegin(), parts.rend());
  while (!left.empty()) {
    PlacedSchema part = std::move(left.back());
    left.pop_back();
    if (part.schema == false) return false;
    if (part.schema.is_boolean()) continue;
    if (!part.schema.is_object()) throw fail(part.at, "is no schema; expected an object, true or false");
    if (const SchemaJson* const reference = find(part.schema, "$ref")) {
      const std::string name = reference->is_string() ? reference->get<std::string>() : reference->dump();
      const SchemaJson* const target = reference->is_string() ? referenced_schema(root_, name) : nullptr;
      if (target == nullptr)
        throw fail(part.at, "has the \"$ref\" \"" + name + "\"; expected \"#\" or \"#/...\" of this document");
      if (followed.insert(name).second) left.push_back({*target, name.substr(1)});
      part.schema.erase("$ref");
    }
    if (part.schema.contains("allOf")) {
      for (PlacedSchema& member : each_below(part, "allOf")) left.push_back(std::move(member));
      part.schema.erase("allOf");
    }
    if (!part.schema.empty()) flat.push_back(std::move(part));
  }
  return true;
}

// The values of the shortest list that are of every part.
SchemaJson SchemaConjunctions::of_values(const Parts& flat) {
  std::optional<std::vector<SchemaJson>> values;
  for (const PlacedSchema& part : flat) {
    std::vector<SchemaJson> own;
    if (part.schema.contains("const")) {
      own.push_back(part.schema.at("const"));
    } else if (part.schema.contains("enum")) {
      own.assign(part.schema.at("enum").begin(), part.schema.at("enum").end());
    } else {
      continue;
    }
    if (!values || own.size() < values->size()) values = std::move(own);
  }
  SchemaJson left = SchemaJson::array();
  for (const SchemaJson& value : *values) {
    bool is_of_all = true;
    for (const PlacedSchema& part : flat) {
      const std::optional<bool> is_of = is_of_schema(value, part.schema, root_);
      if (!is_of)
        throw fail(part.at, "cannot be compared with the value " + value.dump().substr(0, 40) +
                                " of an enum or const; expected simpler keywords beside it");
      is_of_all = is_of_all && *is_of;
    }
    if (is_of_all && std::ranges::find(left, value) == left.end()) left.push_back(value);
  }
  if (left.empty()) return false;
  return {{"enum", left}};
}

// The first keyword that offers a choice, taken apart; false where none does.
bool SchemaConjunctions::split_first(const Parts& flat, SchemaJson& result) {
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const PlacedSchema& part = flat[i];
    const SchemaJson& schema = part.schema;
    Parts rest = flat;
    SchemaJson& own = rest[i].schema;
    std::vector<Parts> choices;
    if (schema.contains("anyOf")) {
      own.erase("anyOf");
      for (PlacedSchema& one : each_below(part, "anyOf")) choices.push_back({std::move(one)});
    } else if (schema.contains("oneOf")) {
      own.erase("oneOf");
      result = one_of(rest, part);
      return true;
    } else if (schema.contains("not")) {
      own.erase("not");
      const PlacedSchema denied = below(part, "not");
      choices = is_of_values(denied.schema) ? other_types(denied, rest) : negation(denied);
    } else if (schema.contains("if")) {
      for (const char* const keyword : {"if", "then", "else"}) own.erase(keyword);
      if (!schema.contains("then") && !schema.contains("else")) {
        result = of_flat(rest);
        return true;
      }
      choices.push_back({below(part, "if")});
      if (schema.contains("then")) choices.back().push_back(below(part, "then"));
      for (Parts& otherwise : negation(below(part, "if"))) {
        if (schema.contains("else")) otherwise.push_back(below(part, "else"));
        choices.push_back(std::move(otherwise));
      }
    } else {
      const char* keyword = nullptr;
      for (const char* const one : {"dependentRequired", "dependentSchemas", "dependencies"})
        if (schema.contains(one)) keyword = one;
      if (keyword == nullptr) continue;
      const PlacedSchema dependencies = below(part, keyword);
      own.erase(keyword);
      if (dependencies.schema.empty()) {
        result = of_flat(rest);
        return true;
      }
      const std::string name = dependencies.schema.begin().key();
      const SchemaJson needs = dependencies.schema.begin().value();
      own[keyword] = dependencies.schema;
      own[keyword].erase(name);
      choices.push_back({{without(name), part.at}});
      choices.push_back({{{{"required", {name}}}, part.at}});
      choices.back().push_back(
          {needs.is_array() ? SchemaJson{{"required", needs}} : needs, dependencies.at + "/" + name});
    }
    result = alternatives(rest, choices);
    return true;
  }
  return false;
}

// Without an enum beside them single values can be left out with their type alone.
std::vector<SchemaConjunctions::Parts> SchemaConjunctions::other_types(const PlacedSchema& denied,
                                                                       const Parts& rest) const {
  SchemaJson values = denied.schema.contains("enum") ? denied.schema.at("enum") : SchemaJson::array();
  if (denied.schema.contains("const")) values.push_back(denied.schema.at("const"));
  if (values == SchemaJson::array({""})) return {{{{{"minLength", 1}}, denied.at}}};
  std::vector<Parts> ways;
  for (const char* const type : kTypes) {
    const SchemaJson schema = with_type(type);
    if (std::ranges::none_of(values, [&](const SchemaJson& v) { return is_of_schema(v, schema, root_) != false; }))
      ways.push_back({{schema, denied.at}});
    else if (std::ranges::any_of(rest, [&](const PlacedSchema& part) {
               return part.schema.contains("type") && part.schema.at("type") == type;
             }))
      throw fail(denied.at, "leaves out values of the type \"" + std::string(type) +
                                "\", which is not supported without an enum beside it");
  }
  return ways;
}

SchemaJson SchemaConjunctions::alternatives(const Parts& rest, const std::vector<Parts>& choices) {
  SchemaJson left = SchemaJson::array();
  const auto add = [&](const SchemaJson& one) {
    if (one != false && std::ranges::find(left, one) == left.end()) left.push_back(one);
  };
  for (const Parts& choice : choices) {
    Parts parts = rest;
    parts.insert(parts.end(), choice.begin(), choice.end());
    const SchemaJson one = of(std::move(parts));
    if (one.is_object() && one.contains("anyOf")) {
      for (const SchemaJson& inner : one.at("anyOf")) add(inner);
    } else {
      add(one);
    }
  }
  if (left.empty()) return false;
  return left.size() == 1 ? left.front() : SchemaJson{{"anyOf", left}};
}

// Each alternative without what another one allows too.
SchemaJson SchemaConjunctions::one_of(const Parts& rest, const PlacedSchema& part) {
  const Parts members = each_below(part, "oneOf");
  std::vector<Parts> choices;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Parts alone = rest;
    alone.push_back(members[i]);
    const SchemaJson emitted = of(alone);
    if (emitted == false) continue;
    std::vector<Parts> ways{{members[i]}};
    for (std::size_t j = 0; j < members.size(); ++j) {
      if (j == i || excludes(emitted, members[j].schema)) continue;
      std::vector<Parts> others;
      try {
        others = negation(members[j]);
      } catch (const Error&) {
        throw fail(part.at, "has \"oneOf\" whose alternatives " + std::to_string(std::min(i, j)) + " and " +
                                std::to_string(std::max(i, j)) +
                                " may hold together; expected types, constants or required names that tell them apart");
      }
      if (ways.size() * others.size() > kWaysMax) throw fail(part.at, kTooMany);
      std::vector<Parts> more;
      for (const Parts& way : ways)
        for (const Parts& other : others) {
          more.push_back(way);
          more.back().insert(more.back().end(), other.begin(), other.end());
        }
      ways = std::move(more);
    }
    choices.insert(choices.end(), ways.begin(), ways.end());
  }
  return alternatives(rest, choices);
}

// Documents that are not of the schema, as alternatives, or fewer of them.
std::vector<SchemaConjunctions::Parts> SchemaConjunctions::negation(const PlacedSchema& part) const {
  const SchemaJson& schema = part.schema;
  if (schema == false) return {{}};
  if (schema == true || (schema.is_object() && schema.empty())) return {};
  if (!schema.is_object()) throw fail(part.at, "is no schema; expected an object, true or false");
  std::vector<Parts> ways;
  for (const auto& [keyword, argument] : schema.items()) {
    if (keyword == "type") {
      std::set<std::string> types;
      for (const SchemaJson& type : argument.is_array() ? argument : SchemaJson::array({argument}))
        types.insert(type.get<std::string>());
      for (const char* const type : kTypes) {
        if (types.contains(type)) continue;
        ways.push_back({{with_type(type), part.at}});
        if (std::string_view(type) == "number" && types.contains("integer"))
          ways.back().front().schema[kNotWhole] = true;
      }
    } else if (keyword == "required") {
      for (const SchemaJson& name : argument) {
        SchemaJson object = without(name.get<std::string>());
        object["type"] = "object";
        ways.push_back({{std::move(object), part.at}});
      }
    } else if (keyword == "properties") {
      for (const auto& [name, one] : argument.items())
        for (Parts& way : negation({one, part.at + "/properties/" + name})) {
          SchemaJson all = SchemaJson::array();
          for (const PlacedSchema& inner : way) all.push_back(inner.schema);
          SchemaJson object = {{"type", "object"}, {"required", SchemaJson::array({name})}};
          object["properties"][name] = {{"allOf", all}};
          ways.push_back({{std::move(object), part.at}});
        }
    } else if (const Limit* const limit = limit_of(keyword); limit != nullptr && argument.is_number()) {
      if (SchemaJson beyond = limit->denied(argument); !beyond.is_null())
        ways.push_back({{{{"type", limit->type}, {limit->opposite, std::move(beyond)}}, part.at}});
    } else if (keyword == "const" || keyword == "enum") {
      ways.push_back({{{{"not", {{keyword, argument}}}}, part.at}});  // left to the values beside it
    } else if (keyword == "not") {
      ways.push_back({below(part, "not")});
    } else if (keyword == "anyOf") {
      Parts all;
      for (const PlacedSchema& one : each_below(part, "anyOf")) all.push_back({{{"not", one.schema}}, one.at});
      ways.push_back(std::move(all));
    } else if (keyword == "allOf") {
      for (const PlacedSchema& one : each_below(part, "allOf")) ways.push_back({{{{"not", one.schema}}, one.at}});
    } else if (keyword != "additionalProperties" && !is_note(keyword)) {
      throw fail(part.at, "has \"" + keyword + "\" under \"not\", \"if\" or \"oneOf\", which is not supported there");
    }
  }
  return ways;
}

bool SchemaConjunctions::excludes(const SchemaJson& emitted, const SchemaJson& schema, int depth) const {
  constexpr int kLookMax = 12;
  if (schema == false) return true;
  if (!schema.is_object() || !emitted.is_object() || depth > kLookMax) return false;
  if (emitted.contains("anyOf"))
    return std::ranges::all_of(emitted.at("anyOf"), [&](const auto& one) { return excludes(one, schema, depth + 1); });
  if (emitted.contains("$ref")) {
    const auto definition = definitions_.find(emitted.at("$ref").get<std::string>().substr(8));
    return definition != definitions_.end() && excludes(*definition, schema, depth + 1);
  }
  if (emitted.contains("enum"))
    return std::ranges::all_of(emitted.at("enum"),
                               [&](const SchemaJson& value) { return is_of_schema(value, schema, root_) == false; });
  if (const SchemaJson* const reference = find(schema, "$ref")) {
    const SchemaJson* const target =
        reference->is_string() ? referenced_schema(root_, reference->get<std::string>()) : nullptr;
    if (target != nullptr && excludes(emitted, *target, depth + 1)) return true;
  }
  const auto none = [&](const SchemaJson& one) { return excludes(emitted, one, depth + 1); };
  if (schema.contains("allOf") && std::ranges::any_of(schema.at("allOf"), none)) return true;
  for (const char* const choice : {"anyOf", "oneOf"})
    if (schema.contains(choice) && std::ranges::all_of(schema.at(choice), none)) return true;
  if (!emitted.contains("type")) return false;
  const std::string type = emitted.at("type");
  const auto is_type = [&](const SchemaJson& one) {
    return one == type || (type == "integer" && one == "number") || (type == "number" && one == "integer");
  };
  if (const SchemaJson* const types = find(schema, "type"))
    if (types->is_array() ? std::ranges::none_of(*types, is_type) : !is_type(*types)) return true;
  if (lies_beyond(emitted, schema)) return true;
  const auto is_of_type = [&](const SchemaJson& value) {
    return is_of_schema(value, with_type(type.c_str()), root_) != false;
  };
  if (schema.contains("const") && !is_of_type(schema.at("const"))) return true;
  if (schema.contains("enum") && std::ranges::none_of(schema.at("enum"), is_of_type)) return true;
  if (type != "object") return false;
  // An object of ours has the names that it declares alone, unless it says what others are.
  const SchemaJson none_declared = SchemaJson::object();
  const SchemaJson* const own = find(emitted, "properties");
  const SchemaJson& declared = own == nullptr ? none_declared : *own;
  const SchemaJson* const rest = find(emitted, "additionalProperties");
  const bool is_closed = (rest == nullptr || *rest == false) && !emitted.contains("patternProperties") &&
                         !emitted.contains("propertyNames");
  const auto needs = [](const SchemaJson& of, const std::string& name) {
    const SchemaJson* const required = find(of, "required");
    return required != nullptr && required->is_array() &&
           std::ranges::find(*required, SchemaJson(name)) != required->end();
  };
  if (const SchemaJson* const required = find(schema, "required");
      required != nullptr && required->is_array() && is_closed)
    for (const SchemaJson& name : *required)
      if (name.is_string() && !declared.contains(name.get<std::string>())) return true;
  const SchemaJson* const others = find(schema, "properties");
  for (const auto& [name, one] : declared.items()) {
    const bool is_there = others != nullptr && others->is_object() && others->contains(name);
    if (is_there && (needs(emitted, name) || needs(schema, name)) && excludes(one, others->at(name), depth + 1))
      return true;
    if (!is_there && needs(emitted, name) && schema.contains("additionalProperties") &&
        schema.at("additionalProperties") == false && !schema.contains("patternProperties"))
      return true;
  }
  return false;
}

}  // namespace draftproof

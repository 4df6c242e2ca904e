// Plain schemas, which offer no choice, merged into one of each type.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "base/printable.hpp"
#include "engine/grammar/schema_conjunction.hpp"

namespace draftproof {
namespace {

struct Kind {
  const char* type;
  std::vector<std::string> keywords;
};

// In the order in which a schema without a type is taken for one.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {
      {"object",
       {"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "unevaluatedProperties"}},
      {"array",
       {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains", "minContains",
        "maxContains", "unevaluatedItems"}},
      {"string", {"minLength", "maxLength", "pattern", "format"}},
      {"number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}}};
  return kKinds;
}

using Parts = std::vector<PlacedSchema>;

// The greatest (the least) of a keyword's numbers; null where none has it.
SchemaJson bound(const Parts& parts, const char* keyword, bool greatest) {
  SchemaJson best;
  for (const PlacedSchema& part : parts) {
    const auto found = part.schema.find(keyword);
    if (found != part.schema.end() && found->is_number() &&
        (best.is_null() || (greatest ? *found > best : *found < best)))
      best = *found;
  }
  return best;
}

std::int64_t whole(const SchemaJson& number, std::int64_t otherwise) {
  if (number.is_null()) return otherwise;
  if (number.is_number_integer()) return number.get<std::int64_t>();
  return static_cast<std::int64_t>(std::clamp(std::ceil(number.get<double>()), -9e18, 9e18));
}

bool has(const Parts& parts, const char* keyword) {
  return std::ranges::any_of(parts, [&](const PlacedSchema& part) { return part.schema.contains(keyword); });
}

}  // namespace

bool is_note(const std::string& keyword) {
  static const std::set<std::string> kOthers = {"$ref",
                                                "allOf",
                                                "anyOf",
                                                "oneOf",
                                                "not",
                                                "if",
                                                "then",
                                                "else",
                                                "const",
                                                "enum",
                                                "type",
                                                "dependentRequired",
                                                "dependentSchemas",
                                                "dependencies"};
  return !kOthers.contains(keyword) && std::ranges::none_of(kinds(), [&](const Kind& kind) {
    return std::ranges::find(kind.keywords, keyword) != kind.keywords.end();
  });
}

SchemaJson SchemaConjunctions::of_plain(const Parts& flat) {
  static const std::vector<std::string> kTypes{"object", "array", "string", "number", "integer", "boolean", "null"};
  std::set<std::string> types;
  bool is_typed = false;
  for (const PlacedSchema& part : flat) {
    if (!part.schema.contains("type")) continue;
    const SchemaJson& own = part.schema.at("type");
    std::set<std::string> allowed;
    for (const SchemaJson& type : own.is_array() ? own : SchemaJson::array({own})) {
      if (!type.is_string() || std::ranges::find(kTypes, type.get<std::string>()) == kTypes.end())
        throw fail(part.at, "has the \"type\" " + own.dump() +
                                "; expected object, array, string, number, integer, boolean or null");
      allowed.insert(type.get<std::string>());
    }
    // Number and integer together leave the smaller one, integer.
    std::set<std::string> left;
    for (const std::string& type : is_typed ? types : allowed)
      if (allowed.contains(type) || (type == "integer" && allowed.contains("number"))) left.insert(type);
    if (is_typed && types.contains("number") && allowed.contains("integer")) left.insert("integer");
    if (left.contains("number")) left.erase("integer");
    types = std::move(left);
    is_typed = true;
  }
  if (!is_typed) {
    for (const Kind& kind : kinds())
      if (std::ranges::any_of(kind.keywords, [&](const auto& keyword) { return has(flat, keyword.c_str()); })) {
        types.insert(kind.type);
        break;
      }
    if (types.empty()) return SchemaJson::object();
  }
  SchemaJson left = SchemaJson::array();
  for (const std::string& type : kTypes) {
    if (!types.contains(type)) continue;
    SchemaJson one = of_type(type, flat);
    if (one != false) left.push_back(std::move(one));
  }
  if (left.empty()) return false;
  return left.size() == 1 ? left.front() : SchemaJson{{"anyOf", left}};
}

SchemaJson SchemaConjunctions::of_type(const std::string& type, const Parts& flat) {
  if (type == "object") return objects(flat);
  if (type == "array") return arrays(flat);
  if (type == "string") return strings(flat);
  if (type == "number" || type == "integer") return numbers(type, flat);
  return {{"type", type}};
}

SchemaJson SchemaConjunctions::numbers(const std::string& type, const Parts& flat) const {
  bool is_whole = type == "integer";
  const bool is_not_whole = has(flat, kNotWhole);
  std::optional<std::int64_t> factor;
  for (const PlacedSchema& part : flat) {
    const auto found = part.schema.find("multipleOf");
    if (found == part.schema.end() || *found == 1) {
      is_whole = is_whole || found != part.schema.end();
      continue;
    }
    if (!found->is_number() || std::floor(found->get<double>()) != found->get<double>() || found->get<double>() <= 0 ||
        found->get<double>() > 1e6)
      throw fail(part.at, "has \"multipleOf\": " + found->dump() +
                              ", which is not supported; expected a whole number up to 1000000");
    factor = std::lcm(factor.value_or(1), static_cast<std::int64_t>(found->get<double>()));
    is_whole = true;  // multiples of a whole number, without those that are written with a point
  }
  if (is_not_whole) {
    for (const PlacedSchema& part : flat)
      if (!is_whole && part.schema.contains("type") && !part.schema.contains(kNotWhole))
        throw fail(part.at,
                   "has \"type\": \"number\" where \"oneOf\", \"not\" or \"if\" deny an \"integer\": numbers that are "
                   "not whole cannot be said; expected a range that tells them apart");
    return false;
  }
  // Draft 4 has a truth value that makes the limit beside it exclusive.
  Parts parts = flat;
  for (PlacedSchema& part : parts)
    for (const auto& [exclusive, limit] : {std::pair("exclusiveMinimum", "minimum"), {"exclusiveMaximum", "maximum"}}) {
      const auto found = part.schema.find(exclusive);
      if (found == part.schema.end() || !found->is_boolean()) continue;
      const bool is_exclusive = found->get<bool>();
      part.schema.erase(exclusive);
      if (is_exclusive && part.schema.contains(limit)) {
        part.schema[exclusive] = part.schema.at(limit);
        part.schema.erase(limit);
      }
    }
  SchemaJson result = {{"type", is_whole ? "integer" : "number"}};
  SchemaJson low = bound(parts, "minimum", true);
  SchemaJson high = bound(parts, "maximum", false);
  const SchemaJson above = bound(parts, "exclusiveMinimum", true);
  const SchemaJson under = bound(parts, "exclusiveMaximum", false);
  if (is_whole) {
    static constexpr double kLimit = 9e18;
    const auto floor_of = [](const SchemaJson& number) {
      if (number.is_number_integer()) return number;
      return SchemaJson(static_cast<std::int64_t>(std::clamp(std::floor(number.get<double>()), -kLimit, kLimit)));
    };
    if (!low.is_null() && !low.is_number_integer()) low = whole(low, 0);
    if (!high.is_null()) high = floor_of(high);
    if (!above.is_null() && (low.is_null() || above >= low)) low = floor_of(above).get<std::int64_t>() + 1;
    if (!under.is_null() && (high.is_null() || under <= high)) high = whole(under, 0) - 1;
    if (!low.is_null() && !high.is_null() && low > high) return false;
    if (!low.is_null()) result["minimum"] = low;
    if (!high.is_null()) result["maximum"] = high;
    if (factor) result["multipleOf"] = *factor;
    return result;
  }
  const bool excludes_low = !above.is_null() && (low.is_null() || above >= low);
  const bool excludes_high = !under.is_null() && (high.is_null() || under <= high);
  if (excludes_low) low = above;
  if (excludes_high) high = under;
  if (!low.is_null() && !high.is_null() && (low > high || (low == high && (excludes_low || excludes_high))))
    return false;
  if (!low.is_null()) result[excludes_low ? "exclusiveMinimum" : "minimum"] = low;
  if (!high.is_null()) result[excludes_high ? "exclusiveMaximum" : "maximum"] = high;
  return result;
}

SchemaJson SchemaConjunctions::strings(const Parts& flat) const {
  SchemaJson result = {{"type", "string"}};
  for (const char* const keyword : {"pattern", "format"})
    for (const PlacedSchema& part : flat) {
      const auto found = part.schema.find(keyword);
      if (found == part.schema.end()) continue;
      if (!found->is_string()) throw fail(part.at, std::string("has a \"") + keyword + "\" that is no text");
      if (result.contains(keyword) && result.at(keyword) != *found)
        throw fail(part.at, std::string("has a second \"") + keyword + "\" for the same text, which is not supported");
      result[keyword] = *found;
    }
  const std::int64_t least = std::max<std::int64_t>(0, whole(bound(flat, "minLength", true), 0));
  const SchemaJson most = bound(flat, "maxLength", false);
  const std::string at = flat.empty() ? "" : flat.back().at;
  if (!most.is_null() && most < least) return false;
  const bool has_length = least > 0 || !most.is_null();
  if (result.contains("format") && (has_length || result.contains("pattern")))
    throw fail(at, "has \"format\" beside a length or a \"pattern\", which is not supported; expected one of them");
  if (result.contains("pattern")) {
    const auto moved = pattern_of_length(result.at("pattern").get<std::string>(), least,
                                         most.is_null() ? std::nullopt : std::optional(whole(most, 0)));
    if (!moved)
      throw fail(at, "has the \"pattern\" " + in_quotes(result.at("pattern").get<std::string>()) +
                         ", which is not supported" + (has_length ? " beside a length" : "") +
                         "; expected a simpler one");
    if (!moved->pattern) return false;
    result["pattern"] = *moved->pattern;
    return result;
  }
  if (least > 0) result["minLength"] = least;
  if (!most.is_null()) result["maxLength"] = whole(most, 0);
  return result;
}

SchemaJson SchemaConjunctions::arrays(const Parts& flat) {
  // For each part, the schemas of its first items, and that of the others.
  struct Items {
    Parts first;
    PlacedSchema others;
  };
  std::vector<Items> all;
  std::size_t length = 0;
  bool has_others = false;
  for (const PlacedSchema& part : flat) {
    const SchemaJson& schema = part.schema;
    for (const char* const keyword : {"contains", "minContains", "maxContains"})
      if (schema.contains(keyword)) throw fail(part.at, std::string("has \"") + keyword + "\", which is not supported");
    Items items{{}, {true, part.at + "/items"}};
    const char* first = schema.contains("prefixItems") ? "prefixItems" : nullptr;
    const char* others = "items";
    if (first == nullptr && schema.contains("items") && schema.at("items").is_array()) {
      first = "items";  // as drafts up to 2019-09 have it
      others = "additionalItems";
    }
    if (first != nullptr)
      for (const SchemaJson& one : schema.at(first))
        items.first.push_back({one, part.at + "/" + first + "/" + std::to_string(items.first.size())});
    if (!schema.contains(others) && schema.contains("unevaluatedItems")) others = "unevaluatedItems";
    if (schema.contains(others)) items.others = {schema.at(others), part.at + "/" + others};
    has_others = has_others || schema.contains(others);
    length = std::max(length, items.first.size());
    all.push_back(std::move(items));
  }
  std::int64_t least = std::max<std::int64_t>(0, whole(bound(flat, "minItems", true), 0));
  SchemaJson most = bound(flat, "maxItems", false);
  SchemaJson first = SchemaJson::array();
  for (std::size_t i = 0; i < length; ++i) {
    Parts at_place;
    for (const Items& items : all) at_place.push_back(i < items.first.size() ? items.first[i] : items.others);
    SchemaJson one = of(std::move(at_place));
    if (one == false) {  // no array is so long
      if (most.is_null() || most > i) most = i;
      break;
    }
    first.push_back(one.is_object() && one.empty() ? SchemaJson::object() : std::move(one));
  }
  Parts of_others;
  for (const Items& items : all) of_others.push_back(items.others);
  SchemaJson others = has_others || length == 0 ? of(std::move(of_others)) : SchemaJson(std::cmp_less(length, least));
  if (others == false && (most.is_null() || most > first.size())) most = first.size();
  if (!most.is_null() && most < least) return false;
  SchemaJson result = {{"type", "array"}};
  if (!most.is_null() && most < first.size()) {
    first.erase(first.begin() + most.get<std::ptrdiff_t>(), first.end());
    others = false;
  }
  if (!first.empty()) result["prefixItems"] = first;
  if (others == false && first.empty()) return {{"enum", SchemaJson::array({SchemaJson::array()})}};
  result["items"] = others;
  if (least > 0) result["minItems"] = least;
  if (!most.is_null() && others != false) result["maxItems"] = whole(most, 0);
  for (const PlacedSchema& part : flat)
    if (const auto unique = part.schema.find("uniqueItems"); unique != part.schema.end() && *unique == true)
      return unique_arrays(result, part.at);
  return result;
}

std::optional<std::vector<SchemaJson>> SchemaConjunctions::values_of(const SchemaJson& emitted, int depth) const {
  constexpr int kLookMax = 12;
  constexpr std::int64_t kWholeMost = 64;
  if (!emitted.is_object() || depth > kLookMax) return std::nullopt;
  std::vector<SchemaJson> values;
  if (emitted.contains("anyOf")) {
    for (const SchemaJson& one : emitted.at("anyOf")) {
      const auto own = values_of(one, depth + 1);
      if (!own) return std::nullopt;
      values.insert(values.end(), own->begin(), own->end());
    }
  } else if (emitted.contains("$ref")) {
    const auto definition = definitions_.find(emitted.at("$ref").get<std::string>().substr(8));
    return definition == definitions_.end() ? std::nullopt : values_of(*definition, depth + 1);
  } else if (emitted.contains("enum")) {
    values.assign(emitted.at("enum").begin(), emitted.at("enum").end());
  } else if (emitted.value("type", "") == "boolean") {
    values = {false, true};
  } else if (emitted.value("type", "") == "null") {
    values = {nullptr};
  } else if (emitted.value("type", "") == "integer" && emitted.contains("minimum") && emitted.contains("maximum")) {
    const auto low = emitted.at("minimum").get<std::int64_t>(), high = emitted.at("maximum").get<std::int64_t>();
    if (low < -kWholeMost * kWholeMost || high > kWholeMost * kWholeMost || high - low > kWholeMost)
      return std::nullopt;
    const auto factor = emitted.value("multipleOf", std::int64_t{1});
    for (std::int64_t value = low; value <= high; ++value)
      if (value % factor == 0) values.emplace_back(value);
  } else {
    return std::nullopt;
  }
  return values;
}

// Few enough are written one by one; items that no other place may have need no comparison.
SchemaJson SchemaConjunctions::unique_arrays(const SchemaJson& array, const std::string& at) const {
  constexpr std::size_t kArraysMost = 500;
  if (!array.contains("items")) return array;  // the empty one alone
  const SchemaJson none = SchemaJson::array();
  const SchemaJson& first = array.contains("prefixItems") ? array.at("prefixItems") : none;
  const SchemaJson& others = array.at("items");
  const std::size_t most = others == false              ? first.size()
                           : array.contains("maxItems") ? array.at("maxItems").get<std::size_t>()
                                                        : SIZE_MAX;
  if (most <= 1) return array;
  bool all_differ = others == false || most <= first.size();
  for (std::size_t i = 0; i < first.size() && all_differ; ++i)
    for (std::size_t j = 0; j < i && all_differ; ++j)
      all_differ = first[j].dump().find("\"$ref\"") == std::string::npos && excludes(first[i], first[j]);
  if (all_differ) return array;
  const auto fail_here = [&] {
    return fail(at, "has \"uniqueItems\" over more than " + std::to_string(kArraysMost) +
                        " arrays, which is not supported; expected items of few values, or places that share none");
  };
  SchemaJson left = SchemaJson::array();
  std::vector<SchemaJson> level{SchemaJson::array()};
  const std::size_t least = array.value("minItems", std::size_t{0});
  for (std::size_t length = 0; !level.empty(); ++length) {
    if (length >= least)
      for (const SchemaJson& one : level) left.push_back(one);
    if (length >= most) break;
    const auto values = values_of(length < first.size() ? first[length] : others);
    if (!values) throw fail_here();
    std::vector<SchemaJson> longer;
    for (const SchemaJson& shorter : level)
      for (const SchemaJson& value : *values)
        if (std::ranges::none_of(shorter, [&](const SchemaJson& one) { return is_equal(one, value); })) {
          longer.push_back(shorter);
          longer.back().push_back(value);
          if (left.size() + longer.size() > kArraysMost) throw fail_here();
        }
    level = std::move(longer);
  }
  if (left.empty()) return false;
  return {{"enum", left}};
}

}  // namespace draftproof

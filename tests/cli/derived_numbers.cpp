// The walk over a document.
#include "tests/cli/derived_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace draftproof::testing {
namespace {

// A rule for the path itself, or for all that lies directly in its container.
const std::pair<const std::string, Formula>* rule_for(const std::string& path, const NumberRules& rules) {
  auto found = rules.find(path);
  if (found == rules.end()) found = rules.find(path.substr(0, path.rfind('/') + 1) + "?");
  return found == rules.end() ? nullptr : &*found;
}

using Visit = std::function<void(const ordered_json& value, const std::string& path, const Place&)>;

void walk(const ordered_json& value, const std::string& path, Place& at, const Visit& visit) {
  if (!value.is_structured()) return visit(value, path, at);
  at.containers.push_back(&value);
  for (auto item = value.begin(); item != value.end(); ++item) {
    const auto index = static_cast<std::size_t>(std::distance(value.begin(), item));
    const std::string key = value.is_array() ? std::to_string(index) : item.key();
    const std::string pointer = at.pointer;
    at.pointer += "/" + key;
    if (value.is_array()) at.indices.push_back(index);
    walk(*item, path + "/" + (value.is_array() ? "*" : key), at, visit);
    if (value.is_array()) at.indices.pop_back();
    at.pointer = pointer;
  }
  at.containers.pop_back();
}

bool agrees(const ordered_json& value, const ordered_json& expected) {
  const bool are_integers = value.is_number_integer() && expected.is_number_integer();
  if (are_integers || !value.is_number() || !expected.is_number()) return value == expected;
  const auto is = value.get<double>();
  const auto should = expected.get<double>();
  // Some are written with six digits.
  return std::abs(is - should) <= 1e-5 * std::max(std::abs(is), std::abs(should));
}

}  // namespace

std::vector<std::string> wrong_numbers(const ordered_json& document, const NumberRules& rules) {
  std::vector<std::string> wrong;
  std::set<std::string> used;
  Place begin;
  walk(document, "", begin, [&](const ordered_json& value, const std::string& path, const Place& at) {
    const auto* const rule = rule_for(path, rules);
    const bool is_number = value.is_number() || value.is_boolean();
    if (rule == nullptr) {
      if (is_number)
        wrong.push_back(at.pointer + " is " + value.dump() + " and has no rule: given, or by which formula?");
      return;
    }
    if (is_number) used.insert(rule->first);
    if (!rule->second) return;
    const ordered_json expected = rule->second(at);
    if (!agrees(value, expected))
      wrong.push_back(at.pointer + " is " + value.dump() + "; its parts make it " + expected.dump());
  });
  for (const auto& [path, formula] : rules)
    if (formula && !used.contains(path)) wrong.push_back(path + " is in no place a number, so its rule shows nothing");
  return wrong;
}

std::vector<std::string> derived_numbers(const ordered_json& document, const NumberRules& rules) {
  std::vector<std::string> pointers;
  std::set<std::string> seen;
  Place begin;
  walk(document, "", begin, [&](const ordered_json& value, const std::string& path, const Place& at) {
    const auto* const rule = rule_for(path, rules);
    if (rule == nullptr || !rule->second || !(value.is_number() || value.is_boolean())) return;
    if (seen.insert(rule->first).second) pointers.push_back(at.pointer);
  });
  return pointers;
}

}  // namespace draftproof::testing

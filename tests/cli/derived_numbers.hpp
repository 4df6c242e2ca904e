// What every number in the JSON of a command is: given (counted, measured, an option), or derived from others of the
// same document, by a formula that is written down here a second time.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace draftproof::testing {

using nlohmann::ordered_json;

// A value in a document, with what it is a part of: container 0 holds it, container 1 holds container 0, ...
struct Place {
  std::vector<const ordered_json*> containers;  // the document first
  std::vector<std::size_t> indices;             // those of lists on the way, the document's first
  std::string pointer;

  const ordered_json& container(std::size_t up = 0) const { return *containers[containers.size() - 1 - up]; }
  const ordered_json& document() const { return *containers.front(); }
  std::size_t index(std::size_t up = 0) const { return indices[indices.size() - 1 - up]; }
};

// What a number must be, or null where there is nothing to derive it from. No function: it is given.
using Formula = std::function<ordered_json(const Place&)>;
// By path, with * for any index of a list: "/tests/*/p_value".
using NumberRules = std::map<std::string, Formula>;

// The rules of a command of the program. Of the demo, the document must hold the rows of acceptance.csv as `csv`.
const NumberRules& number_rules(const std::string& command);

// A sentence for each number that is not what its formula says or has no rule, and for each rule that meets no number.
std::vector<std::string> wrong_numbers(const ordered_json& document, const NumberRules& rules);

// JSON pointers to derived numbers and truth values of the document, the first of each rule.
std::vector<std::string> derived_numbers(const ordered_json& document, const NumberRules& rules);

}  // namespace draftproof::testing

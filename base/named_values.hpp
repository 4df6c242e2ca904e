// Parameters of a choice in an option: those of "threshold:min=1,max=8" are "min=1,max=8".
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strict_number.hpp"

namespace draftproof {

class NamedValues {
 public:
  // owner: whose parameters they are, as messages call it: "verifier typical".
  NamedValues(std::string owner, std::string where) : owner_(std::move(owner)), where_(std::move(where)) {}

  // A parameter, and what takes its text.
  NamedValues& add(std::string_view name, std::function<void(std::string_view)> read);
  // The same of one that takes what is left of the text, commas included.
  NamedValues& rest(std::string_view name, std::function<void(std::string_view)> read);
  NamedValues& number(std::string_view name, const NumberRange& range, double& value);
  NamedValues& whole(std::string_view name, const IntegerRange& range, std::int32_t& value);

  // Reads "NAME=VALUE,NAME=VALUE". Errors (usage) at `where`: a name that is not known or given twice, no value, a
  // number outside its range; none of them for a text that is empty.
  void read(std::string_view text) const;

 private:
  struct Known {
    std::string_view name;
    std::function<void(std::string_view)> read;
    bool takes_rest = false;
  };
  const Known& find(std::string_view name) const;

  std::string owner_;
  std::string where_;
  std::vector<Known> known_;
};

}  // namespace draftproof

#include "base/named_values.hpp"

#include <algorithm>

#include "base/printable.hpp"
#include "base/split.hpp"

namespace draftproof {

NamedValues& NamedValues::add(std::string_view name, std::function<void(std::string_view)> read) {
  known_.push_back({name, std::move(read)});
  return *this;
}

NamedValues& NamedValues::rest(std::string_view name, std::function<void(std::string_view)> read) {
  known_.push_back({name, std::move(read), true});
  return *this;
}

NamedValues& NamedValues::number(std::string_view name, const NumberRange& range, double& value) {
  return add(name, [=, this, &value](std::string_view text) {
    const auto read = read_number(text, range);
    if (!read)
      throw usage_error(where_, std::string(name) + " is " + in_quotes(text) + "; expected " + expected_text(range));
    value = *read;
  });
}

NamedValues& NamedValues::whole(std::string_view name, const IntegerRange& range, std::int32_t& value) {
  return add(name, [=, this, &value](std::string_view text) {
    const auto read = read_integer(text, range.least, range.most);
    if (!read)
      throw usage_error(where_, std::string(name) + " is " + in_quotes(text) + "; expected " + expected_text(range));
    value = static_cast<std::int32_t>(*read);
  });
}

void NamedValues::read(std::string_view text) const {
  std::vector<std::string_view> given;
  while (!text.empty()) {
    std::string_view part = text.substr(0, text.find(','));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const Known& known = find(name);
    if (equals == std::string_view::npos) throw usage_error(where_, "has " + in_quotes(part) + "; expected NAME=VALUE");
    if (std::ranges::count(given, name) > 0)
      throw usage_error(where_, std::string(name) + " is given twice; expected once");
    given.push_back(name);
    if (known.takes_rest) part = text;
    known.read(part.substr(equals + 1));
    if (part.size() == text.size()) return;
    text.remove_prefix(part.size() + 1);
    if (text.empty()) throw usage_error(where_, "ends with a comma; expected a parameter behind it");
  }
}

const NamedValues::Known& NamedValues::find(std::string_view name) const {
  const auto found = std::ranges::find(known_, name, &Known::name);
  if (found != known_.end()) return *found;
  throw usage_error(where_, owner_ + " has no parameter " + in_quotes(name) + "; expected " +
                                (known_.empty() ? "none" : "one of " + joined(known_, ", ", &Known::name)));
}

}  // namespace draftproof

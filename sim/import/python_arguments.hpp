// Arguments as Python prints them, of a call or a dictionary: `tp_size=2, model='a/b', x=None` and `'tp_size': 2, ...`.
// Nested brackets are one value: their keys are not among these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace draftproof {

class PythonArguments {
 public:
  // `text` begins behind the bracket that opens them; they end with the bracket that closes it, or with the text.
  explicit PythonArguments(std::string_view text);

  // Without its quotes; nothing for None and for no such key.
  std::optional<std::string> value(std::string_view key) const;
  bool is_none(std::string_view key) const;  // said to be None
  // A count from `least` to `most`. Error (input) at `where`: anything else.
  std::optional<int> count(std::string_view key, int least, int most, const std::string& where) const;
  bool is_true(std::string_view key) const { return value(key) == "True" || value(key) == "true"; }
  // Those of a call or dictionary that is a value; nothing where it is none.
  std::optional<PythonArguments> nested(std::string_view key) const;
  bool empty() const { return items_.empty(); }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> items_;
};

// Behind `opening`, as "server_args=ServerArgs("; nothing where the line does not have it.
std::optional<PythonArguments> arguments_behind(std::string_view line, std::string_view opening);

}  // namespace draftproof

// The one exception type of the project. It is thrown at the border (files, options, rows of a batch), never in an
// inner loop; the command line turns the kind into an exit code and the C interface into an error code.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace draftproof {

enum class ErrorKind {
  usage,     // a wrong option or option value: exit code 2
  input,     // a file, row or token that is not what it should be: exit code 2
  internal,  // a bug of ours: exit code 3
};

class Error : public std::runtime_error {
 public:
  // `where` names the file, row or option; `what_is_wrong` says what was found and what would be right.
  Error(ErrorKind kind, const std::string& where, const std::string& what_is_wrong)
      : std::runtime_error(where.empty() ? what_is_wrong : where + ": " + what_is_wrong), kind_(kind), where_(where) {}

  ErrorKind kind() const { return kind_; }
  const std::string& where() const { return where_; }

 private:
  ErrorKind kind_;
  std::string where_;
};

inline Error usage_error(const std::string& where, const std::string& what_is_wrong) {
  return {ErrorKind::usage, where, what_is_wrong};
}
inline Error input_error(const std::string& where, const std::string& what_is_wrong) {
  return {ErrorKind::input, where, what_is_wrong};
}

}  // namespace draftproof

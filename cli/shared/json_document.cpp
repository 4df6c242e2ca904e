#include "cli/shared/json_document.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/machine_description.hpp"
#include "reference/row_kernels/row_kernels.hpp"

namespace draftproof {
namespace {

void check_finite(const std::string& path, const Json& value) {
  if (value.is_number_float()) {
    finite(path, value.get<double>());
  } else if (value.is_structured()) {
    for (const auto& [key, element] : value.items()) check_finite(path + "/" + key, element);
  }
}

// JSON escapes the control characters below a space alone; a terminal obeys some others, and text that runs backwards
// misleads its reader. They stand in strings only, where their escapes mean the same.
std::string with_escaped_controls(const std::string& text) {
  std::string escaped;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(text[at])); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    if (lead == '\n' || (lead >= ' ' && lead < 0x7f)) {
      escaped += text[i++];
      continue;
    }
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;  // the text is UTF-8
    const std::string character = text.substr(i, length);
    if (printable(character) == character) {
      escaped += character;
    } else {
      unsigned code_point = length == 1 ? lead : lead & (0x7fU >> length);
      for (std::size_t k = 1; k < length; ++k) code_point = code_point << 6 | (byte(i + k) & 0x3fU);
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\u%04x", code_point & 0xffffU);  // none lies above U+FFFF
      escaped += code.data();
    }
    i += length;
  }
  return escaped;
}

}  // namespace

Json json_document(const std::vector<std::string>& arguments) {
  Json document;
  document["version"] = DRAFTPROOF_VERSION;
  document["command"] = shell_command(arguments);
  document["machine"] = describe_machine(row_kernels().target);
  return document;
}

double finite(const std::string& name, double value) {
  if (std::isfinite(value)) return value;
  throw Error(ErrorKind::internal, name, "the number is " + std::to_string(value) + " where a finite one was expected");
}

void write_json(std::ostream& out, const std::string& where, const Json& document) {
  check_finite("", document);
  out << with_escaped_controls(document.dump(2, ' ', false, Json::error_handler_t::replace)) << '\n' << std::flush;
  if (!out) throw input_error(where, "the JSON document could not be written; is the disk full?");
}

void print_json(const Json& document) {
  write_json(std::cout, "standard output", document);
}

void write_json_file(const std::string& path, const Json& document) {
  AtomicFile file(path);
  write_json(file.stream(), path, document);
  file.commit();
}

}  // namespace draftproof

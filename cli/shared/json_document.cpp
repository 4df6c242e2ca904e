#include "cli/shared/json_document.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/error.hpp"
#include "base/files/atomic_file.hpp"
#include "base/printable.hpp"
#include "cli/shared/build_commit.hpp"
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

// The value of the first line `key <separator> value` of a text file, without quotes; empty when there is none.
std::string value_of(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(key, 0) != 0) continue;
    const auto at = line.find(separator);
    const auto begin = at == std::string::npos ? at : line.find_first_not_of(" \t\"", at + 1);
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of(" \t\"") + 1 - begin);
  }
  return {};
}

nlohmann::ordered_json positive_or_null(std::int64_t number) {
  return number > 0 ? nlohmann::ordered_json(number) : nlohmann::ordered_json(nullptr);
}

std::int64_t memory_bytes() {
  const std::int64_t pages = sysconf(_SC_PHYS_PAGES);
  const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : 0;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __VERSION__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

Json json_document(const std::vector<std::string>& arguments) {
  Json document;
  document["version"] = DRAFTPROOF_VERSION;
  document["commit"] = build_commit();
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

nlohmann::ordered_json describe_machine(const std::string& simd_target) {
  utsname kernel{};
  const bool kernel_known = uname(&kernel) == 0;
  const std::string distribution = value_of("/etc/os-release", "PRETTY_NAME", '=');
  std::string os = kernel_known ? std::string(kernel.sysname) + " " + kernel.release : std::string();
  if (!distribution.empty()) os = os.empty() ? distribution : distribution + ", " + os;

  nlohmann::ordered_json machine;
  machine["cpu"] = text_or_null(value_of("/proc/cpuinfo", "model name", ':'));
  machine["architecture"] = text_or_null(kernel_known ? kernel.machine : "");
  machine["logical_cores"] = positive_or_null(std::thread::hardware_concurrency());
  machine["memory_bytes"] = positive_or_null(memory_bytes());
  machine["os"] = text_or_null(os);
  machine["compiler"] = compiler();
  machine["simd"] = simd_target;
  machine["gpu"] = nullptr;  // The program computes on the CPU only; no kernel of ours runs elsewhere.
  return machine;
}

Json consistency_json(const ConsistencyReport& report) {
  if (report.rows == 0) return nullptr;
  Json json;
  json["rows"] = report.rows;
  json["differences"] = json_list(report.differences, [](const ParameterDifference& difference) -> Json {
    return {{"parameter", difference.parameter}, {"draft", difference.draft}, {"target", difference.target}};
  });
  json["acceptance"] = report.acceptance;
  json["acceptance_if_equal"] = report.acceptance_if_equal;
  json["total_variation"] = report.total_variation;
  json["distribution_changes"] = report.distribution_changes;
  json["sentence"] = report.sentence;
  return json;
}

}  // namespace draftproof

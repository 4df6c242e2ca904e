#include "cli/shared/machine_description.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <thread>

namespace draftproof {
namespace {

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

nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
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

}  // namespace draftproof

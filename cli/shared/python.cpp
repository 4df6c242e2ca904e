#include "cli/shared/python.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/printable.hpp"

namespace draftproof {

std::optional<std::string> find_python_with(const std::vector<std::string>& modules) {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("DRAFTPROOF_PYTHON")) candidates.emplace_back(chosen);
  if (const std::filesystem::path beside = program_prefix() / "bin" / "python3"; std::filesystem::exists(beside))
    candidates.push_back(beside.string());
  candidates.insert(candidates.end(), {"python3", "/usr/bin/python3"});
  for (const std::string& python : candidates)
    for (const std::string& module : modules) {
      const std::string command = shell_command({python, "-c", "import " + module}) + " >/dev/null 2>&1";
      if (std::system(command.c_str()) == 0) return python;
    }
  return std::nullopt;
}

int run_program(const std::vector<std::string>& command, const std::function<void(std::string_view)>& take) {
  struct Close {
    void operator()(std::FILE* pipe) const { pclose(pipe); }
  };
  std::unique_ptr<std::FILE, Close> pipe(popen(shell_command(command).c_str(), "r"));
  if (!pipe) throw input_error(command.front(), "no process could be started");
  std::array<char, 4096> line;
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) take(line.data());
  const int status = pclose(pipe.release());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace draftproof

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

namespace {

// Paths that -I removes, except the current folder.
constexpr const char* kPaths =
    "import os, site, sys\n"
    "sys.path[:0] = [p for p in os.environ.get('PYTHONPATH', '').split(os.pathsep) if os.path.isabs(p)]\n"
    "if sys.prefix == sys.base_prefix and os.path.isdir(site.getusersitepackages()):\n"
    "  site.addsitedir(site.getusersitepackages())\n";

std::vector<std::string> isolated(const std::string& python, const std::string& code) {
  return {python, "-I", "-c", kPaths + code};
}

std::vector<std::string> run_command(const std::string& python, const std::string& run, const std::string& what,
                                     const std::vector<std::string>& arguments) {
  std::vector<std::string> command =
      isolated(python, "import runpy\ndel sys.argv[0]\nrunpy." + run + "(sys.argv[0], run_name='__main__'" +
                           (run == "run_module" ? ", alter_sys=True)" : ")"));
  command.push_back(what);
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace

std::vector<std::string> module_command(const std::string& python, const std::string& module,
                                        const std::vector<std::string>& arguments) {
  return run_command(python, "run_module", module, arguments);
}

std::vector<std::string> script_command(const std::string& python, const std::string& file,
                                        const std::vector<std::string>& arguments) {
  return run_command(python, "run_path", file, arguments);
}

std::optional<std::string> find_python_with(const std::vector<std::string>& modules) {
  std::vector<std::string> candidates;
  if (const char* chosen = std::getenv("DRAFTPROOF_PYTHON")) candidates.emplace_back(chosen);
  if (const std::filesystem::path beside = program_prefix() / "bin" / "python3"; std::filesystem::exists(beside))
    candidates.push_back(beside.string());
  candidates.insert(candidates.end(), {"python3", "/usr/bin/python3"});
  for (const std::string& python : candidates)
    for (const std::string& module : modules) {
      const std::string command = shell_command(isolated(python, "import " + module)) + " >/dev/null 2>&1";
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

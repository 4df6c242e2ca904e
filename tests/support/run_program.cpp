#include "tests/support/run_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace draftproof::testing {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using ScratchFile = std::unique_ptr<std::FILE, Close>;

std::string contents(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> block{};
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), file)) > 0;) {
    text.append(block.data(), count);
  }
  return text;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& settings) {
  std::vector<std::string> merged = settings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string ours = *entry;
    bool replaced = false;
    for (const std::string& setting : settings) {
      replaced = replaced || ours.compare(0, ours.find('='), setting, 0, setting.find('=')) == 0;
    }
    if (!replaced) merged.push_back(ours);
  }
  return merged;
}

}  // namespace

ProgramResult run_command(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  const ScratchFile out(std::tmpfile());
  const ScratchFile err(std::tmpfile());
  if (!out || !err) throw std::runtime_error("no temporary file for the output of a program");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fileno(out.get()), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fileno(err.get()), STDERR_FILENO);
  std::vector<std::string> arguments = command;
  std::vector<std::string> settings = merged_environment(environment);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments.front().c_str(), &actions, nullptr, pointers(arguments).data(),
                                 pointers(settings).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(command.front() + " does not start: " + std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out.get()), contents(err.get())};
}

ProgramResult run_draftproof(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> command{DRAFTPROOF_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run_command(command, environment);
}

}  // namespace draftproof::testing

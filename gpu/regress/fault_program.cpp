#include "gpu/regress/fault_program.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/files/own_files.hpp"
#include "base/near_names.hpp"
#include "base/split.hpp"
#include "gpu/regress/regression_json.hpp"

namespace draftproof::regress {
namespace {

constexpr const char* kEnding = ".run";

// A program whose standard output is read line by line. It does not outlive the object.
class LineReader {
 public:
  LineReader(std::vector<std::string> arguments, const std::string& where) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw input_error(where, std::string("no pipe: ") + std::strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    posix_spawn_file_actions_addclose(&actions, ends[1]);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int error = posix_spawn(&pid_, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    read_end_ = ends[0];
    if (error != 0) {
      close(read_end_);
      throw input_error(where, "the program " + arguments[0] + " does not start: " + std::strerror(error));
    }
  }
  ~LineReader() {
    close(read_end_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      wait();
    }
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False at the end.
  bool next(std::string& line) {
    std::size_t end = 0;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      std::array<char, 4096> block;
      const ssize_t count = read(read_end_, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      buffer_.append(block.data(), static_cast<std::size_t>(count));
    }
    line = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return true;
  }

  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
  int read_end_ = -1;
  std::string buffer_;
};

}  // namespace

std::string faults_folder() {
  return (program_prefix() / "faults").string();
}

std::vector<std::string> built_faults(const std::string& folder) {
  std::vector<std::string> ids;
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent))
    if (entry.path().extension() == kEnding) ids.push_back(entry.path().stem().string());
  std::sort(ids.begin(), ids.end());
  return ids;
}

void run_fault(const std::string& folder, const std::string& id, std::uint64_t seed, const std::string& where,
               const std::function<bool(CaseResult)>& result) {
  const std::vector<std::string> ids = built_faults(folder);
  if (std::find(ids.begin(), ids.end(), id) == ids.end())
    throw usage_error(where, "the fault '" + id + "' is not built; expected " +
                                 (ids.empty() ? "the tests to be built first (./draftproof test)"
                                              : "one of " + joined(ids, ", ") + did_you_mean(id, ids)));
  LineReader program({(std::filesystem::path(folder) / (id + kEnding)).string(), std::to_string(seed)}, where);
  std::string line;
  while (program.next(line)) {
    const auto row = nlohmann::ordered_json::parse(line, nullptr, false);
    if (row.is_discarded())
      throw Error(ErrorKind::internal, where, "the fault's program printed a line that is no JSON");
    if (!result(case_result_of(row, where))) return;
  }
  const int status = program.wait();
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
    throw Error(ErrorKind::internal, where, "the program of fault " + id + " did not end as it should");
}

}  // namespace draftproof::regress

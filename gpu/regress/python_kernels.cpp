#include "gpu/regress/python_kernels.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "gpu/regress/kernel_library.hpp"

namespace draftproof::regress {

PythonKernels::PythonKernels(const std::string& name, const std::vector<std::string>& command) : name_(name) {
  std::array<int, 2> requests{}, answers{};
  if (pipe(requests.data()) != 0 || pipe(answers.data()) != 0)
    throw input_error(name, std::string("no pipe to Python: ") + std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a function that never ends goes with the case
    dup2(requests[0], STDIN_FILENO);
    dup2(answers[1], STDOUT_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);  // ours, and the pipe by which a case wakes its parent
    execvp(words.front(), words.data());
    _exit(127);
  }
  close(requests[0]);
  close(answers[1]);
  to_ = requests[1];
  from_ = answers[0];
  if (pid_ < 0) throw input_error(name, std::string("Python cannot be started: ") + std::strerror(errno));
  try {
    description_ = receive_line();
  } catch (const Error& error) {
    throw input_error(name, error.what());
  }
  if (description_.contains("error"))
    throw input_error(name, printable_line(description_.at("error").get<std::string>()));
}

PythonKernels::~PythonKernels() {
  close(to_);
  close(from_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

bool PythonKernels::call(const std::string& name, std::int64_t vocab_size, const std::vector<KernelArray>& arrays) {
  nlohmann::json header{{"call", name}, {"vocab_size", vocab_size}, {"arrays", nlohmann::json::array()}};
  for (const KernelArray& array : arrays)
    header["arrays"].push_back({array.name, array.type, array.bytes, array.is_output});
  const std::string line = header.dump() + "\n";
  send(line.data(), line.size());
  for (const KernelArray& array : arrays) send(array.data, array.bytes);
  const nlohmann::json answer = receive_line();
  if (answer.contains("unsupported")) return false;
  if (answer.contains("error"))
    throw SoundFailure(answer.at("where").get<std::string>(), printable_line(answer.at("error").get<std::string>()));
  for (const KernelArray& array : arrays)
    if (array.is_output) receive(array.data, array.bytes);
  return true;
}

void PythonKernels::send(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = write(to_, at, bytes);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) lost();
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

void PythonKernels::receive(void* data, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = read(from_, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) lost();
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
}

nlohmann::json PythonKernels::receive_line() {
  std::string line;
  for (char c = 0; c != '\n'; line += c) receive(&c, 1);
  return nlohmann::json::parse(line);
}

void PythonKernels::lost() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = 0;
  throw Error(ErrorKind::internal, "Python",
              WIFSIGNALED(status) ? "it was ended by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                        strsignal(WTERMSIG(status)) + ")"
                                  : "it ended with exit code " + std::to_string(WEXITSTATUS(status)));
}

}  // namespace draftproof::regress

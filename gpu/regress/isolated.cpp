#include "gpu/regress/isolated.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

using Clock = std::chrono::steady_clock;

bool write_all(int to, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = write(to, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

// A message: its length, whether the process is spoilt, and the text.
bool write_message(int to, const IsolatedResult& result) {
  const std::string text = (result.spoilt ? "1" : "0") + result.text;
  const std::uint64_t length = text.size();
  return write_all(to, &length, sizeof length) && write_all(to, text.data(), text.size());
}

// The child: items from `first` on. Never returns, and runs nothing that the parent has registered for its end.
[[noreturn]] void serve(int to, std::size_t first, std::size_t count,
                        const std::function<IsolatedResult(std::size_t)>& item) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  for (std::size_t i = first; i < count; ++i) {
    try {
      const IsolatedResult result = item(i);
      std::fflush(nullptr);
      if (!write_message(to, result) || result.spoilt) _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(3);
    }
  }
  _exit(0);
}

class Child {
 public:
  Child(std::size_t first, std::size_t count, const std::function<IsolatedResult(std::size_t)>& item) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw input_error("child process", std::string("no pipe: ") + std::strerror(errno));
    std::fflush(nullptr);  // what is buffered here is printed once
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      serve(ends[1], first, count, item);
    }
    close(ends[1]);
    read_end_ = ends[0];
    if (pid_ < 0) {
      close(read_end_);
      throw input_error("child process", std::string("cannot be made: ") + std::strerror(errno));
    }
  }
  ~Child() {
    end();
    close(read_end_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  enum class Read { message, closed, late };
  Read read_message(IsolatedResult& result, Clock::time_point deadline) {
    for (;;) {
      std::uint64_t length = 0;
      if (buffer_.size() >= sizeof length) {
        std::memcpy(&length, buffer_.data(), sizeof length);
        if (buffer_.size() - sizeof length >= length) {
          result = {buffer_.substr(sizeof length + 1, length - 1), buffer_[sizeof length] == '1'};
          buffer_.erase(0, sizeof length + length);
          return Read::message;
        }
      }
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd ready{read_end_, POLLIN, 0};
      const int polled = poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000)));
      if (polled < 0 && errno == EINTR) continue;
      if (polled == 0 && Clock::now() >= deadline) return Read::late;
      if (polled <= 0) continue;
      std::array<char, 65536> block;
      const ssize_t count = read(read_end_, block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return Read::closed;
      buffer_.append(block.data(), static_cast<std::size_t>(count));
    }
  }

  // Waits for a child that has closed its pipe; how it ended.
  std::string how_it_ended() {
    const int status = wait();
    if (WIFSIGNALED(status))
      return "it was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
    return "it ended the process with exit code " + std::to_string(WEXITSTATUS(status));
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    wait();
  }

 private:
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    return status;
  }

  pid_t pid_ = 0;
  int read_end_ = -1;
  std::string buffer_;
};

}  // namespace

void run_isolated(std::size_t count, double seconds_max, const std::function<IsolatedResult(std::size_t)>& item,
                  const std::function<void(std::size_t, const std::string&)>& done,
                  const std::function<void(std::size_t, const std::string&)>& lost) {
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds_max));
  for (std::size_t next = 0; next < count;) {
    Child child(next, count, item);
    IsolatedResult result;
    for (bool serves = true; serves && next < count;) {
      const Child::Read read = child.read_message(result, Clock::now() + limit);
      if (read == Child::Read::message) {
        serves = !result.spoilt;
        done(next++, result.text);
        continue;
      }
      if (read == Child::Read::late) {
        char why[64];
        std::snprintf(why, sizeof why, "it did not end within %g s", seconds_max);
        lost(next++, why);
      } else {
        lost(next++, child.how_it_ended());
      }
      break;  // the child with it
    }
  }
}

}  // namespace draftproof::regress

#include "gpu/regress/isolated.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

#include "base/error.hpp"

namespace draftproof::regress {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTextMax = std::size_t{64} << 20;  // address space; of what is written alone there are pages

// Shared by parent and child: memory without a file descriptor, since the code under test may write to every one, or
// close them. The child publishes one result and waits until it is taken, so that a byte that is too many in the pipe,
// which only wakes the parent, was written in the item under way.
struct Exchange {
  std::atomic<std::uint64_t> published{0}, taken{0};
  std::uint64_t length = 0;
  bool spoilt = false;
  char text[kTextMax];
};

class SharedExchange {
 public:
  SharedExchange() {
    void* const memory =
        mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      throw input_error("child process", std::string("no shared memory: ") + std::strerror(errno));
    exchange_ = new (memory) Exchange;
  }
  ~SharedExchange() { munmap(exchange_, sizeof(Exchange)); }
  SharedExchange(const SharedExchange&) = delete;
  SharedExchange& operator=(const SharedExchange&) = delete;
  Exchange* operator->() const { return exchange_; }

 private:
  Exchange* exchange_;
};

void publish(const SharedExchange& to, int wake, const IsolatedResult& result) {
  if (result.text.size() > kTextMax) throw input_error("child process", "its result is too long");
  std::memcpy(to->text, result.text.data(), result.text.size());
  to->length = result.text.size();
  to->spoilt = result.spoilt;
  to->published.fetch_add(1, std::memory_order_release);
  const char byte = 0;
  while (write(wake, &byte, 1) < 0 && errno == EINTR) {
  }
  constexpr timespec kMoment{0, 100'000};
  while (to->taken.load(std::memory_order_acquire) < to->published.load(std::memory_order_relaxed))
    nanosleep(&kMoment, nullptr);
}

// The child: items from `first` on. Never returns, and runs nothing that the parent has registered for its end.
[[noreturn]] void serve(const SharedExchange& to, int wake, std::size_t first, std::size_t count,
                        const std::function<IsolatedResult(std::size_t)>& item) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const auto ours = static_cast<unsigned>(wake);  // of the files that the parent has open
  if (ours > 3) close_range(3, ours - 1, 0);
  close_range(std::max(3U, ours + 1), ~0U, 0);
  for (std::size_t i = first; i < count; ++i) {
    try {
      const IsolatedResult result = item(i);
      std::fflush(nullptr);
      publish(to, wake, result);
      if (result.spoilt) _exit(0);
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
      serve(exchange_, ends[1], first, count, item);
    }
    close(ends[1]);
    read_end_ = ends[0];
    fcntl(read_end_, F_SETFL, O_NONBLOCK);
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

  enum class Read { message, closed, late, foreign };
  // foreign: what the item wrote stands in our pipe.
  Read read_message(IsolatedResult& result, Clock::time_point deadline) {
    for (;;) {
      const bool is_open = drain();
      const std::uint64_t published = exchange_->published.load(std::memory_order_acquire);
      if (woken_ > published) return Read::foreign;
      if (published > taken_) {
        const std::size_t length = std::min<std::size_t>(exchange_->length, kTextMax);
        result = {std::string(exchange_->text, length), exchange_->spoilt};
        exchange_->taken.store(++taken_, std::memory_order_release);
        return Read::message;
      }
      if (Clock::now() >= deadline) return Read::late;
      if (has_ended()) {
        if (exchange_->published.load(std::memory_order_acquire) > taken_) continue;
        return Read::closed;
      }
      pollfd ready{is_open ? read_end_ : -1, POLLIN, 0};
      poll(&ready, 1, kLook_ms);
    }
  }

  // Precondition: the child has ended.
  std::string how_it_ended() const {
    if (WIFSIGNALED(status_))
      return "it was ended by signal " + std::to_string(WTERMSIG(status_)) + " (" + strsignal(WTERMSIG(status_)) + ")";
    return "it ended the process with exit code " + std::to_string(WEXITSTATUS(status_));
  }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
  }

 private:
  static constexpr int kLook_ms = 20;  // between two looks at the child, where nothing wakes us

  // Counts the bytes that have come, some at a time: who writes for ever is late all the same. False: nobody can write.
  bool drain() {
    std::array<char, 65536> block;
    const ssize_t count = read(read_end_, block.data(), block.size());
    if (count > 0) woken_ += static_cast<std::uint64_t>(count);
    return count != 0;
  }
  bool has_ended() {
    if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = 0;
    return pid_ <= 0;
  }

  SharedExchange exchange_;
  pid_t pid_ = 0;
  int read_end_ = -1;
  int status_ = 0;
  std::uint64_t taken_ = 0, woken_ = 0;  // results, and bytes in the pipe: never more than results
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
      } else if (read == Child::Read::foreign) {
        lost(next++, "it wrote into a file descriptor that it had not opened");
      } else {
        lost(next++, child.how_it_ended());
      }
      break;  // the child with it
    }
  }
}

}  // namespace draftproof::regress

#include "engine/grammar/probe.hpp"

#ifndef __EMSCRIPTEN__
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <new>
#endif

namespace draftproof {

#ifdef __EMSCRIPTEN__
bool ends_within(int, std::size_t, const std::function<void()>&) {
  return true;
}
#else
namespace {

std::size_t own_address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

bool ends_within(int seconds, std::size_t bytes, const std::function<void()>& action) {
  const std::size_t limit = own_address_space() + bytes;
  const pid_t child = fork();
  if (child < 0) return true;
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS, SIGXCPU}) std::signal(signal, SIG_DFL);
    const rlimit time{static_cast<rlim_t>(seconds), static_cast<rlim_t>(seconds) + 1};
    const rlimit space{limit, limit};
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_AS, &space);
    setrlimit(RLIMIT_CORE, &no_core);
    std::set_new_handler([] { _exit(2); });  // what is thrown instead may be caught, and told otherwise
    try {
      action();
    } catch (...) {
    }
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return true;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

}  // namespace draftproof

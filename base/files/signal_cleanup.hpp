// Cleans up after signals: temporary files, folders, and child processes that nobody would wait for.
#pragma once

#include <sys/types.h>

#include <csignal>

#include <cstddef>
#include <string>

namespace draftproof {

// SIGINT, SIGTERM, SIGHUP and SIGQUIT remove what is registered below and then end the process as they always do;
// SIGXFSZ becomes a failed write, which is an error like that of a full disk. A signal that the parent made the process
// ignore stays ignored. The program calls it once, at its start; a library does not touch its host's signals.
void clean_up_on_signals();

// Text of at most 4095 bytes that a signal writes on standard error before it ends the process.
struct SignalNote {
  std::string text;
};

// Registers one thing for as long as it lives. Where the table is full it does nothing: what a killed process leaves
// behind, the next one removes (temporary.hpp).
class SignalCleanup {
 public:
  // A file, or a folder that holds nothing but files.
  explicit SignalCleanup(const std::string& path);
  explicit SignalCleanup(pid_t process_group);
  explicit SignalCleanup(const SignalNote& note);
  ~SignalCleanup();
  SignalCleanup(const SignalCleanup&) = delete;
  SignalCleanup& operator=(const SignalCleanup&) = delete;

 private:
  std::size_t slot_;
};

// While it lives, the signals above wait: a change of several names is made as a whole. It holds for the calling
// thread, so other threads must not be running.
class SignalsHeld {
 public:
  SignalsHeld();
  ~SignalsHeld();
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace draftproof

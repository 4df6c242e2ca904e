// Progress on standard error with rate and time left: a bar on a terminal, elsewhere a line every 30 seconds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <string>

#include "base/files/signal_cleanup.hpp"

namespace draftproof {

// The bar as text of at most `columns` columns, without the carriage return. `total` 0: the end is not known, so no bar
// and no time left. A rate or time that cannot be known yet (nothing done) is left out.
std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total, const std::string& unit,
                          double elapsed_s, int columns);

// Scoped: the destructor clears the bar. All but the constructors may be called from any thread; a bar is redrawn ten
// times a second at most.
class Progress {
 public:
  // `label` says what is being done, `unit` is the plural of what is counted ("tokens"). `kept`: what an interrupting
  // signal says of what was done so far; empty: it says nothing.
  Progress(std::string label, std::uint64_t total, std::string unit, const std::string& kept = {});
  // The same on another stream.
  Progress(std::string label, std::uint64_t total, std::string unit, std::ostream& out, bool is_bar,
           std::chrono::milliseconds interval);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t count = 1);
  // A line of its own.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::string label_;
  std::uint64_t total_;
  std::string unit_;
  std::ostream& out_;
  bool is_bar_;
  std::chrono::milliseconds interval_;
  std::optional<SignalCleanup> kept_;
  Clock::time_point start_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<Clock::rep> next_draw_;
  std::mutex drawing_;
};

}  // namespace draftproof

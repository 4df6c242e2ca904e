// A progress bar on standard error with rate and time left, where that is a terminal; elsewhere silent.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace draftproof {

// The bar as text of at most `columns` columns, without the carriage return. `total` 0: the end is not known, so no bar
// and no time left. A rate or time that cannot be known yet (nothing done) is left out.
std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total, const std::string& unit,
                          double elapsed_s, int columns);

// Scoped: the destructor clears the line. advance() may be called from any thread; it redraws ten times a second at
// most.
class Progress {
 public:
  // `label` says what is being done, `unit` is the plural of what is counted ("tokens").
  Progress(std::string label, std::uint64_t total, std::string unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t count = 1);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::string label_;
  std::uint64_t total_;
  std::string unit_;
  bool visible_;
  Clock::time_point start_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<Clock::rep> next_draw_;
  std::mutex drawing_;
};

}  // namespace draftproof

// Handle that a computation on a worker thread shares with those who wait for it: progress and the wish to end.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace draftproof {

// Thrown by Job::check() out of a computation whose result nobody wants any more. No std::exception: nothing that
// reports errors may catch it by accident.
struct Cancelled {};

struct JobProgress {
  double fraction = 0;  // of the whole, in [0, 1]
  std::string doing;    // as "verifying chains, 12 of 17"
};

// Shared by the thread that computes and the one that draws.
class Job {
 public:
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // Cancelled where it was. Computations call it at least every 20 ms.
  void check() const {
    if (cancelled()) throw Cancelled{};
  }

  void report(double fraction, std::string doing) {
    const std::lock_guard lock(mutex_);
    progress_ = {fraction, std::move(doing)};
    if (on_report_) on_report_(progress_);
  }
  // Called with every report, by who computes: for a page, whose computations have no memory in common with it.
  void on_report(std::function<void(const JobProgress&)> tell) { on_report_ = std::move(tell); }
  JobProgress progress() const {
    const std::lock_guard lock(mutex_);
    return progress_;
  }

 private:
  std::atomic<bool> cancelled_{false};
  mutable std::mutex mutex_;
  JobProgress progress_;
  std::function<void(const JobProgress&)> on_report_;
};

// Final snapshot of a panel's settings, computed here and now: for command lines and tests, which have no window.

// Throws what compute() of these settings throws.
template <class Snapshot, class Settings>
Snapshot last_snapshot(const Settings& settings) {
  Job job;
  std::optional<Snapshot> last;
  compute(settings, job, [&](Snapshot published) { last = std::move(published); });
  return std::move(last).value();
}

}  // namespace draftproof

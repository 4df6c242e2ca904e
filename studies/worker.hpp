// A thread that turns settings into snapshots. The newest request wins: it cancels what is being computed. Who draws
// never waits; who tests does (settle()).
#pragma once

#ifdef __EMSCRIPTEN__
#include "studies/page_worker.hpp"
#else

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "studies/job.hpp"

namespace draftproof {

struct WorkerState {
  bool busy = false;
  JobProgress progress;  // while busy
  std::string error;     // why the latest request has no snapshot; empty where it has one
};

template <class Settings, class Snapshot>
class Worker {
 public:
  using Publish = std::function<void(Snapshot)>;
  // May publish several snapshots, each replacing the one before. Throws Error for settings that have none.
  using Compute = std::function<void(const Settings&, Job&, const Publish&)>;

  explicit Worker(Compute compute) : compute_(std::move(compute)), thread_([this] { run(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      if (job_) job_->cancel();
    }
    changed_.notify_all();
    thread_.join();
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void request(Settings settings) {
    {
      const std::lock_guard lock(mutex_);
      requested_ = std::move(settings);
      if (job_) job_->cancel();
    }
    changed_.notify_all();
  }

  // Ends the running computation without a further snapshot; the latest one stays.
  void cancel() {
    const std::lock_guard lock(mutex_);
    requested_.reset();
    if (job_) job_->cancel();
  }

  // Null before the first.
  std::shared_ptr<const Snapshot> latest() const {
    const std::lock_guard lock(mutex_);
    return latest_;
  }

  // A snapshot from elsewhere (a file): what runs is cancelled, and it is the latest.
  void show(Snapshot snapshot) {
    auto shown = std::make_shared<const Snapshot>(std::move(snapshot));
    const std::lock_guard lock(mutex_);
    requested_.reset();
    if (job_) job_->cancel();
    latest_ = std::move(shown);
    error_.clear();
  }

  WorkerState state() const {
    const std::lock_guard lock(mutex_);
    WorkerState state;
    state.busy = requested_.has_value() || job_ != nullptr;
    if (job_) state.progress = job_->progress();
    state.error = error_;
    return state;
  }

  // Waits until nothing is requested and nothing runs.
  void settle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !requested_ && !job_; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || requested_; });
      if (ending_) return;
      const Settings settings = std::move(*requested_);
      requested_.reset();
      const auto job = std::make_shared<Job>();
      job_ = job;
      error_.clear();
      lock.unlock();
      std::string error = compute(settings, *job);
      lock.lock();
      job_ = nullptr;
      if (!job->cancelled()) error_ = std::move(error);
      changed_.notify_all();
    }
  }

  // The error that ended it, or nothing.
  std::string compute(const Settings& settings, Job& job) {
    try {
      compute_(settings, job, [&](Snapshot snapshot) {
        auto shown = std::make_shared<const Snapshot>(std::move(snapshot));
        const std::lock_guard lock(mutex_);
        if (!job.cancelled()) latest_ = std::move(shown);
      });
    } catch (const Cancelled&) {
      return {};
    } catch (const Error& error) {
      return error.what();
    } catch (const std::exception& error) {
      return std::string("a bug of ours: ") + error.what();
    }
    return {};
  }

  Compute compute_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Settings> requested_;
  std::shared_ptr<Job> job_;  // of what is being computed
  std::shared_ptr<const Snapshot> latest_;
  std::string error_;
  bool ending_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace draftproof

#endif

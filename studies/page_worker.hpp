// The worker of studies/worker.hpp in a web page, which has no threads: each computes in an instance of its own of the
// same program, in a Web Worker. Settings go there and snapshots come back as they lie in memory: copies whose every
// byte is in an arena that has the same address in all instances, as have functions and tables, so that their pointers
// hold on the other side.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "studies/job.hpp"

namespace draftproof {

struct WorkerState {
  bool busy = false;
  JobProgress progress;  // while busy
  std::string error;     // why the latest request has no snapshot; empty where it has one
};

namespace page {

// While one lives, what is allocated lies in the arena, from its beginning on, and is never freed.
class IntoArena {
 public:
  IntoArena();
  ~IntoArena();
  IntoArena(const IntoArena&) = delete;
  IntoArena& operator=(const IntoArena&) = delete;
};
void* arena_begin();

enum class Answer { snapshot, end, error, progress };

// Known by its place in the order in which they are made, which is the same in all instances.
class Computation {
 public:
  Computation();
  virtual ~Computation();
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

  virtual void compute_here() = 0;  // in the second instance: the settings are in the arena
  // In the page. `more`: a newer request waits or runs. text: of an error, or of progress (text_of()).
  virtual void take(Answer answer, bool more, std::string text) = 0;

 protected:
  void ask() const;   // in the page: computes what is in the arena, after what it computes now
  void stop() const;  // in the page: ends the second instance
  void publish(Answer answer, const std::string& text = {}) const;  // in the second instance

 private:
  int place_;
};

// "0.25 verifying chains", and back.
inline std::string text_of(const JobProgress& progress) {
  return std::to_string(progress.fraction) + " " + progress.doing;
}
inline JobProgress progress_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  return {std::stod(text.substr(0, space)), text.substr(space + 1)};
}

// Shared objects of a copy become its own; those that nobody draws, and of a kind that only its maker knows, are
// dropped.
template <class Value>
void detach(std::vector<std::shared_ptr<const Value>>& shared) {
  for (auto& value : shared) value = std::make_shared<const Value>(*value);
}
template <class Snapshot>
void detach(Snapshot& snapshot) {
  if constexpr (requires {
                  snapshot.prompts;
                  snapshot.reliability;
                })
    detach(snapshot.prompts);
  if constexpr (requires { snapshot.plain.steps; }) {
    detach(snapshot.plain.steps);
    detach(snapshot.speculation.steps);
  }
  if constexpr (requires { snapshot.scenario.policies; }) {
    for (auto& policy : snapshot.scenario.policies) policy.cost.reset();
    snapshot.scenario.workload.recorded.reset();
  }
}

template <class Value>
void pack(const Value& value) {
  const IntoArena into;
  detach(*new Value(value));
}
template <class Value>
Value unpacked() {
  Value value(*static_cast<const Value*>(arena_begin()));
  detach(value);
  return value;
}

}  // namespace page

template <class Settings, class Snapshot>
class Worker : page::Computation {
 public:
  using Publish = std::function<void(Snapshot)>;
  using Compute = std::function<void(const Settings&, Job&, const Publish&)>;

  explicit Worker(Compute compute) : compute_(std::move(compute)) {}

  void request(Settings settings) {
    page::pack(settings);
    if (!busy_) progress_ = {0, "waiting for the instance beside the page"};
    busy_ = true;
    ask();
  }
  void cancel() {
    stop();
    busy_ = false;
  }
  std::shared_ptr<const Snapshot> latest() const { return latest_; }
  void show(Snapshot snapshot) {
    cancel();
    latest_ = std::make_shared<const Snapshot>(std::move(snapshot));
    error_.clear();
  }
  WorkerState state() const { return {busy_, busy_ ? progress_ : JobProgress{}, error_}; }
  void settle() {}  // nobody waits in a page

 private:
  void compute_here() override {
    try {
      Job job;
      job.on_report([this, told = std::chrono::steady_clock::time_point()](const JobProgress& progress) mutable {
        constexpr std::chrono::milliseconds kInterval{50};
        const auto now = std::chrono::steady_clock::now();
        if (now - told < kInterval) return;
        told = now;
        publish(page::Answer::progress, page::text_of(progress));
      });
      compute_(page::unpacked<Settings>(), job, [&](Snapshot snapshot) {
        page::pack(snapshot);
        publish(page::Answer::snapshot);
      });
      publish(page::Answer::end);
    } catch (const Error& error) {
      publish(page::Answer::error, error.what());
    } catch (const std::exception& error) {
      publish(page::Answer::error, std::string("a bug of ours: ") + error.what());
    }
  }
  void take(page::Answer answer, bool more, std::string text) override {
    if (answer == page::Answer::snapshot) {
      latest_ = std::make_shared<const Snapshot>(page::unpacked<Snapshot>());
      error_.clear();
      return;
    }
    if (answer == page::Answer::progress) {
      progress_ = page::progress_of(text);
      return;
    }
    busy_ = more;
    error_ = std::move(text);
  }

  Compute compute_;
  bool busy_ = false;
  JobProgress progress_;
  std::shared_ptr<const Snapshot> latest_;
  std::string error_;
};

}  // namespace draftproof

// The processes of a sweep or a study that mpirun has started: rank 0 hands out points (of a study, its runs) and has
// what they become, the others ask it. Behind it stands MPI where the build found its headers; without, one process.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "reference/shard/devices.hpp"
#include "sim/serving/row_store.hpp"

namespace draftproof {

// Who computes which point, and where its rows go. Asked by threads that compute; safe for several at once.
class Points {
 public:
  virtual ~Points() = default;
  virtual std::optional<std::size_t> next() = 0;
  virtual void deliver(std::size_t point, const std::vector<Row>& rows) = 0;
};

// In the process that has the file.
class OwnPoints final : public Points {
 public:
  // on_point: takes the rows of each, under the lock.
  OwnPoints(std::deque<std::size_t> points, std::function<void(std::size_t, const std::vector<Row>&)> on_point)
      : points_(std::move(points)), on_point_(std::move(on_point)) {}

  std::optional<std::size_t> next() override {
    const std::lock_guard lock(mutex_);
    if (points_.empty()) return std::nullopt;
    const std::size_t point = points_.front();
    points_.pop_front();
    return point;
  }
  void deliver(std::size_t point, const std::vector<Row>& rows) override {
    const std::lock_guard lock(mutex_);
    on_point_(point, rows);
  }
  // After an error: nobody gets another one.
  void give_up() {
    const std::lock_guard lock(mutex_);
    points_.clear();
  }

 private:
  std::mutex mutex_;
  std::deque<std::size_t> points_;
  std::function<void(std::size_t, const std::vector<Row>&)> on_point_;
};

class Ranks {
 public:
  // Joins the others if mpirun started this process. Error (usage): it did, and the program was built without MPI.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // Whether mpirun started this process.
  static bool is_started();
  // A variable of the environment (NAME=VALUE) by which a program would take itself for one of the ranks.
  static bool is_of_mpirun(std::string_view variable);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int size_on_this_machine() const { return local_size_; }

  // Rank 0: answers the other ranks until they have no more to ask. Call it while other threads compute.
  void serve(Points& points);
  // Other ranks: the points of rank 0. Says goodbye when it ends.
  std::unique_ptr<Points> points_of_rank_0();
  // Sums and maxima over the processes; null where mpirun did not start this one.
  std::unique_ptr<Collectives> collectives();
  // Several: says the error and ends all, since the others wait for this one; all find the same fault in a file, and
  // one says it. Returns where there is one only.
  void end_all(const Error& error);

 private:
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
};

}  // namespace draftproof

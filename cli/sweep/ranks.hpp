// The processes of a sweep that mpirun has started: rank 0 hands out points and has the file, the others ask it.
// Behind it stands MPI where the build found its headers; without, a sweep is one process.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/serving/row_store.hpp"

namespace draftproof {

// Who computes which point of a sweep, and where its rows go.

// Asked by threads that compute; safe for several at once.
class Points {
 public:
  virtual ~Points() = default;
  virtual std::optional<std::size_t> next() = 0;
  virtual void deliver(std::size_t point, const std::vector<Row>& rows) = 0;
};

// In the process that has the file.
class OwnPoints final : public Points {
 public:
  // on_point: told after each point, under the lock.
  OwnPoints(std::deque<std::size_t> points, RowStore& store, std::function<void()> on_point)
      : points_(std::move(points)), store_(store), on_point_(std::move(on_point)) {}

  std::optional<std::size_t> next() override {
    const std::lock_guard lock(mutex_);
    if (points_.empty()) return std::nullopt;
    const std::size_t point = points_.front();
    points_.pop_front();
    return point;
  }
  void deliver(std::size_t point, const std::vector<Row>& rows) override {
    const std::lock_guard lock(mutex_);
    store_.add(static_cast<std::int64_t>(point), rows);
    on_point_();
  }
  // After an error: nobody gets another one.
  void give_up() {
    const std::lock_guard lock(mutex_);
    points_.clear();
  }

 private:
  std::mutex mutex_;
  std::deque<std::size_t> points_;
  RowStore& store_;
  std::function<void()> on_point_;
};

class Ranks {
 public:
  // Joins the others if mpirun started this process. Error (usage): it did, and the program was built without MPI.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int size_on_this_machine() const { return local_size_; }

  // Rank 0: answers the other ranks until they have no more to ask. Call it while other threads compute.
  void serve(Points& points);
  // Other ranks: the points of rank 0. Says goodbye when it ends.
  std::unique_ptr<Points> points_of_rank_0();
  // After an error that was shown: ends all ranks with this exit code. Returns where there is one only.
  void end_all(int exit_code);

 private:
  int rank_ = 0;
  int size_ = 1;
  int local_size_ = 1;
};

}  // namespace draftproof

// Who computes which point of a sweep, and where its rows go.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/serving/row_store.hpp"

namespace draftproof {

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

}  // namespace draftproof

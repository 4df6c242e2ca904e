#include "base/parallel.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "reference/random/philox.hpp"
#include "tests/support/test.hpp"

TEST_CASE("Every item is visited once by a thread that exists for any number of items and threads") {
  for (const int threads : {1, 2, 3, 8}) {
    for (const std::int64_t items : {0, 1, 7, 64, 65, 1000}) {
      std::vector<int> visits(static_cast<std::size_t>(items), 0);
      std::vector<int> by(static_cast<std::size_t>(items), -1);
      parallel_for(items, threads, [&](std::int64_t item, int thread) {
        ++visits[static_cast<std::size_t>(item)];
        by[static_cast<std::size_t>(item)] = thread;
      });
      CHECK(visits == std::vector<int>(static_cast<std::size_t>(items), 1));
      for (const int thread : by) CHECK((thread >= 0 && thread < threads));
    }
  }
}

TEST_CASE("Results do not depend on the number of threads") {
  const auto run = [](int threads) {
    std::vector<std::uint64_t> out(5000);
    parallel_for(5000, threads, [&](std::int64_t item, int) {
      out[static_cast<std::size_t>(item)] = derive_seed(1, static_cast<std::uint64_t>(item));
    });
    return out;
  };
  const std::vector<std::uint64_t> one = run(1);
  for (const int threads : {2, 3, 7}) CHECK(run(threads) == one);
}

TEST_CASE("Two threads work at the same time") {
  // No item ends before both threads have begun one; a loop that used one thread would run into the deadline.
  std::atomic<bool> begun[2] = {false, false};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  parallel_for(64, 2, [&](std::int64_t, int thread) {
    begun[thread] = true;
    while (!(begun[0] && begun[1]) && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  CHECK(begun[0]);
  CHECK(begun[1]);
}

TEST_CASE("Of several errors the one of the lowest item is thrown whatever the timing") {
  for (const int threads : {1, 2, 5}) {
    for (int repeat = 0; repeat < 30; ++repeat) {
      std::string message;
      try {
        parallel_for(400, threads, [&](std::int64_t item, int) {
          // The lowest bad item is slow, so that those after it fail first in time.
          if (item == 37) std::this_thread::sleep_for(std::chrono::microseconds(200));
          if (item >= 37 && item % 3 == 1) throw std::runtime_error(std::to_string(item));
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      CHECK(message == "37");
    }
  }
}

// Data parallelism over independent items, in one place. Results cannot depend on the number of threads, because every
// item writes only its own slot and draws its randomness from its own addresses.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace draftproof {

// Calls body(item, thread) for every item in [0, items), thread in [0, threads). Of the exceptions thrown, the one of
// the lowest item is rethrown, so that an error message does not depend on the timing either.
template <class Body>
void parallel_for(std::int64_t items, int threads, Body body) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr first_error;
  std::int64_t first_error_item = std::numeric_limits<std::int64_t>::max();
  // Chunks are claimed, not assigned, since rows differ in cost; small enough to balance, large enough to be cheap.
  const std::int64_t chunk = std::max<std::int64_t>(1, std::min<std::int64_t>(64, items / (64 * std::max(1, threads))));
  const auto work = [&](int thread) {
    for (;;) {
      const std::int64_t begin = next.fetch_add(chunk);
      if (begin >= items) return;
      for (std::int64_t item = begin; item < std::min(items, begin + chunk); ++item) {
        try {
          body(item, thread);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (item < first_error_item) {
            first_error_item = item;
            first_error = std::current_exception();
          }
          next.store(items);  // the items before this one have all been claimed already
          return;
        }
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int thread = 1; thread < threads; ++thread) workers.emplace_back(work, thread);
    work(0);
  }
  if (first_error) std::rethrow_exception(first_error);
}

}  // namespace draftproof
